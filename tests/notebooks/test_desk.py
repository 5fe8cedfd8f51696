"""Does a change on the review page reach the file whole, and never over somebody else's work?"""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import subprocess
import sys
import threading

import pytest
from click.testing import CliRunner

from saem.l10n import catalog, notes, project, rows
from saem.l10n.commands import l10n
from saem.l10n.desk import ChangedError, Desk
from saem.l10n.merge import merge
from saem.l10n.page import earlier
from saem.l10n.review import ReviewError, sign, signature
from saem.l10n.review_server import ReviewServer
from saem.l10n.source import read
from saem.l10n.units import units

FIRST = "title|text|0"


@pytest.fixture
def desk(tree):
    """The small lesson, translated by jiwon, on the desk of minsu."""
    po, _ = merge(units(read(tree.lesson("01"))), catalog.empty("ko"))
    for entry in po:
        entry.msgstr = "`code`와 3입니다." if entry.msgctxt == FIRST else "번역입니다."
        sign(entry, "jiwon")
    catalog.save(po, tree.catalog("01-small", "ko"))
    return Desk(tree, "01", "ko", "minsu")


def entry(desk, unit=FIRST):
    return catalog.active(desk.read())[unit]


def seen(desk, unit=FIRST):
    """What the page says that it shows of ``unit``."""
    return catalog.version(entry(desk, unit))


def test_accepting_signs_as_reviewer(desk):
    before = seen(desk)
    desk.accept(FIRST, before)
    assert seen(desk) != before
    assert signature(entry(desk)) == signature(entry(desk)).__class__("jiwon", "minsu")


def test_an_edit_makes_the_reviewer_its_translator(desk):
    desk.edit(FIRST, "새 번역의 `code`와 3입니다.", seen(desk))
    assert entry(desk).msgstr == "새 번역의 `code`와 3입니다."
    assert signature(entry(desk)).translator == "minsu"
    with pytest.raises(ReviewError, match="someone else"):
        desk.accept(FIRST, seen(desk))


@pytest.mark.parametrize("end", "\v\f\x1c\x1d\x1e\x85\u2028\u2029")
def test_ends_of_lines_that_cannot_be_seen_lose_nothing(desk, end):
    desk.edit(FIRST, f"앞 {end}뒤의 `code`와 3입니다.", seen(desk))
    assert entry(desk).msgstr == "앞  뒤의 `code`와 3입니다."
    desk.path.write_text(desk.path.read_text().replace("앞  뒤", f"앞{end}뒤"))
    with pytest.raises(ValueError, match=rf"line \d+ has the character U\+{ord(end):04X}"):
        desk.read()


def test_an_edit_brings_a_stale_unit_up_to_date(desk, tree):
    source = tree.lesson("01")
    source.write_text(source.read_text().replace("First paragraph", "The first paragraph"))
    po, _ = merge(units(read(source)), desk.read())
    catalog.save(po, desk.path)
    assert catalog.state(entry(desk)) == "stale"
    desk.edit(FIRST, "첫 문단의 `code`와 3입니다.", seen(desk))
    assert catalog.state(entry(desk)) == "translated"


def test_a_comment_changes_no_signature(desk):
    desk.accept(FIRST, seen(desk))
    desk.comment(FIRST, "  두 줄로\n  적은 메모  ", seen(desk))
    assert notes.of(entry(desk)) == [("minsu", "두 줄로 적은 메모")]
    assert catalog.state(entry(desk)) == "reviewed"


@pytest.mark.parametrize("act", [
    lambda desk, seen: desk.edit(FIRST, "x", seen), lambda desk, seen: desk.accept(FIRST, seen),
    lambda desk, seen: desk.comment(FIRST, "x", seen),
])
def test_an_entry_that_changed_underneath_is_left_alone(desk, act):
    before = seen(desk)
    text = desk.path.read_text().replace("`code`와 3입니다.", "다른 `code`와 3입니다.")
    desk.path.write_text(text)
    with pytest.raises(ChangedError, match="Somebody else changed"):
        act(desk, before)
    assert desk.path.read_text() == text


def test_what_changed_beside_the_entry_stays(desk):
    before = seen(desk)
    gone = "\n#~ msgid \"gone\"\n#~ msgstr \"간 것\"\n"
    desk.path.write_text(desk.path.read_text().replace("번역입니다.", "글입니다.") + gone)
    desk.accept(FIRST, before)
    assert signature(entry(desk)).reviewer == "minsu"
    assert "글입니다." in desk.path.read_text() and gone in desk.path.read_text()


def test_a_unit_that_the_lesson_no_longer_has_is_refused(desk, tree):
    source = tree.lesson("01")
    source.write_text(source.read_text().replace("First paragraph", "Another start"))
    before = desk.path.read_text()
    with pytest.raises(ReviewError, match="l10n merge"):
        desk.edit(FIRST, "x", seen(desk))
    assert desk.path.read_text() == before


