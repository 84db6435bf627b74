"""`# ddpfix: ignore[...]` in files that are no Python, and the gate and the run over them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from codemods.analysis.job_files.command_lines import command_lines
from codemods.analysis.job_files.flag_edits import NoEdit, set_value
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Finding
from codemods.engine.find import find_in
from codemods.engine.fix_source import fix_project
from codemods.files.source import SourceModule
from codemods.files.text_file import TEXT_KINDS, TextFile
from codemods.store.project import Project
from ddpfix.discovery import LARGEST_JSON, discover
from ddpfix.gate import Gate


class OneEpoch(DdpCodemod):
    """`--epochs` other than 1."""

    code = "DDP999"
    TRIGGERS = ((b"no such word in Python",),)
    TEXT = (b"--epochs",)
    TEXT_KINDS = TEXT_KINDS

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        assert isinstance(module, TextFile)
        for command in command_lines(module):
            flag = command.flag("epochs")
            if flag is not None and flag.value != "1":
                edit = set_value(command, flag, "1")
                assert not isinstance(edit, NoEdit)
                yield self.finding(module, command.span_of(flag), "too many", level=Applicability.SAFE, edits=[edit], symbol="")


def codes(path: str, text: str) -> list[str]:
    project = Project.of({path: text.encode()})
    module = project.module(path)
    assert module is not None
    return [f.code for f in find_in(module, project, [OneEpoch()])]


SHELL = "# head\n{above}python train.py \\\n  --lr 1 \\\n  --epochs 2{behind}\n"
FOLDED = "a: 1\n{above}command: >-{header}\n  python train.py\n  --epochs 2\nb: 2\n"
MARK = "# ddpfix: ignore[DDP999] asked for"


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        ("a.sh", SHELL.format(above="", behind=""), ["DDP999"]),
        ("a.sh", SHELL.format(above=MARK + "\n", behind=""), []),
        ("a.sh", SHELL.format(above="", behind=" " + MARK), []),
        ("a.sh", SHELL.format(above=MARK + "\n\n", behind=""), ["DDP000", "DDP999"]),
        ("a.sh", SHELL.format(above=MARK.replace("ignore", "ignore-file") + "\n\n", behind=""), []),
        ("a.yaml", FOLDED.format(above="", header=""), ["DDP999"]),
        ("a.yaml", FOLDED.format(above=MARK + "\n", header=""), []),
        ("a.yaml", FOLDED.format(above="", header="  " + MARK), []),
        ("a.json", '{"c": "python train.py --epochs 2 # ddpfix: ignore[DDP999] no comment"}', ["DDP999"]),
    ],
)
def test_a_comment_silences_the_command_it_stands_at(path: str, text: str, found: list[str]) -> None:
    assert codes(path, text) == found


def test_the_gate_asks_for_the_kind_of_file_and_the_word() -> None:
    gate = Gate([OneEpoch()])
    assert len(gate.open_for(b"python x.py --epochs 2", "a.slurm")) == 1
    assert gate.open_for(b"python x.py --epochs 2", "a.py") == () == gate.open_for(b"python x.py", "a.sh")


def test_a_fix_keeps_its_id_and_every_other_byte() -> None:
    text = b"\xef\xbb\xbf# \xc3\xa9\r\npython a.py --epochs 2 # x\r\npython b.py --epochs 2\r\n"
    project = Project.of({"a.sh": text})
    before = project.module("a.sh")
    assert before is not None
    ids = [f.id for f in find_in(before, project, [OneEpoch()])]
    result = fix_project(project, lambda _p, paths: {p: [OneEpoch()] for p in paths}, ["a.sh"], lambda f: f.id == ids[0])
    assert result.changed == {"a.sh": text.replace(b"a.py --epochs 2", b"a.py --epochs 1")}
    assert [f.id for f in result.left] == [ids[1]] and len(set(ids)) == 2


def test_json_that_is_data_is_not_looked_at(tmp_path: Path) -> None:
    (tmp_path / "small.json").write_text("{}")
    (tmp_path / "large.json").write_text("[" + " " * LARGEST_JSON + "]")
    (tmp_path / "Makefile").write_text("all:\n")
    (tree,) = discover([tmp_path])
    assert tree.chosen == ("Makefile", "small.json")
