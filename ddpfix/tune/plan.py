"""What `ddpfix tune` would change: the fixes of the tuning codemods, the fast variants of the job files, the table of both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from posixpath import splitext

from codemods.analysis.tuning.configurations import Configured, configured
from codemods.analysis.tuning.profiles import Tuning
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Finding
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
    added, reasons = fast_variants(tree, settings, tuning, read) if tuning.profile == "fast" else ({}, ())
    before = Project(tree.files, read)
    after = before.with_overlay({**fixed.after, **added})
    rows = tuple(_rows(tree, before, after, added, tuning))
    return Plan(tuning, codemods, fixed, added, TuningTable(rows, notes=tuple(_notes(fixed, added, reasons, tuning))))


def chosen(settings: Settings, tuning: Tuning) -> tuple[DdpCodemod, ...]:
    """The tuning codemods that the settings leave; in job files the standard profile, the fast one stands beside them."""
    found = catalog.selected(Selection(settings.select or ("tuning",), settings.ignore))
    return tuple(_set(c, tuning) for c in found if c.topic() == "tuning")


def _set(codemod: DdpCodemod, tuning: Tuning) -> DdpCodemod:
    if isinstance(codemod, JobFileTuning):
        return JobFileTuning(tuning, jobs=replace(tuning, profile="standard"))
    return TrainingArgumentsTuning(tuning) if isinstance(codemod, TrainingArgumentsTuning) else codemod


def fast_variants(tree: Tree, settings: Settings, tuning: Tuning, read: Read) -> tuple[Mapping[str, bytes], tuple[str, ...]]:
    """New job files with the fast values, each beside the one it is made from, none where it is there already; and why a value
    in them is not the fast one."""
    jobs = tuple(p for p in tree.chosen if p.endswith(TEXT_KINDS) and not splitext(p)[0].endswith(("-fast", "_fast")))
    files, left = tuned_jobs(replace(tree, chosen=jobs), settings, tuning, read)
    made = {variant_of(path): data for path, data in files.items() if path in jobs and variant_of(path) not in tree.files}
    said = (f"{variant_of(f.path)} has the batch of the standard profile: {f.reason}" for f in left if variant_of(f.path) in made)
    return made, tuple(dict.fromkeys(said))


def tuned_jobs(tree: Tree, settings: Settings, tuning: Tuning, read: Read) -> tuple[Mapping[str, bytes], tuple[Finding, ...]]:
    """The job files of `tree` with the profile's values; (the new files, what the profile leaves and standard takes on).

    A batch that would grow too far for `fast` grows as far as for `standard`: a variant is made once, so it grows no second time.
    """
    first = engine.fix(tree, settings, (JobFileTuning(tuning),), with_unsafe, read=read)
    if tuning.profile == "standard":
        return first.after, ()
    known: Mapping[str, bytes] = first.after
    plain = JobFileTuning(replace(tuning, profile="standard"))
    second = engine.fix(tree, settings, (plain,), with_unsafe, read=lambda path: known.get(path) or read(path))
    again = {(f.path, f.span.line) for f in second.fixed}
    return {**first.after, **second.after}, tuple(f for f in first.left if f.reason and (f.path, f.span.line) in again)


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


def _notes(fixed: Fixed, added: Mapping[str, bytes], reasons: Sequence[str], tuning: Tuning) -> Iterator[str]:
    if not tuning.cores:
        yield "nothing is said of workers: --cores says how many cores the machine that trains has"
    for finding in fixed.fixed:
        if finding.reason:
            yield f"{finding.place}: {finding.reason}"
    for finding in fixed.left:
        yield f"left: {finding.place}: {finding.message}: {finding.reason}"
    yield from reasons
    for path in added:
        yield (
            f"{path} is new; it writes where the first job writes, unless you give it another folder and another name; where it "
            "runs out of memory, halve its batch and double its accumulation"
        )
