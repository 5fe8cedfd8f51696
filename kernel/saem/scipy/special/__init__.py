"""Which functions of mathematical physics and statistics are there?

The public namespace ``jax.scipy.special``.  This file only lists; each line names a module.

Read before: ``saem.numpy``.  Read after: ``special.operands``.
Invariant: values are SciPy's to the rounding of the dtype, or to what each module states; dtypes
and derivatives are JAX's (tests/kernel/scipy/test_special.py).
"""

import importlib as _importlib
import warnings as _warnings
from typing import Any as _Any

from saem.core import lazy as _lazy

_DEPRECATED = ("lpmn", "lpmn_values")

_find, __dir__ = _lazy.namespace(__name__, {
    "saem.nn.logarithms": "logsumexp",
    "saem.scipy.special.bessel": "bessel_jn i0 i0e i1 i1e sph_harm_y",
    "saem.scipy.special.entropies":
        "boxcox boxcox1p entr expit kl_div log_softmax logit rel_entr softmax xlog1py xlogy",
    "saem.scipy.special.faddeeva": "dawsn erfcx wofz",
    "saem.scipy.special.gammas":
        "bernoulli beta betainc betaln comb digamma factorial gamma gammainc gammaincc gammaln "
        "gammasgn loggamma multigammaln poch polygamma zeta",
    "saem.scipy.special.hypergeometric": "hyp1f1 hyp2f1",
    "saem.scipy.special.integrals": "exp1 expi expn fresnel sici spence",
    "saem.scipy.special.normal": "erf erfc erfinv log_ndtr ndtr ndtri owens_t",
})


def __getattr__(name: str) -> _Any:
    if name not in _DEPRECATED:
        return _find(name)
    _warnings.warn(f"jax.scipy.special.{name} is deprecated; no replacement is planned.",
                   DeprecationWarning, stacklevel=2)
    return getattr(_importlib.import_module("saem.scipy.special.legendre"), name)
