"""Trees go where many are held: what is found stays the same, and nothing that outlives them holds one of their nodes."""

from __future__ import annotations

import ast
import dataclasses
import gc
import weakref
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from zlib import crc32

import pytest

from codemods.engine.find import find_all
from codemods.files.source import SourceModule
from codemods.store import project as held
from codemods.store.project import Project
from ddpfix import catalog, judging

FIXTURES = Path(__file__).parent.parent / "fixtures"
PARTS = 30  # a round with little room parses everything many times: the cost grows as the square of the files


def files_of(part: int) -> dict[str, bytes]:
    """The files of one part of the fixtures' folders."""
    return {
        p.relative_to(FIXTURES).as_posix(): p.read_bytes()
        for kind in ("*.py", "*.yaml", "*.toml")
        for p in sorted(FIXTURES.rglob(kind))
        if "after" not in p.parts and p.name != "after.py"
        and crc32(p.parent.relative_to(FIXTURES).as_posix().encode()) % PARTS == part
    }  # fmt: skip


def found_in(project: Project, files: dict[str, bytes]) -> list[str]:
    codemods = catalog.all_codemods()
    work, _ = judging.gated(project, files, codemods)
    return [repr(finding) for finding in find_all(project, work)]


def holds_a_node(value: object, seen: set[int]) -> bool:
    if id(value) in seen or isinstance(value, (str, bytes, int, float, Enum, type(None), Project)):
        return False
    seen.add(id(value))
    if isinstance(value, (ast.AST, SourceModule)):
        return True
    if isinstance(value, dict):
        return any(holds_a_node(v, seen) for pair in value.items() for v in pair)
    if isinstance(value, (tuple, list, set, frozenset)):
        return any(holds_a_node(v, seen) for v in value)
    if dataclasses.is_dataclass(value):
        return any(holds_a_node(getattr(value, f.name), seen) for f in dataclasses.fields(value))
    return any(holds_a_node(v, seen) for v in vars(value).values()) if hasattr(value, "__dict__") else False


@pytest.fixture(autouse=True)
def _others_are_not_looked_through() -> Iterator[None]:
    """Making room collects what is free: among the objects of ten thousand tests before, that took two seconds each time."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.parametrize("part", [0, 7, 14])
def test_the_same_is_found_whatever_is_held(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    files = files_of(part)
    usual = found_in(Project.of(files), files)
    assert len(usual) > 10
    monkeypatch.setattr(held, "MOST_HELD", 10_000)  # every few files
    assert found_in(Project.of(files), files) == usual


def test_what_is_kept_holds_no_node() -> None:
    files = files_of(0)
    project = Project.of(files)
    found_in(project, files)
    kept = project._kept
    assert len(kept) > 100
    assert [key for key, value in kept.items() if holds_a_node((key, value), set())] == []


def test_a_tree_that_makes_room_is_gone() -> None:
    project = Project.of({"a.py": b"x = 1\n" * 10})
    first = project.module("a.py")
    assert first is not None
    place = weakref.ref(first)
    project._held = (held.MOST_HELD << held.MOST_DOUBLINGS) + 1
    project.make_room()
    del first
    gc.collect()
    assert place() is None and project.module("a.py") is not None


def test_there_is_more_room_where_a_few_files_fill_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file leads to all of them: without more room all would be parsed anew for each."""
    monkeypatch.setattr(held, "MOST_HELD", 1_000)
    files = {f"m{i}.py": b"x = 1\n" * 50 for i in range(12)}  # 3,600 bytes
    parsed = []
    project = Project.of(files)
    for _ in files:
        before = dict(project._modules)
        for path in files:
            project.module(path)
        parsed.append(sum(project._modules[p] is not before.get(p) for p in files))
        project.make_room()
    assert parsed[-1] == 0 and sum(parsed) <= 3 * len(files)


def test_room_that_lasts_for_many_files_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held, "MOST_HELD", 1_000)
    files = {f"m{i:03}.py": b"x = 1\n" * 5 for i in range(400)}
    project = Project.of(files)
    for path in files:
        project.module(path)
        project.make_room()
        assert project._held <= 1_030
