"""How does one lesson become a notebook in every language, and stay right in all of them?

In the order of work: :mod:`source` reads a lesson, :mod:`units` cuts it into what is translated,
:mod:`catalog` keeps translations in PO files, :mod:`merge` brings them up to date with a changed
lesson, :mod:`assemble` and :mod:`build` make the notebooks, :mod:`lint` looks for mistakes,
:mod:`review` keeps who translated and who reviewed.  :mod:`commands` is ``saem l10n``.

Invariant: no step ever drops a translation (tests/notebooks/test_merge.py).
"""

import sys

# nbformat loads jsonschema, which loads a checker of addresses with letters of all languages, and
# that builds forty parsers: a second's work.  The format of notebooks has no such addresses.
_SLOW = "rfc3987_syntax"
if _SLOW not in sys.modules:
    sys.modules[_SLOW] = None  # type: ignore[assignment]
    try:
        import nbformat  # noqa: F401
    finally:
        del sys.modules[_SLOW]
