"""Does a notebook written for JAX run on Saem, by its kernel and by ``%load_ext saem.jax``?"""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import start_new_kernel

from saem.cli import commands
from saem.dropin import kernelspec

KERNEL = Path(__file__).parents[2] / "kernel"


def run(client, code):
    """Run a cell; return what it printed, and its result's mime types or its error."""
    said, shown = [], []

    def hook(message):
        content = message["content"]
        if message["msg_type"] == "stream":
            said.append(content["text"])
        elif message["msg_type"] in ("execute_result", "display_data"):
            shown.append(content["data"])
        elif message["msg_type"] == "error":
            shown.append(content["evalue"])

    client.execute_interactive(code, output_hook=hook, timeout=60)
    return "".join(said), shown


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Return what starts a kernel of that name and gives its client."""
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "share" / "jupyter"))
    running = []

    def start(name, **environment):
        env = {**os.environ, "PYTHONPATH": str(KERNEL), **environment}
        manager, client = start_new_kernel(kernel_name=name, env=env)
        running.append((manager, client))
        return client

    yield start
    for manager, client in running:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_the_kernel_saem(start, tmp_path):
    done = CliRunner().invoke(commands.saem, ["kernel", "install", "--prefix", str(tmp_path)])
    assert done.exit_code == 0, done.output
    folder = tmp_path / "share" / "jupyter" / "kernels" / "saem"
    assert f"The kernel 'Saem' is installed in {folder}" in done.output
    assert os.name == "nt" or stat.S_IMODE(folder.stat().st_mode) == 0o755  # for all to read
    written = json.loads((folder / "kernel.json").read_text())
    assert written["argv"][0] == sys.executable
    assert {**written, "argv": ["python", *written["argv"][1:]]} == kernelspec.specification()
    assert KernelSpecManager().get_kernel_spec("saem").display_name == "Saem"

    client = start("saem")
    assert run(client, "import jax, jax.numpy as jnp; print(jax.__saem__, jax.__version__)") \
        == ("True 0.10.2\n", [])
    _, shown = run(client, "jax.make_jaxpr(lambda x: jnp.sin(x) * 2)(1.)")
    assert "text/html" in shown[0] and "sin" in shown[0]["text/plain"]
    assert run(client, "print(__name__, type(get_ipython()).__name__)") \
        == ("__main__ ZMQInteractiveShell\n", [])


def test_the_extension(start, tmp_path):
    client = start("python3")
    assert run(client, "%load_ext saem.jax")[1] == []
    assert run(client, "from jax import numpy; import saem.lens\nprint(numpy.__name__)") \
        == ("jax.numpy\n", [])
    assert "text/html" in run(client, "saem.lens.history()")[1][0]
    assert "already loaded" in run(client, "%load_ext saem.jax")[0]
    run(client, "%unload_ext saem.jax")
    assert run(client, "import jax.random as r; print(r.__name__)") == ("jax.random\n", [])


def test_the_extension_refuses_after_the_real_jax(start, tmp_path):
    (tmp_path / "jax.py").write_text("")
    client = start("python3", PYTHONPATH=f"{tmp_path}{os.pathsep}{KERNEL}")
    run(client, "import jax")
    ((error,),) = [run(client, "%load_ext saem.jax")[1]]
    assert "saem cannot share a process with jax" in error and "Restart the kernel" in error
