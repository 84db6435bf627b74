"""How bad a finding is, in the three words that forges have, and in which order findings are shown where room is scarce."""

from __future__ import annotations

from collections.abc import Mapping

from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Finding, Severity
from ddpfix import catalog

ERROR, WARNING, NOTE = "error", "warning", "note"
_STEPS = (NOTE, WARNING, ERROR)
_LEVELS: Mapping[Severity, str] = {"crash": ERROR, "hang": ERROR, "data": ERROR}  # what ends a run, or makes its result wrong


def about(finding: Finding) -> DdpCodemod | None:
    """The codemod that spoke; None for a comment that silences nothing (DDP000)."""
    try:
        return catalog.lookup(finding.code)
    except catalog.UnknownSelector:
        return None


def level_of_rule(finding: Finding) -> str:
    """error, warning or note, by what the codemod's error does to a run; a setting to try is a note."""
    codemod = about(finding)
    return _level(codemod, codemod.severity) if codemod else NOTE


def _level(codemod: DdpCodemod, severity: Severity) -> str:
    return NOTE if codemod.topic() == "tuning" else _LEVELS.get(severity, WARNING)


def severity(finding: Finding) -> str:
    """The level by what it does to a run; what has no fix is a step lower, since not every condition of it was shown."""
    codemod = about(finding)
    level = _level(codemod, finding.severity) if codemod else NOTE
    told = finding.applicability is Applicability.DISPLAY
    return _STEPS[max(0, _STEPS.index(level) - told)]


def urgency(finding: Finding) -> tuple[int, int, int]:
    """A key for sorting: the worst first, among equals what can be fixed safely."""
    return -_STEPS.index(severity(finding)), finding.severity_rank, -finding.applicability.rank
