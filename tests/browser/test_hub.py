"""Can three learners work at once on the hub of ``docs/hub``, each in their language?

The hub, its proxy and the servers are started on loopback as the recipe says; the learners
log in through the form, run a lesson on their own servers, and save it.

Read before: ``docs/hub/README.md``.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import tomllib
import uuid
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import nbformat
import psutil
import pytest
from click.testing import CliRunner
from drawn import NewPage

from saem.cli.commands import saem

pytest.importorskip("jupyterhub")
import requests
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

T = TypeVar("T")

ROOT = Path(__file__).parents[2]
RECIPE = ROOT / "docs" / "hub"
PASSWORD, ADMIN = "for the whole class", "for the leader only, and longer than that"
LEARNERS = {"minsu": ("ko", "01-arrays"), "sora": ("ko", "09-random"), "alex": ("en", "01-arrays")}
GUESSED = "09-random"
MEMORY = 4 * 2**30


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def write_class(folder: Path, address: str) -> tuple[Path, Path]:
    """Write the settings of a class and the hub's configuration for ``address``; their files."""
    learners = "\n".join(f'{name} = "{language}"' for name, (language, _) in LEARNERS.items())
    settings = folder / "class.toml"
    settings.write_text(
        f'folder = "{folder / "session"}"\naccounts = "class"\naddress = "{address}"\n'
        'leaders = ["leader"]\nmemory = "4G"\ncores = 1\nidle_kernel = 60\nidle_server = 120\n'
        f"[learners]\n{learners}\n")
    config = (RECIPE / "jupyterhub_config.py").read_text() + (
        f'\nc = get_config()\nc.JupyterHub.hub_port = {free_port()}\n'
        f'c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{free_port()}"\n'
        'c.Spawner.environment = {"PYTHONPATH": ' + repr(str(ROOT / "kernel")) + "}\n")
    file = folder / "config.py"
    file.write_text(config.replace("Path(__file__).resolve().parent", f"Path({str(RECIPE)!r})"))
    return settings, file


def wait_until_healthy(address: str, process: subprocess.Popen, log: Path) -> None:
    """Return when the hub answers; fail with the end of its log if it stops, or in two minutes."""
    for _ in range(240):
        with contextlib.suppress(requests.ConnectionError, requests.Timeout):
            if requests.get(f"{address}/hub/health", timeout=5).ok:
                return
        assert process.poll() is None, log.read_text()[-3000:]
        time.sleep(0.5)
    pytest.fail(log.read_text()[-3000:])


