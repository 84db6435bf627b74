"""Files shared out over processes: the same answer in the same order, whatever becomes of a worker."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from codemods.store.project import Project
from ddpfix import engine, workers
from ddpfix.discovery import discover
from ddpfix.results import Judged
from ddpfix.settings import Settings
from tests.gitrepos import make
from tests.programs import MODULE

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="forks on Linux only")
HERE = os.getpid()


def length(path: str) -> int:
    return len(path) * workers.WORTH_A_WORKER


def test_parts_are_runs_of_about_the_same_size() -> None:
    paths = ["a", "bb", "c", "dd", "eee", "f"]
    assert workers.parts(paths, length, most=3) == [["a", "bb"], ["c", "dd"], ["eee", "f"]]
    assert workers.parts(paths, length, most=1) == [paths]


def test_a_worker_has_to_be_worth_its_start() -> None:
    assert workers.parts(["a", "b"], lambda _: workers.WORTH_A_WORKER - 1, most=8) == [["a", "b"]]
    assert workers.parts([], length, most=8) == [[]]


def test_answers_come_in_order_from_processes_of_their_own() -> None:
    answers = workers.judged([["a"], ["b"], ["c"]], lambda part: (list(part), os.getpid()))
    assert [part for part, _ in answers] == [["a"], ["b"], ["c"]]
    assert answers[0][1] == HERE and len({process for _, process in answers}) == 3


def big(part: Sequence[str]) -> list[bytes]:
    return [b"x" * 1_000_000 for _ in part]


def test_an_answer_may_be_larger_than_a_pipe_holds() -> None:
    assert workers.judged([["a"], ["b", "c"]], big) == [big("a"), big("bc")]


def raises() -> None:
    raise RuntimeError("only there")


def dies() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("fails", [raises, dies, lambda: os._exit(0)])
def test_the_part_of_a_worker_that_fails_is_judged_here(fails: Callable[[], None]) -> None:
    def judge(part: Sequence[str]) -> list[str]:
        if os.getpid() != HERE:
            fails()
        return list(part)

    assert workers.judged([["a"], ["b"]], judge) == [["a"], ["b"]]


def test_a_check_says_the_same_with_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {f"m{i}.py": MODULE + b"\n# %d\n" % i for i in range(9)} | {"broken.py": MODULE + b"\ndef (\n"}
    (tree,) = discover([make(tmp_path, files)])
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})
    alone = engine.check(tree, Settings(), use_cache=False)
    monkeypatch.setattr(workers, "WORTH_A_WORKER", 10)
    seen: list[int] = []
    judged = workers.judged

    def watched(work: Sequence[Sequence[str]], judge: Callable[[Sequence[str]], Judged]) -> list[Judged]:
        seen.append(len(work))
        return judged(work, judge)

    monkeypatch.setattr(workers, "judged", watched)
    shared = engine.check(tree, Settings(), use_cache=False, ending=True)
    assert seen == [3]
    assert shared.findings == alone.findings and len(alone.findings) == 18
    assert shared.failed == alone.failed and [f.path for f in alone.failed] == ["broken.py"]
    assert (shared.scanned, shared.parsed) == (alone.scanned, alone.parsed)


def test_a_process_that_goes_on_forks_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tree,) = discover([make(tmp_path, {f"m{i}.py": MODULE for i in range(4)})])
    monkeypatch.setattr(workers, "WORTH_A_WORKER", 10)
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("forked"))
    assert engine.check(tree, Settings(), use_cache=False).findings


def test_what_every_worker_needs_is_read_before_they_part() -> None:
    project = Project.of({"a.py": b"x = 1\n"})
    assert dict(project.each_python_file()) == {"a.py": b"x = 1\n"}
