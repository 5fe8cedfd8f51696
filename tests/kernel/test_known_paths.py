"""Is a gradient along a known path the same as by the rules, to the last bit?

Read before: ``saem.transform.pullbacks``, ``saem.transform.known_paths``.
"""

from __future__ import annotations

import os
import threading

import matrix
import numpy as np
import pytest

import saem as jax
import saem.numpy as jnp
from saem import lax, nn
from saem.compile import dispatch
from saem.compile.lowering import avals_of, one_equation
from saem.core import dtypes
from saem.core.events import EagerOp, bus
from saem.core.jaxpr import ClosedJaxpr
from saem.core.placement_types import Seen
from saem.core.primitive import registry
from saem.core.trace import bind
from saem.transform import known_paths, pullbacks
from saem.transform.known_paths import starts
from saem.transform.pullbacks import same_bits, same_types


@pytest.fixture(autouse=True)
def learns_at_once(monkeypatch):
    """A path is known after it was seen once, whatever other tests have used."""
    monkeypatch.setattr(known_paths, "SEEN_BEFORE", 1)
    monkeypatch.setattr(Seen, "placements", False)
    starts.clear()
    yield
    starts.clear()


class Followed:
    """Counts the gradients that were computed by a pullback."""

    def __init__(self, monkeypatch):
        self.count = 0
        usual = pullbacks.Pullback.gradients

        def counted(pullback, values):
            self.count += 1
            return usual(pullback, values)

        monkeypatch.setattr(pullbacks.Pullback, "gradients", counted)


@pytest.fixture
def followed(monkeypatch):
    return Followed(monkeypatch)


