"""How are parameters moved along gradients?  (``jax.example_libraries.optimizers``)

An optimizer is three functions::

    opt_init, opt_update, get_params = optimizers.adam(1e-3)
    opt_state = opt_init(params)
    for i in range(steps):
        opt_state = opt_update(i, grad(loss)(get_params(opt_state)), opt_state)

Each is written for one array; ``optimizer`` makes it work on a pytree of parameters.  A step size
is a number or a *schedule*, a function of the step.

Read before: ``saem.tree``.
Invariant: each optimizer takes the steps of JAX's (tests/kernel/test_example_libraries.py).
Source: the papers named at each optimizer; the documentation of jax.example_libraries.optimizers.
"""

from __future__ import annotations

import functools
from collections import namedtuple
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import saem.numpy as jnp
from saem import tree_util
from saem.typing import Array

Params = Any
State = Any
Step = int
Schedule = Callable[[Step], float]

# The state of an optimizer: the states of all parameters in one flat tuple.
OptimizerState = namedtuple("OptimizerState", ["packed_state", "tree_def", "subtree_defs"])
tree_util.register_pytree_node(
    OptimizerState,
    lambda state: ((state.packed_state,), (state.tree_def, state.subtree_defs)),
    lambda static, children: OptimizerState(children[0], *static))


class Optimizer(NamedTuple):
    """An optimizer: how it begins, takes a step, and gives the parameters."""

    init_fn: Callable[[Params], OptimizerState]
    update_fn: Callable[[Step, Any, OptimizerState], OptimizerState]
    params_fn: Callable[[OptimizerState], Params]


def optimizer(opt_maker: Callable[..., tuple[Callable, Callable, Callable]]
              ) -> Callable[..., Optimizer]:
    """Make an optimizer for one array, ``(init, update, get_params)``, work on pytrees.

    ``init(x0)`` gives the state, ``update(i, g, state)`` the next, ``get_params(state)`` the array.

    Raises, in the step: TypeError for gradients of another structure than the parameters.
    """

    @functools.wraps(opt_maker)
    def tree_opt_maker(*args: Any, **kwargs: Any) -> Optimizer:
        init, update, get_params = opt_maker(*args, **kwargs)

        def tree_init(params: Params) -> OptimizerState:
            leaves, treedef = tree_util.tree_flatten(params)
            states = [tree_util.tree_flatten(init(x)) for x in leaves]
            return OptimizerState(tuple(tuple(flat) for flat, _ in states), treedef,
                                  tuple(inner for _, inner in states))

        def tree_update(i: Step, grad_tree: Any, opt_state: OptimizerState) -> OptimizerState:
            packed, treedef, inner = opt_state
            grads, grads_def = tree_util.tree_flatten(grad_tree)
            if grads_def != treedef:
                raise TypeError(f"optimizer update function was passed a gradient tree that did "
                                "not match the parameter tree structure with which it was "
                                f"initialized: parameter tree {treedef} and grad tree {grads_def}.")
            new = []
            for grad, flat, state_def in zip(grads, packed, inner):
                leaves, now = tree_util.tree_flatten(
                    update(i, grad, state_def.unflatten(flat)))
                if now != state_def:
                    raise TypeError("optimizer update function produced an output structure that "
                                    f"did not match its input structure: input {state_def} and "
                                    f"output {now}.")
                new.append(tuple(leaves))
            return OptimizerState(tuple(new), treedef, inner)

        def tree_params(opt_state: OptimizerState) -> Params:
            packed, treedef, inner = opt_state
            return treedef.unflatten([get_params(state_def.unflatten(flat))
                                      for flat, state_def in zip(packed, inner)])

        return Optimizer(tree_init, tree_update, tree_params)

    return tree_opt_maker


# -- optimizers ------------------------------------------------------------------------------------


@optimizer
def sgd(step_size: float | Schedule) -> Any:
    """Gradient descent: x - step g."""
    rate = make_schedule(step_size)
    return (lambda x0: x0), (lambda i, g, x: x - rate(i) * g), (lambda x: x)


