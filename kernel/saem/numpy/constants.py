"""Which numbers does ``jax.numpy`` name?

Python floats, so that they give way in promotion: ``jnp.pi * x`` keeps the dtype of x.

Read before: nothing.  Read after: nothing.
"""

import numpy as np

pi = np.pi
e = np.e
euler_gamma = np.euler_gamma
inf = np.inf
nan = np.nan
newaxis = None
