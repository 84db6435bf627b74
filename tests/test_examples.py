"""The example projects: what ddpfix makes of them, that it comes to rest with any two codemods, and that they import."""

from __future__ import annotations

import ast
import importlib.util
import itertools
import sys
from pathlib import Path

import pytest

from codemods.api.codemod import DdpCodemod
from codemods.engine.fix_source import Accept, fix_project, safe, with_unsafe
from codemods.store.project import Project
from ddpfix.catalog import all_codemods
from ddpfix.discovery import walk_files
from ddpfix.judging import gated
from ddpfix.prove.ranks import run_ranks
from tests.proofs.harness import base_env, forked

EXAMPLES = Path(__file__).parent.parent / "fixtures" / "examples"
NAMES = sorted(p.parent.name for p in EXAMPLES.glob("*/before"))
DEFAULT = tuple(c for c in all_codemods() if not c.opt_in)


def sources(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in walk_files(folder, "")}


def fixed(files: dict[str, bytes], codemods: tuple[DdpCodemod, ...], accept: Accept = safe) -> dict[str, bytes]:
    project = Project.of(files)
    python = [p for p in files if p.endswith(".py")]
    result = fix_project(project, lambda now, paths: gated(now, paths, codemods)[0], python, accept)
    assert not result.withdrawn, [(f.code, f.path, why) for f, why in result.withdrawn]
    return {**files, **result.changed}


def test_there_is_an_example_for_each_of_the_five_repairs() -> None:
    assert NAMES == ["hf-finetune", "hf-speech", "lightning-classifier", "lightning-diffusion", "raw-ddp-vision"]


@pytest.mark.parametrize("name", [n for n in NAMES if n != "hf-finetune"])
def test_after_is_what_the_safe_fixes_make_of_before(name: str) -> None:
    got = fixed(sources(EXAMPLES / name / "before"), DEFAULT)
    assert got == sources(EXAMPLES / name / "after")
    assert got != sources(EXAMPLES / name / "before")


def test_a_job_that_only_wants_tuning_is_left_alone_by_default() -> None:
    before = sources(EXAMPLES / "hf-finetune" / "before")
    assert fixed(before, DEFAULT) == before


@pytest.mark.parametrize("accept", [safe, with_unsafe], ids=["safe", "unsafe"])
@pytest.mark.parametrize("name", NAMES)
def test_a_second_run_finds_nothing_to_fix(name: str, accept: Accept) -> None:
    once = fixed(sources(EXAMPLES / name / "before"), DEFAULT, accept)
    assert fixed(once, DEFAULT, accept) == once


@pytest.mark.parametrize("name", NAMES)
def test_any_two_codemods_together_come_to_rest(name: str) -> None:
    """Each two that change the example; and each of them with all that do not, for those may find something in its result."""
    before = sources(EXAMPLES / name / "before")
    alone = {codemod: fixed(before, (codemod,), with_unsafe) for codemod in DEFAULT}
    active = [codemod for codemod, text in alone.items() if text != before]
    idle = [codemod for codemod in DEFAULT if codemod not in active]
    assert active or name == "hf-finetune"
    for chosen in (*itertools.combinations(active, 2), *((one, *idle) for one in active)):
        once = fixed(before, chosen, with_unsafe)
        assert fixed(once, chosen, with_unsafe) == once, [c.code for c in chosen if c in active]


@pytest.mark.parametrize("name", NAMES)
def test_every_file_of_an_example_parses(name: str) -> None:
    for path in (EXAMPLES / name).rglob("*.py"):
        ast.parse(path.read_bytes())


NEEDS = ("torch", "lightning", "pytorch_lightning", "torchmetrics", "transformers", "accelerate")
FRAMEWORKS = ("torch", "lightning.pytorch", "pytorch_lightning", "torchmetrics", "transformers.trainer", "accelerate")
MISSING = [m for m in NEEDS if importlib.util.find_spec(m) is None]


@pytest.mark.torch
@pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("name", NAMES)
def test_every_module_of_an_example_imports(tmp_path: Path, name: str, side: str) -> None:
    root = EXAMPLES / name / side
    modules = [p.relative_to(root).with_suffix("").as_posix().replace("/", ".") for p in sorted(root.rglob("*.py"))]
    names = [m.removesuffix(".__init__") for m in modules]
    program = tmp_path / "imports.py"
    program.write_text(
        f"import importlib, sys\nsys.path.insert(0, {str(root)!r})\n"
        f"for name in {names!r}:\n    importlib.import_module(name)\n    print(name)\n"
    )
    # a process of its own for each, forked where the frameworks are imported already: alone they cost five seconds of CPU
    ended = run_ranks(
        [sys.executable, str(program)], world_size=0, cwd=root, env=base_env(), timeout=180, start=forked(*FRAMEWORKS)
    )
    assert ended.outcome == "completes", ended.marked()[-2000:]
    assert ended.ranks[0].stdout.split() == names
