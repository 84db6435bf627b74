"""Which releases of a package the Python of an environment rules out: `python=3.8` has no transformers 5."""

from __future__ import annotations

from codemods.analysis.frameworks import pin_of
from codemods.analysis.requirement_files import REQUIRES_PYTHON
from codemods.analysis.version_pins import Version, padded
from codemods.data.python_versions import FIRST_PYTHON
from codemods.store.project import Project


def ruled_out_by_python(project: Project, package: str, *, near: str = "") -> Version | None:
    """The first release of the package that no Python has which the project allows; None where it leaves that open.

    By the environment's file, and by what a package of the repository says of Python.
    """
    pythons = [pin_of(project, name, near=near) for name in ("python", REQUIRES_PYTHON)]
    ends = [pin.below for pin in pythons if pin is not None and pin.below is not None]
    rows = FIRST_PYTHON.get(package, ()) if ends else ()
    return next((padded(release) for first, release in rows if padded(first) >= min(ends)), None)
