"""Which lesson do tests of the translation tools work on, and what stands in its tree?"""

from pathlib import Path

LESSON = '''\
---
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

+++ {"id": "title"}

# A title

First paragraph with `code` and 3 numbers.

- one
- two

```python
untranslated = "code"
```

+++ {"id": "maths", "tags": ["x"]}

$$f(x) = x_1 * x_2$$

Second paragraph.

```{code-cell} ipython3
:id: run
:tags: [slow]

# A comment
# of two lines
from saem.lesson import t

%config InlineBackend.figure_format = "png"
value = 1 + 1  # trailing
print(t("Hello"), value)
```
'''


def contents(root: Path) -> dict[Path, bytes]:
    """Every file under ``root``, but the lock of the tools, which is empty and ignored by git."""
    return {path: path.read_bytes() for path in root.rglob("*")
            if path.is_file() and path.name != "l10n.lock"}
