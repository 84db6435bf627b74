"""The torch that a program gets with the package of its own repository, which it imports from outside of its folder."""

from __future__ import annotations

from posixpath import basename, dirname

from codemods.analysis.frameworks import torch_pin
from codemods.analysis.importing import names_of_imports
from codemods.analysis.version_pins import Pin
from codemods.files.source import SourceModule
from codemods.store.project import Project

_INSTALLS = ("setup.py", "setup.cfg", "pyproject.toml")


def torch_of_package(project: Project, module: SourceModule, pin: Pin) -> Pin | None:
    """The exact pin of a package around the folder whose own pin leaves the version open; None where no import needs it.

    pip installs the package with what its setup names, so no other torch is there when the program imports it.
    """
    folder = dirname(pin.path)
    if not folder or pin.below is not None:
        return None
    for name in sorted(names_of_imports(module)):
        found = project.resolve(name, module.path) if not name.startswith(".") else None
        if found is None or found.path.startswith(f"{folder}/"):
            continue
        outer = torch_pin(project, near=found.path)
        if outer is None or basename(outer.path) not in _INSTALLS or not _is_above(dirname(outer.path), folder):
            continue
        if outer.minimum is not None and outer.below is not None and (pin.minimum is None or pin.minimum <= outer.minimum):
            return outer
    return None


def _is_above(outer: str, folder: str) -> bool:
    return not outer or folder.startswith(f"{outer}/")
