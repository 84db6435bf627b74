"""The commands of docs/review.md, in their order, on a repository."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from ddpfix import decisions as files
from ddpfix.review.prompt import HELP
from tests.gitrepos import own_settings, sh
from tests.programs import ddpfix
from tests.review.project import classifier
from tests.review.terminals import OnTerminal

PAGE = (Path(__file__).parents[2] / "docs" / "review.md").read_text(encoding="utf-8")
COMMANDS = [
    shlex.split(line, comments=True)
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    for line in block.splitlines()
    if line.startswith("ddpfix ")
]


def test_the_commands_do_what_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_settings(monkeypatch, tmp_path)
    repo = classifier(tmp_path)
    review, diff, apply, suppress = [c for c in COMMANDS if not {"--html", "--serve"} & set(c)]
    with OnTerminal(repo, *review[1:]) as person:
        person.until("Accept?")
        person.type("a")
        person.until("s: next")
        person.type("n each rank has its own")
        person.until("Accept?")
        person.type("n too slow here")
        assert person.end()[0] == 0
    patch = ddpfix(repo, *diff[1:])
    assert patch.returncode == 1 and patch.stdout.startswith(b"diff --git ")
    assert ddpfix(repo, *apply[1:]).returncode == 0
    assert sh(repo, "branch", "--show-current") == "ddpfix/fixes"
    assert ddpfix(repo, "undo").returncode == 0
    done = ddpfix(repo, *suppress[1:])
    assert done.returncode == 0, done.stderr
    assert "each rank has its own" in sh(repo, "show", "HEAD~1")


def test_the_file_that_is_shown_can_be_read() -> None:
    (text,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    assert len(files.from_json(text).of) == 2


def test_every_key_is_explained() -> None:
    keys = {line[0] for line in HELP.splitlines() if line[1:3] in ("  ", " [")}
    assert keys == set("ynadfkesbq?")
    assert not [k for k in keys - {"?"} if f"`{k}`" not in PAGE]
