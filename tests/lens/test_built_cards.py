"""Does a notebook that is built show the card of an error, and the same one each time?

Read before: ``saem.l10n.execute``, ``saem.lens.tracebacks``.  Read after: nothing.
Invariant: two runs, two processes, one text, and no path of this machine in it.
"""

from __future__ import annotations

import base64
import gzip
import json
import re

import nbformat
import pytest

from saem.l10n.execute import RAISES, execute, is_card

CELLS = (
    "%load_ext saem.lens\nimport saem as jax",
    "@jax.jit\ndef f(x):\n    y = x * 2\n    if y > 0:\n        return y\nf(1.)",
    "held = []\n@jax.jit\ndef g(x):\n    held.append(x * 2)\n    return x\ng(1.)\nheld[0] + 1",
)
DATA = re.compile(r'class="saem-data">([^<]*)')


def built(language):
    cells = [nbformat.v4.new_code_cell(text, id=f"c{at}", metadata={"tags": [RAISES] if at else []})
             for at, text in enumerate(CELLS)]
    notebook = nbformat.v4.new_notebook(
        cells=cells, metadata={"saem": {"language": language, "lesson": "cards"}})
    execute(notebook)
    return notebook.cells[1:]


@pytest.mark.parametrize(("language", "sentence"), [
    ("en", "Python asked a traced value: true or false?"),
    ("ko", "Python이 추적 중인 값에 참인지 거짓인지 물었습니다")])
def test_a_built_notebook_keeps_the_card_of_an_error(language, sentence, monkeypatch):
    monkeypatch.setenv("SAEM_LANG", language)
    once, again = built(language), built(language)
    for cell in once:
        error, card = cell.outputs
        assert error.output_type == "error"
        assert is_card(card)
        (packed,) = DATA.findall(card.data["text/html"])
        model = gzip.decompress(base64.b64decode(packed)).decode()
        assert "ipykernel" not in model + card.data["text/html"]
        assert json.loads(model)["place"]["file"].startswith("<cell ")
    assert sentence in once[0].outputs[1].data["text/html"]
    assert [cell.outputs for cell in once] == [cell.outputs for cell in again]
