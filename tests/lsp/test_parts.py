"""The parts of the server that need no server."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from lsprotocol import types
from pygls.workspace import PositionCodec

from codemods.api.findings import Span
from codemods.store.live_project import Interrupted
from ddpfix.lsp import places
from ddpfix.lsp.held import Held
from ddpfix.lsp.options import Options, options
from ddpfix.lsp.worker import Worker
from tests.lsp.editor import _edited

UTF16 = PositionCodec()
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a\nb\nc\n", "a\nB\nc\n"),
        ("a\nb", "a\nb\nc"),
        ("a\nb", "a\nx"),
        ("a", ""),
        ("", "a\n"),
        ("a\r\nb\r\n", "a\r\nx\r\nb\r\n"),
        ("a\n😀 = 1\nb\n", "a\n😀 = 2\nb\nc\n"),
        ("a\nb\nc\nd\n", "b\nc\nx\nd\ny\n"),
    ],
)
def test_edits_bring_one_text_to_the_other(before: str, after: str) -> None:
    assert _edited(before, places.edits(before, after, UTF16)) == after


def test_what_is_alike_is_not_replaced() -> None:
    (edit,) = places.edits("a\nb\nc\n", "a\nB\nc\n", UTF16)
    assert (edit.range, edit.new_text) == (types.Range(types.Position(1, 0), types.Position(2, 0)), "B\n")


def test_columns_count_as_the_protocol_does_and_lines_as_python_does() -> None:
    lines = places.split("x = '😀'; print(1)\nform\x0cfeed\n")
    assert len(lines) == 2
    assert places.first_line(Span(1, 9, 1, 17), lines, UTF16).start.character == 10


def test_a_block_is_shown_by_its_first_line() -> None:
    lines = places.split("if rank == 0:\n    save()\n")
    assert places.first_line(Span(1, 0, 2, 10), lines, UTF16) == types.Range(types.Position(0, 0), types.Position(0, 13))


def test_options_of_another_kind_are_not_taken() -> None:
    assert options({"ddpfix": {"select": ["DDP1"], "ignore": "DDP2", "unsafeFixes": "yes"}}) == Options(select=("DDP1",))
    assert options(None) == Options()


def test_a_file_that_belongs_to_no_project_is_looked_at_alone(tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text("x = 1\n")
    (tmp_path / "loose.py").write_text("x = 1\n")
    held = Held(tmp_path / "loose.py", Options(), lambda: False)
    assert held.tree.files == ("loose.py",)


def test_a_new_file_counts_before_it_is_saved_and_an_excluded_one_never(tmp_path: Path) -> None:
    (tmp_path / "ddpfix.toml").write_text('exclude = ["old/*"]\n')
    held = Held(tmp_path, Options(), lambda: False)
    assert held.is_checked("new.py")
    assert not held.is_checked("old/new.py")
    held.write("new.py", b"import torch\nmodel = torch.nn.parallel.DistributedDataParallel(m, find_unused_parameters=True)\n")
    held.judge("new.py")
    assert held.broken("new.py") == ()


def test_an_answer_that_should_not_have_been_kept_is_thrown_away(tmp_path: Path) -> None:
    (tmp_path / "ddpfix.toml").write_text("launched = true\n")
    (tmp_path / "a.py").write_text("x = 1\n")
    held = Held(tmp_path, Options(), lambda: False)
    held.write("a.py", b"import torch.distributed as dist\nif dist.get_rank() == 0:\n    dist.barrier()\n")
    held.judge("a.py")
    assert [f.code for f in held.findings("a.py")] == ["DDP301"]
    held.project.refresh()
    held.begin_whole()
    before = held.project
    held.take_whole({"a.py": held._judged["a.py"]})
    assert held.project is before
    held.take_whole({})  # another process has found nothing in the same text
    assert held.project is not before
    assert held.findings("a.py") == ()


def test_the_extension_says_what_the_server_reads() -> None:
    manifest = json.loads((ROOT / "editors/vscode/package.json").read_text(encoding="utf-8"))
    said = {name.removeprefix("ddpfix.") for name in manifest["contributes"]["configuration"]["properties"]}
    assert said - {"command", "trace.server"} == {"select", "ignore", "extendSelect", "exclude", "unsafeFixes"}
    source = (ROOT / "editors/vscode/src/extension.js").read_text(encoding="utf-8")
    from ddpfix.lsp import actions

    assert f'"{actions.ASK}"' in source and f'"{actions.IGNORE}"' in source


def test_without_the_extra_it_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ddpfix.cli.commands.lsp import lsp
    from ddpfix.cli.ends import CommandError

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)  # an environment without it would take a minute to make
    with pytest.raises(CommandError, match=r"pip install 'ddpfix\[lsp\]'"):
        lsp()


def test_the_command_line_does_not_load_it() -> None:
    asked = "import sys; from ddpfix.cli import program; print('ddpfix.cli.commands.lsp' in sys.modules, 'pygls' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", asked], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["True", "False"]


def test_what_is_urgent_ends_what_is_not_and_that_is_done_again() -> None:
    worker = Worker(lambda error: done.append(str(error)))
    begun, done = threading.Event(), list[str]()
    end = threading.Event()

    def later() -> None:
        begun.set()
        while not done:  # as a project asks now and then
            if worker.is_wanted_elsewhere():
                raise Interrupted
        done.append("later")
        end.set()

    worker.do_later(later)
    begun.wait(10)
    worker.do(lambda: done.append("urgent"))
    assert end.wait(10)
    worker.end()
    assert done == ["urgent", "later"]


def test_a_look_at_a_text_that_is_no_longer_there_ends_and_is_not_begun_again() -> None:
    worker = Worker(lambda error: None)
    looks, end = list[int](), threading.Event()

    def look() -> None:
        looks.append(1)
        worker.outdated = lambda: True
        if worker.is_wanted_elsewhere():
            raise Interrupted

    worker.do(look)
    worker.do(end.set)
    assert end.wait(10)
    worker.end()
    assert looks == [1]
