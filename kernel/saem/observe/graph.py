"""How is a jaxpr drawn as a graph?

As Graphviz source, which ``saem.lens`` offers as a ``Digraph`` and the browser lays out.  Equations
are boxes, inputs and outputs ellipses, an arrow is a variable; a nested jaxpr is a frame.

Read before: ``saem.observe.schema`` (Body).  Read after: ``saem.lens.display``.
Invariant: every name and label is quoted, so no text from a program can end a string or add a
node (tests/lens/test_jaxpr_model.py).
"""

from __future__ import annotations

from saem.observe.schema import Body, Equation

# Beyond this many equations nested jaxprs are drawn closed.
_OPEN_LIMIT = 200


def quoted(text: str) -> str:
    """The text as a quoted Graphviz string, shown as it is."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def dot(body: Body) -> str:
    """Graphviz source of a jaxpr."""
    drawing = _Drawing(opens=_count(body) <= _OPEN_LIMIT)
    drawing.body(body, "")
    return "\n".join(
        [
            "digraph jaxpr {",
            '  graph [rankdir=TB, fontname="sans-serif", fontsize=11]',
            '  node [fontname="sans-serif", fontsize=11, height=0.3, margin="0.1,0.04"]',
            '  edge [fontname="sans-serif", fontsize=9, arrowsize=0.6]',
            *drawing.lines,
            "}",
        ]
    )


def _count(body: Body) -> int:
    return sum(1 + sum(_count(n.body) for n in e.nested) for e in body.equations)


class _Drawing:
    """Writes nodes and edges; ``made`` maps a variable's id to the node that makes it."""

    def __init__(self, opens: bool) -> None:
        self.lines: list[str] = []
        self.opens = opens

    def body(self, body: Body, path: str) -> list[str | None]:
        """Draw a jaxpr; returns, for each output, the node that makes it."""
        made: dict[str, str] = {}
        for atom in (*body.constants, *body.inputs):
            self._node(atom.id or "", f"{atom.text}:{atom.type}", "ellipse", atom.id)
            if atom.id is not None:
                made[atom.id] = atom.id
        for equation in body.equations:
            self._equation(equation, made)
        makers = [made.get(atom.id or "") for atom in body.outputs]
        if path == "":
            for index, (atom, maker) in enumerate(zip(body.outputs, makers, strict=True)):
                node = f"out{index}"
                self._node(node, f"{atom.text}:{atom.type}", "ellipse", node, "bold")
                if maker is not None:
                    self._edge(maker, node, atom.text)
        return makers

    def _equation(self, equation: Equation, made: dict[str, str]) -> None:
        style = "filled,rounded" if equation.colour == "backward" else "rounded"
        label = equation.primitive
        literals = [atom.text.partition(":")[0] for atom in equation.inputs if atom.id is None]
        if literals:
            label += f" ({', '.join(literals)})"
        self._node(equation.id, label, "box", equation.id, style)
        for atom in equation.inputs:
            if atom.id in made:
                self._edge(made[atom.id or ""], equation.id, f"{atom.text}:{atom.type}")
        for nested in equation.nested if self.opens else ():
            self.lines.append(f"  subgraph {quoted(f'cluster {equation.id} {nested.label}')} {{")
            self.lines.append(f"    label={quoted(f'{equation.primitive}: {nested.label}')}")
            self.lines.append("    style=rounded")
            for maker in dict.fromkeys(self.body(nested.body, equation.id)):
                if maker is not None:
                    self._edge(maker, equation.id, "", "dotted")
            self.lines.append("  }")
        made.update({atom.id: equation.id for atom in equation.outputs if atom.id is not None})

    def _node(
        self, name: str, label: str, shape: str, identity: str | None, style: str = ""
    ) -> None:
        extra = f", style={quoted(style)}" if style else ""
        self.lines.append(
            f"  {quoted(name)} [id={quoted(identity or name)}, label={quoted(label)}, "
            f"shape={shape}{extra}]"
        )

    def _edge(self, source: str, target: str, label: str, style: str = "") -> None:
        extra = f", style={style}" if style else ""
        self.lines.append(
            f"  {quoted(source)} -> {quoted(target)} [label={quoted(label)}{extra}]"
        )
