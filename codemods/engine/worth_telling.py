"""What every finding without a fix has to answer before it is told: does the second rank it speaks of come to that place?

A fix that changes nothing there costs nobody anything; a report costs its reader the way to the place.
"""

from __future__ import annotations

from codemods.analysis.ranks.shown_runs import rank_zero_is_left
from codemods.analysis.ranks.unrun_hooks import is_in_untested_hook
from codemods.api.findings import Finding
from codemods.files.source import SourceModule
from codemods.files.text_file import TextFile
from codemods.store.project import Project


def is_worth_telling(project: Project, place: SourceModule | None, finding: Finding) -> bool:
    """False for a report on what ranks do where only rank 0 comes, and in a hook of tests that nothing asks for."""
    if finding.fix is not None or place is None or isinstance(place, TextFile):
        return True
    if finding.severity != "crash" and rank_zero_is_left(project, place, finding.span):
        return False  # an error may be rank 0's as well
    return not _is_untested(project, place, finding)


def _is_untested(project: Project, place: SourceModule, finding: Finding) -> bool:
    if project.observed or project.launched or finding.severity == "hang":
        return False
    return is_in_untested_hook(project, place, finding.span.line)
