"""What codemods find in a file: findings in source order, with ids, suppressed ones left out.

What ranks do is reported where a program comes there that is seen to run as several processes; but for a hang, it is left out
elsewhere, and counted. What stands in a hook that no Trainer of several ranks calls is left alone. A file that a program writes
gets no fix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from codemods.analysis.files.generated import generated_from
from codemods.analysis.ranks.guarded_meetings import meeting_under
from codemods.analysis.ranks.shown_runs import runs_no_ranks, unseen_run
from codemods.analysis.variance.analysis import begin_file
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Evidence, Finding, Span
from codemods.engine import suppressions
from codemods.engine.behind_a_crash import without_what_is_behind
from codemods.engine.seen_ranks import GUARDING, OF_RUNS, for_one_process, is_of_ranks, is_told, place_of, unstarted_by
from codemods.files.left_alone import left
from codemods.files.source import SourceModule
from codemods.files.text_file import NOTEBOOK, PYTHON_KINDS, TextFile
from codemods.runtime.deep_stack import with_deep_stack
from codemods.runtime.record import replace
from codemods.store.project import Project

if TYPE_CHECKING:
    from codemods.files.notebook import NotebookModule


class Numbers:
    """Ids that survive edits elsewhere: code, path, symbol, the anchor's text without blanks, and its occurrence.

    An occurrence keeps its number between rounds: the numbers of what is fixed are not given again.
    """

    def __init__(self) -> None:
        self._fixed: dict[str, set[int]] = {}
        self._given: dict[str, tuple[str, int]] = {}

    def name(self, module: SourceModule, findings: Iterable[Finding]) -> list[Finding]:
        """The findings of one file, in source order, with their ids."""
        import hashlib  # with OpenSSL: 5 ms

        last: dict[str, int] = {}
        out = []
        for finding in findings:
            text = "".join(module.text_at(finding.span).split())
            key = "\0".join((finding.code, finding.path, finding.symbol, text))
            number = last.get(key, 0) + 1
            while number in self._fixed.get(key, ()):
                number += 1
            last[key] = number
            digest = hashlib.sha256(f"{key}\0{number}".encode("utf-8", "surrogatepass")).hexdigest()[:12]
            self._given[digest] = key, number
            out.append(replace(finding, id=digest))
        return out

    def take(self, findings: Iterable[Finding]) -> None:
        """These are fixed: what reads the same from now on is another occurrence."""
        for finding in findings:
            key, number = self._given[finding.id]
            self._fixed.setdefault(key, set()).add(number)


def find_in(
    module: SourceModule, project: Project, codemods: Iterable[DdpCodemod], numbers: Numbers | None = None
) -> list[Finding]:
    """Findings of one file in source order, suppressed ones left out, with their ids."""
    return with_deep_stack(lambda: _find_in(module, project, list(codemods), numbers or Numbers()))


def _find_in(module: SourceModule, project: Project, chosen: Sequence[DdpCodemod], numbers: Numbers) -> list[Finding]:
    begin_file(project)
    asked = [c for c in chosen if not is_of_ranks(c, module.path)] if runs_no_ranks(module) else chosen
    made = ((codemod, finding) for codemod in asked for finding in _found_by(codemod, module, project))
    found: list[Finding] = []
    project.left_out[module.path] = 0
    for codemod, finding in made:
        try:
            seen = _judged(codemod, finding, module, project)
        except Exception as error:
            _note(codemod, module, project, error)
            continue
        if seen is not None:
            found.append(seen)
    if module.holds(b"ddpfix:"):
        checked = frozenset(word.lower() for c in chosen for word in (c.code, c.rule_name()))
        found, unused = suppressions.apply(module, found, checked=checked)
        found += unused
    found = without_what_is_behind(project, module, found, chosen)
    if module.path.endswith(NOTEBOOK):
        found = [_in_its_cell(f, module) for f in found if f.path == module.path]
    found.sort(key=lambda f: (f.span, f.code))
    return numbers.name(module, found)


def _judged(codemod: DdpCodemod, finding: Finding, module: SourceModule, project: Project) -> Finding | None:
    """The finding at its level, None where what is seen of the program's runs leaves it out."""
    place = place_of(finding, module, project)
    if why := for_one_process(codemod, finding, place, project):
        _leave(finding, place, why)
    elif why := unstarted_by(codemod, finding, place, project):
        _leave(finding, place, why)
        project.left_out[module.path] += 1
    elif is_told(codemod, seen := _as_seen(codemod, finding, module, project), place, project):
        return seen
    else:
        _leave(finding, place, "rank 0 alone comes there, or nothing asks for this hook of tests")
    return None