def by_rules(f, *args, z=None, **options):
    """Return value and gradient of ``f`` as they are computed where no path is looked for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(known_paths, "start_of", lambda *_: None)
        return jax.value_and_grad(f, **options)(*args, **({} if z is None else {"z": z}))


def check(f, *args, **options):
    """Compare value and gradient of ``f`` with those by the rules: types, places and bits."""
    got = jax.tree.leaves(jax.value_and_grad(f, **options)(*args))
    wanted = jax.tree.leaves(by_rules(f, *args, **options))
    assert len(got) == len(wanted)
    arrays = [(a, b) for a, b in zip(got, wanted) if jnp.result_type(b) != jax.dtypes.float0]
    got, wanted = zip(*arrays)
    assert same_types(got, wanted), (got, wanted)
    assert same_bits(got, wanted), (got, wanted)


def draws(seed, *shapes):
    random = np.random.RandomState(seed)
    return [jnp.asarray(np.float32(random.standard_normal(shape))) for shape in shapes]


# -- every primitive -------------------------------------------------------------------------------

ALL = os.environ.get("SAEM_SWEEP") == "all"


def chosen_cases(usable):
    """A case of each primitive for which ``usable(prim)``, of float32 if there is one; with
    SAEM_SWEEP=all all cases.
    """
    found = {}
    for name, case in sorted(matrix.case_ids().items()):
        if not known_paths.is_one_call(case.prim) or not usable(case.prim):
            continue
        floats = [s for s in case.specs if dtypes.is_inexact(s.dtype)]
        usual = floats and all(s.dtype == np.float32 and np.prod(s.shape) for s in floats)
        if ALL or usual:
            found.setdefault(name if ALL else case.prim.name, name)
    return sorted(found.values())


@pytest.mark.parametrize("name", chosen_cases(lambda prim: prim.separate_code))
def test_each_operation_is_rounded_alone_as_among_others(name):
    case = matrix.case_ids()[name]
    operands = [jnp.asarray(x) for x in matrix.Operands(case).arrays]
    try:
        jaxpr = pullbacks.separated(one_equation(case.prim, avals_of(operands)).jaxpr)
    except pullbacks.NotSeparate:
        return
    alone = dispatch.primitive_callable(case.prim)
    separate = pullbacks.compiled(ClosedJaxpr(jaxpr))
    random = np.random.default_rng(0)
    for _ in range(3):
        assert same_bits(separate(*operands), [alone(*operands)])
        operands = [pullbacks.near(x, random) for x in operands]


@pytest.mark.parametrize("shapes", [((5, 7), ()), ((5, 7), (5, 1)), ((5, 7), (1, 7)), ((), (5, 7)),
                                    ((5, 7), (5, 7)), ((40, 40), (40, 1)), ((), ())])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "max", "pow", "atan2", "rem"])
def test_operations_on_stretched_operands_are_rounded_alone_as_among_others(name, shapes):
    prim = registry[name]()
    x, y = (abs(x) + 0.1 for x in draws(0, *shapes))
    jaxpr = one_equation(prim, avals_of([x, y])).jaxpr
    if prim.separate_code:
        program = pullbacks.compiled(ClosedJaxpr(pullbacks.separated(jaxpr)))
        for _ in range(3):
            assert same_bits(program(x, y), [bind(prim, x, y)])
            x, y = jnp.sin(x) + 1.1, y * 1.37


@pytest.mark.parametrize("name", [
    name for name in chosen_cases(lambda prim: prim.separate_code)[:: 1 if ALL else 6]
    if matrix.case_ids()[name].reversible
    and any(dtypes.is_inexact(s.dtype) for s in matrix.case_ids()[name].specs)])
def test_each_primitive_is_pulled_back_as_by_its_rules(name):
    case = matrix.case_ids()[name]
    operands = [jnp.asarray(x) for x in matrix.Operands(case).arrays]
    argnums = [i for i, x in enumerate(operands) if jnp.issubdtype(x.dtype, jnp.inexact)]

    def f(*xs):
        out = jnp.real(bind(case.prim, *[x * 1 for x in xs]))
        return jnp.sum(jnp.sin(out)) if dtypes.is_inexact(out.dtype) else out.sum().astype(float)

    try:
        by_rules(f, *operands, argnums=argnums)
    except Exception as refused:  # it has no derivative
        with pytest.raises(type(refused)):
            jax.value_and_grad(f, argnums=argnums)(*operands)
        return
    for _ in range(2):
        check(f, *operands, argnums=argnums)


# -- functions as users write them -----------------------------------------------------------------

def network(params, images, labels):
    w1, b1, w2, b2 = params
    scores = jnp.tanh(images @ w1 + b1) @ w2 + b2
    logs = scores - jnp.log(jnp.sum(jnp.exp(scores), axis=1, keepdims=True))
    return -jnp.mean(jnp.sum(logs * labels, axis=1))


FUNCTIONS = {
    "1. / x": (lambda x: 1. / x, ()),
    "sum of squares": (lambda x: jnp.sum(x ** 2), (12,)),
    "power": (lambda x: jnp.sum(jnp.abs(x) ** 2.5), (12,)),
    "exponentials": (lambda x: jnp.sum(jnp.exp(x) * jnp.exp(2 * x) / jnp.exp(x)), (12,)),
    "division by a root": (lambda x: jnp.sum(3 / jnp.sqrt(1 + x * x)), (5, 7)),
    "norm": (jnp.linalg.norm, (12,)),
    "variance": (jnp.var, (12, 5)),
    "deviation": (lambda x: jnp.std(x, axis=0).sum(), (12, 12)),
    "softmax": (lambda x: (nn.softmax(x) ** 2).sum(), (12, 12)),
    "logsumexp": (nn.logsumexp, (4, 5)),
    "choice": (lambda x: jnp.where(x > 0, x * x, jnp.sin(x)).sum(), (5, 4)),
    "places": (lambda x: x[2:5].sum() + x[jnp.array([1, 1, 3])].prod() + x[-1], (8,)),
    "updates": (lambda x: (x.at[2].set(x[1] * 3).at[:2].add(1.) ** 2).sum(), (8,)),
    "products of matrices": (lambda x: jnp.sum((x.T @ jnp.sin(x) @ x.T) ** 2), (6, 9)),
    "einsum": (lambda x: jnp.einsum("ij,jk,ki->", x, x, x), (6, 6)),
    "determinant": (lambda x: jnp.linalg.slogdet(x @ x.T + jnp.eye(5))[1], (5, 5)),
    "root of a matrix": (lambda x: jnp.linalg.cholesky(x @ x.T + jnp.eye(5)).sum(), (5, 5)),
    "relu": (lambda x: nn.relu(x - 0.1).sum(), (6, 3)),
    "gelu": (lambda x: nn.gelu(x).sum(), (6, 3)),
    "jit inside": (lambda x: jax.jit(jnp.sin)(x).sum() * x[0], (6,)),
    "vmap inside": (lambda x: jax.vmap(lambda r: jnp.dot(r, r) * r[0])(x).sum(), (6, 3)),
    "derivative inside": (
        lambda x: jnp.vdot(jax.grad(lambda y: jnp.sum(y ** 3 * jnp.sin(y)))(x), x), (9,)),
    "loop inside": (lambda x: lax.fori_loop(0, 3, lambda i, y: jnp.sin(y) * x, x).sum(), (4,)),
    "Python loop": (lambda x: sum(jnp.sin(x * i) for i in range(5)).sum(), (6,)),
    "numbers": (lambda x: 3 * x * 2 * x / 4 + 1 - np.float32(0.3) * x, ()),
    "NumPy arrays": (lambda x: (x * np.arange(6) + np.eye(6)[0]).sum(), (6,)),
    "no dependence": (lambda x: jnp.float32(3.), (3,)),
    "half of it stopped": (lambda x: (x * lax.stop_gradient(x)).sum(), (3,)),
    "itself": (lambda x: x, ()),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_have_the_same_gradients(name):
    f, shape = FUNCTIONS[name]
    for seed in (0, 1, 1, 2):
        check(f, *draws(seed, shape))


def test_networks_have_the_same_gradients_step_after_step(followed):
    params = draws(0, (8, 16), (16,), (16, 3), (3,))
    (images,) = draws(1, (10, 8))
    labels = jnp.eye(3)[jnp.arange(10) % 3]
    for _ in range(6):
        check(network, params, images, labels)
        gradient = jax.grad(network)(params, images, labels)
        params = [p - 0.1 * g for p, g in zip(params, gradient)]
    assert followed.count >= 10


OPERANDS = {
    "float": 3., "int as float": 3, "float32": np.float32(3), "array of NumPy": np.float32([1, 2]),
    "list": [1., 2.], "tree": {"a": 1., "b": (np.ones(2, np.float32), 3.)},
    "weak": jnp.asarray(2.), "half": jnp.float16(2.), "brain": jnp.bfloat16(2.),
    "complex": jnp.complex64(1 + 2j), "empty": jnp.zeros((0, 3)), "matrix": jnp.ones((2, 3)),
}


@pytest.mark.parametrize("name", OPERANDS)
def test_all_kinds_of_operands(name):
    x = OPERANDS[name]

    def f(x):
        leaves = jax.tree.leaves(x)
        return sum(jnp.sum(jnp.abs(1. / (leaf + 1.))) for leaf in leaves)

    for _ in range(3):
        check(f, x, allow_int=True) if name == "int as float" else check(f, x)


SCALARS = [2, 2., True, np.float32(2), np.int32(2), np.float64(2), jnp.float32(2), jnp.float16(2),
           jnp.int32(2), np.array(2.), np.array([2, 3]), jnp.ones(3)]


@pytest.mark.parametrize("x64", [False, True])
def test_all_kinds_of_constants(x64):
    """The same function with other constants each time: paths differ by their types alone."""
    constant = None

    def f(x):
        return jnp.sum(x * constant + constant / x - constant)

    with jax.enable_x64(x64):
        x = jnp.float32(1.7)
        for _ in range(2):
            for constant in SCALARS:  # noqa: B007 - f reads it
                check(f, x)
                check(f, 1.7)


def test_constants_may_change_from_call_to_call(followed):
    scale = 1.

    def f(x):
        return jnp.sum(jnp.sin(x) * scale)

    x = jnp.arange(3.)
    for scale in (1., 2., jnp.float32(3.), 4., jnp.float32(5.)):  # noqa: B007 - f reads it
        check(f, x)
    assert followed.count == 3  # 2. and 4. as 1., 5. as 3.


# -- what the function sees ------------------------------------------------------------------------

def test_the_function_runs_each_time_and_reads_its_numbers():
    seen = []

    def f(x):
        y = jnp.sin(x)
        seen.append(bool(y > 0.8))
        return y * 2 if y > 0 else y * y

    for number in (1., 1., 1., -1., -1., 1., -1., 2., -2.):
        check(f, number)
    assert seen == [np.sin(x) > 0.8 for x in (1., 1., 1., -1., -1., 1., -1., 2., -2.)
                    for _ in range(2)]


def test_a_path_may_be_left_after_any_operation(followed):
    count = 0

    def f(x):
        for _ in range(count):
            x = jnp.sin(x) * 1.5
        return jnp.sum(x)

    (x,) = draws(0, (4,))
    for count in (3, 3, 2, 4, 3, 2, 4, 1, 5, 3):  # noqa: B007 - f reads it
        check(f, x)
    assert followed.count >= 3


def test_a_function_that_never_ends_its_paths_is_not_followed_any_longer():
    lengths = iter(range(1, 100))

    def f(x):
        for _ in range(next(lengths)):
            x = x * 1.5
        return x

    for _ in range(20):
        jax.grad(f)(2.)
    (start,) = starts.values()
    assert start.given_up
    assert start.steps <= 4 * known_paths.MOST_STEPS


def test_a_tracer_prints_as_by_the_rules():
    shown = []

    def f(x):
        y = jnp.sin(x)
        shown.append((repr(x), str(y), y.aval, isinstance(y, jax.core.Tracer), y.shape))
        return jnp.sum(y)

    for _ in range(3):
        jax.grad(f)(jnp.arange(3.))
    assert shown[0] == shown[1] == shown[2]
    assert shown[0][0].startswith("GradTracer(primal=[0. 1. 2.]")


def test_results_without_tangent_are_no_tracers_on_a_path():
    kinds = []

    def f(x):
        up = jnp.floor(x)
        kinds.append((isinstance(up, jax.core.Tracer), isinstance(x > 1, jax.core.Tracer)))
        return jnp.sum(jnp.where(x > 1, x * up, x))

    for _ in range(3):
        check(f, jnp.arange(3.))
    assert len(set(kinds)) == 1


def test_aux_values_are_primals(followed):
    def f(x):
        y = jnp.cos(x)
        return jnp.sum(y), {"y": y, "x": x}

    for _ in range(4):
        check(f, jnp.arange(3.), has_aux=True)
    assert followed.count == 3


def test_arguments_by_number_and_by_name(followed):
    def f(x, y, *, z):
        return jnp.sum(x * y - z)

    x, y, z = draws(0, (3,), (3,), (3,))
    for numbers in (0, 1, (0, 1), (1, 0), -1):
        for _ in range(2):
            got = jax.grad(f, argnums=numbers)(x, y, z=z)
            wanted = by_rules(f, x, y, z=z, argnums=numbers)[1]
            got, wanted = jax.tree.leaves(got), jax.tree.leaves(wanted)
            assert len(got) == len(wanted)
            assert same_types(got, wanted)
            assert same_bits(got, wanted)
    assert followed.count == 5


def test_a_result_in_the_middle_of_a_path():
    whole = True

    def f(x):
        y = jnp.sin(x) * 2
        z = y * y
        return z if whole else y

    for whole in (True, True, False, False, True, False):  # noqa: B007 - f reads it
        check(f, 0.7)


def test_errors_are_those_of_the_rules():
    fails = False

    def f(x):
        y = jnp.sin(x)
        if fails:
            raise KeyError("mine")
        return y

    for fails in (False, False, True, False):
        if fails:
            with pytest.raises(KeyError, match="mine"):
                jax.grad(f)(1.)
        else:
            check(f, 1.)
    for _ in range(3):
        with pytest.raises(TypeError, match="scalar-output"):
            jax.grad(jnp.sin)(jnp.ones(3))
        with pytest.raises(TypeError, match="real-valued outputs"):
            jax.grad(lambda x: jnp.floor(x).astype(int))(1.)
        with pytest.raises(TypeError, match="incompatible shapes"):
            jax.grad(lambda x: jnp.sum(jnp.sin(x) + jnp.ones(4)))(jnp.ones(3))


def test_a_leaked_tracer_is_refused():
    kept = []

    def f(x):
        y = jnp.sin(x)
        kept.append(y)
        return y

    for _ in range(3):
        jax.grad(f)(1.)
    for y in kept:
        with pytest.raises(jax.errors.UnexpectedTracerError):
            jnp.cos(y)

    def g(x):
        return x * kept[-1]

    with pytest.raises(jax.errors.UnexpectedTracerError):
        jax.grad(g)(1.)


def test_user_rules_run_each_time():
    calls = []

    @jax.custom_jvp
    def f(x):
        return x * 2

    @f.defjvp
    def f_jvp(primals, tangents):
        calls.append(1)
        return f(primals[0]), tangents[0] * 5.

    for count in range(1, 4):
        assert float(jax.grad(lambda x: jnp.sin(f(x)) * 2)(0.)) == 10.
        assert len(calls) == count


def test_references_are_written_each_time():
    ref = jax.new_ref(jnp.zeros(()))

    def f(x):
        y = jnp.sin(x)
        ref[...] += lax.stop_gradient(y)
        return y * y

    for _ in range(3):
        jax.grad(f)(1.)
    np.testing.assert_allclose(ref[...], 3 * np.sin(1.), rtol=1e-6)


# -- where no path is looked for -------------------------------------------------------------------

def test_nothing_is_followed_inside_other_transformations(followed):
    f = lambda x: jnp.sin(x) * x
    for _ in range(3):
        jax.jit(jax.grad(f))(1.)
        jax.vmap(jax.grad(f))(jnp.arange(2.))
        jax.jvp(jax.grad(f), (1.,), (1.,))
    assert followed.count == 0
    assert not starts


def test_nans_are_still_found(followed):
    f = lambda x: jnp.log(x) * 2
    for _ in range(3):
        jax.grad(f)(1.)
    assert followed.count == 2
    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        jax.grad(f)(-1.)


def test_a_listener_sees_all_operations(followed):
    f = lambda x: jnp.sin(x) * 2
    for _ in range(3):
        jax.grad(f)(1.)
    assert followed.count == 2
    seen = []
    end = bus.subscribe(seen.append, eager=True)
    try:
        jax.grad(f)(1.)
    finally:
        end()
    assert {"sin", "cos", "mul"} <= {e.primitive for e in seen if type(e) is EagerOp}
    assert followed.count == 2


def test_large_arrays_and_long_functions_have_no_path():
    def long(x):
        for _ in range(known_paths.MOST_STEPS + 1):
            x = x * 1.5
        return x

    for _ in range(3):
        jax.grad(long)(1.)
        jax.grad(lambda x: jnp.sum(jnp.sin(x)))(jnp.ones(known_paths.MOST_NUMBERS + 1))
    assert not any(start.steps for start in starts.values())


def test_other_devices_and_shardings_give_what_the_rules_give():
    devices = jax.devices()
    f = lambda x: jnp.sum(jnp.sin(x) * 2)
    x = jnp.arange(8.)
    for _ in range(2):
        check(f, x)
        check(f, jax.device_put(x, devices[-1]))
        if len(devices) > 1:
            mesh = jax.make_mesh((len(devices),), ("i",), (jax.sharding.AxisType.Auto,))
            place = jax.NamedSharding(mesh, jax.P("i"))
            got = jax.grad(f)(jax.device_put(x, place))
            wanted = by_rules(f, jax.device_put(x, place))[1]
            assert got.sharding == wanted.sharding
            assert same_bits([got], [wanted])


@pytest.mark.parametrize("x", [jnp.arange(9.), jnp.zeros(9)], ids=["numbers", "zeros"])
def test_a_program_that_rounds_otherwise_is_not_used(monkeypatch, followed, x):
    """Nor do zeros hide it."""
    usual = pullbacks.compiled

    def otherwise(closed):
        program = usual(closed)
        return lambda *xs: [x * np.float32(1 + 1e-7) for x in program(*xs)]

    monkeypatch.setattr(pullbacks, "compiled", otherwise)
    for _ in range(3):
        check(lambda x: jnp.sum(x * x), x)
    assert followed.count == 0


def test_threads_learn_one_path(followed):
    f = lambda x: jnp.sum(jnp.sin(x) * x)
    (x,) = draws(0, (16,))
    wanted = np.asarray(by_rules(f, x)[1])
    wrong = []

    def work():
        for _ in range(20):
            if not np.array_equal(np.asarray(jax.grad(f)(x)), wanted):
                wrong.append(1)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong
    jax.grad(f)(x)
    assert followed.count


@pytest.mark.parametrize("fun", [
    lambda x: part_of_jit(x, x + 1)[0].sum(),
    lambda x: jax.checkpoint(part_of_jit)(x, x + 1)[2].sum(),
    lambda x: lax.cond(x[0] > 1, part_of_jit, part_of_jit, x, x)[0].sum(),
    lambda x: lax.scan(step_of_scan, (x, x), None, 3)[1].sum(),
], ids=["jit", "checkpoint", "cond", "scan"])
def test_derivatives_of_calls_with_unread_results_build_no_program_anew(monkeypatch, fun):
    x = jnp.arange(3.0)
    expected = [jax.grad(fun)(x) for _ in range(3)][-1]

    def refuse(*args, **kwargs):
        raise AssertionError("a program was built again")

    monkeypatch.setattr(dispatch, "build", refuse)
    np.testing.assert_array_equal(jax.grad(fun)(x), expected)


def step_of_scan(carry, _):
    return part_of_jit(*carry)[:2], carry[0].sum()


part_of_jit = jax.jit(lambda x, y: (jnp.sin(x) * 2, y, jnp.cos(y)))
