"""The torch that comes with the repository's own package, for a program beside it whose own pin leaves the version open."""

from __future__ import annotations

import pytest

from codemods.analysis.job_files.said_torch import said_torch
from codemods.store.project import Project

SETUP = 'from setuptools import setup\nsetup(name="fluxnet", packages=["fluxnet"], install_requires=["torch=={}"])\n'


def _project(program: str, own: str, setup: str) -> Project:
    files = {
        "setup.py": setup,
        "fluxnet/__init__.py": "",
        "fluxnet/rows.py": "class Rows: ...\n",
        "fluxnet/single/requirements.txt": own,
        "fluxnet/single/train.py": program,
        "fluxnet/single/layers.py": "class Layer: ...\n",
    }
    return Project.of({path: text.encode() for path, text in files.items()})


def _is_below(program: str, own: str = "torch\n", setup: str = SETUP.format("2.1.0")) -> bool:
    project = _project(program, own, setup)
    module = project.module("fluxnet/single/train.py")
    assert module is not None
    return said_torch(project, module, elsewhere=False).surely_below((2, 4))


@pytest.mark.parametrize(
    "program", ["from fluxnet.rows import Rows\n", "import fluxnet.rows as rows\n", "def run():\n    from fluxnet import rows\n"]
)
def test_a_program_that_imports_the_package_has_the_torch_of_its_setup(program: str) -> None:
    assert _is_below(program)
    assert _is_below(program, own="torch>=1.8\n")


@pytest.mark.parametrize(
    ("program", "own", "setup"),
    [
        ("from layers import Layer\n", "torch\n", SETUP.format("2.1.0")),  # a program of its own
        ("from fluxnet.rows import Rows\n", "torch>=2.5\n", SETUP.format("2.1.0")),  # which the folder rules out
        ("from fluxnet.rows import Rows\n", "torch\n", SETUP.format("2.5.0")),
        ("from fluxnet.rows import Rows\n", "torch\n", SETUP.format("2.1.0").replace("==", ">=")),
    ],
)
def test_programs_for_which_the_version_stays_open(program: str, own: str, setup: str) -> None:
    assert not _is_below(program, own, setup)
