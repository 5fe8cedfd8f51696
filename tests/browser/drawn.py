"""Where are the pictures of a run kept, and what makes a page?

Tests import these from here and not from ``conftest.py``: there are several files of that name.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable

from playwright.sync_api import Locator, Page

OUTPUT = pathlib.Path(__file__).parent / "output"
NewPage = Callable[..., Page]
Picture = Callable[[Page | Locator, str], None]
