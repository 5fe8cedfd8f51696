"""Which operations see an array as a signal: as frequencies, under a kernel, through windows?

Read before: ``ops.contract``, ``ops.reduce``.
Read after: ``saem.lax``, ``saem.numpy.fft``, ``saem.scipy.signal``.
"""
