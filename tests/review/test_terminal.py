"""`ddpfix review` on a real pseudo-terminal."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from ddpfix import decisions as files
from ddpfix.decisions import Decision
from ddpfix.review.screen import cells
from tests.gitrepos import blob, own_settings, put, sh
from tests.programs import ddpfix
from tests.review.project import FILES, at, classifier, reviewed
from tests.review.terminals import OnTerminal, plain

ASK = "Accept? [y n a d f k e s b q ?]"
COLOR = re.compile(r"\x1b\[[0-9;]*m")
FILE = "ddpfix-decisions.json"
TRAIN = ("review", "train.py")


@pytest.fixture(autouse=True)
def _own_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own_settings(monkeypatch, tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def test_accept_reject_and_stop_then_go_on_where_one_stopped(tmp_path: Path) -> None:
    repo = classifier(tmp_path)
    first, second, third = [i for i in reviewed(repo).items if i.finding.path == "train.py"][:3]
    with OnTerminal(repo, *TRAIN) as person:
        screen = plain(person.until(ASK))
        assert "1/5 train.py:34" in screen
        assert "DDP204 makedirs-race (safe) in main" in screen
        assert "Evidence: " in screen and "0 accepted, 0 rejected, 5 open" in screen
        assert screen.index("Evidence") < screen.index("@@ -31,7 +31,7 @@") < screen.index("34 +")
        assert COLOR.search(person.seen)
        person.type("y")
        assert "2/5 train.py:35" in plain(person.until(ASK))
        assert files.read(repo / FILE).of == {first.id: Decision("accept")}
        person.type("n each rank has its own folder")
        person.until(ASK)
        person.type("q")
        status, closing = person.end()
    assert status == 0
    assert f"1 accepted, 1 rejected, 3 open. Saved in {FILE}." in closing
    assert f"Apply: ddpfix apply train.py --decisions {FILE}\n" in closing
    saved = files.read(repo / FILE)
    assert saved.base == sh(repo, "rev-parse", "HEAD")
    assert saved.of == {first.id: Decision("accept"), second.id: Decision("reject", "each rank has its own folder")}
    with OnTerminal(repo, *TRAIN) as person:
        screen = plain(person.until(ASK))
        assert f"{FILE}: 2 of 5 findings are decided" in screen
        assert f"3/5 train.py:{third.finding.span.line}" in screen


def test_at_60_columns_no_line_is_wider_and_a_resized_terminal_is_used(tmp_path: Path) -> None:
    repo = classifier(tmp_path)
    with OnTerminal(repo, *TRAIN, columns=60) as person:
        narrow = plain(person.until(ASK))
        assert max(cells(line) for line in narrow.split("\n")) <= 60
        assert max(cells(line) for line in narrow.split("\n")) == 60
        person.resize(100)
        person.type("s")
        wide = plain(person.until(ASK))
        assert max(cells(line) for line in wide.split("\n")) == 100


def test_no_color(tmp_path: Path) -> None:
    repo = classifier(tmp_path)
    with OnTerminal(repo, *TRAIN, env={"NO_COLOR": "1"}) as person:
        person.until(ASK)
        person.type("?")
        assert "reject it" in person.until(ASK)
        person.type("q")
        person.end()
        assert not COLOR.search(person.seen)


def test_ctrl_c_keeps_what_was_decided(tmp_path: Path) -> None:
    repo = classifier(tmp_path)
    with OnTerminal(repo, *TRAIN) as person:
        person.until(ASK)
        person.type("y")
        person.until(ASK)
        person.interrupt()
        status, said = person.end()
    assert status == 130
    assert f"what was decided is in {FILE}" in said and "nothing is half written" in said
    assert len(files.read(repo / FILE).of) == 1
    assert sh(repo, "status", "--porcelain") == f"?? {FILE}"


def test_the_end_of_the_input_is_a_stop(tmp_path: Path) -> None:
    repo = classifier(tmp_path)
    with OnTerminal(repo, *TRAIN) as person:
        person.until(ASK)
        person.hang_up_input()
        status, said = person.end()
    assert status == 0 and "0 accepted, 0 rejected, 5 open." in said
    assert not (repo / FILE).exists()


def test_a_whole_kind_then_apply(tmp_path: Path) -> None:
    repo = classifier(tmp_path)
    with OnTerminal(repo, *TRAIN, "--apply", "--write-suppressions") as person:
        person.until(ASK)
        person.type("k")
        assert "DDP204: 2 findings open." in person.until("no change]")
        person.type("y")
        assert "2 findings accepted." in person.until(ASK)
        person.type("d each rank has a console")
        assert "3 findings rejected." in person.until("\n3 findings rejected.")
        status, said = person.end()
    assert status == 0, said
    assert "Branch ddpfix/fixes (checked out)" in said and "Reviewed: 2 accepted, 3 rejected, 0 not decided." in said
    text = blob(repo, "ddpfix/fixes:train.py")
    assert text.count(b"exist_ok=True") == 2
    assert text.count(b"# ddpfix: ignore[DDP203] each rank has a console") == 2


def test_what_has_no_fix_is_read_and_passed(tmp_path: Path) -> None:
    repo = classifier(tmp_path)
    with OnTerminal(repo, "review", "classifier/callbacks/text_log.py", "--select", "DDP202") as person:
        screen = plain(person.until("No fix. [s: next, n d f k b q ?]"))
        assert "DDP202 unguarded-file-io (reported, no fix)" in screen and "No fix: " in screen
        person.type("y")
        assert "It cannot be accepted: " in person.until("No fix. [s: next")
        person.type("")
        status, said = person.end()
    assert status == 0 and "0 accepted, 0 rejected, 0 open, 1 reported." in said


def test_an_edited_fix_is_applied_as_edited(tmp_path: Path) -> None:
    repo = classifier(tmp_path)
    editor = tmp_path / "editor.sh"
    # the first time the line is left unfinished
    editor.write_text("#!/bin/sh\nif [ -e tried ]; then sed -i 's/exist_ok=True$/exist_ok=True, mode=0o750)/' \"$1\"\n"
                      "else touch tried; sed -i 's/exist_ok=True)/exist_ok=True/' \"$1\"; fi\n")  # fmt: skip
    editor.chmod(0o755)
    with OnTerminal(repo, *TRAIN, env={"EDITOR": str(editor)}) as person:
        person.until(ASK)
        person.type("e")
        assert "Not taken: the new text of train.py would not compile" in person.until("Edit again? [y n]")
        person.type("y")
        shown = plain(person.until("2/5"))
        assert "Decided: accept, edited by hand" in shown and "mode=0o750" in shown
        person.type("q")
        person.end()
    (decision,) = files.read(repo / FILE).of.values()
    assert decision.verdict == "accept" and "mode=0o750" in decision.edited[0].after
    done = ddpfix(repo, "apply", "--decisions", FILE)
    assert done.returncode == 0, done.stderr
    old = FILES["train.py"].splitlines(keepends=True)[33]
    new = old.replace(b")", b", exist_ok=True, mode=0o750)")
    assert blob(repo, "ddpfix/fixes:train.py") == FILES["train.py"].replace(old, new, 1)
    assert b"1 accepted (1 edited by hand)" in done.stdout
    assert "### Written by hand" in blob(repo, "ddpfix/fixes:DDPFIX_SUMMARY.md").decode()


def test_stale_decisions_are_kept_where_the_text_is_the_same(tmp_path: Path) -> None:
    repo = classifier(tmp_path)
    found = reviewed(repo)
    stays, goes = at(found, "train.py", 60, "DDP203"), at(found, "train.py", 34, "DDP204")
    files.write(repo / FILE, files.Decisions(found.base, {stays.id: Decision("accept"), goes.id: Decision("reject", "no")}))
    line = FILES["train.py"].splitlines(keepends=True)[33]
    put(repo, {"train.py": b"# new\n" + FILES["train.py"].replace(line, line.replace(b"plots_dir", b"str(plots_dir)"))})
    sh(repo, "commit", "-qam", "second")
    with OnTerminal(repo, *TRAIN, "--again", columns=200) as person:
        screen = plain(person.until(ASK))
        assert f"{FILE} is stale: decided on {found.base[:12]}, HEAD is " in screen
        assert f"1 kept, whose text is the same, 1 dropped: found no more ({goes.id})" in screen
        person.type("s")
        person.until(ASK)
        person.type("s")
        screen = plain(person.until(ASK))
        assert "3/5 train.py:61" in screen and "Decided: accept" in screen


def test_without_a_terminal_it_says_what_to_do_instead(tmp_path: Path) -> None:
    repo = classifier(tmp_path)
    done = ddpfix(repo, "review")
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (2, b"", 1)
    assert b"review asks on a terminal: this is none." in done.stderr and b"`ddpfix apply --decisions`" in done.stderr
    assert subprocess.run(["git", "-C", str(repo), "status", "--porcelain"], capture_output=True, check=True).stdout == b""


def test_a_place_that_cannot_be_written_is_told_before_anything_is_asked(tmp_path: Path) -> None:
    repo = classifier(tmp_path)
    with OnTerminal(repo, *TRAIN, "--decisions", "no/such/d.json") as person:
        status, said = person.end()
    assert status == 2
    assert said.startswith("ddpfix: no/such/d.json cannot be written: there is no such folder, ") and said.count("\n") == 1
