"""The pure core: a project, codemods and what is accepted -> new bytes, what was fixed, what is left. Rounds to a fixpoint.

Nothing here touches a disk. LibCST is imported only when there is an edit to write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Edit, Finding, ReplaceLines, Span
from codemods.engine.clashes import Edits
from codemods.engine.find import Numbers, find_all
from codemods.engine.lineage import Lineage
from codemods.engine.user_edits import EditedLines, in_place_of
from codemods.files.source import SourceModule
from codemods.runtime.record import field, record
from codemods.store.project import Project

ROUNDS = 8  # a chain of fixes that needs more is a defect: the loop ends and the rest is told
# None: nobody decided over this one. Of a later round, it then goes with what it comes from; else it is not accepted
Accept = Callable[[Finding], bool | None]


@record
class FixResult:
    """What a run over a project came to.

    changed: path -> new bytes. fixed: findings whose edits were made, original ones first. left: findings that remain, as
    they stand in the new bytes. withdrawn: accepted findings whose fix could not be made, each with the reason. first: all
    that was found before anything was fixed. origins: id of a finding -> the id under which it was among those.
    """

    changed: Mapping[str, bytes]
    fixed: tuple[Finding, ...]
    left: tuple[Finding, ...]
    withdrawn: tuple[tuple[Finding, str], ...] = ()
    first: tuple[Finding, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)


def safe(finding: Finding) -> bool:
    return finding.applicability is Applicability.SAFE


def with_unsafe(finding: Finding) -> bool:
    return finding.applicability is not Applicability.DISPLAY


@record
class Chosen:
    """What a person decided over findings, by id; the others are not decided. edited: lines in the place of a fix."""

    accepted: frozenset[str]
    rejected: frozenset[str] = frozenset()
    edited: Mapping[str, Sequence[EditedLines]] = field(default_factory=dict)

    def __call__(self, finding: Finding) -> bool | None:
        if finding.id in self.accepted:
            return finding.fix is not None
        return False if finding.id in self.rejected else None


def fix_project(
    project: Project,
    work: Callable[[Project, Iterable[str]], Mapping[str, Sequence[DdpCodemod]]],
    paths: Iterable[str],
    accept: Accept = safe,
    edited: Mapping[str, Sequence[EditedLines]] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> FixResult:
    """Fix until nothing acceptable is found.

    work: given the project as it stands and paths, which codemods look at which of them (the byte gate). paths: the files
    that may be looked at. accept: which fixable findings to fix. edited: finding id -> lines in the place of its fix.
    progress: for the first look at them.
    """
    paths = tuple(paths)
    numbers = Numbers()
    changed: dict[str, bytes] = {}
    fixed: list[Finding] = []
    withdrawn: dict[str, tuple[Finding, str]] = {}
    left = find_all(project, work(project, paths), numbers, progress)
    lineage = Lineage(left)
    attempted: set[str] = set()
    for _ in range(ROUNDS):
        offered, lost = _edited_by_hand(project, left, lineage, edited or {})
        wanted = {f.id for f in left if f.id not in withdrawn and lineage.accepts(f, accept)}
        attempted |= wanted | {lineage.origin(f) for f in left if f.id in wanted}
        chosen, refused = without_conflicts(offered, lambda f: f.id in wanted and f.id not in lost)  # noqa: B023
        refused += [(f, lost[f.id]) for f in left if f.id in lost and f.id in wanted]
        made, new, failed = _make(project, chosen)
        after = project.with_overlay(new)
        kept, new, harmful = _harmless(project, after, made, new)
        failed += harmful
        if len(kept) < len(made):
            made, after = kept, project.with_overlay(new)
        if made and not new:
            made, failed = [], [*failed, *((f, "its edits change nothing") for f in made)]
        withdrawn |= {f.id: (f, reason) for f, reason in (*failed, *refused)}
        if not made and not failed:
            break
        if made:
            fixed += made
            numbers.take(made)
            changed |= new
            project = after
            left = find_all(project, work(project, paths), numbers)
            lineage.next_round(made, left, [f.id for f in made if lineage.origin(f) in (edited or {})])
            left = lineage.on_the_text_as_it_was(left, changed)
    left = lineage.as_found_first(left, attempted)
    origins = {f.id: lineage.origin(f) for f in (*fixed, *left)}
    withdrawn_now = tuple(withdrawn.values())
    return FixResult(changed, tuple(fixed), tuple(left), withdrawn_now, tuple(lineage.first.values()), origins)


def joined(results: Sequence[FixResult]) -> FixResult:
    """Several results as one; no two of them change the same file."""
    if len(results) == 1:
        return results[0]
    return FixResult(
        {path: data for r in results for path, data in r.changed.items()},
        tuple(f for r in results for f in r.fixed),
        tuple(f for r in results for f in r.left),
        tuple(row for r in results for row in r.withdrawn),
        tuple(f for r in results for f in r.first),
        {key: origin for r in results for key, origin in r.origins.items()},
    )


def _edited_by_hand(
    project: Project, found: Sequence[Finding], lineage: Lineage, edited: Mapping[str, Sequence[EditedLines]]
) -> tuple[list[Finding], dict[str, str]]:
    """(the findings, with a person's lines in the place of a fix where there are such; id -> why its lines have no place)."""
    if not edited:
        return list(found), {}
    out: list[Finding] = []
    lost: dict[str, str] = {}
    for finding in found:
        rows, moved = lineage.edited(finding, edited)
        placed = in_place_of(finding, rows, project, moved) if rows else finding
        if isinstance(placed, str):
            lost[finding.id], placed = placed, finding
        out.append(placed)
    return out, lost


def _make(
    project: Project, chosen: Sequence[Finding]
) -> tuple[list[Finding], dict[str, bytes], list[tuple[Finding, str]]]:
    """Write the edits of non-conflicting findings. A finding that cannot be written is left out, and so is its group."""
    from codemods.rewriting.rewriter import RewriteError, rewrite_bytes, with_deep_stack

    failed: list[tuple[Finding, str]] = []
    todo = list(chosen)
    while True:
        new: dict[str, bytes] = {}
        culprit: tuple[Finding, str] | None = None
        for path, edits in _by_path(todo).items():
            module = project.module(path)
            if module is None:
                culprit = (next(f for f in todo if any(e.path == path for e in f.edits)), f"{path} cannot be read")
                break
            try:
                new[path] = with_deep_stack(lambda m=module, e=edits: rewrite_bytes(m, e))  # type: ignore[misc]
            except (RewriteError, MemoryError) as error:
                culprit = _blame(project, todo, path, str(error))
                break
        if culprit is None:
            return todo, {p: b for p, b in new.items() if b != project.read(p)}, failed
        gone = [f for f in todo if f is culprit[0] or _same_group(f, culprit[0])]
        failed += [(f, culprit[1]) for f in gone]
        todo = [f for f in todo if f not in gone]


def _harmless(
    project: Project, after: Project, made: list[Finding], new: dict[str, bytes]
) -> tuple[list[Finding], dict[str, bytes], list[tuple[Finding, str]]]:
    """The fixes without those after which some ranks wait for others, as the matching check sees the new text.

    The least sure of the fixes that could be to blame goes first, alone if that is enough.
    """
    from codemods.analysis.ranks.worsened import harms

    gone: list[tuple[Finding, str]] = []
    found = harms(project, after, new) if new else ()
    while found:
        best: tuple[list[Finding], dict[str, bytes], int] | None = None
        for unit in _suspects(made, found[0].path, found[0].symbol):
            rest = [f for f in made if f not in unit]
            _, bytes_without, _ = _make(project, rest)
            left = harms(project, project.with_overlay(bytes_without), bytes_without)
            if len(left) < len(found):
                best = unit, bytes_without, len(left)
                break
        if best is None:  # only together: none of this round is made
            return [], {}, [*gone, *((f, found[0].text) for f in made)]
        unit, new, _ = best
        gone += [(f, found[0].text) for f in unit]
        made = [f for f in made if f not in unit]
        found = harms(project, project.with_overlay(new), new) if new else ()
    return made, new, gone


def _suspects(made: Sequence[Finding], path: str, symbol: str) -> list[list[Finding]]:
    """Fixes with those of their group, those in the function first, then those in its file; the least sure ones before."""

    def order(finding: Finding) -> tuple[bool, bool, int, str]:
        here = any(e.path == path for e in finding.edits)
        return not (here and finding.symbol == symbol), not here, finding.applicability.rank, finding.code

    return [[f for f in made if f is first or _same_group(f, first)] for first in sorted(made, key=order)]


def _blame(project: Project, findings: Sequence[Finding], path: str, reason: str) -> tuple[Finding, str]:
    """The first finding whose own edits in `path` cannot be written, else the last of the file."""
    from codemods.rewriting.rewriter import RewriteError, rewrite, with_deep_stack

    module = project.module(path)
    here = [f for f in findings if any(e.path == path for e in f.edits)]
    for finding in here:
        edits = [e for e in finding.edits if e.path == path]
        try:
            with_deep_stack(lambda e=edits: rewrite(module, e))  # type: ignore[misc, arg-type]
        except (RewriteError, MemoryError) as error:
            return finding, str(error)
    return here[-1], reason


def _same_group(a: Finding, b: Finding) -> bool:
    return bool(a.fix and b.fix and a.code == b.code and a.fix.group and a.fix.group == b.fix.group)


def _by_path(findings: Iterable[Finding]) -> dict[str, list[Edit]]:
    out: dict[str, list[Edit]] = {}
    for finding in findings:
        for edit in finding.edits:
            out.setdefault(edit.path, []).append(edit)
    return out


def without_conflicts(
    findings: Iterable[Finding], accept: Accept
) -> tuple[list[Finding], list[tuple[Finding, str]]]:
    """(accepted findings that can be fixed together, accepted ones whose group cannot be whole, with the reason).

    The safer wins, then the lower code; what loses is tried again in the next round. A group is taken whole or not at all.
    """
    taken = Edits()
    now: list[Finding] = []
    refused: list[tuple[Finding, str]] = []
    for unit in _units(findings):
        if declined := [f for f in unit if not accept(f)]:
            first = declined[0]
            why = f"it belongs together with {first.place}, which is not fixed"
            refused += [(f, why) for f in unit if f not in declined]
            continue
        edits = [edit for finding in unit for edit in finding.edits]
        if any(map(taken.clashes, edits)):
            continue
        now += unit
        for edit in edits:
            taken.add(edit)
    return now, refused


def _units(findings: Iterable[Finding]) -> list[list[Finding]]:
    """Findings with a fix, those of one group together, the safest first."""
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for finding in findings:
        if finding.fix:
            key = (finding.code, finding.fix.group) if finding.fix.group else (finding.code, "", finding.id)
            groups.setdefault(key, []).append(finding)

    def order(unit: list[Finding]) -> tuple[bool, int, str, str, Span]:
        drafted = not any(isinstance(e, ReplaceLines) for f in unit for e in f.edits)  # a person's lines go first
        return min((drafted, -min(f.applicability.rank for f in unit), f.code, f.path, f.span) for f in unit)

    return sorted(groups.values(), key=order)


def fix_source(
    source: str | bytes, codemods: Sequence[DdpCodemod], *, path: str = "module.py", accept: Accept = safe
) -> FixResult:
    """Fix one file on its own. Raises source.Unreadable where it cannot be read."""
    data = source.encode() if isinstance(source, str) else source
    SourceModule(path, data)
    return fix_project(Project.of({path: data}), lambda _p, paths: dict.fromkeys(paths, codemods), [path], accept)
