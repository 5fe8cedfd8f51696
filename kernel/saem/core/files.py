"""How is a file written so that half of it is never seen?

Read before: nothing.  Read after: ``lens.views``.
Invariant: a file that was there is there as it was, or as it was to be, however the process ends
(tests/kernel/test_files.py).
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_whole(path: Path, data: bytes) -> None:
    """Write ``data`` to a file beside ``path`` and rename it into place; folders are made.

    Raises: OSError that names ``path``, which then is as it was.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, aside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise OSError(f"{path} cannot be written: {error.strerror}.") from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(handle)
        os.chmod(aside, 0o644)  # until here it was the owner's alone
        os.replace(aside, path)
    except BaseException:
        Path(aside).unlink(missing_ok=True)
        raise
