"""How does JupyterHub serve a study session of Saem?

``Session`` reads ``class.toml``; ``configure`` writes it into JupyterHub's configuration.  Each
learner's server starts in a folder with copies of the lessons of their own, in their language, with
limits on memory and cores, and with the compile cache that the whole session shares.

Read before: ``class.toml``.  Read after: ``jupyterhub_config.py``.
Invariant: a learner's file is never overwritten, and no learner is given another's server
(tests/browser/test_hub.py).
"""

from __future__ import annotations

import dataclasses
import os
import pwd
import re
import resource
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jupyterhub.spawner import LocalProcessSpawner, SimpleLocalProcessSpawner

from saem.cli.lessons import copy_lessons, find_lessons, first_lesson
from saem.cli.server import make_environment, write_settings

_SIZES = {"M": 2**20, "G": 2**30}


@dataclasses.dataclass(frozen=True)
class Session:
    """What ``class.toml`` says."""

    folder: Path
    accounts: str
    address: str
    leaders: tuple[str, ...]
    memory: int
    cores: int
    idle_kernel: int
    idle_server: int
    learners: dict[str, str]

    @classmethod
    def read(cls, path: Path) -> Session:
        """The session in the file ``path``.  Raises ValueError for what is not as it must be."""
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        names = {field.name for field in dataclasses.fields(cls)}
        if set(data) != names:
            wrong = ", ".join(sorted(set(data) ^ names))
            raise ValueError(f"{path}: missing or unknown: {wrong}")
        if data["accounts"] not in ("class", "system"):
            raise ValueError(f'{path}: accounts is "class" or "system", not {data["accounts"]!r}')
        size = re.fullmatch(r"(\d+)([MG])", str(data["memory"]))
        if size is None:
            raise ValueError(f"{path}: memory is a size such as 512M or 2G, not {data['memory']!r}")
        memory = int(size[1]) * _SIZES[size[2]]
        return cls(**(data | {"folder": Path(data["folder"]), "leaders": tuple(data["leaders"]),
                              "memory": memory}))

    def home(self, user: str) -> Path:
        """The folder of a learner in "class" mode."""
        return self.folder / "learners" / user

    @property
    def cache(self) -> Path:
        """The compile cache that all learners share."""
        return self.folder / "cache"


def limit(session: Session, number: int) -> None:
    """Hold this process, and all that it starts, to the session's limits.

    ``number`` spreads learners over the cores.
    """
    resource.setrlimit(resource.RLIMIT_DATA, (session.memory, session.memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    have = sorted(os.sched_getaffinity(0))
    first = number * session.cores
    os.sched_setaffinity(0, {have[(first + i) % len(have)] for i in range(session.cores)})


class _Limited:
    """A spawner whose servers keep to the limits and find the lessons."""

    session: Session
    number = 0

    def make_preexec_fn(self, name: str) -> Callable[[], None]:
        before = super().make_preexec_fn(name)  # type: ignore[misc]
        type(self).number = number = self.number + 1
        session = self.session

        def preexec() -> None:
            before()
            limit(session, number)

        return preexec

    def lessons_folder(self) -> Path:
        """Where this learner's own copies are."""
        raise NotImplementedError

    def get_env(self) -> dict[str, str]:
        user = self.user.name  # type: ignore[attr-defined]
        language = self.session.learners.get(user, "en")
        return make_environment(self.lessons_folder(), language, {
            **super().get_env(),  # type: ignore[misc]
            "JAX_COMPILATION_CACHE_DIR": str(self.session.cache),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_COMPILATION_CACHE_MAX_SIZE": str(2**30),
        })


class ClassSpawner(_Limited, SimpleLocalProcessSpawner):
    """Learners without accounts: one operating system user, a folder for each learner."""

    def lessons_folder(self) -> Path:
        return self.session.home(self.user.name) / "lessons"


class SystemSpawner(_Limited, LocalProcessSpawner):
    """Learners with accounts on the machine: each server runs as its learner."""

    def lessons_folder(self) -> Path:
        return Path(os.path.expanduser(f"~{self.user.name}")) / "saem-lessons"


def prepare(spawner: Any) -> None:
    """Bring the lessons into a learner's folder, and open the first one in their language."""
    session = spawner.session
    language = session.learners.get(spawner.user.name, "en")
    folder = spawner.lessons_folder()
    source = find_lessons()
    copy_lessons(source, folder)
    write_settings(folder, language)
    if session.accounts == "system":
        _give(folder, spawner.user.name)
    spawner.notebook_dir = str(folder)
    spawner.default_url = f"/lab/tree/{first_lesson(source, language).as_posix()}"


def _give(folder: Path, user: str) -> None:
    """Make a learner the owner of what the hub, which is root, wrote for them."""
    account = pwd.getpwnam(user)
    for path in (folder, *folder.rglob("*")):
        os.chown(path, account.pw_uid, account.pw_gid, follow_symlinks=False)


def configure(c: Any, path: Path) -> Session:
    """Write the session of the file ``path`` into JupyterHub's configuration ``c``."""
    session = Session.read(path)
    for part in (session.folder / "hub", session.folder / "learners", session.cache):
        part.mkdir(parents=True, exist_ok=True)
    c.JupyterHub.bind_url = session.address
    c.JupyterHub.hub_ip = "127.0.0.1"
    c.JupyterHub.db_url = f"sqlite:///{session.folder}/hub/jupyterhub.sqlite"
    c.JupyterHub.cookie_secret_file = str(session.folder / "hub" / "cookie_secret")
    c.ConfigurableHTTPProxy.pid_file = str(session.folder / "hub" / "proxy.pid")
    c.Authenticator.allowed_users = {*session.learners, *session.leaders}
    c.Authenticator.admin_users = set(session.leaders)
    if session.accounts == "class":
        c.JupyterHub.authenticator_class = "shared-password"
        c.SharedPasswordAuthenticator.user_password = os.environ["SAEM_CLASS_PASSWORD"]
        c.SharedPasswordAuthenticator.admin_password = os.environ.get("SAEM_CLASS_ADMIN_PASSWORD")
        c.JupyterHub.spawner_class = ClassSpawner
        c.SimpleLocalProcessSpawner.home_dir_template = str(session.home("{username}"))
        ClassSpawner.session = session
    else:
        c.JupyterHub.authenticator_class = "pam"
        c.JupyterHub.spawner_class = SystemSpawner
        SystemSpawner.session = session
        os.chmod(session.cache, 0o1777)
    c.JupyterHub.load_roles = [
        # A leader may look into a learner's server when asked to help.
        {"name": "leaders", "users": list(session.leaders),
         "scopes": ["admin-ui", "access:servers"]},
    ]
    c.Spawner.cmd = [sys.executable, "-m", "jupyterhub.singleuser"]
    c.Spawner.pre_spawn_hook = prepare
    c.Spawner.start_timeout = 120
    c.Spawner.http_timeout = 120
    c.Spawner.args = [
        f"--MappingKernelManager.cull_idle_timeout={session.idle_kernel * 60}",
        f"--ServerApp.shutdown_no_activity_timeout={session.idle_server * 60}",
        *(["--allow-root"] if session.accounts == "class" and os.geteuid() == 0 else []),
    ]
    return session
