"""Where do values live, and which of them insist on it?  Two CPU devices in a process."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import saem as jax
from saem import lax

X = np.arange(3, dtype=np.float32)


def test_one_cpu_is_there():
    assert jax.devices()[0].platform == "cpu" == jax.default_backend()
    assert jax.devices() == jax.local_devices() == jax.devices("cpu")
    assert jax.device_count() == jax.local_device_count() == len(jax.devices())
    assert jax.process_index() == 0 and jax.process_count() == 1
    assert jax.devices()[0] is jax.devices()[0]


def test_an_unknown_backend_is_refused():
    with pytest.raises(RuntimeError, match=r"Unknown backend gqu\. Available backends are"):
        jax.devices("gqu")


def test_placing_commits_and_computing_does_not():
    device = jax.devices()[0]
    free, placed = jax.device_put(X), jax.device_put(X, device)
    assert not free.committed and placed.committed
    assert not lax.sin(free).committed and lax.sin(placed).committed
    assert jax.jit(lambda x, y: lax.add(x, y))(free, placed).committed
    assert placed.devices() == {device} and placed.device == device
    assert placed.sharding == jax.sharding.SingleDeviceSharding(device)
    assert pickle.loads(pickle.dumps(placed.sharding)) == placed.sharding
    assert jax.device_put(free) is free
    assert jax.device_put(placed, placed.sharding).committed


def test_a_pytree_is_placed_and_fetched_whole():
    placed = jax.device_put({"a": X, "b": [1.5, None]}, jax.devices()[0])
    assert placed["a"].committed and placed["b"][0].committed and placed["b"][1] is None
    fetched = jax.device_get(placed)
    assert type(fetched["a"]) is np.ndarray and fetched["b"][0] == np.float32(1.5)
    assert jax.block_until_ready(placed) is placed
    prefix = jax.device_put([X, (X, X)], [jax.devices()[0], None])
    assert prefix[0].committed and not prefix[1][0].committed


def test_placing_inside_a_trace_stays_inside():
    device = jax.devices()[0]
    f = lambda x: lax.mul(jax.device_put(x, device), x)
    np.testing.assert_array_equal(jax.jit(f)(X), X * X)
    np.testing.assert_array_equal(jax.vmap(f)(X), X * X)
    np.testing.assert_array_equal(jax.vmap(jax.grad(f))(X), 2 * X)


# Run by both engines: {imports} differ.  What it prints must be equal.
TWO = """
{imports}
import numpy as np
one, two = jax.devices()
x = np.arange(3, dtype=np.float32)
def where(a): return (sorted(d.id for d in a.devices()), a.committed)
def told(f):
    try:
        return where(f())
    except Exception as e:
        sentence = str(e).split(": ", 1)[-1].split("ation")[0]  # a tag stands before it in Saem
        return isinstance(e, ValueError), sentence
free, on1, on2 = jax.device_put(x), jax.device_put(x, one), jax.device_put(x, two)
add = jax.jit(lambda a, b: lax.add(a, b))
print(len(jax.devices()), [d.id for d in jax.devices()])
print(where(free), where(on1), where(on2))
for a in (free, on1, on2, x):
    print(where(lax.sin(a)), where(jax.jit(lax.sin)(a)), where(add(a, x)))
for a in (free, on1, on2):
    for b in (free, on1, on2):
        print([told(lambda: add(a, b)), told(lambda: add(a, b)), told(lambda: lax.mul(a, b))])
print(where(jax.device_put(on1, two)), where(jax.device_put(on2)), where(jax.device_put(free, two)))
with jax.default_device(two):
    print(where(jax.device_put(x)), where(lax.sin(x)), where(lax.sin(on1)), where(add(x, x)))
    print(where(jax.jit(lambda: lax.add(x, x))()))
print(where(jax.device_put(x)), where(add(x, x)))
print(np.asarray(add(on2, free)), np.asarray(jax.device_put(on2, one)))
print(where(jax.grad(lambda a: lax.reduce_sum(lax.mul(a, a), (0,)))(on2)))
print(where(jax.vmap(lambda a: lax.mul(a, 2.0))(on2)))
print(where(jax.jit(lambda a: jax.device_put(a, two))(free))[1] in (True, False))
"""


# On one device programs over a mesh add up nothing; their sums have several ranks.
ONE = """
{imports}
import numpy as np
jnp, P = jax.numpy, jax.P
x, y = np.arange(12, dtype=np.float32).reshape(1, 3, 4), np.ones((1, 4), np.float32)
def shown(f, *xs):
    print([(a.shape, np.asarray(a).ravel()[:4].tolist()) for a in jax.tree.leaves(f(*xs))])
both = lambda a, b: lax.psum((a, b, b.sum()), 'i')
mean = lambda a, b: lax.pmean((a @ a.T, b), 'i')
rest = lambda a, b: (lax.all_gather(a, 'i'), lax.pmax(b, 'i'), lax.axis_index('i'),
                     lax.ppermute(b, 'i', [(0, 0)]), lax.psum_scatter(a[None], 'i'))
for f in (both, mean, rest):
    shown(jax.pmap(f, axis_name='i'), x, y)
