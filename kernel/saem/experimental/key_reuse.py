"""Is a PRNG key used twice?  (``jax.experimental.key_reuse``: a page of words, without names)

Ask with ``jax.debug_key_reuse(True)``, or ``config.update("jax_debug_key_reuse", True)``: a key
used a second time then raises ``jax.errors.KeyReuseError``, which names both uses and the family of
the key.
How it is found: ``saem.random.key_flow`` in programs, ``saem.random.reuse`` outside.
"""