def stop(process: subprocess.Popen) -> None:
    """Ask the hub to end; after a minute, end it and all that it started."""
    started = psutil.Process(process.pid).children(recursive=True)
    process.terminate()
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for child in started:
        with contextlib.suppress(psutil.NoSuchProcess):
            child.kill()


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The address and the folder of a running session."""
    # Node may be a package of the environment that runs the tests.
    places = [RECIPE / "node_modules" / ".bin", Path(sys.executable).parent, os.environ["PATH"]]
    path = os.pathsep.join(map(str, places))
    if shutil.which("configurable-http-proxy", path=path) is None:
        pytest.skip("no configurable-http-proxy: run `npm ci` in docs/hub")
    folder = tmp_path_factory.mktemp("class")
    address = f"http://127.0.0.1:{free_port()}"
    settings, config = write_class(folder, address)
    environment = {
        **os.environ, "PATH": path, "SAEM_CLASS": str(settings), "SAEM_CLASS_PASSWORD": PASSWORD,
        "SAEM_CLASS_ADMIN_PASSWORD": ADMIN, "PYTHONPATH": str(ROOT / "kernel"),
        "CONFIGPROXY_AUTH_TOKEN": uuid.uuid4().hex,
    }
    log = folder / "hub.log"
    with open(log, "w") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyterhub", "-f", str(config)], env=environment, cwd=folder,
            stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        wait_until_healthy(address, process, log)
        yield address, folder / "session"
    finally:
        stop(process)


def log_in(address: str, name: str, password: str) -> requests.Session:
    """Log in through the form; the session has the cookies then."""
    session = requests.Session()
    session.get(f"{address}/hub/login", timeout=60)
    session.post(f"{address}/hub/login?_xsrf={session.cookies['_xsrf']}", timeout=60,
                 data={"username": name, "password": password}, allow_redirects=True)
    return session


class Learner:
    """One learner in the browser's place: logged in, with a running server."""

    def __init__(self, address: str, name: str):
        self.address, self.name = address, name
        self.session = log_in(address, name, PASSWORD)
        xsrf = {"X-XSRFToken": self.session.cookies.get("_xsrf", path="/hub/")}
        made = self.session.post(f"{address}/hub/api/users/{name}/tokens", headers=xsrf, timeout=60,
                                 json={"note": "test"})
        assert made.status_code == 201, made.text
        self.token = made.json()["token"]
        self.headers = {"Authorization": f"token {self.token}"}

    def start(self) -> None:
        user = f"{self.address}/hub/api/users/{self.name}"
        requests.post(f"{user}/server", headers=self.headers, timeout=120)
        for _ in range(240):
            if requests.get(user, headers=self.headers, timeout=60).json().get("server"):
                return
            time.sleep(0.5)
        pytest.fail(f"the server of {self.name} did not start")

    def get(self, place: str, **more) -> requests.Response:
        return requests.get(f"{self.address}/user/{self.name}/api/{place}", headers=self.headers,
                            timeout=60, **more)

    async def run(self, lesson: str, language: str, guess: str) -> nbformat.NotebookNode:
        """Run all cells of a lesson on the server and save it; returns it with its outputs.

        ``guess`` is code that commits guesses, run after each cell. Requests wait in threads:
        a request that waited in the loop would use up the time the other learners' have.
        """
        place = f"contents/{language}/{lesson}.ipynb"
        notebook = nbformat.from_dict((await asyncio.to_thread(self.get, place)).json()["content"])
        kernel = (await asyncio.to_thread(
            requests.post, f"{self.address}/user/{self.name}/api/kernels", timeout=120,
            headers=self.headers,
            json={"name": "python3", "path": f"{language}/{lesson}.ipynb"})).json()
        async with self.kernel(kernel["id"]) as execute:
            for cell in notebook.cells:
                if cell.cell_type == "code":
                    cell.outputs = await execute(cell.source)
                    assert [o for o in await execute(guess) if o.output_type == "error"] == []
        saved = await asyncio.to_thread(
            requests.put, f"{self.address}/user/{self.name}/api/{place}", headers=self.headers,
            json={"type": "notebook", "format": "json", "content": notebook}, timeout=60)
        assert saved.ok, saved.text
        return notebook

    @contextlib.asynccontextmanager
    async def kernel(self, identity: str):
        where = f"{self.address}/user/{self.name}/api/kernels/{identity}/channels"
        socket = await websocket_connect(HTTPRequest(
            where.replace("http", "ws", 1), headers=self.headers,
            connect_timeout=120, request_timeout=240), max_message_size=2**28)

        async def execute(source: str) -> list:
            number = uuid.uuid4().hex
            await socket.write_message(json.dumps({
                "header": {"msg_id": number, "msg_type": "execute_request", "session": number,
                           "username": self.name, "version": "5.3", "date": ""},
                "parent_header": {}, "metadata": {}, "channel": "shell", "buffers": [],
                "content": {"code": source, "silent": False, "store_history": True,
                            "user_expressions": {}, "allow_stdin": False,
                            "stop_on_error": False}}))
            outputs = []
            while True:
                message = json.loads(await asyncio.wait_for(socket.read_message(), 240))
                if message["parent_header"].get("msg_id") != number:
                    continue
                kind, content = message["msg_type"], message["content"]
                if kind in ("stream", "error", "execute_result", "display_data"):
                    content.pop("transient", None)
                    outputs.append(nbformat.from_dict({"output_type": kind, **content}))
                if kind == "status" and content["execution_state"] == "idle":
                    return outputs

        try:
            yield execute
        finally:
            socket.close()
            await asyncio.to_thread(
                requests.delete, f"{self.address}/user/{self.name}/api/kernels/{identity}",
                headers=self.headers, timeout=60)


@pytest.fixture(scope="module")
def learners(hub) -> dict[str, Learner]:
    found = {name: Learner(hub[0], name) for name in LEARNERS}
    for learner in found.values():
        learner.start()
    return found


def gates_of(lesson: str) -> dict[str, dict[str, list]]:
    """The gates of a lesson with right and wrong answers, as another test keeps them."""
    file = ROOT / "tests" / "notebooks" / "answers" / f"{lesson}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))["gates"]


