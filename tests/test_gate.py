"""The byte gate lets through whatever a codemod would find: with the gate and without it the findings are the same."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Finding
from codemods.engine.find import find_in
from codemods.files.source import SourceModule
from codemods.store.project import Project
from ddpfix.catalog import all_codemods
from ddpfix.engine import disk_reader
from ddpfix.gate import AnyOf, Gate
from ddpfix.judging import gated
from ddpfix.testing import MAIN

HERE = Path(__file__).parent.parent
EXAMPLES = sorted(p for p in (HERE / "fixtures" / "examples").glob("*/*") if p.is_dir())
CODEMODS = all_codemods()


@cache
def example(codemod: DdpCodemod) -> bytes:
    return codemod.sections()["Example"].split("\n", 1)[1].removesuffix("```").encode()


@pytest.mark.parametrize("codemod", CODEMODS, ids=lambda c: c.code)
def test_the_example_passes_its_own_gate(codemod: DdpCodemod) -> None:
    command = codemod.sections()["Example"].startswith("```bash")
    assert Gate([codemod]).open_for(example(codemod), "train.sh" if command else "") == (codemod,)
    assert command or codemod.concerns(example(codemod))


def findings(project: Project, path: str, codemods: tuple[DdpCodemod, ...]) -> list[tuple[str, int, str]]:
    module = project.module(path)
    return [(f.code, f.span.line, f.message) for f in find_in(module, project, codemods)] if module else []


def compare(project: Project, paths: tuple[str, ...]) -> None:
    work, _ = gated(project, paths, CODEMODS)
    for path in paths:
        through = findings(project, path, tuple(work.get(path, ())))
        assert through == findings(project, path, CODEMODS), path


@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda p: "/".join(p.parts[-2:]))
def test_the_example_projects(folder: Path) -> None:
    files = [p.relative_to(folder).as_posix() for p in sorted(folder.rglob("*")) if p.is_file()]
    project = Project(files, disk_reader(folder))
    compare(project, project.python_files)


def test_the_examples_of_all_pages_for_every_codemod() -> None:
    for codemod in CODEMODS:
        for name in ("Example", "Use instead"):
            text = codemod.sections()[name].removeprefix("```python\n").removesuffix("```").encode()
            compare(Project.of({MAIN: text}), (MAIN,))


@pytest.mark.parametrize("codemod", CODEMODS, ids=lambda c: c.code)
def test_triggers_are_words(codemod: DdpCodemod) -> None:
    assert codemod.TRIGGERS
    for group in codemod.TRIGGERS:
        assert group
        assert all(len(word) > 2 for word in group)


def test_a_file_without_any_word_is_for_nobody() -> None:
    assert Gate(CODEMODS).open_for(b"x = 1\n") == ()
    assert Gate(()).open_for(b"x = 1\n") == ()


def test_a_file_with_a_suppression_comment_is_for_everybody() -> None:
    project = Project.of({"a.py": b"x = 1  # ddpfix: ignore[DDP101]\n", "b.py": b"x = 1\n"})
    work, unread = gated(project, ("a.py", "b.py", "gone.py"), CODEMODS)
    assert work == {"a.py": CODEMODS} and unread == ["gone.py"]


@pytest.mark.parametrize("codemod", CODEMODS, ids=lambda c: c.code)
def test_a_repository_s_own_tests_are_left_out_by_the_codemods_that_say_so(codemod: DdpCodemod) -> None:
    opened = Gate([codemod]).open_for(example(codemod), "tests/test_model.py")
    assert opened == ((codemod,) if codemod.READS_TESTS else ())


def test_more_words_than_one_automaton_takes_are_all_found() -> None:
    class Wide(DdpCodemod):
        code, TRIGGERS = "DDP991", (tuple(b"word%03d" % n for n in range(150)), (b"def ",))

        def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
            yield from ()

    gate = Gate([Wide()])
    assert all(gate.open_for(b"def f(word%03d): pass" % n) for n in range(150))
    assert not gate.open_for(b"def f(word150): pass") and not gate.open_for(b"word000")


def test_words_that_overlap_are_each_seen() -> None:
    def made(number: str, word: bytes) -> DdpCodemod:
        class Made(DdpCodemod):
            code, TRIGGERS = number, ((word,),)

            def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
                yield from ()

        return Made()

    words = {"DDP991": b"use_rank", "DDP992": b"rank_zero", "DDP993": b"zero_grad", "DDP994": b"rank"}
    gate = Gate([made(number, word) for number, word in words.items()])
    assert [c.code for c in gate.open_for(b"use_rank_zero_grad()\n")] == ["DDP991", "DDP992", "DDP993", "DDP994"]
    assert [c.code for c in gate.open_for(b"rank_zero\n")] == ["DDP992", "DDP994"]


def test_only_words_that_hold_no_other_are_looked_for() -> None:
    dice = random.Random(7)
    groups = [group for codemod in CODEMODS for group in codemod.TRIGGERS]
    for _ in range(500):
        groups.append(tuple(bytes(dice.choices(b"ab\0", k=dice.randrange(1, 6))) for _ in range(dice.randrange(1, 12))))
    for group in groups:
        given = tuple(dict.fromkeys(group))
        assert AnyOf(group).words == [word for word in given if not any(w in word for w in given if w != word)]


def test_one_pass_answers_as_a_look_for_each_word_does() -> None:
    dice = random.Random(11)
    words = [word for codemod in CODEMODS for group in codemod.TRIGGERS for word in group]
    gate = Gate([c for c in CODEMODS if not c.SITES])
    for _ in range(200):
        data = b"x = " + b" ".join(dice.sample(words, 12)).replace(b"#", b"").replace(b'"', b"") + b"\n"
        by_hand = [c for c in CODEMODS if not c.SITES and all(any(w in data for w in group) for group in c.TRIGGERS)]
        assert list(gate.open_for(data)) == by_hand


def test_a_yaml_file_is_opened_by_the_words_for_text_alone() -> None:
    python = b"import torch\nprint(rank)\n# lightning TrainingArguments(\n"
    assert Gate(CODEMODS).open_for(python, "conf/a.yaml") == ()
    opened = {c.code for c in Gate(CODEMODS).open_for(b"strategy: ddp_find_unused_parameters_true\n", "conf/a.yml")}
    assert opened == {c.code for c in CODEMODS if b"find_unused_parameters" in c.TEXT} >= {"DDP001", "DDP002"}
    assert Gate(CODEMODS).open_for(b"strategy: ddp_find_unused_parameters_true\n", "tests/conf/a.yml") == ()
