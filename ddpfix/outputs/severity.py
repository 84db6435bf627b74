"""How bad a finding is, in the three words that forges have, and in which order findings are shown where room is scarce."""

from __future__ import annotations

from codemods.codemod import DdpCodemod
from codemods.findings import Applicability, Finding
from ddpfix import catalog

ERROR, WARNING, NOTE = "error", "warning", "note"
_STEPS = (NOTE, WARNING, ERROR)
# Ranks that wait for each other for ever, torn files and data read twice are errors; a setting to try is a note.
_TOPICS = {"sync": ERROR, "checkpoints": ERROR, "data_loading": ERROR, "tuning": NOTE}


def about(finding: Finding) -> DdpCodemod | None:
    """The codemod that spoke; None for a comment that silences nothing (DDP000)."""
    try:
        return catalog.lookup(finding.code)
    except catalog.UnknownSelector:
        return None


def level_of_rule(finding: Finding) -> str:
    """error, warning or note, by the topic of the codemod."""
    codemod = about(finding)
    return _TOPICS.get(codemod.topic(), WARNING) if codemod else NOTE


def severity(finding: Finding) -> str:
    """The level of its rule; what has no fix is a step lower, since not every condition of it was shown."""
    told = finding.applicability is Applicability.DISPLAY
    return _STEPS[max(0, _STEPS.index(level_of_rule(finding)) - told)]


def urgency(finding: Finding) -> tuple[int, int]:
    """A key for sorting: the worst first, among equals what can be fixed safely."""
    return -_STEPS.index(severity(finding)), -finding.applicability.rank