def beside(work: Coroutine[Any, Any, T]) -> T:
    """Run ``work`` in a thread of its own: a browser of another test may have this one's loop."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


@pytest.fixture(scope="module")
def finished(hub, learners) -> dict[str, nbformat.NotebookNode]:
    """The notebooks of the three learners, run at the same time."""

    right = {gate: given["right"][0] for gate, given in gates_of(GUESSED).items()}
    guess = ("from saem.lesson import predict as _p\n"
             f"for _name, _guess in {right!r}.items():\n"
             "    if _name in _p._asked and _p._asked[_name].guess is None:\n"
             "        _p._asked[_name].answer(_guess)")

    async def all_at_once() -> list:
        return await asyncio.gather(*(
            learners[name].run(lesson, language, guess if lesson == GUESSED else "None")
            for name, (language, lesson) in LEARNERS.items()))

    return dict(zip(LEARNERS, beside(all_at_once()), strict=True))


def test_three_lessons_run_at_once(finished):
    for name, notebook in finished.items():
        for cell in notebook.cells:
            if cell.cell_type == "code":
                raised = [o for o in cell.outputs if o.output_type == "error"]
                expected = "raises-exception" in cell.metadata.get("tags", ())
                assert bool(raised) == expected, (name, cell.id, raised)
    korean = json.dumps(finished["minsu"], ensure_ascii=False)
    assert "예측" in korean and "Predict" not in json.dumps(finished["minsu"].cells[-5:])


def test_each_learner_has_copies_of_their_own(hub, learners, finished):
    _, folder = hub
    for name, (language, lesson) in LEARNERS.items():
        own = folder / "learners" / name / "lessons" / language / f"{lesson}.ipynb"
        assert nbformat.read(own, as_version=4).cells[3].get("outputs") == (
            finished[name].cells[3].get("outputs"))
    changed = subprocess.run(["git", "diff", "--quiet", "--", "en", "ko"], cwd=ROOT)
    assert changed.returncode == 0


def test_a_learner_cannot_open_the_server_of_another(hub, learners):
    address, _ = hub
    for place in ("api/contents", "api/kernels"):
        refused = requests.get(f"{address}/user/minsu/{place}", timeout=60,
                               headers=learners["alex"].headers)
        assert refused.status_code == 403
    assert requests.get(f"{address}/user/minsu/api/contents", timeout=60).status_code == 403


def test_who_is_not_on_the_list_or_has_no_password_stays_out(hub):
    address, _ = hub
    for name, password in (("eve", PASSWORD), ("minsu", "a wrong password"), ("leader", PASSWORD)):
        session = log_in(address, name, password)
        assert session.get(f"{address}/hub/home", timeout=60).url.split("?")[0].endswith("/login")
    leader = log_in(address, "leader", ADMIN)
    assert leader.get(f"{address}/hub/admin", timeout=60).status_code == 200


def test_the_compile_cache_is_shared(hub, finished):
    _, folder = hub
    kept = [p for p in (folder / "cache").rglob("*") if p.is_file()]
    assert len(kept) >= 5


def printed(outputs: list) -> str:
    """What a cell printed; a kernel may send one line in two messages."""
    return "".join(output.text for output in outputs)


def test_limits_hold(learners):
    async def ask(source: str) -> list:
        learner = learners["alex"]
        kernel = requests.post(f"{learner.address}/user/alex/api/kernels", headers=learner.headers,
                               json={"name": "python3"}, timeout=120).json()
        async with learner.kernel(kernel["id"]) as execute:
            return [await execute(line) for line in source.split("\n")]

    limits, cores, grown, alive = beside(ask(
        "import resource; print(resource.getrlimit(resource.RLIMIT_DATA)[0])\n"
        "import os; print(len(os.sched_getaffinity(0)))\n"
        f"x = bytearray({2 * MEMORY})\n"
        "print('still here')"))
    assert printed(limits) == f"{MEMORY}\n"
    assert printed(cores) == "1\n"
    assert grown[0].ename == "MemoryError"
    assert printed(alive) == "still here\n"


def test_the_leader_sees_the_gates(hub, finished, tmp_path):
    _, folder = hub
    run = CliRunner().invoke(saem, ["gates", str(folder / "learners"), "--json",
                                    "--page", str(tmp_path / "gates.html")])
    assert run.exit_code == 0, run.output
    rows = json.loads(run.output)
    assert {row["learner"] for row in rows} >= set(LEARNERS)
    mine = [r for r in rows if r["notebook"] == "minsu/lessons/ko/01-arrays.ipynb"]
    assert len(mine) >= 3 and {r["state"] for r in mine} == {"unanswered"}
    guessed = [r for r in rows if r["notebook"] == f"sora/lessons/ko/{GUESSED}.ipynb"]
    states = {r["gate"]: r["state"] for r in guessed}
    assert len(gates_of(GUESSED)) >= 3
    assert [name for name in gates_of(GUESSED) if states[name] != "right"] == []
    assert (tmp_path / "gates.html").stat().st_size > 1000
    table = CliRunner().invoke(saem, ["gates", str(folder / "learners")]).output
    assert f"{len(gates_of(GUESSED))}/{len(guessed)}" in table and "minsu" in table


def test_a_learner_arrives_in_the_browser(hub, learners, new_page: NewPage, picture):
    address, _ = hub
    page = new_page("ko-KR", width=1280)
    page.set_default_timeout(90_000)
    page.goto(address)
    page.locator("#username_input").fill("minsu")
    page.locator("#password_input").fill(PASSWORD)
    page.locator("#login_submit").click()
    page.wait_for_url("**/user/minsu/lab/**")
    page.locator(".jp-Notebook").first.wait_for()
    page.locator(".jp-Notebook h1", has_text="").first.wait_for()
    picture(page, "hub-minsu")
    assert "/lab/tree/ko/" in page.url
