"""Which function a name means."""

from __future__ import annotations

import ast

import pytest

from codemods.analysis.call_graph import called_function, find_function
from codemods.store.project import Project

MINE = "try:\n    from .mine import *  # each developer has one of their own\nexcept ImportError:\n    pass\n"
FILES = {
    "tasks/__init__.py": MINE + "from .common import *\n",
    "tasks/common.py": "def build():\n    pass\n",
    "loops/__init__.py": "from .evaluate import evaluate\nfrom . import fit\n",
    "loops/evaluate.py": "def evaluate():\n    pass\n",
    "loops/fit.py": "def run():\n    pass\n",
    "train.py": "from tasks import build, missing\nimport tasks\nfrom loops import evaluate, fit\n",
}


def found(name: str) -> str | None:
    project = Project.of({path: text.encode() for path, text in FILES.items()})
    module = project.module("train.py")
    assert module is not None
    site = find_function(project, module, name)
    return f"{site.module.path}:{site.node.name}" if site else None


def test_a_star_import_of_a_file_that_is_not_there_leads_nowhere() -> None:
    assert found("build") == found("tasks.build") == "tasks/common.py:build"
    assert found("missing") is found("tasks.missing") is None


OF_CLASSES = {
    "log.py": (
        "class Base:\n    @staticmethod\n    def close(path):\n        pass\n\n\nclass Log(Base):\n    @classmethod\n"
        "    def open(cls, path):\n        pass\n\n    def write(self, line):\n        pass\n"
    ),
    "__init__.py": "",
    "train.py": (
        "from log import Log\n\nLog.open('a')\nLog.close('a')\nLog.write(Log(), 'a')\nLog.missing()\nlog.open('a')\n"
        "Other.open('a')\n"
    ),
}


def test_a_function_that_a_package_gives_under_the_name_of_its_file() -> None:
    assert found("evaluate") == "loops/evaluate.py:evaluate"
    assert found("fit") is None, "the package gives the file itself"
    assert found("fit.run") == "loops/fit.py:run"


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        (3, "log.py:open"),
        (4, "log.py:close"),
        (5, None),  # the object is an argument there: the others would be counted from the wrong one
        (6, None),
        (7, None),
        (8, None),
    ],
)
def test_a_method_that_is_asked_of_its_class(line: int, wanted: str | None) -> None:
    project = Project.of({path: text.encode() for path, text in OF_CLASSES.items()})
    module = project.module("train.py")
    assert module is not None
    call = next(c for c in module.nodes(ast.Call) if c.lineno == line)
    site = called_function(project, module, call)
    assert (f"{site.module.path}:{site.node.name}" if site else None) == wanted
