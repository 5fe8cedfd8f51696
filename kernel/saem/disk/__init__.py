"""Programs that are kept on disk from kernel to kernel: the folder, its entries, the writing.

Read before: ``compile.executables``, which asks for an entry before it compiles.
"""
