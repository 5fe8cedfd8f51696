"""What would real JAX say?  A client and a server that answer it from a second process.

Saem and JAX cannot share a process, so this file is both halves: imported by tests it is the
client (``Oracle``), run as a script by an interpreter that has jax it is the server.  They speak
over pipes, in messages that start with their length; values travel as JSON and raw array bytes,
never as pickles.

    oracle.run("jnp.sum(x, axis=0)", x=np.ones((2, 3))).value

``source`` is an expression, or statements that set ``result``; the names jax, jnp, lax, np are
there, and the keyword arguments.  NumPy arguments stay NumPy: write ``jnp.asarray(x)`` to hand JAX
an array.  The interpreter is ``$SAEM_JAX_PYTHON``, else ``.venv-jax/bin/python``.

Read before: nothing.  Read after: ``recorded.py``, any test that takes the fixture ``jax_oracle``.
Invariant: what comes back is JAX's own answer: its value, dtype and weakness, or its error
(tests/kernel/test_oracle.py).
"""

from __future__ import annotations

import dataclasses
import io
import json
import os
import struct
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from recorded import Recorded

ROOT = Path(__file__).resolve().parents[2]
LENGTH = struct.Struct("<Q")
FLOAT0 = np.dtype([("float0", np.void, 0)])
# So many memory mappings may JAX's process have and go on.
MOST_MAPPINGS = 30_000
# So many nested calls must it still be allowed, of the thousand at its start.
LEAST_CALLS = 900


# -- both halves: values as JSON with raw bytes beside it ------------------------------------------


def dtype_named(name: str) -> np.dtype:
    """Return the NumPy or ml_dtypes dtype called ``name``."""
    if name == "float0":
        return FLOAT0
    return np.dtype(getattr(ml_dtypes, name, name))


def encode(value: Any, blobs: list[bytes]) -> Any:
    """Return ``value`` as JSON; the bytes of arrays go to ``blobs``.

    Raises: TypeError for all but numbers, text, None, arrays, dtypes and their containers.
    """
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return {"int": str(int(value))}
    if isinstance(value, float):
        return {"float": value.hex()}
    if isinstance(value, complex):
        return {"complex": [value.real.hex(), value.imag.hex()]}
    if isinstance(value, (list, tuple)):
        return {type(value).__name__: [encode(item, blobs) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[encode(k, blobs), encode(v, blobs)] for k, v in value.items()]}
    if isinstance(value, np.dtype):
        return {"dtype": "float0" if value == FLOAT0 else value.name}
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return _encode_array(value, blobs)
    raise TypeError(f"the oracle cannot send a {type(value).__name__}: {value!r}. Send arrays.")


def _encode_array(value: Any, blobs: list[bytes]) -> dict[str, Any]:
    array = np.asarray(value)
    if array.dtype.hasobject:
        raise TypeError("the oracle cannot send object arrays")
    blobs.append(np.ascontiguousarray(array).tobytes())
    return {
        "array": len(blobs) - 1,
        "dtype": "float0" if array.dtype == FLOAT0 else array.dtype.name,
        "shape": list(array.shape),
        "weak": bool(getattr(value, "weak_type", False)),
    }


def decode(form: Any, blobs: list[bytes]) -> Any:
    """Return the value ``encode`` described."""
    if not isinstance(form, dict):
        return form
    (kind, body), *_ = form.items()
    if kind == "int":
        return int(body)
    if kind == "float":
        return float.fromhex(body)
    if kind == "complex":
        return complex(float.fromhex(body[0]), float.fromhex(body[1]))
    if kind in ("list", "tuple"):
        items = [decode(item, blobs) for item in body]
        return tuple(items) if kind == "tuple" else items
    if kind == "dict":
        return {decode(k, blobs): decode(v, blobs) for k, v in body}
    if kind == "dtype":
        return dtype_named(body)
    dtype = dtype_named(form["dtype"])
    if dtype.itemsize == 0:
        return np.zeros(form["shape"], dtype)
    return np.frombuffer(blobs[body], dtype).reshape(form["shape"]).copy()


