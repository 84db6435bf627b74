"""What comes of a decision that one rank takes alone: a wait without end, other weights, or an exception of the framework."""

from __future__ import annotations

import ast

from codemods.analysis.frameworks import lightning_pin
from codemods.analysis.guards.agreed_skips import makes_its_steps
from codemods.analysis.variance.partings import Form, Mismatch
from codemods.analysis.variance.state import STEP
from codemods.analysis.variance.values import Cause
from codemods.api.findings import Severity
from codemods.files.source import SourceModule
from codemods.store.project import Project

_REFUSES_NONE = (2, 3)  # the first Lightning that raises where a step of several processes gives no loss


def consequence(project: Project, module: SourceModule, found: Mismatch) -> Severity:
    """How bad it is, as far as that is shown; "" where the others wait, as the rule says."""
    if found.form in (Form.PLATEAU, Form.RATE):
        return "data"  # nobody waits: the weights part
    if found.form is Form.NO_LOSS:
        return without_loss(project, module, found.leaving)
    if found.meeting is not None and found.meeting.name == STEP:
        return "data"  # the backward pass is made on all ranks, the step is not
    if found.meeting is not None and found.meeting.name == "forward" and found.value.cause is Cause.RANK:
        return "risk"  # a wrapper waits for all ranks only with buffers, or with shards
    return ""


def without_loss(project: Project, module: SourceModule, leaving: ast.stmt | None) -> Severity:
    """Of a `training_step` that gives None on one rank: it depends on the Lightning that runs, but where it steps by itself."""
    if makes_its_steps(project, module, leaving):
        return ""
    pin = lightning_pin(project, near=module.path)
    if pin is not None and pin.surely_below(_REFUSES_NONE):
        return "hang"
    return "crash" if pin is not None and pin.surely_at_least(_REFUSES_NONE) else "risk"