for kind in jax.sharding.AxisType.Auto, jax.sharding.AxisType.Explicit:
    mesh = jax.make_mesh((1,), ('i',), axis_types=(kind,))
    put = [jax.device_put(v[0], jax.NamedSharding(mesh, P())) for v in (x, y)]
    for f in (both, mean):
        g = jax.shard_map(f, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)
        shown(jax.jit(g), *put)
        shown(jax.jit(jax.grad(lambda *xs: sum(map(jnp.sum, jax.tree.leaves(g(*xs)))))), *put)
    with jax.set_mesh(mesh):
        shown(jax.jit(lambda a, b: (a * 2, jnp.sum(a), b @ a.T)), *put)
"""


def run_on(count, program, python, imports, **environment):
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("PYTHON", "JAX_", "SAEM_NUM"))}
    done = subprocess.run(
        [python, "-c", program.replace("{imports}", imports)], capture_output=True, text=True,
        env={**env, "XLA_FLAGS": f"--xla_force_host_platform_device_count={count}", **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(("count", "program"), [(1, ONE), (2, TWO)], ids=["one", "two"])
def test_devices_behave_as_in_jax(jax_oracle, count, program):
    saem = run_on(count, program, sys.executable, "import saem as jax; from saem import lax",
                  PYTHONPATH=os.pathsep.join(sys.path))
    real = run_on(count, program, jax_oracle._python, "import jax; from jax import lax",
                  JAX_PLATFORMS="cpu")
    assert saem == real and saem


def test_values_on_two_devices_are_not_mixed():
    code = ("import saem as jax, numpy as np\nfrom saem import lax\n"
            "one, two = (jax.device_put(np.ones(2), d) for d in jax.devices())\n"
            "try:\n    lax.add(one, two)\nexcept ValueError as e:\n    print(e)")
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "SAEM_NUM_CPU_DEVICES": "2"})
    assert "Received incompatible devices" in done.stdout
    assert "cpu:0" in done.stdout and "cpu:1" in done.stdout and "device_put" in done.stdout


def test_programs_that_begin_in_any_order_on_many_devices_all_end():
    # Some depend on others, most do not; in each all devices wait for all.  Where waiting takes all
    # of XLA's threads, the process is ended.
    code = """if True:
        import saem as jax, saem.numpy as jnp, numpy as np
        mesh = jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
        place = lambda x: jax.device_put(x, jax.NamedSharding(mesh, jax.P("x")))
        xs = [place(np.random.default_rng(i).normal(size=(64, 64))) for i in range(100)]
        product, scaled = jax.jit(lambda x: x @ x.T), jax.jit(lambda x: x / jnp.abs(x).max())
        for _ in range(30):
            for i in range(len(xs)):
                xs[i] = scaled(product(xs[i]))
                if i % 3 == 0:
                    xs[i] += xs[i - 1].sum()
        print(sum(float(x.sum()) for x in xs) != 0)"""
    env = {name: text for name, text in os.environ.items() if name not in ("PJRT_NPROC", "NPROC")}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False,
        env={**env, "PYTHONPATH": os.pathsep.join(sys.path), "SAEM_NUM_CPU_DEVICES": "8"})
    assert done.stdout == "True\n", done.stderr[-2000:]


@pytest.mark.parametrize(("named", "said"), [
    ("", "[CpuDevice(id=0)]\n"), ("cuda", "Unable to initialize backend 'cuda': the CUDA plugin")])
def test_a_plugin_for_another_jaxlib_is_not_loaded(tmp_path, named, said):
    for path, text in (("jax_plugins/xla_cuda13/xla_cuda_plugin.so", "no library"),
                       ("jax_cuda13_plugin/__init__.py", ""),
                       ("jax_cuda13_plugin/cuda_plugin_extension.py", ""),
                       ("jax_cuda13_plugin/version.py", "__version__ = '0.7.2'")):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    env = {name: value for name, value in os.environ.items() if not name.startswith("SAEM_NUM")}
    done = subprocess.run(
        [sys.executable, "-c", "import saem as jax\nprint(jax.devices())"], capture_output=True,
        text=True, env={**env, "PYTHONPATH": os.pathsep.join([*sys.path, str(tmp_path)]),
                        "JAX_PLATFORMS": named})
    assert "version 0.7.2 is installed, but it is not compatible" in done.stderr
    assert "Try: pip install 'saem[cuda13]'" in done.stderr
    assert said in done.stdout + done.stderr and done.returncode == bool(named)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")
def test_a_fork_warns_once_backends_run():
    program = """
import os, pty, subprocess, warnings
import saem as jax, saem.numpy as jnp
def wait_for(child):
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
def warnings_of(act):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        act()
    return [w.category for w in seen if "The backends run threads" in str(w.message)]
def fork():
    wait_for(os.fork())
assert warnings_of(fork) == []
jnp.ones(3)
assert warnings_of(fork) == warnings_of(fork) == [RuntimeWarning]
assert warnings_of(lambda: wait_for(pty.fork()[0])) == []
assert warnings_of(lambda: subprocess.run(["true"], preexec_fn=int)) == []
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", program], env=environment, text=True,
                          capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