def weakness(form: Any) -> Any:
    """Return, in the same containers, whether each array had a weak type."""
    if not isinstance(form, dict):
        return False
    (kind, body), *_ = form.items()
    if kind in ("list", "tuple"):
        items = [weakness(item) for item in body]
        return tuple(items) if kind == "tuple" else items
    if kind == "dict":
        return {decode(key, []): weakness(value) for key, value in body}
    return form.get("weak", False)


def send(stream: Any, message: dict[str, Any], blobs: list[bytes]) -> None:
    """Write one message: the length of its JSON, the JSON, and each blob with its length."""
    text = json.dumps({**message, "blobs": len(blobs)}).encode()
    for part in (text, *blobs):
        stream.write(LENGTH.pack(len(part)))
        stream.write(part)
    stream.flush()


def receive(stream: Any) -> tuple[dict[str, Any], list[bytes]]:
    """Read one message and its blobs.  Raises: EOFError when the other side is gone."""
    message = json.loads(_read_part(stream))
    return message, [_read_part(stream) for _ in range(message["blobs"])]


def _read_part(stream: Any) -> bytes:
    (length,) = LENGTH.unpack(_read_exactly(stream, LENGTH.size))
    return _read_exactly(stream, length)


def _read_exactly(stream: Any, length: int) -> bytes:
    data = stream.read(length)
    if len(data) != length:
        raise EOFError("the other process ended")
    return data


# -- the client ------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Answer:
    """JAX's answer: ``value`` with arrays as NumPy, ``weak`` in the same containers, warnings."""

    value: Any
    weak: Any
    warnings: tuple[str, ...]

    @property
    def dtype(self) -> np.dtype:
        """Return the dtype of a single array."""
        return self.value.dtype


class JaxError(Exception):
    """JAX raised: ``kind`` is the class's name, ``bases`` those above it, ``message`` its text."""

    def __init__(self, kind: str, bases: list[str], message: str):
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.bases = bases
        self.message = message


