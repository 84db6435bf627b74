"""Which findings are left out, since no second rank is seen to come to their place; each with the sentence that says why."""

from __future__ import annotations

from codemods.analysis.job_files.documented_starts import starts
from codemods.analysis.ranks.shown_runs import (
    comes_by_rank_zero,
    is_never_reached,
    is_of_a_closed_mode,
    is_of_a_training_of_ranks,
    is_of_no_test,
    is_of_unshared_mode,
    is_one_a_machine,
    is_without_a_launcher,
    never_runs,
    only_in_the_kernel,
    rank_zero_is_left,
    runs_to_no_end,
    start_at,
    started_alone,
)
from codemods.analysis.ranks.start_kinds import Start
from codemods.analysis.ranks.unrun_hooks import is_in_unrun_hook
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Finding
from codemods.engine.worth_telling import is_worth_telling
from codemods.files.source import SourceModule
from codemods.files.text_file import NOTEBOOK, TextFile
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

# What these topics say of a place is what ranks do when they come there; the others are about settings and versions.
OF_RUNS = frozenset({"ranks", "sync", "metrics", "data_loading", "checkpoints"})

# Those whose fix is a test round what puts something out; those of `sync` part the collectives from it themselves.
GUARDING = frozenset({"ranks", "checkpoints"})

# What a program of one process has no need to ask its framework.
_ASKS_FOR_RANKS = lazy(
    rb"\b(?:is_(?:local_)?main_process|is_world_process_zero|is_global_zero|global_rank|process_index|num_processes|"
    rb"wait_for_everyone|gather_for_metrics|unwrap_model|rank_zero_only|DistributedSampler)"
)

# Who has Lightning reduce one number of a hook runs it on several; the number beside it is left as that of one rank.
_REDUCES = lazy(r"\bsync_dist[ \t]*=[ \t]*(?!(?:False|None)\b)\S")

# What ranks may do that nobody starts: a program that is written for them is run so, sooner or later.
_MEANT = frozenset({Start.OPEN, Start.JOINS})

# What takes two ranks at the place; who crashes or waits there says so himself.
_OF_TWO = frozenset({"noise", "data", "risk"})


def place_of(finding: Finding, module: SourceModule, project: Project) -> SourceModule | None:
    """The file of a finding, which may be another one than that which was looked at."""
    return module if finding.path == module.path else project.module(finding.path)


def is_of_ranks(codemod: DdpCodemod, path: str) -> bool:
    """True for a codemod that speaks of what ranks do where they come; in a notebook of how they are started, too."""
    return codemod.topic() in OF_RUNS or (codemod.topic() == "launch" and path.endswith(NOTEBOOK))


def for_one_process(codemod: DdpCodemod, finding: Finding, place: SourceModule | None, project: Project) -> str:
    """Why no several processes come there: in a program, or a mode of one, that the repository's texts start as one process,
    while they launch others.

    Also in a hook that no Trainer of several ranks calls, in a notebook outside of what it hands to a launcher, and where no run
    comes at all, or gets through, but for a hang; for noise, where each process has a console of its own. "" where they may come.
    """
    if codemod.topic() not in OF_RUNS and codemod.topic() != "launch":
        return ""
    if place is None or isinstance(place, TextFile):
        return ""
    if not codemod.names_failure and never_runs(project, place, finding.span):
        return (
            "no run gets there, since what stands above it fails in each, no value of an option leads there, or its file cannot "
            "be imported or is superseded"
        )
    if is_never_reached(project, place, finding.span):
        return "no program of the project comes there in a run of several processes"
    if finding.severity != "hang" and not codemod.names_failure and runs_to_no_end(project, place, finding.span):
        return "no run gets through the block, and whoever runs it has another error to see"
    if _is_noise(codemod, finding) and is_of_no_test(project, place, finding.span):
        return "it stands in a hook of tests that nothing asks for"
    if codemod.topic() in GUARDING and finding.severity in _OF_TWO and rank_zero_is_left(project, place, finding.span):
        return "rank 0 alone comes there, since the others have ended above"
    if not is_of_ranks(codemod, finding.path):
        return ""
    if only_in_the_kernel(place, finding.span):
        return "the kernel of the notebook alone runs it, which is one process"
    return _of_one_run(codemod, finding, place, project) if codemod.topic() in OF_RUNS else ""


def _is_noise(codemod: DdpCodemod, finding: Finding) -> bool:
    """A finding that is less than its codemod's others, as of a file that all ranks write alike, is reported as they are."""
    return finding.severity == "noise" and codemod.severity == "noise"


