"""Functions and classes that are read under another name than their own, and processes started with one of another file."""

from __future__ import annotations

import ast

import pytest

from codemods.analysis.ranks.gate_names import gate_names
from codemods.analysis.ranks.run_by_programs import is_run_by_nobody
from codemods.analysis.ranks.spawned import is_spawned
from codemods.analysis.ranks.uses import constructions, uses_of
from codemods.files.source import SourceModule
from codemods.store.project import Project
from ddpfix.testing import project_of

WORK = """
import torch.distributed as dist

class Net:
    def step(self):
        dist.barrier()

def work(gpu, args):
    dist.barrier()

def rest():
    pass
"""
MAIN = "\nif __name__ == '__main__':\n    go()\n"


def parts(program: str, **files: str) -> tuple[Project, SourceModule]:
    given = {f"{name.replace('pkg____', 'pkg/__')}.py": text for name, text in files.items()}
    project = project_of(program, {"pkg/__init__.py": "", "pkg/part.py": WORK, **given}, path="train.py")
    module = project.module("pkg/part.py")
    assert module is not None
    return project, module


def callers(program: str, **files: str) -> list[str]:
    project, module = parts(program, **files)
    work = next(f for f in module.functions if f.name == "work")
    return [f"{s.module.path}:{s.call.lineno}" for s in uses_of(project, module, work).calls]


PACKAGE = "from .part import rest, work as go\nfrom .part import Net as Model\n"


@pytest.mark.parametrize(
    ("program", "package"),
    [
        ("from pkg.part import work as go\ngo(1, 2)\n", ""),
        ("from pkg.part import (\n    rest,  # the rest (\n    work as go,\n)\ngo(1, 2)\n", ""),
        ("from pkg import part as p\n\np.work(1, 2)\n", ""),
        ("import pkg.part as p\n\np.work(1, 2)\n", ""),
        ("from pkg import go\ngo(1, 2)\n", PACKAGE),
        ("import pkg as p\n\np.go(1, 2)\n", PACKAGE),
        ("from pkg import *\n\ngo(1, 2)\n", PACKAGE),
        ("from pkg import go as start\nstart(1, 2)\n", PACKAGE),
    ],
)
def test_calls_under_another_name(program: str, package: str) -> None:
    found = callers(program, **({"pkg____init__": package} if package else {}))
    assert len(found) == 1 and found[0].startswith("train.py:"), found


@pytest.mark.parametrize(
    "program",
    [
        "from other import work as go\ngo(1, 2)\n",  # of another package
        "from pkg.part import rest as go\ngo()\n",
        "from pkg.part import work as go\n\ndef call(go):\n    go(1, 2)\n",
        "from pkg.part import work as go\n\ndef call(x):\n    x.go(1, 2)\n",
        "import go\ngo.work_more(1, 2)\n",
    ],
)
def test_other_things_of_that_name(program: str) -> None:
    assert callers(program) == []


def test_a_function_that_is_handed_on() -> None:
    project, module = parts("from pkg.part import work as go\nrun = launch(go)\n")
    work = next(f for f in module.functions if f.name == "work")
    assert len(uses_of(project, module, work).handed_on) == 1


def test_objects_made_of_a_class_under_another_name() -> None:
    program = "from pkg import Model\nModel().step()\n\ndef typed(x: Model) -> bool:\n    return isinstance(x, Model)\n"
    project, module = parts(program, pkg____init__=PACKAGE)
    found = constructions(project, module, module.nodes(ast.ClassDef)[0])
    assert found is not None and len(found.calls) == 1 and not found.handed_on


@pytest.mark.parametrize(
    ("program", "nobody"),
    [
        (f"from pkg.part import work as go{MAIN.replace('go()', 'go(1, 2)')}", False),
        (f"from pkg.part import Net as Model\ndef go():\n    Model().step(){MAIN}", False),
        (f"from pkg.part import rest as go{MAIN}", True),
        (f"from pkg.part import work as rest\ndef go():\n    pass{MAIN}", True),
    ],
)
def test_what_a_program_comes_to(program: str, nobody: bool) -> None:
    project, module = parts(program)
    meeting = [c for c in module.calls_named("barrier") if module.symbol(c).startswith("Net") == ("Net" in program)]
    assert is_run_by_nobody(project, module, meeting[0]) is nobody


SPAWN = "import torch.multiprocessing as mp\n"


@pytest.mark.parametrize(
    "program",
    [
        "from pkg.part import work\nmp.spawn(work, args=(1,), nprocs=2)\n",
        "from pkg.part import work as go\nmp.spawn(go, args=(1,), nprocs=2)\n",
        "import pkg.part as p\nmp.spawn(fn=p.work, args=(1,), nprocs=2)\n",
        "from pkg import *\nmp.start_processes(work, args=(1,), nprocs=2)\n",
    ],
)
def test_a_function_that_another_file_starts(program: str) -> None:
    project, module = parts(SPAWN + program, pkg____init__="from .part import *\n")
    work, rest = (next(f for f in module.functions if f.name == name) for name in ("work", "rest"))
    assert is_spawned(project, module, work) and not is_spawned(project, module, rest)
    assert "work(gpu" in gate_names(project)


def test_another_function_of_the_name_is_not_started() -> None:
    project, module = parts(SPAWN + "from mine import work\nmp.spawn(work, nprocs=2)\n", mine="def work(rank):\n    pass\n")
    assert not is_spawned(project, module, next(f for f in module.functions if f.name == "work"))
    mine = project.module("mine.py")
    assert mine is not None and is_spawned(project, mine, mine.functions[0])