class Oracle:
    """Real JAX in a second process, started at the first question without a kept reply."""

    def __init__(self, python: str, live: bool = False):
        self._python = python
        self._process: subprocess.Popen | None = None
        self._lock = threading.Lock()
        self._recorded = Recorded(live)

    def run(self, source: str, *, x64: bool = False, **arguments: Any) -> Answer:
        """Return the value of ``source``, with 64-bit types if ``x64``.

        Raises: JaxError when JAX raised.
        """
        return self._ask("run", source, x64, arguments)

    def jaxpr(self, source: str, *args: Any, x64: bool = False) -> str:
        """Return the text of ``jax.make_jaxpr(source)(*args)``; ``source`` is a function."""
        return self._ask("jaxpr", source, x64, {"args": tuple(args)}).value

    def close(self) -> None:
        """End the second process."""
        if self._process is not None:
            self._process.stdin.close()
            self._process.stdout.close()
            self._process.wait(timeout=20)
            self._process = None

    def _ask(self, task: str, source: str, x64: bool, arguments: dict[str, Any]) -> Answer:
        blobs: list[bytes] = []
        form = encode(arguments, blobs)
        message = {"task": task, "source": source, "x64": x64, "arguments": form}
        asked = io.BytesIO()
        send(asked, message, blobs)
        reply, blobs = receive(io.BytesIO(self.reply_to(asked.getvalue())))
        if "error" in reply:
            raise JaxError(reply["error"], reply["bases"], reply["message"])
        value = reply["value"]
        return Answer(decode(value, blobs), weakness(value), tuple(reply["warnings"]))

    def reply_to(self, question: bytes) -> bytes:
        """Return JAX's reply to a message, as it was kept or as JAX gives it now."""
        with self._lock:
            kept = self._recorded.find(question)
            if kept is not None:
                return kept
            reply = self._answer_of_process(question)
            if b"RecursionError" in reply:  # what earlier questions left there may be in the way
                self.close()
                reply = self._answer_of_process(question)
            self._recorded.keep(question, reply)
            return reply

    def _answer_of_process(self, question: bytes) -> bytes:
        process = self._started()
        process.stdin.write(question)
        process.stdin.flush()
        message, blobs = receive(process.stdout)
        if message.pop("spent"):
            self.close()  # the next question starts another
        reply = io.BytesIO()
        send(reply, message, blobs)
        return reply.getvalue()

    def _started(self) -> subprocess.Popen:
        if self._process is None:
            environment = {
                name: value
                for name, value in os.environ.items()
                if not name.startswith(("JAX_", "PYTHON"))
            }
            self._process = subprocess.Popen(
                [self._python, str(Path(__file__).resolve())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**environment, "JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "8"},
            )
        return self._process


def find_python() -> tuple[str | None, str]:
    """Return the interpreter that has jax, and in words where it was looked for."""
    named = os.environ.get("SAEM_JAX_PYTHON")
    python = Path(named) if named else ROOT / ".venv-jax" / "bin" / "python"
    looked = f"$SAEM_JAX_PYTHON={named}" if named else str(python.relative_to(ROOT))
    return (str(python) if python.exists() else None), looked


# -- the server ------------------------------------------------------------------------------------


def answer(message: dict[str, Any], blobs: list[bytes]) -> tuple[dict[str, Any], list[bytes]]:
    """Run one question on JAX and return the reply."""
    import warnings  # noqa: PLC0415 - the server's imports: the client must not have jax

    import jax  # noqa: PLC0415
    import jax.numpy as jnp  # noqa: PLC0415

    names = {"jax": jax, "jnp": jnp, "lax": jax.lax, "np": np, "ml_dtypes": ml_dtypes}
    names.update(decode(message["arguments"], blobs))
    out: list[bytes] = []
    settings = dict(jax.config.values)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        jax.config.update("jax_enable_x64", message["x64"])
        try:
            value = evaluate(message, names, jax)
            form = encode(value, out)
        except Exception as error:
            bases = [cls.__name__ for cls in type(error).__mro__]
            return {"error": bases[0], "bases": bases, "message": str(error)}, []
        finally:
            # What a question sets holds for that question.
            for name, value_before in settings.items():
                if jax.config.values[name] != value_before:
                    jax.config.update(name, value_before)
    return {"value": form, "warnings": [str(item.message) for item in caught]}, out


def evaluate(message: dict[str, Any], names: dict[str, Any], jax: Any) -> Any:
    """Return the value of the question's source."""
    source = textwrap.dedent(message["source"]).strip()
    if message["task"] == "jaxpr":
        function = _result_of(source, names)
        return str(jax.make_jaxpr(function)(*names["args"]))
    return _result_of(source, names)


def _result_of(source: str, names: dict[str, Any]) -> Any:
    """Return an expression's value, or ``result`` as the statements of ``source`` set it.

    The source is the test's own text, never data from outside.
    """
    try:
        code = compile(source, "<oracle>", "eval")
    except SyntaxError:
        exec(compile(source, "<oracle>", "exec"), names)
        return names["result"]
    return eval(code, names)


def spent() -> bool:
    """Return whether what this process did disturbs further questions.

    A callback that failed on several devices makes each later ``effects_barrier`` of JAX fail,
    Linux lets a process have 65,530 memory mappings, of which each compiled program takes some, and
    each error inside a nested pytree that jaxlib flattens takes a call from those Python allows.
    """
    import jax  # noqa: PLC0415 - the server's import: the client must not have jax

    if calls_left() < LEAST_CALLS:
        return True
    try:
        jax.effects_barrier()
        return Path("/proc/self/maps").read_bytes().count(b"\n") > MOST_MAPPINGS
    except OSError:
        return False  # this system does not list mappings
    except Exception:
        return True


def calls_left(made: int = 0) -> int:
    """Return how many nested calls Python allows from here on."""
    try:
        return calls_left(made + 1)
    except RecursionError:
        return made


def serve() -> None:
    """Answer questions from stdin on stdout until stdin ends."""
    stdin, stdout = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what JAX or a test prints must not fall between two messages
    while True:
        try:
            message, blobs = receive(stdin)
        except EOFError:
            return
        reply, blobs = answer(message, blobs)
        send(stdout, {**reply, "spent": spent()}, blobs)


if __name__ == "__main__":
    serve()
