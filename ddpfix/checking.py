"""What `check` does between its settings and its formats: the reports, narrowed to a change and held against a baseline."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

from codemods.api.codemod import DdpCodemod
from codemods.engine import suppressions
from codemods.runtime.record import record
from codemods.store.project import Project
from ddpfix import baseline, engine, narrowing, plugins
from ddpfix.discovery import Tree
from ddpfix.judging import Progress
from ddpfix.outputs import files
from ddpfix.outputs.answer import Answer
from ddpfix.outputs.gather import gather
from ddpfix.outputs.paths import shown_from
from ddpfix.outputs.text import plural
from ddpfix.results import Report
from ddpfix.settings import Settings

Stdin = tuple[Path, bytes]  # the file that the bytes stand for
MOST_GONE = 10


@record
class Baseline:
    """A baseline that is asked for. write: what is found is written into it; narrowed: only a part of it can be found."""

    file: Path
    tree: Tree
    settings: Settings
    write: bool = False
    narrowed: bool = False


def report(
    tree: Tree,
    settings: Settings,
    codemods: Sequence[DdpCodemod] | None = None,
    read: Callable[[str], bytes | None] | None = None,
    *,
    changed_since: str = "",
    use_cache: bool = True,
    progress: Progress | None = None,
    ending: bool = False,
) -> Report:
    """What is wrong in a project; with `changed_since` the findings on what changed since that commit. Raises GitRefusal.

    codemods, read, ending: as for `engine.check`.
    """
    found = engine.check(tree, settings, codemods, use_cache=use_cache, progress=progress, read=read, ending=ending)
    if not changed_since:
        return found
    from ddpfix.git.changes import changed_since as changes  # GitPython is a tenth of a second

    project = Project(tree.files, read or engine.disk_reader(tree.root))
    return narrowing.touched(found, project, changes(tree.root, changed_since))


def reader(root: Path, stdin: Stdin | None) -> Callable[[str], bytes | None] | None:
    """What gives a file's bytes where stdin stands for one of them."""
    if stdin is None:
        return None
    path, data = stdin
    name, disk = path.resolve().relative_to(root).as_posix(), engine.disk_reader(root)
    return lambda wanted: data if wanted == name else disk(wanted)


def answer(
    found: Sequence[Report], known: Baseline | None, needs: Collection[str], folder: Path, *, stdin: Stdin | None = None
) -> Answer:
    """The reports as the formats take them, without what the baseline knows. Writes the baseline where that is asked for.

    Raises BaselineError.
    """
    if known is None:
        projects = (gather(r, shown_from(r.root, folder), needs, read=reader(r.root, stdin)) for r in found)
        return Answer(tuple(projects), folder)
    (report,) = found
    codes = {suppressions.CODE, *(c.code for c in plugins.chosen(known.settings, known.tree.root).codemods)}
    entries = _written(report, known, codes) if known.write else baseline.read(known.file)
    compared = baseline.compare(report, entries, known.tree, codes)
    left = gather(compared.report, shown_from(report.root, folder), needs, read=reader(report.root, stdin))
    gone = () if known.narrowed else compared.gone
    return Answer((left,), folder, baseline=True, known=compared.known, gone=gone)


def _written(report: Report, known: Baseline, codes: Collection[str]) -> tuple[baseline.Entry, ...]:
    """Write what was found; entries that nobody asked about stay."""
    old = baseline.read(known.file) if known.file.is_file() else ()
    kept = [e for e in old if not baseline.was_asked(e, known.tree, codes)]
    try:
        files.write(known.file, baseline.text_of(report.findings, kept))
    except OSError as error:
        raise baseline.BaselineError(f"{known.file} cannot be written", str(error), "name another file") from error
    return baseline.read(known.file)


def about_baseline(given: Answer, known: Baseline | None) -> Iterator[str]:
    """What there is to say of the baseline, in lines."""
    if known is None:
        return
    count = plural(given.known, "known finding")
    yield f"{known.file}: {count} written" if known.write else f"{known.file}: {count} left out"
    if given.gone:
        entries = plural(len(given.gone), "entry", "entries")
        yield f"{known.file}: {entries} can go, since the finding is gone; --write-baseline takes them out:"
        for entry in given.gone[:MOST_GONE]:
            yield f"  {entry.path}: {entry.code} {entry.symbol}".rstrip()
        if len(given.gone) > MOST_GONE:
            yield f"  and {len(given.gone) - MOST_GONE} more"
