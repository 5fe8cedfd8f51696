"""Which generators of random bits are there besides Threefry, which the spine has?

Read before: ``ops.keys``, ``ops.random_bits``.  Read after: ``random.keys``, ``saem.lax``.
"""
