"""In a large project one question does not lead through all of it."""

from __future__ import annotations

import ast

from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.class_index import ClassSite, first_subclasses
from codemods.analysis.variance.analysis import LARGE, MOST_READ, begin_file, variance
from codemods.runtime.deep_stack import with_deep_stack
from codemods.store.project import Project

DEEP = MOST_READ + 20


def _chain(files: int) -> Project:
    """A function that calls another one, and so on, each in a file of its own; the rest of the files are empty."""
    texts = {f"f{n}.py": f"from f{n + 1} import g{n + 1}\n\n\ndef g{n}(x):\n    return g{n + 1}(x)\n" for n in range(DEEP)}
    texts |= {f"f{n}.py": f"def g{n}(x):\n    return x\n" for n in range(DEEP, files)}
    return Project.of({path: text.encode() for path, text in texts.items()})


def _reads(project: Project, number: int) -> bool:
    """Whether the function of that number is interpreted for the first of them."""
    begin_file(project)
    analysis = variance(project)
    sites = []
    for n in (0, number):
        module = project.module(f"f{n}.py")
        assert module is not None
        sites.append(FunctionSite(module, module.functions[0]))
    with_deep_stack(lambda: analysis.of(sites[0]))
    return analysis.settling.is_known(sites[1].key)


def test_a_way_through_a_project_of_usual_size_is_followed_to_its_end() -> None:
    assert _reads(_chain(LARGE), DEEP - 1)


def test_a_way_through_a_large_project_is_followed_for_a_while() -> None:
    project = _chain(LARGE + 1)
    assert _reads(project, 20)
    assert not _reads(project, DEEP - 1)


def test_the_first_heirs_are_read_and_no_others() -> None:
    texts = {"base.py": "class Base:\n    pass\n"}
    texts |= {f"heir{n:02}.py": f"from base import Base\n\n\nclass Heir{n}(Base):\n    pass\n" for n in range(30)}
    project = Project.of({path: text.encode() for path, text in texts.items()})
    base = project.module("base.py")
    assert base is not None
    (owner,) = base.nodes(ast.ClassDef)
    found = first_subclasses(project, ClassSite(base, owner), 4)
    assert [s.name for s in found] == ["Heir0", "Heir1", "Heir2", "Heir3"]
    assert "heir20.py" not in project._modules