@pytest.mark.parametrize("text", ["", " \n "])
def test_nothing_is_no_translation(desk, text):
    for act in (desk.edit, desk.comment):
        with pytest.raises(ReviewError, match="empty"):
            act(FIRST, text, seen(desk))


def test_word_diff_marks_words():
    assert rows.word_diff("a b c", "a x c") == "a <del>b</del><ins>x</ins> c"
    assert rows.word_diff("<b>", "<i>") == "<del>&lt;b&gt;</del><ins>&lt;i&gt;</ins>"
    old, new = "하나 둘 셋", "하나 셋 넷"
    marked = rows.word_diff(old, new)
    assert re.sub("<ins>.*?</ins>|</?del>", "", marked) == old
    assert re.sub("<del>.*?</del>|</?ins>", "", marked) == new


def test_earlier_translations_come_from_git(desk):
    for words in (["init", "-q"], ["add", "-A"],
                  ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"]):
        subprocess.run(["git", *words], cwd=desk.project.root, check=True)
    desk.edit(FIRST, "다른 `code`와 3입니다.", seen(desk))
    assert earlier(desk.path, "HEAD")[FIRST] == "`code`와 3입니다."
    for revision in ("no-such-revision", "--output=written"):
        with pytest.raises(ValueError, match=f"no revision '{revision}'"):
            earlier(desk.path, revision)
    assert not (desk.path.parent / "written").exists()
    assert earlier(desk.path.with_name("new.po"), "HEAD~0") == {}


def test_where_nothing_was_committed_there_is_nothing_to_compare_with(desk):
    assert earlier(desk.path, "HEAD") == {}
    run = CliRunner().invoke(l10n, ["--root", str(desk.project.root), "page", "01",
                                    str(desk.path.with_name("page.html")), "--against", "v1"])
    assert run.exit_code == 1 and "no revision 'v1'" in run.output


# --- the server ----------------------------------------------------------------------------------


@contextlib.contextmanager
def serving(desk, say="en"):
    server = ReviewServer(desk, say)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def request(server, method, path, body=None, token=None, host=None):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    headers = {"Host": host or server.host}
    if token:
        headers["X-Saem-Token"] = token
    connection.request(method, path, json.dumps(body) if body is not None else None, headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer, text


def test_the_page_is_for_who_has_the_token(desk):
    with serving(desk) as server:
        assert server.server_address[0] == "127.0.0.1"
        path = "/?token=" + server.token
        answer, text = request(server, "GET", path)
        assert (answer.status, "번역입니다." in text) == (200, True)
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        for bad in ("/", "/?token=x"):
            assert request(server, "GET", bad)[0].status == 403
        assert request(server, "GET", path, host="evil.example")[0].status == 403
        assert request(server, "GET", "/../../etc/passwd?token=" + server.token)[0].status == 404


def test_nothing_is_written_without_the_token(desk):
    before = desk.path.read_text()
    with serving(desk) as server:
        asked = {"unit": FIRST, "text": "x", "seen": seen(desk)}
        assert request(server, "POST", "/edit", asked)[0].status == 403
        assert request(server, "POST", "/edit", asked, "wrong")[0].status == 403
        assert request(server, "POST", "/edit", asked, server.token, "a.b:1")[0].status == 403
        assert request(server, "POST", "/other", asked, server.token)[0].status == 404
        assert request(server, "POST", "/edit", {}, server.token)[0].status == 400
    assert desk.path.read_text() == before


def test_a_draft_is_judged_and_not_written(desk):
    before = desk.path.read_text()
    with serving(desk) as server:
        asked = {"unit": FIRST, "text": "`code`을 3번 씁니다. <b>"}
        assert request(server, "POST", "/lint", asked)[0].status == 403
        answer, text = request(server, "POST", "/lint", asked, server.token)
        found = json.loads(text)["findings"]
        assert (answer.status, "particle" in found, "<b>\"" in found) == (200, True, False)
        asked["text"] = "`code`를 3번 씁니다."
        _, text = request(server, "POST", "/lint", asked, server.token)
        assert json.loads(text)["findings"] == ""
        asked["unit"] = "no-such|text|0"
        assert request(server, "POST", "/lint", asked, server.token)[0].status == 400
    assert desk.path.read_text() == before


def test_a_change_answers_with_the_new_row_and_a_refusal_with_its_reason(desk):
    with serving(desk) as server:
        asked = {"unit": FIRST, "text": "`code`을 3번 <b>씁니다</b>.", "seen": seen(desk)}
        answer, text = request(server, "POST", "/edit", asked, server.token)
        said = json.loads(text)
        assert answer.status == 200
        assert f'data-seen="{seen(desk)}"' in said["row"]
        assert "&lt;b&gt;" in said["row"] and "<b>씁니다" not in said["row"]
        assert "particle" in said["row"]
        answer, text = request(server, "POST", "/accept", asked, server.token)
        refusal = json.loads(text)
        assert (answer.status, "Somebody else changed" in refusal["message"]) == (409, True)
        assert refusal["row"] == said["row"]
        asked["seen"] = seen(desk)
        answer, text = request(server, "POST", "/accept", asked, server.token)
        assert (answer.status, "someone else reviews" in text) == (409, True)


def test_refusals_are_in_the_language_of_the_page(desk):
    po = desk.read()
    with serving(desk, "ko") as server:

        def said(action, body, token=server.token):
            return request(server, "POST", f"/{action}", body, token)[1]

        assert "다른 사람이 바꾸어" in said("accept", {"unit": FIRST, "seen": "x"})
        empty = {"unit": FIRST, "text": " ", "seen": seen(desk)}
        assert "비워 둘 수 없습니다" in said("edit", empty)
        assert "비워 둘 수 없습니다" in said("comment", empty)
        assert "그런 동작은 없습니다" in said("other", {"unit": FIRST})
        assert "문단이 있어야" in said("edit", {"unit": 3})
        assert "문단이 있어야" in said("lint", {"unit": "no-such|text|0"})
        assert "주소를 여십시오" in said("accept", {}, "wrong")
        assert "아무것도 없습니다" in request(server, "GET", "/other")[1]
        catalog.active(po)[FIRST].tcomment = ""
        catalog.save(po, desk.path)
        assert "유효한 서명이 없습니다" in said("accept", {"unit": FIRST, "seen": seen(desk)})
        desk.edit(FIRST, "새 번역의 `code`와 3입니다.", seen(desk))
        asked = {"unit": FIRST, "seen": seen(desk)}
        assert "다른 사람이 검토합니다" in said("accept", asked)
        desk.path.write_text("broken")
        assert "파일을 읽을 수 없어" in said("accept", asked)
        answer, text = request(server, "GET", f"/?token={server.token}")
        assert (answer.status, "파일을 읽을 수 없어" in text) == (409, True)


@pytest.mark.parametrize("length", ["abc", "-5", "", "1" * 30])
def test_a_request_of_no_proper_length_is_refused(desk, length):
    with serving(desk) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
        connection.putrequest("POST", "/edit")
        connection.putheader("X-Saem-Token", server.token)
        connection.putheader("Content-Length", length)
        connection.endheaders()
        assert connection.getresponse().status == 400
        connection.close()


def test_without_a_po_file_the_command_says_what_makes_one(desk):
    desk.path.unlink()
    run = CliRunner().invoke(l10n, ["--root", str(desk.project.root), "review", "01",
                                    "--by", "minsu", "--no-browser"])
    assert run.exit_code == 1 and "`saem l10n merge 01`" in run.output
    for command in ("sign", "accept"):
        run = CliRunner().invoke(l10n, ["--root", str(desk.project.root), command, "01",
                                        "--by", "minsu"])
        assert run.exit_code == 1 and "`saem l10n merge 01`" in run.output
        assert not desk.path.exists()


def test_many_changes_at_once_lose_none(desk):
    contexts = [u.context for u in units(desk.lesson())]
    with serving(desk) as server:

        def accept(context):
            while True:
                asked = {"unit": context, "seen": seen(desk, context)}
                answer, _ = request(server, "POST", "/accept", asked, server.token)
                if answer.status == 200:
                    return

        threads = [threading.Thread(target=accept, args=(c,)) for c in contexts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    states = [catalog.state(e) for e in catalog.active(desk.read()).values()]
    assert states == ["reviewed"] * len(contexts)


def test_a_command_waits_for_a_change_of_the_page_and_loses_none(desk):
    """Commands in processes of their own, while the page saves one text after another."""
    root = desk.project.root
    commands = [[sys.executable, "-m", "saem", "l10n", "--root", str(root), *words] for words in (
        ("merge",), ("lint", "--fix"), ("assign", "01", "--to", "jiwon"))]
    running = [subprocess.Popen(words, stdout=subprocess.DEVNULL) for words in commands]
    number = 0
    while any(process.poll() is None for process in running):
        number += 1
        desk.edit(FIRST, f"`code`와 3입니다. {number}번째 글입니다.", seen(desk))
        assert f"{number}번째" in entry(desk).msgstr
    assert f"{number}번째" in entry(desk).msgstr
    assert "X-Saem-Translator: jiwon" in desk.path.read_text()


def test_who_waits_too_long_is_refused_in_words(desk, monkeypatch):
    monkeypatch.setattr(project, "PATIENCE", 0.1)
    before = desk.path.read_text()
    holder = ("import sys; from pathlib import Path; from saem.l10n import project\n"
              "with project.find(Path(sys.argv[1])).changing():\n"
              "    print(1, flush=True); sys.stdin.read()")
    with subprocess.Popen([sys.executable, "-c", holder, str(desk.project.root)], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == "1\n"
        with pytest.raises(OSError, match="another command is changing the translations"):
            desk.accept(FIRST, seen(desk))
        assert desk.path.read_text() == before
        other.stdin.close()
        other.wait(20)
    desk.accept(FIRST, seen(desk))
