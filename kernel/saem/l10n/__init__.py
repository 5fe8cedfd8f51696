"""How does one lesson become a notebook in every language, and stay right in all of them?

In the order of work: :mod:`source` reads a lesson, :mod:`units` cuts it into what is translated,
:mod:`catalog` keeps translations in PO files, :mod:`merge` brings them up to date with a changed
lesson, :mod:`assemble` and :mod:`build` make the notebooks, :mod:`lint` looks for mistakes,
:mod:`review` keeps who translated and who reviewed.  :mod:`commands` is ``saem l10n``.

Invariant: no step ever drops a translation (tests/notebooks/test_merge.py).
"""
