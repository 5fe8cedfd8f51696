"""Does a translator find the review page in JupyterLab, and a learner not?

Read before: ``jupyter.py``, ``extension/src/lab/review.ts``, ``saem.l10n.jupyter``.
Read after: ``test_review_page.py``.
Invariant: what is accepted on the page is in the PO file.
"""

from __future__ import annotations

import pathlib
import shutil

import pytest
from drawn import NewPage
from jupyter import Lab
from kept_pages import Lend
from playwright.sync_api import expect

from saem.l10n import catalog, project
from saem.l10n.review import sign, signature

ROOT = pathlib.Path(__file__).parents[2]
COMMAND = "saem-lens:review"


@pytest.fixture
def clone(tmp_path: pathlib.Path, labextension: pathlib.Path) -> Lab:
    """A JupyterLab whose folder has the lessons' sources, lesson 01 signed by jiwon."""
    lab = Lab(tmp_path / "home", labextension, "ko")
    shutil.copytree(ROOT / "notebooks", lab.notebooks / "notebooks")
    settings = lab.home / "config" / "jupyter_server_config.d"
    settings.mkdir(parents=True)
    shutil.copy(ROOT / "kernel" / "saem" / "l10n" / "jupyter.json", settings / "saem.json")
    path = project.find(lab.notebooks).catalog("01-arrays", "ko")
    po = catalog.load(path, "ko")
    for entry in catalog.active(po).values():
        entry.tcomment = ""
        sign(entry, "jiwon")
    catalog.save(po, path)
    return lab


def test_a_unit_is_accepted_from_jupyterlab(clone: Lab, new_page: NewPage, picture) -> None:
    path = project.find(clone.notebooks).catalog("01-arrays", "ko")
    with clone as lab:
        page = new_page("ko-KR", width=1280)
        page.goto(f"{lab.address}/lab?token={lab.token}&reset")
        card = page.locator(".jp-LauncherCard", has_text="번역 검토")
        expect(card).to_be_visible(timeout=60_000)
        picture(page, "lab-review-launcher")
        with page.context.expect_page() as opened:
            card.click()
        review = opened.value
        review.locator("input[name=by]").fill("minsu")
        review.get_by_role("button").click()
        picture(review, "lab-review-lessons")
        review.get_by_role("link", name="ko/01-arrays").click()
        review.locator(".row.current").wait_for()
        unit = review.locator(".row.current").get_attribute("id")
        assert unit is not None
        review.keyboard.press("a")
        review.locator(f'[id="{unit}"][data-state="reviewed"]').wait_for()
        entry = catalog.active(catalog.load(path, "ko"))[unit]
        assert signature(entry) == signature(entry).__class__("jiwon", "minsu")
        review.close()


def test_a_server_without_lessons_sources_offers_nothing(labs, lab_page: Lend) -> None:
    page = lab_page(labs("en"))
    assert page.evaluate("name => window.jupyterapp.commands.hasCommand(name)", COMMAND) is False
