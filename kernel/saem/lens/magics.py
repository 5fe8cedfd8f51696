"""What do ``%lens`` and ``%%lens`` do?

``%%lens tracers`` runs a cell and shows what each line of each traced function saw; ``%%lens
jaxpr`` (or ``steps``, ``autodiff``, ``compiled``) runs a cell and shows that view of the call on
its last line.  ``%lens devices`` (or ``keys``, ``recompiles``) shows what there is now.

Read before: ``saem.lens.views``.  Read after: ``saem.lens.extension``.
Invariant: a cell under ``%%lens tracers`` computes what it would without it
(tests/lens/test_ipython.py).
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from saem.lens import cells, views
from saem.observe import words
from saem.observe.look import looking
from saem.observe.xray import Xray

_OF_CALLS: dict[str, Callable[[Callable], Callable]] = {
    "jaxpr": views.jaxpr, "steps": views.steps, "autodiff": views.autodiff,
    "compiled": views.compiled,
}  # fmt: skip
# Keeps the cell's lines where they are: the magic's own line was the first.
_FIRST_LINE = "# %%lens\n"


def lens(shell: InteractiveShell, line: str, cell: str | None = None) -> None:
    """The magic itself; raises UsageError for a view it does not know."""
    name, _, rest = line.strip().partition(" ")
    name = name or "recompiles"
    if rest and rest != "whole":
        raise UsageError(f"%%lens {name} takes nothing more, but got {rest!r}")
    # JupyterLab's commands give the whole cell, without a first line ``%%lens``.
    cell = cell if cell is None or rest else _FIRST_LINE + cell
    if cell is None:
        display(now(shell, name))
    elif name == "tracers":
        xray_cell(shell, cell)
    elif name in _OF_CALLS:
        display(last_call(shell, _OF_CALLS[name], cell))
    else:
        known = ["tracers", *_OF_CALLS]
        raise UsageError(f"%%lens needs one of {', '.join(known)}, but got {name!r}")


def now(shell: InteractiveShell, name: str) -> Any:
    """A view of what there is now."""
    if name == "devices":
        return views.devices(visible(shell))
    if name == "keys":
        return views.keys()
    if name in ("recompiles", "history"):
        return views.recompiles()
    raise UsageError(f"%lens needs recompiles, keys or devices, but got {name!r}")


def visible(shell: InteractiveShell) -> dict[str, Any]:
    """The notebook's variables that a learner made."""
    hidden = shell.user_ns_hidden
    return {name: value for name, value in shell.user_ns.items()
            if not name.startswith("_") and name not in hidden}


def xray_cell(shell: InteractiveShell, cell: str) -> None:
    """Run a cell as it is, and show what its traced functions saw."""
    with looking(), Xray() as xray:
        result = shell.run_cell(
            cell, store_history=False, silent=False,
            cell_id=cells.current_cell_id(shell))
    display(views.View(xray.model(error=result.error_before_exec or result.error_in_exec)))


def last_call(shell: InteractiveShell, view: Callable[[Callable], Callable], cell: str) -> Any:
    """Run a cell up to its last line, a call, and show the view of that call."""
    transformed = shell.transform_cell(cell)
    tree = ast.parse(transformed)
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr) or not isinstance(last.value, ast.Call):
        raise UsageError(words.say_plainly("magic.call"))
    name = shell.compile.cache(transformed, shell.execution_count, raw_code=cell)
    cells.name_running(shell, name)
    before = ast.Module(tree.body[:-1], type_ignores=[])
    call = last.value
    exec(compile(before, name, "exec"), shell.user_global_ns, shell.user_ns)
    parts = ast.Expression(ast.Tuple(
        [call.func,
         ast.Tuple(list(call.args), ast.Load()),
         ast.Call(ast.Name("dict", ast.Load()), [], list(call.keywords))],
        ast.Load()))
    ast.copy_location(parts.body, call)
    code = compile(ast.fix_missing_locations(parts), name, "eval")
    fun, args, named = eval(code, shell.user_global_ns, shell.user_ns)
    if getattr(fun, "__self__", None) is shell:  # a line such as %time or !ls
        raise UsageError(words.say_plainly("magic.call"))
    return view(fun)(*args, **named)


def install(shell: InteractiveShell) -> None:
    """Teach the shell ``%lens`` and ``%%lens``."""
    def magic(line: str, cell: str | None = None) -> None:
        lens(shell, line, cell)

    register: Any = shell.register_magic_function
    register(magic, "line_cell", "lens")


def remove(shell: InteractiveShell) -> None:
    """Let the shell forget them."""
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop("lens", None)
