"""What the code that leaves a place alone says of it, and how `--why-not` shows it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from codemods.api.codemod import DdpCodemod, built_in
from codemods.api.findings import Span
from codemods.files.left_alone import Left, hearing, is_heard, left
from codemods.files.source import SourceModule
from ddpfix.stated import concerning
from tests.programs import ddpfix

SOURCE = b"""\
def main(args):
    if args.rank == 0:
        start(args.backend)
        stop()
    return 1
"""


@pytest.fixture
def module() -> SourceModule:
    return SourceModule("train.py", SOURCE)


def heard(module: SourceModule) -> list[Left]:
    said: list[Left] = []
    with hearing(said.append):
        assert is_heard()
        call = module.calls_named("start")[0]
        assert left(module, call, "the backend is {}, no {}", call.args[0], "nccl", at=module.nodes(ast.If)[0])
        assert left(module, module.nodes(ast.If)[0], "a test")
        assert left("other.py", None, "the file")
        assert left(module, Span(3, 0, 4, 0), "a span")
    return said


def test_nobody_listens_and_nothing_is_made(module: SourceModule) -> None:
    assert not is_heard()
    assert left(module, module.tree, "{} {}")  # too few parts: put together, it would fail


def test_a_sentence_has_its_place_and_that_of_its_reason(module: SourceModule) -> None:
    first, header, file, span = heard(module)
    assert first == Left("train.py", 3, 3, "the backend is `args.backend`, no nccl", ("train.py", 2))
    assert (header.line, header.end_line) == (2, 2)  # what stands below is judged for itself
    assert (file.path, file.line, file.at) == ("other.py", 0, None)
    assert (span.line, span.end_line) == (3, 4)
    assert not is_heard()


def test_what_concerns_a_line_comes_nearest_first(module: SourceModule) -> None:
    codemod: DdpCodemod = built_in()[0]()
    said = [*heard(module), Left("train.py", 40, 40, "another function"), Left("train.py", 0, 0, "the whole")]
    stated = concerning([(codemod, said)], "train.py", 4, (1, 5))
    assert [(s.is_here, s.text("train.py")) for s in stated] == [
        (True, "a span"),
        (False, "line 3: the backend is `args.backend`, no nccl (line 2)"),
        (False, "line 2: a test"),
    ]
    outside = concerning([(codemod, [Left("a.py", 7, 7, "used late", ("train.py", 4))])], "train.py", 4, (1, 5))
    assert [s.text("train.py") for s in outside] == ["a.py:7: used late (line 4)"]


def test_one_reason_of_several_codemods_is_said_once(module: SourceModule) -> None:
    one, two = (c() for c in built_in()[:2])
    told = [Left("train.py", 4, 4, "nobody runs it")]
    (stated,) = concerning([(one, told), (two, told)], "train.py", 4, (1, 5))
    assert stated.codes == (one.code, two.code)


def asked(folder: Path, place: str, *options: str) -> str:
    ran = ddpfix(folder, "check", "--why-not", place, *options)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.decode()


SPAWNS = """\
import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def worker(rank, args):
    dist.init_process_group(args.backend, rank=rank, world_size=2)
    model = torch.nn.Linear(2, 2).cuda()
    if not args.several or args.gpu == 0:
        torch.save(model.state_dict(), "model.pt")
    wait(args)


def wait(args):
    args.join("nccl")
    dist.barrier()


if __name__ == "__main__":
    mp.spawn(worker, args=(None,), nprocs=2)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text("[tool.ddpfix]\n")
    (tmp_path / "train.py").write_text(SPAWNS)
    return tmp_path


def test_the_cause_at_another_line_of_the_function_is_named(folder: Path) -> None:
    text = asked(folder, "train.py:8", "--select", "DDP703")
    assert "Left alone here, in this function or in the whole file, for this reason:\n" in text
    assert "    DDP703: line 7: the backend is not written in the call `dist.init_process_group(" in text


def test_a_test_that_is_not_read_as_one_of_ranks_is_named(folder: Path) -> None:
    text = asked(folder, "train.py:10", "--select", "DDP302,DDP501")
    assert "    Programs of several processes come here.\n" in text
    assert "    Line 9: `not args.several or args.gpu == 0` is not read as a test of ranks" in text


def test_a_finding_at_the_call_of_the_function_is_named(folder: Path) -> None:
    (folder / "train.py").write_text(SPAWNS.replace("    wait(args)", "    if rank == 0:\n        wait(args)"))
    text = asked(folder, "train.py:17", "--select", "DDP301")
    assert "may be the same fault:\n    DDP301 collective-under-rank-guard, line 12 (" in text
    assert "Who comes here: global rank 0" in text


def test_a_finding_that_is_left_out_says_why(folder: Path) -> None:
    guarded = SPAWNS.replace("    wait(args)", "    if rank == 0:\n        wait(args)")
    (folder / "train.py").write_text(f"from .lost import helper\n{guarded}")
    text = asked(folder, "train.py:13", "--select", "DDP301")
    assert "    DDP301: no run gets there, since " in text
    assert "For that it leaves out what it found: wait() -> torch.distributed.barrier waits for every rank" in text
    assert "    DDP301: the file cannot be imported: `.lost` is not in the project" in text


def test_the_rules_nearest_to_a_statement_are_named(folder: Path) -> None:
    (folder / "train.py").write_text(SPAWNS.replace("    wait(args)", "    args.seed = args.seed + 1"))
    text = asked(folder, "train.py:11")
    near = next(p for p in text.split("\n\n") if p.startswith("The rules nearest to this statement")).splitlines()
    assert 2 <= len(near) <= 7
    assert any("seed" in line for line in near[1:])
    assert any("which holds no `" in line for line in near[1:])
