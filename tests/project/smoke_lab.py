"""Does an installed `saem lab` serve? Run by .ci/run: smoke_lab.py PATH_OF_SAEM.

Starts the server on loopback and asks it for the first Korean lesson and for the lens extension.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any


def wait_for_server(runtime: Path, process: subprocess.Popen[bytes]) -> dict[str, Any]:
    """What the server wrote of itself once it answers."""
    for _ in range(300):
        assert process.poll() is None, "saem lab ended"
        for path in runtime.glob("jpserver-*.json"):
            try:
                about = json.loads(path.read_text())
                ask(about, "api/status")
                return about
            except (ValueError, OSError):
                continue  # half written, or not listening yet
        time.sleep(0.2)
    raise AssertionError("saem lab did not come up within a minute")


def ask(about: dict[str, Any], path: str) -> str:
    """The server's answer to a request with its token."""
    request = urllib.request.Request(
        about["url"] + path, headers={"Authorization": f"token {about['token']}"}
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        return answer.read().decode()


def is_serving(about: dict[str, Any]) -> bool:
    """Whether the server still answers."""
    try:
        ask(about, "api/status")
    except OSError:
        return False
    return True


def check(about: dict[str, Any]) -> None:
    """The lessons, the lens and the Korean display are there."""
    assert about["url"].startswith("http://127.0.0.1:"), about["url"]
    lessons = json.loads(ask(about, "api/contents/ko"))["content"]
    names = sorted(entry["name"] for entry in lessons if entry["name"].endswith(".ipynb"))
    assert names, "no Korean lesson"
    cells = json.loads(ask(about, f"api/contents/ko/{names[0]}"))["content"]["cells"]
    assert cells, names[0]
    page = ask(about, f"lab/tree/ko/{names[0]}")
    start = page.index("{", page.index("jupyter-config-data"))
    config = json.loads(page[start : page.index("</script>", start)])
    extensions = [extension["name"] for extension in config["federated_extensions"]]
    assert "saem-lens" in extensions, extensions
    locale = json.loads(ask(about, "lab/api/settings/@jupyterlab/translation-extension:plugin"))
    assert locale["schema"]["properties"]["locale"]["default"] == "ko_KR"
    print(f"saem lab serves ko/{names[0]} ({len(cells)} cells) with {', '.join(extensions)}")


def main(saem: str) -> None:
    """Start the server in a folder of its own, check it, stop it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = {**os.environ, "JUPYTER_RUNTIME_DIR": str(folder / "runtime")}
        process = subprocess.Popen(
            [saem, "lab", "--lang", "ko", "--no-browser", str(folder / "lessons")], env=environment
        )
        try:
            about = wait_for_server(folder / "runtime", process)
            check(about)
        finally:
            process.terminate()
            process.wait(timeout=30)
        assert not is_serving(about), "the server outlived `saem lab`"


if __name__ == "__main__":
    main(sys.argv[1])