def _of_one_run(codemod: DdpCodemod, finding: Finding, place: SourceModule, project: Project) -> str:
    """Why the runs that come there are of one process, for what ranks do; "" where they need not be."""
    if started_alone(project, place, finding.span):
        return "only programs come there that the repository's texts start as one process"
    if is_without_a_launcher(project, place, finding.span):
        return "a test above it leaves a run without a launcher, which is one process"
    if is_in_unrun_hook(project, place, finding.span.line):
        return "it stands in a hook that no Trainer of several processes calls"
    if start_at(project, place, finding.span) is Start.ONE:
        return "only programs come there that run as one process"
    if not _is_noise(codemod, finding) or codemod.topic() != "ranks":
        return ""
    if is_one_a_machine(project, place, finding.span):
        return "each process that comes there has a machine, its console and its disk for itself"
    unshared = is_of_unshared_mode(project, place, finding.span)
    return "it stands in a mode that trains nothing and shares nothing out" if unshared else ""


def unstarted_by(codemod: DdpCodemod, finding: Finding, place: SourceModule | None, project: Project) -> str:
    """Why it counts as unstarted: only programs come to the place that the texts, which say how others are started, start on no
    several processes. And under an option or a setting that keeps each run off which they show. "" where it does not.

    Of 31 such fixes on unseen repositories a reader would have merged one. What rank 0 does alone is run as well: an error there
    ends the program, though noise of it is heard once, and what takes a second rank does not come about. A hang is reported all
    the same, and so is an error that ends each run of a program written for a launcher's processes. Noise is not worth a word
    where no text says how anything is started, either, nor where nothing says that there are several: of 151 such fixes under a
    Trainer whose devices settings give, half were, and of eight reports on a number that is one rank's own none was; but where
    the function has Lightning reduce another, ranks are meant. Of 39 files that each rank of such a Trainer writes or makes, 14
    were. Of 26 findings, hangs among them, which no program comes to, or one that may as well be one process, beside texts that
    start others, one was.
    """
    if codemod.topic() not in OF_RUNS or place is None or isinstance(place, TextFile):
        return ""
    start = start_at(project, place, finding.span)
    beside_others = start is Start.PRESUMED and starts(project)
    if beside_others or (start is None and not comes_by_rank_zero(project, place, finding.span)):
        return "no program that is surely started as several processes is seen to come there"
    if finding.severity == "hang":
        return ""
    noise = _is_noise(codemod, finding)
    several = start is not None and start.is_several
    number = not noise and finding.fix is None and codemod.topic() == "metrics"
    file = not noise and codemod.takes_several and start is Start.LIKELY
    unsaid = (noise or number or file) and several and start is not Start.SEVERAL
    if unsaid and not (number and codemod.names_number and _reduces_beside(place, finding)):
        return "no command, and no call, says that the programs which come there are several processes"
    zero_counts = not noise and not codemod.takes_several and starts(project)
    if several or (zero_counts and comes_by_rank_zero(project, place, finding.span)):
        closed = is_of_a_closed_mode(project, place, finding.span)
        return "an option or a setting keeps each run off it that the project shows" if closed else ""
    if codemod.ends_each_run and finding.severity == "crash" and _is_written_for_ranks(place, start):
        return ""
    if not noise and start in _MEANT and is_of_a_training_of_ranks(project, place, finding.span):
        return ""
    if starts(project):
        return "the repository's texts say how programs are started, and start none as several processes that comes there"
    return "no text says that a program which comes there is started as several processes" if noise else ""


def _reduces_beside(module: SourceModule, finding: Finding) -> bool:
    """True where another number of the same function is reduced: `self.log("loss", loss, sync_dist=self.is_ddp)`."""
    line = finding.span.line
    around = [f for f in module.functions if f.lineno <= line <= (f.end_lineno or f.lineno)]
    return bool(around) and _REDUCES.search(module.text_of(max(around, key=lambda f: f.lineno))) is not None


def _is_written_for_ranks(module: SourceModule, start: Start | None) -> bool:
    return start is Start.JOINS or (start is Start.OPEN and _ASKS_FOR_RANKS.search(module.data) is not None)


def is_told(codemod: DdpCodemod, finding: Finding, place: SourceModule | None, project: Project) -> bool:
    """False for what a second rank would have to come to, and none does."""
    return codemod.topic() not in OF_RUNS or codemod.names_end_of_others or is_worth_telling(project, place, finding)
