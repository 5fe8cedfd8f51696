"""What does the `saem` command do?

``saem lab`` opens the lessons in JupyterLab, ``saem doctor`` says what is installed and what is
missing, ``saem l10n`` holds the translators' tools.

Read before: nothing.  Read after: ``main`` (the way in), ``commands``, ``lessons``, ``server``.
Invariant: nothing in the engine, the lens or the lessons imports this room.
"""
