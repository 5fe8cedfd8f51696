"""What stands behind private names of JAX for which Saem has no object of its own?

Each definition here is named in the table of ``dropin.private_names``, with the library that needs
it.

Read before: ``dropin.private_names``.
Invariant: each does for its library what JAX's does, on Saem's own state; none is a placeholder
(tests/kernel/test_dropin.py).
"""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

from saem.core import axes, source, tree
from saem.core.handles import handle_of
from saem.core.trace import eval_trace, state
from saem.derivatives.stop_gradient import StopGradient
from saem.placement import devices

Function = TypeVar("Function", bound=Callable[..., Any])

stop_gradient_p = handle_of(StopGradient())


def api_boundary(fun: Function, **_options: Any) -> Function:
    """Return ``fun`` itself: which frames of a traceback are shown is the lens's affair."""
    return fun


def include_frame(frame: FrameType) -> bool:
    """Return whether ``frame`` belongs to the user rather than to the engine or a library."""
    return not source.is_internal(frame.f_code.co_filename)


def trace_state_clean() -> bool:
    """Return whether no transformation is at work here."""
    return state.trace is eval_trace and not axes.state.env


class RegisteredTypes:
    """The container types of pytrees: ``cls in registered_types``."""

    def __contains__(self, cls: object) -> bool:
        return isinstance(cls, type) and tree.is_tree_node(cls)


registered_types = RegisteredTypes()


class GlobalState:
    """This process among those that ``distributed.initialize`` joined."""

    @property
    def process_id(self) -> int:
        """The number of this process, 0 where there is one."""
        return devices.processes[0].node_id if devices.processes else 0

    @property
    def num_processes(self) -> int:
        """The number of processes."""
        return devices.processes[0].num_nodes if devices.processes else 1

    @property
    def client(self) -> Any:
        """The connection to the coordination service, None where there is one process."""
        return devices.processes[0].client if devices.processes else None


global_state = GlobalState()
