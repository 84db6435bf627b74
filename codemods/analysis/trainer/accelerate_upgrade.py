"""May code be written for a newer Accelerate? What the pin says of one change."""

from __future__ import annotations

from codemods.analysis.frameworks import accelerate_pin
from codemods.analysis.python_bounds import ruled_out_by_python
from codemods.analysis.trainer.lightning_upgrade import Standing
from codemods.analysis.version_branches import is_of_one_version
from codemods.analysis.version_pins import Version, padded
from codemods.api.findings import Applicability, Evidence
from codemods.store.project import Project

PIP_TAKES = "pip takes 1.x today"


def accelerate_standing(project: Project, path: str, at: object, *, since: Version, gone: Version) -> Standing | None:
    """None where every Accelerate that the project and its Python allow takes the old spelling; else how far the new one goes.

    at: what it is asked of, for whoever watches the questions. The new spelling is there from `since` on.
    """
    if is_of_one_version(project, path, at):
        return None
    pin = accelerate_pin(project, near=path)
    ends = ruled_out_by_python(project, "accelerate", near=path)
    if ends is not None and ends <= padded(gone) and not (pin is not None and pin.surely_at_least(ends)):
        return None
    if pin is None:
        return Standing(Applicability.UNSAFE, f"assumes {_text(since)} or newer: no file pins it, so {PIP_TAKES}")
    if pin.surely_below(gone):
        return None
    shown = (Evidence("version", pin.text, pin.path, pin.line),)
    if pin.surely_at_least(since):
        return Standing(Applicability.SAFE, evidence=shown)
    if "||" in pin.spec:
        why = f"{pin.text} ({pin.path}:{pin.line}): the requirement files allow versions of which some lack the new spelling"
        return Standing(Applicability.DISPLAY, why, shown)
    allowed = f"{pin.text} ({pin.path}:{pin.line}) allows it, and {PIP_TAKES}"
    return Standing(Applicability.UNSAFE, f"assumes {_text(since)} or newer: {allowed}", shown)


def _text(version: Version) -> str:
    return f"Accelerate {'.'.join(map(str, version))}"
