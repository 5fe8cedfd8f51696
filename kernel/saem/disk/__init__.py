"""How are compiled programs kept on disk from kernel to kernel?

Read before: ``compile.executables``, which asks for an entry before it compiles.
"""
