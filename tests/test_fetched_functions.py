"""Functions that are fetched from their module by a text that is put together."""

from __future__ import annotations

import ast

import pytest

from codemods.analysis.ranks.fetched_functions import fetched_at, fetched_by
from ddpfix.testing import project_of

HOME = "def init_slurm(port):\n    pass\n\n\nclass Starts:\n    def init_slurm(self):\n        pass\n"


def places(user: str, *, at: int = 0) -> list[int]:
    project = project_of(HOME, {"train.py": user})
    module = project.module("module.py")
    assert module is not None
    functions = [n for n in ast.walk(module.tree) if isinstance(n, ast.FunctionDef)]
    return [found.call.lineno for found in fetched_at(project, module, functions[at])]


@pytest.mark.parametrize(
    "text", ['"init_%s" % kind', '"init_" + kind', 'f"init_{kind}"', '"init_{}".format(kind)', 'kind + "slurm"']
)
def test_the_written_part_fits_the_name(text: str) -> None:
    user = f"import module\n\n\ndef start(kind):\n    return getattr(module, {text})(1)\n"
    assert places(user) == [5]
    assert places(user, at=1) == []


@pytest.mark.parametrize("text", ['"stop_%s" % kind', '"i" + kind', "kind", 'f"{kind}"', '"init_slurm_" + kind', '"init_slurm"'])
def test_nothing_where_it_does_not_or_is_too_short(text: str) -> None:
    assert places(f"import module\n\n\ndef start(kind):\n    return getattr(module, {text})(1)\n") == []


def test_the_module_may_be_imported_by_another_name_and_others_count_for_nothing() -> None:
    assert places('import module as starts\n\ngetattr(starts, "init_" + kind)(1)\n') == [3]
    assert places('import train as module\n\ngetattr(module, "init_" + kind)(1)\n') == []
    assert places('def start(module, kind):\n    return getattr(module, "init_" + kind)\n') == []


def run_by(user: str) -> list[str]:
    kinds = "def init_slurm(port):\n    pass\n\n\ndef init_mpi(port):\n    pass\n\n\ndef stop(port):\n    pass\n"
    project = project_of(user, {"kinds.py": kinds})
    module = project.module("module.py")
    assert module is not None
    (call,) = (c for c in module.nodes(ast.Call) if len(c.args) == 1 and ast.unparse(c.args[0]) == "7")
    return [site.node.name for site in fetched_by(project, module, call)]


def test_the_functions_that_a_call_may_run() -> None:
    assert run_by("import kinds\n\ngetattr(kinds, 'init_' + kind)(7)\n") == ["init_slurm", "init_mpi"]
    assert run_by("import kinds\n\nbegin = getattr(kinds, f'{kind}_mpi')\nbegin(7)\n") == ["init_mpi"]
    assert run_by("import kinds\n\ngetattr(kinds, kind)(7)\n") == []
    assert run_by("import kinds\n\nbegin = getattr(kinds, f'{kind}_mpi')\nbegin = kinds.stop\nbegin(7)\n") == []
    assert run_by("import other as kinds\n\ngetattr(kinds, 'init_' + kind)(7)\n") == []
