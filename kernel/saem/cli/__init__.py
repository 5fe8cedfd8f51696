"""What does the `saem` command do?

``saem lab`` opens the lessons in JupyterLab, ``saem doctor`` says what is installed and what is
missing, ``saem run`` runs a program written for JAX, ``saem kernel install`` lets Jupyter offer the
kernel "Saem", ``saem l10n`` holds the translators' tools.

Read before: nothing.  Read after: ``main`` (the way in), ``commands``, ``lessons``, ``server``.
Invariant: nothing in the engine, the lens or the lessons imports this room.
"""
