"""What `ddpfix tune` would change: the fixes of the tuning codemods, the fast variants of the job files, the table of both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from posixpath import splitext

from codemods.analysis.tuning.configurations import Configured, configured
from codemods.analysis.tuning.profiles import Tuning
from codemods.api.codemod import DdpCodemod
from codemods.engine.fix_source import with_unsafe
from codemods.files.text_file import TEXT_KINDS
from codemods.store.project import Project
from codemods.tuning.job_file_tuning import JobFileTuning
from codemods.tuning.training_arguments_tuning import TrainingArgumentsTuning
from ddpfix import catalog, engine
from ddpfix.catalog import Selection
from ddpfix.discovery import Tree
from ddpfix.results import Fixed
from ddpfix.settings import Settings
from ddpfix.summary import Configuration, TuningTable

Read = Callable[[str], bytes | None]
AS_IT_IS = "as it is"


@dataclass(frozen=True, slots=True)
class Plan:
    """codemods: the tuning ones, set to what was asked for. fixed: what they make. added: new files. table: before and after."""

    tuning: Tuning
    codemods: tuple[DdpCodemod, ...]
    fixed: Fixed
    added: Mapping[str, bytes]
    table: TuningTable


def plan(tree: Tree, settings: Settings, tuning: Tuning) -> Plan:
    """The plan for a project. Reads only."""
    read = engine.disk_reader(tree.root)
    codemods = chosen(settings, tuning)
    fixed = engine.fix(tree, settings, codemods, with_unsafe)
    added = fast_variants(tree, settings, tuning, read) if tuning.profile == "fast" else {}
    before = Project(tree.files, read)
    after = before.with_overlay({**fixed.after, **added})
    rows = tuple(_rows(tree, before, after, added, tuning))
    return Plan(tuning, codemods, fixed, added, TuningTable(rows, notes=tuple(_notes(fixed, added, tuning))))


def chosen(settings: Settings, tuning: Tuning) -> tuple[DdpCodemod, ...]:
    """The tuning codemods that the settings leave; in job files the standard profile, the fast one stands beside them."""
    found = catalog.selected(Selection(settings.select or ("tuning",), settings.ignore))
    return tuple(_set(c, tuning) for c in found if c.topic() == "tuning")


def _set(codemod: DdpCodemod, tuning: Tuning) -> DdpCodemod:
    if isinstance(codemod, JobFileTuning):
        return JobFileTuning(tuning, jobs=replace(tuning, profile="standard"))
    return TrainingArgumentsTuning(tuning) if isinstance(codemod, TrainingArgumentsTuning) else codemod


def fast_variants(tree: Tree, settings: Settings, tuning: Tuning, read: Read) -> Mapping[str, bytes]:
    """New job files with the fast values, each beside the one it is made from; none where it is there already."""
    jobs = tuple(p for p in tree.chosen if p.endswith(TEXT_KINDS) and not splitext(p)[0].endswith(("-fast", "_fast")))
    fast = engine.fix(replace(tree, chosen=jobs), settings, (JobFileTuning(tuning),), with_unsafe)
    made = {variant_of(path): data for path, data in fast.after.items() if path in jobs}
    return {path: data for path, data in made.items() if path not in tree.files}


def variant_of(path: str) -> str:
    """`jobs/run.yaml` -> `jobs/run-fast.yaml`."""
    stem, kind = splitext(path)
    return f"{stem}-fast{kind}"


def _rows(tree: Tree, before: Project, after: Project, added: Mapping[str, bytes], tuning: Tuning) -> Iterator[Configuration]:
    name = tuning.profile
    old = list(configured(before, tree.chosen, tuning))
    new = list(configured(after, tree.chosen, tuning))
    for was, now in zip(old, new, strict=True):
        job = was.job.endswith(TEXT_KINDS)
        yield _row(was, AS_IT_IS)
        if now != was:
            yield _row(now, "standard" if job else name)
    for variant in configured(after, tuple(sorted(added)), tuning):
        yield _row(variant, "fast")


def _row(of: Configured, name: str) -> Configuration:
    return Configuration(of.job, name, of.load, of.logging, of.workers)


def _notes(fixed: Fixed, added: Mapping[str, bytes], tuning: Tuning) -> Iterator[str]:
    if not tuning.cores:
        yield "nothing is said of workers: --cores says how many cores the machine that trains has"
    for finding in fixed.fixed:
        if finding.reason:
            yield f"{finding.place}: {finding.reason}"
    for finding in fixed.left:
        yield f"left: {finding.place}: {finding.message}: {finding.reason}"
    for path in added:
        yield (
            f"{path} is new; it writes where the first job writes, unless you give it another folder and another name; where it "
            "runs out of memory, halve its batch and double its accumulation"
        )
