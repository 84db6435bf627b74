"""Which releases of a package the Python of an environment rules out: `python=3.8` has no transformers 5."""

from __future__ import annotations

from codemods.analysis.frameworks import pin_of
from codemods.analysis.version_pins import Version, padded
from codemods.data.python_versions import FIRST_PYTHON
from codemods.store.project import Project


def ruled_out_by_python(project: Project, package: str, *, near: str = "") -> Version | None:
    """The first release of the package that no Python has which the environment's file allows; None where it leaves that open."""
    python = pin_of(project, "python", near=near)
    if python is None or python.below is None:
        return None
    rows = FIRST_PYTHON.get(package, ())
    return next((padded(release) for first, release in rows if padded(first) >= python.below), None)
