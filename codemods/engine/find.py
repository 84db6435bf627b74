"""What codemods find in a file: findings in source order, with ids, suppressed ones left out.

What ranks do is reported where a program comes there that is seen to run as several processes; but for a hang, it is left out
elsewhere, and counted. What stands in a hook that no Trainer of several ranks calls is left alone. A file that a program writes
gets no fix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from codemods.analysis.files.generated import generated_from
from codemods.analysis.job_files.documented_starts import starts
from codemods.analysis.ranks.guarded_meetings import meeting_under
from codemods.analysis.ranks.program_starts import Start
from codemods.analysis.ranks.shown_runs import (
    comes_by_rank_zero,
    is_never_reached,
    is_of_a_closed_mode,
    is_of_unshared_mode,
    is_one_a_machine,
    never_runs,
    only_in_the_kernel,
    rank_zero_is_left,
    runs_no_ranks,
    runs_to_no_end,
    start_at,
    started_alone,
    unseen_run,
)
from codemods.analysis.ranks.unrun_hooks import is_in_unrun_hook
from codemods.analysis.variance.analysis import begin_file
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Evidence, Finding, Span
from codemods.engine import suppressions
from codemods.engine.worth_telling import is_worth_telling
from codemods.files.source import SourceModule
from codemods.files.text_file import NOTEBOOK, PYTHON_KINDS, TextFile
from codemods.runtime.deep_stack import with_deep_stack
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import replace
from codemods.store.project import Project

if TYPE_CHECKING:
    from codemods.files.notebook import NotebookModule

# What these topics say of a place is what ranks do when they come there; the others are about settings and versions.
_OF_RUNS = frozenset({"ranks", "sync", "metrics", "data_loading", "checkpoints"})

# Those whose fix is a test round what puts something out; those of `sync` part the collectives from it themselves.
_GUARDING = frozenset({"ranks", "checkpoints"})


# What a program of one process has no need to ask its framework.
_ASKS_FOR_RANKS = lazy(
    rb"\b(?:is_(?:local_)?main_process|is_world_process_zero|is_global_zero|global_rank|process_index|num_processes|"
    rb"wait_for_everyone|gather_for_metrics|unwrap_model|rank_zero_only)\b"
)

# What takes two ranks at the place; who crashes or waits there says so himself.
_OF_TWO = frozenset({"noise", "data", "risk"})


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
    asked = [c for c in chosen if not _is_of_ranks(c, module.path)] if runs_no_ranks(module) else chosen
    made = ((codemod, finding) for codemod in asked for finding in _found_by(codemod, module, project))
    found: list[Finding] = []
    unstarted = 0
    for codemod, finding in made:
        if _is_for_one_process(codemod, finding, module, project):
            continue
        if _is_unstarted(codemod, finding, module, project):
            unstarted += 1
        elif _is_told(codemod, seen := _as_seen(codemod, finding, module, project), module, project):
            found.append(seen)
    project.left_out[module.path] = unstarted
    if module.holds(b"ddpfix:"):
        checked = frozenset(word.lower() for c in chosen for word in (c.code, c.rule_name()))
        found, unused = suppressions.apply(module, found, checked=checked)
        found += unused
    if module.path.endswith(NOTEBOOK):
        found = [_in_its_cell(f, module) for f in found if f.path == module.path]
    found.sort(key=lambda f: (f.span, f.code))
    return numbers.name(module, found)


def _found_by(codemod: DdpCodemod, module: SourceModule, project: Project) -> list[Finding]:
    """What a codemod finds. A plug-in that fails is named at the file it failed on, and the run goes on; so does the run after
    a failure of one of ours, where the project takes notes of them.
    """
    if type(codemod).__module__.startswith(("codemods.", "ddpfix.")):
        try:
            return list(codemod.find(module, project))
        except Exception as error:
            if project.failed is None:
                raise
            said = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            said = "it is nested too deeply" if isinstance(error, RecursionError) else said
            text = f"{codemod.code} {codemod.rule_name()} failed on it, and says nothing here: {said}"
            if text not in (noted := project.failed.setdefault(module.path, [])):
                noted.append(text)
            return []
    try:
        return list(codemod.find(module, project))
    except Exception as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())
        message = f"The plug-in {codemod.code} {codemod.rule_name()} failed on this file."
        return [codemod.finding(module, Span(1, 0, 1, 0), message, reason=f"{said}. Its findings here are missing.", symbol="")]


def _is_of_ranks(codemod: DdpCodemod, path: str) -> bool:
    """True for a codemod that speaks of what ranks do where they come; in a notebook of how they are started, too."""
    return codemod.topic() in _OF_RUNS or (codemod.topic() == "launch" and path.endswith(NOTEBOOK))


def _is_for_one_process(codemod: DdpCodemod, finding: Finding, module: SourceModule, project: Project) -> bool:
    """True in a program, or a mode of one, that the repository's texts start as one process, while they launch others.

    Also in a hook that no Trainer of several ranks calls, in a notebook outside of what it hands to a launcher, and where no run
    comes at all; for noise, where none gets through, and where each process has a console of its own.
    """
    if codemod.topic() not in _OF_RUNS and codemod.topic() != "launch":
        return False
    place = module if finding.path == module.path else project.module(finding.path)
    if place is None or isinstance(place, TextFile):
        return False
    if never_runs(project, place, finding.span) or is_never_reached(project, place, finding.span):
        return True
    if finding.severity == "noise" and runs_to_no_end(project, place, finding.span):
        return True
    if codemod.topic() in _GUARDING and finding.severity in _OF_TWO and rank_zero_is_left(project, place, finding.span):
        return True
    if not _is_of_ranks(codemod, finding.path):
        return False
    if only_in_the_kernel(place, finding.span):
        return True
    if codemod.topic() not in _OF_RUNS:
        return False
    if started_alone(project, place, finding.span) or is_in_unrun_hook(project, place, finding.span.line):
        return True
    if start_at(project, place, finding.span) is Start.ONE:
        return True
    if finding.severity != "noise" or codemod.topic() != "ranks":
        return False
    return is_one_a_machine(project, place, finding.span) or is_of_unshared_mode(project, place, finding.span)


def _is_unstarted(codemod: DdpCodemod, finding: Finding, module: SourceModule, project: Project) -> bool:
    """True where only programs come to the place that the texts, which say how others are started, start on no several processes.

    And under an option or a setting that keeps each run off which they show.

    Of 31 such fixes on unseen repositories a reader would have merged one. What rank 0 does alone is run as well: an error there
    ends the program, though noise of it is heard once. A hang is reported all the same, and so is an error that ends each run of
    a program written for a launcher's processes. Noise is not worth a word where no text says how anything is started, either,
    nor where nothing says that there are several: of 151 such fixes under a Trainer whose devices settings give, half were.
    """
    if codemod.topic() not in _OF_RUNS or finding.severity == "hang":
        return False
    place = module if finding.path == module.path else project.module(finding.path)
    if place is None or isinstance(place, TextFile):
        return False
    noise = finding.severity == "noise"
    start = start_at(project, place, finding.span)
    several = start is not None and start.is_several and not (noise and start is not Start.SEVERAL)
    if several or (not noise and starts(project) and comes_by_rank_zero(project, place, finding.span)):
        return is_of_a_closed_mode(project, place, finding.span)
    if codemod.ends_each_run and finding.severity == "crash" and _is_written_for_ranks(place, start):
        return False
    return noise or bool(starts(project))


def _is_written_for_ranks(module: SourceModule, start: Start | None) -> bool:
    return start is Start.JOINS or (start is Start.OPEN and _ASKS_FOR_RANKS.search(module.data) is not None)


def _is_told(codemod: DdpCodemod, finding: Finding, module: SourceModule, project: Project) -> bool:
    if codemod.topic() not in _OF_RUNS:
        return True
    place = module if finding.path == module.path else project.module(finding.path)
    return is_worth_telling(project, place, finding)


def _as_seen(codemod: DdpCodemod, finding: Finding, module: SourceModule, project: Project) -> Finding:
    """The finding; a safe one as unsafe where no run of several processes is seen to come to its place.

    Without its fix where that would change a file that a program writes.
    """
    if (made := _made_from(finding, module, project)) is not None:
        why = f"a program writes this file{f' from {made}' if made else ''}, and would take the fix away: make the change there"
        return replace(finding, fix=None, reason=why)
    if finding.fix is None or codemod.topic() not in _OF_RUNS:
        return finding
    if codemod.topic() in _GUARDING and (call := meeting_under(project, module, finding)) is not None:
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
    return replace(finding, cell=cell, cell_line=line, evidence=tuple(_seen_in_cell(e, module) for e in finding.evidence))


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