@optimizer
def momentum(step_size: float | Schedule, mass: float) -> Any:
    """Gradient descent along a velocity v = mass v + g.

    Source: Polyak 1964, "Some methods of speeding up the convergence of iteration methods".
    """
    rate = make_schedule(step_size)

    def update(i: Step, g: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        x, velocity = state
        velocity = mass * velocity + g
        return x - rate(i) * velocity, velocity

    return _with_zeros(1), update, _first


@optimizer
def nesterov(step_size: float | Schedule, mass: float) -> Any:
    """Gradient descent along the velocity that the next step will have.

    Source: Nesterov 1983; Sutskever et al. 2013, "On the importance of initialization and
    momentum in deep learning".
    """
    rate = make_schedule(step_size)

    def update(i: Step, g: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        x, velocity = state
        velocity = mass * velocity + g
        return x - rate(i) * (mass * velocity + g), velocity

    return _with_zeros(1), update, _first


@optimizer
def adagrad(step_size: float | Schedule, momentum: float = 0.9) -> Any:
    """Steps divided by the root of the sum of all squared gradients.

    Source: Duchi, Hazan and Singer 2011, "Adaptive Subgradient Methods".
    """
    rate = make_schedule(step_size)

    def update(i: Step, g: Array, state: tuple[Array, Array, Array]) -> tuple[Array, ...]:
        x, total, velocity = state
        total = total + jnp.square(g)
        scale = jnp.where(total > 0, 1.0 / jnp.sqrt(total), 0.0)
        velocity = (1.0 - momentum) * (g * scale) + momentum * velocity
        return x - rate(i) * velocity, total, velocity

    return _with_zeros(2), update, _first


@optimizer
def rmsprop(step_size: float | Schedule, gamma: float = 0.9, eps: float = 1e-8) -> Any:
    """Steps divided by the root of a running mean of squared gradients.

    Source: Hinton 2012, "Neural networks for machine learning", lecture 6e.
    """
    rate = make_schedule(step_size)

    def update(i: Step, g: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        x, mean = state
        mean = mean * gamma + jnp.square(g) * (1.0 - gamma)
        return x - rate(i) * g / jnp.sqrt(mean + eps), mean

    return _with_zeros(1), update, _first


@optimizer
def rmsprop_momentum(step_size: float | Schedule, gamma: float = 0.9, eps: float = 1e-8,
                     momentum: float = 0.9) -> Any:
    """``rmsprop`` along a velocity."""
    rate = make_schedule(step_size)

    def update(i: Step, g: Array, state: tuple[Array, Array, Array]) -> tuple[Array, ...]:
        x, mean, velocity = state
        mean = mean * gamma + jnp.square(g) * (1.0 - gamma)
        velocity = momentum * velocity + rate(i) * g / jnp.sqrt(mean + eps)
        return x - velocity, mean, velocity

    return _with_zeros(2), update, _first


@optimizer
def adam(step_size: float | Schedule, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8
         ) -> Any:
    """Running means of gradients and of their squares, both freed of their bias.

    Source: Kingma and Ba 2015, "Adam: A Method for Stochastic Optimization".
    """
    rate = make_schedule(step_size)

    def update(i: Step, g: Array, state: tuple[Array, Array, Array]) -> tuple[Array, ...]:
        x, m, v = state
        m = (1 - b1) * g + b1 * m
        v = (1 - b2) * jnp.square(g) + b2 * v
        mhat = m / (1 - jnp.asarray(b1, m.dtype) ** (i + 1))
        vhat = v / (1 - jnp.asarray(b2, m.dtype) ** (i + 1))
        return x - rate(i) * mhat / (jnp.sqrt(vhat) + eps), m, v

    return _with_zeros(2), update, _first


@optimizer
def adamax(step_size: float | Schedule, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8
           ) -> Any:
    """``adam`` with the largest gradient, decaying, in place of the mean square.

    Source: Kingma and Ba 2015, section 7.1.
    """
    rate = make_schedule(step_size)

    def update(i: Step, g: Array, state: tuple[Array, Array, Array]) -> tuple[Array, ...]:
        x, m, largest = state
        m = (1 - b1) * g + b1 * m
        largest = jnp.maximum(b2 * largest, jnp.abs(g))
        bias = 1 - jnp.asarray(b1, m.dtype) ** (i + 1)
        return x - (rate(i) / bias) * m / (largest + eps), m, largest

    return _with_zeros(2), update, _first


@optimizer
def sm3(step_size: float | Schedule, momentum: float = 0.9) -> Any:
    """``adagrad`` that keeps one number for each row of each axis, not for each element.

    Source: Anil et al. 2019, "Memory-Efficient Adaptive Optimization".
    """
    rate = make_schedule(step_size)

    def init(x0: Array) -> tuple[Array, Array, list[Array]]:
        x0 = jnp.asarray(x0)
        return x0, jnp.zeros_like(x0), [jnp.zeros(n, x0.dtype) for n in x0.shape or ((),)]

    def update(i: Step, g: Array, state: tuple[Array, Array, list[Array]]) -> tuple[Any, ...]:
        x, velocity, sums = state
        others = [tuple(a for a in range(g.ndim) if a != axis) for axis in range(max(1, g.ndim))]
        along = [jnp.expand_dims(s, axes) for s, axes in zip(sums, others)]
        total = functools.reduce(jnp.minimum, along) + jnp.square(g)
        scale = jnp.where(total > 0, 1.0 / jnp.sqrt(total), 0.0)
        velocity = (1.0 - momentum) * (g * scale) + momentum * velocity
        return x - rate(i) * velocity, velocity, [total.max(axes) for axes in others]

    return init, update, _first


def _with_zeros(count: int) -> Callable[[Array], tuple[Array, ...]]:
    """Return what begins with the parameter and ``count`` arrays of zeros like it."""
    return lambda x0: (x0, *(jnp.zeros_like(x0) for _ in range(count)))


def _first(state: Sequence[Array]) -> Array:
    return state[0]


# -- schedules -------------------------------------------------------------------------------------


def make_schedule(scalar_or_schedule: float | Schedule) -> Schedule:
    """Return a schedule as it is, and a number as the schedule that always gives it.

    Raises: TypeError for anything else.
    """
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if jnp.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise TypeError(f"a step size is a number or a function of the step, got "
                    f"{type(scalar_or_schedule)}")


def constant(step_size: float) -> Schedule:
    """Return the schedule that is always ``step_size``."""
    return lambda i: step_size


def exponential_decay(step_size: float, decay_steps: int, decay_rate: float) -> Schedule:
    """Return step_size · decay_rate^(i / decay_steps)."""
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(step_size: float, decay_steps: int, decay_rate: float,
                       staircase: bool = False) -> Schedule:
    """Return step_size / (1 + decay_rate · i / decay_steps), in whole steps if ``staircase``."""
    if staircase:
        return lambda i: step_size / (1 + decay_rate * jnp.floor(i / decay_steps))
    return lambda i: step_size / (1 + decay_rate * i / decay_steps)


def polynomial_decay(step_size: float, decay_steps: int, final_step_size: float,
                     power: float = 1.0) -> Schedule:
    """Return the schedule that goes from ``step_size`` to ``final_step_size`` and stays."""

    def schedule(i: Step) -> float:
        done = jnp.minimum(i, decay_steps) / decay_steps
        return (1 - done) ** power * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: Any, values: Any) -> Schedule:
    """Return ``values[k]`` where ``k`` of the ``boundaries`` are behind.

    Raises: ValueError unless there is one more value than boundaries.
    """
    boundaries, values = jnp.array(boundaries), jnp.array(values)
    if not boundaries.ndim == values.ndim == 1:
        raise ValueError("boundaries and values must be sequences")
    if boundaries.shape[0] != values.shape[0] - 1:
        raise ValueError("boundaries length must be one shorter than values length")
    return lambda i: values[jnp.sum(i > boundaries)]


# -- gradients -------------------------------------------------------------------------------------


def l2_norm(tree: Any) -> Array:
    """Return the root of the sum of squares of all numbers in ``tree``."""
    return jnp.sqrt(sum(jnp.vdot(x, x) for x in tree_util.tree_leaves(tree)))


def clip_grads(grad_tree: Any, max_norm: float) -> Any:
    """Return the gradients, scaled down if their norm is above ``max_norm``."""
    norm = l2_norm(grad_tree)
    return tree_util.tree_map(
        lambda g: jnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)


# -- states as trees, for saving -------------------------------------------------------------------


class JoinPoint:
    """Where the tree of states begins below a leaf of the tree of parameters: opaque to pytrees."""

    def __init__(self, subtree: Any):
        self.subtree = subtree

    def __iter__(self) -> Any:
        yield self.subtree


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """Return the state as a tree like the parameters, with a ``JoinPoint`` for each."""
    packed, treedef, inner = opt_state
    return treedef.unflatten([JoinPoint(state_def.unflatten(flat))
                              for flat, state_def in zip(packed, inner)])


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """Return the state of which ``unpack_optimizer_state`` gave the tree.

    Raises: TypeError for a leaf that is no ``JoinPoint``.
    """
    sentinels, treedef = tree_util.tree_flatten(marked_pytree)
    if not all(isinstance(x, JoinPoint) for x in sentinels):
        raise TypeError("pack_optimizer_state needs a tree whose leaves are JoinPoints")
    states = [tree_util.tree_flatten(x.subtree) for x in sentinels]
    return OptimizerState(tuple(flat for flat, _ in states), treedef,
                          tuple(inner for _, inner in states))
