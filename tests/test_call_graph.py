"""Which function a name means."""

from __future__ import annotations

from codemods.analysis.call_graph import find_function
from codemods.store.project import Project

MINE = "try:\n    from .mine import *  # each developer has one of their own\nexcept ImportError:\n    pass\n"
FILES = {
    "tasks/__init__.py": MINE + "from .common import *\n",
    "tasks/common.py": "def build():\n    pass\n",
    "train.py": "from tasks import build, missing\nimport tasks\n",
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
