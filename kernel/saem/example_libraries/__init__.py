"""Where are small libraries that show how to build on the engine?  (``jax.example_libraries``)"""

from saem.core import lazy as _lazy

# From a module to the names it offers here ("" for the module itself).
__getattr__, __dir__ = _lazy.namespace(__name__, {
    "saem.example_libraries.optimizers": "",
    "saem.example_libraries.stax": "",
})
