"""How does a compiled program report that something went wrong?  (``jax.experimental.checkify``)"""

from saem.experimental.checkify.checks import (
    Error,
    JaxRuntimeError,
    check,
    check_error,
    debug_check,
    init_error,
)
from saem.experimental.checkify.operations import ErrorCategory
from saem.experimental.checkify.transform import (
    all_checks,
    automatic_checks,
    checkify,
    div_checks,
    float_checks,
    index_checks,
    nan_checks,
    user_checks,
)

__all__ = [
    "Error", "ErrorCategory", "JaxRuntimeError", "all_checks", "automatic_checks", "check",
    "check_error", "checkify", "debug_check", "div_checks", "float_checks", "index_checks",
    "init_error", "nan_checks", "user_checks",
]


def __dir__() -> list[str]:
    """Return the public names alone, without the modules of this package."""
    return __all__