def _leave(finding: Finding, place: SourceModule | None, why: str) -> None:
    """Says that what was found is left out: the codemod found the fault, and the program lets nobody see it."""
    if place is not None:
        left(place, finding.span, "{}. For that it leaves out what it found: {}", why, finding.message)


def _found_by(codemod: DdpCodemod, module: SourceModule, project: Project) -> list[Finding]:
    """What a codemod finds. A plug-in that fails is named at the file it failed on, and the run goes on; so does the run after
    a failure of one of ours, where the project takes notes of them.
    """
    if type(codemod).__module__.startswith(("codemods.", "ddpfix.")):
        try:
            return list(codemod.find(module, project))
        except Exception as error:
            _note(codemod, module, project, error)
            return []
    try:
        return list(codemod.find(module, project))
    except Exception as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())
        message = f"The plug-in {codemod.code} {codemod.rule_name()} failed on this file."
        return [codemod.finding(module, Span(1, 0, 1, 0), message, reason=f"{said}. Its findings here are missing.", symbol="")]


def _note(codemod: DdpCodemod, module: SourceModule, project: Project, error: Exception) -> None:
    """Notes the failure at the file. Raises it where the project takes no notes."""
    if project.failed is None:
        raise error
    said = " ".join(f"{type(error).__name__}: {error}".split())[:200]
    said = "it is nested too deeply" if isinstance(error, RecursionError) else said
    text = f"{codemod.code} {codemod.rule_name()} failed on it, and says nothing here: {said}"
    if text not in (noted := project.failed.setdefault(module.path, [])):
        noted.append(text)


def _as_seen(codemod: DdpCodemod, finding: Finding, module: SourceModule, project: Project) -> Finding:
    """The finding; a safe one as unsafe where no run of several processes is seen to come to its place.

    Without its fix where that would change a file that a program writes.
    """
    if (made := _made_from(finding, module, project)) is not None:
        why = f"a program writes this file{f' from {made}' if made else ''}, and would take the fix away: make the change there"
        return replace(finding, fix=None, reason=why)
    if finding.fix is None or codemod.topic() not in OF_RUNS:
        return finding
    if codemod.topic() in GUARDING and (call := meeting_under(project, module, finding)) is not None:
        why = f"a test for rank 0 would go round line {call.lineno}, to which every rank has to come: put it round the rest alone"
        return replace(finding, fix=None, reason=why)
    if finding.applicability is not Applicability.SAFE:
        return finding
    place = module if finding.path == module.path else project.module(finding.path)
    if place is None or (unseen := unseen_run(project, place, finding.span)) is None:
        return finding
    reason = f"{finding.reason}; {unseen}" if finding.reason else unseen
    return replace(finding, fix=replace(finding.fix, applicability=Applicability.UNSAFE), reason=reason)


def _in_its_cell(finding: Finding, module: SourceModule) -> Finding:
    """The finding with its cell; without a fix that changes a module, too, which is judged without the notebook."""
    from codemods.files.notebook import NotebookModule

    if not isinstance(module, NotebookModule):
        return finding
    cell, line = module.cell_at(finding.span.line)
    other = next((e.path for e in finding.edits if e.path != module.path), "")
    if other:
        finding = replace(finding, fix=None, reason=f"the fix changes {other}, too, and a notebook is changed alone")
    seen, beside = (tuple(_seen_in_cell(e, module) for e in part) for part in (finding.evidence, finding.remaining))
    return replace(finding, cell=cell, cell_line=line, evidence=seen, remaining=beside)


def _seen_in_cell(evidence: Evidence, module: NotebookModule) -> Evidence:
    if evidence.path != module.path or not evidence.line:
        return evidence
    cell, line = module.cell_at(evidence.line)
    return replace(evidence, cell=cell, cell_line=line)


def _made_from(finding: Finding, module: SourceModule, project: Project) -> str | None:
    """What a file that the fix changes is made from ("" where that is not said); None where people write all of them."""
    for path in dict.fromkeys(edit.path for edit in finding.edits):
        changed = module if path == module.path else project.module(path) if path.endswith(PYTHON_KINDS) else None
        if changed is not None and not isinstance(changed, TextFile) and (made := generated_from(changed)) is not None:
            return made
    return None


def find_all(
    project: Project,
    work: Mapping[str, Sequence[DdpCodemod]],
    numbers: Numbers | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Finding]:
    """Findings of several files; `work` says which codemods look at which path. Unreadable files are passed over.

    progress: called with the number of files done and of all.
    """
    found: list[Finding] = []
    for i, path in enumerate(sorted(work)):
        if progress:
            progress(i, len(work))
        project.make_room()
        here = project.seen_from(path)
        if module := here.module(path):
            found += find_in(module, here, work[path], numbers)
    return found
