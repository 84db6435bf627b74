"""A project whose files change says the same as one that is read anew, and makes again only what rests on the change."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from codemods.files.text_file import PYTHON_KINDS, READ_KINDS
from codemods.runtime.deep_stack import with_deep_stack
from codemods.store.live_project import Interrupted, LiveProject
from codemods.store.project import Project
from ddpfix import catalog, judging
from ddpfix.gate import Gate
from ddpfix.results import Judged
from ddpfix.settings import Settings

EXAMPLES = sorted(p for p in (Path(__file__).parents[1] / "fixtures/examples").iterdir() if p.is_dir())
CODEMODS = catalog.all_codemods()
GATE = Gate(CODEMODS)


def sources(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def judged(project: Project, path: str) -> Judged:
    project.failed = {}  # odd programs may bring a codemod to fail: the same one on both
    asking = GATE.open_for(project.read(path) or b"", path)
    return judging.judge_file(project, path, asking, Settings())


def edited(data: bytes, rng: random.Random) -> bytes:
    """The file with lines taken out, doubled, or put in: most such files can still be read."""
    lines = data.splitlines(True)
    at = rng.randrange(len(lines) or 1)
    change = rng.choice(["out", "twice", "comment", "name"])
    if change == "out":
        return b"".join(lines[:at] + lines[at + 1 :])
    if change == "twice":
        return b"".join(lines[: at + 1] + lines[at:])
    if change == "comment":
        return b"".join([*lines[:at], b"# more\n", *lines[at:]])
    return data.replace(rng.choice([b"rank", b"def ", b"log", b"train", b"import "]), b"print, ", 1)


@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda p: p.name)
def test_after_any_edits_the_answers_are_those_of_a_new_project(folder: Path) -> None:
    texts = sources(folder)
    rng = random.Random(folder.name)
    live = LiveProject(texts, dict(texts).get)
    looked_at = [p for p in sorted(texts) if p.endswith((*PYTHON_KINDS, *READ_KINDS)) and not p.endswith(".ipynb")]

    def work() -> None:
        for _ in range(6):
            path = rng.choice([p for p in looked_at if p.endswith(".py")] * 3 + looked_at)
            texts[path] = edited(texts[path], rng)
            live.change(path, texts[path])
            judged(live, path)  # as while typing: what is kept of other files may be stale
            live.refresh()
            fresh = Project.of(texts)
            for other in [*rng.sample(looked_at, min(2, len(looked_at))), path]:
                assert judged(live, other) == judged(fresh, other), (path, other)

    with_deep_stack(work)


def test_the_file_itself_is_judged_by_its_new_text_before_anything_is_refreshed() -> None:
    guarded = b"import torch.distributed as dist\n\n\ndef main():\n    if dist.get_rank() == 0:\n        dist.barrier()\n"
    live = LiveProject(["a.py"], {"a.py": b"x = 1\n"}.get, launched=True)
    assert judged(live, "a.py").findings == ()
    live.change("a.py", guarded)
    fresh = Project({"a.py"}, {"a.py": guarded}.get, launched=True)
    assert judged(live, "a.py") == judged(fresh, "a.py") != Judged(parsed=1)


def test_a_change_makes_only_those_answers_again_that_rest_on_it() -> None:
    live = LiveProject(["a.py", "b.py"], {"a.py": b"def f(): pass\n", "b.py": b"def g(): pass\n"}.get)
    made: list[str] = []

    def of(path: str) -> bytes | None:
        def build() -> bytes | None:
            made.append(path)
            return live.read(path)

        return live.memo(("of", path), build)

    def users() -> tuple[str, ...] | None:
        made.append("f")
        return live.files_using("f", most=9)

    def both() -> tuple[bytes | None, ...]:
        made.append("both")
        return of("a.py"), of("b.py")

    def ask() -> None:
        of("a.py"), of("b.py")
        live.memo("users of f", users)
        live.memo("both", both)

    ask()
    made.clear()
    live.change("b.py", b"def g(): return 1\n")
    ask()
    assert made == ["b.py", "both"]
    made.clear()
    live.change("b.py", b"def g(): return f()\n")
    ask()
    assert made == ["b.py", "f", "both"]


def test_a_module_that_a_closure_brings_along_counts_as_asked_for() -> None:
    live = LiveProject(["a.py"], {"a.py": b"x = 1\n"}.get)
    module = live.module("a.py")
    assert module is not None
    assert live.memo("x", lambda: module.text) == "x = 1\n"
    live.change("a.py", b"x = 2\n")
    assert live.memo("x", lambda: "made again") == "made again"


def test_what_is_kept_of_the_whole_project_stays_until_it_is_refreshed() -> None:
    live = LiveProject(["a.py"], {"a.py": b"x = 1\n"}.get)

    def ask() -> bytes | None:
        return live.keep("all texts", lambda: live.read("a.py"))

    ask()
    live.change("a.py", b"x = 2\n")
    assert ask() == b"x = 1\n"
    assert live.memo("made of it", ask) == b"x = 1\n"
    live.refresh()
    assert ask() == b"x = 2\n"
    assert live.memo("made of it", ask) == b"x = 2\n"


def test_work_that_is_interrupted_leaves_no_half_answer() -> None:
    live = LiveProject(["a.py"], {"a.py": b"x = 1\n"}.get)

    def build() -> int:
        live.interrupted = lambda: True
        return live.memo("inner", lambda: 1)

    with pytest.raises(Interrupted):
        live.memo("outer", build)
    live.interrupted = lambda: False
    assert live.memo("outer", lambda: 2) == 2
