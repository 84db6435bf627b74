"""The pure core: a project, codemods and what is accepted -> new bytes, what was fixed, what is left. Rounds to a fixpoint.

Nothing here touches a disk. LibCST is imported only when there is an edit to write.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from codemods import suppressions
from codemods.codemod import DdpCodemod
from codemods.findings import (
    AddDecorator,
    Applicability,
    DropKeyword,
    Edit,
    Finding,
    RemoveStatement,
    ReplaceExpression,
    SetKeyword,
    WrapInGuard,
    claims,
)
from codemods.project import Project
from codemods.source import SourceModule

ROUNDS = 8  # a chain of fixes that needs more is a defect: the loop ends and the rest is told
Accept = Callable[[Finding], bool]


@dataclass(frozen=True, slots=True)
class FixResult:
    """What a run over a project came to.

    changed: path -> new bytes. fixed: findings whose edits were made, original ones first. left: findings that remain, of
    the last round. withdrawn: findings whose fix could not be made, each with the reason.
    """

    changed: Mapping[str, bytes]
    fixed: tuple[Finding, ...]
    left: tuple[Finding, ...]
    withdrawn: tuple[tuple[Finding, str], ...] = ()


def safe(finding: Finding) -> bool:
    return finding.applicability is Applicability.SAFE


def with_unsafe(finding: Finding) -> bool:
    return finding.applicability is not Applicability.DISPLAY


def find_in(module: SourceModule, project: Project, codemods: Iterable[DdpCodemod]) -> list[Finding]:
    """Findings of one file in source order, suppressed ones left out, with their ids."""
    chosen = list(codemods)
    found = [finding for codemod in chosen for finding in codemod.find(module, project)]
    if "ddpfix:" in module.text:
        checked = frozenset(word.lower() for c in chosen for word in (c.code, c.rule_name()))
        found, unused = suppressions.apply(module, found, checked=checked)
        found += unused
    found.sort(key=lambda f: (f.span, f.code))
    return with_ids(module, found)


def with_ids(module: SourceModule, findings: Sequence[Finding]) -> list[Finding]:
    """Ids that survive edits elsewhere: code, path, symbol, the anchor's text without blanks, and its occurrence."""
    seen: dict[str, int] = {}
    out = []
    for finding in findings:
        text = "".join(module.text_at(finding.span).split())
        key = "\0".join((finding.code, finding.path, finding.symbol, text))
        count = seen[key] = seen.get(key, 0) + 1
        digest = hashlib.sha256(f"{key}\0{count}".encode("utf-8", "surrogatepass")).hexdigest()
        out.append(replace(finding, id=digest[:12]))
    return out


def find_all(project: Project, work: Mapping[str, Sequence[DdpCodemod]]) -> list[Finding]:
    """Findings of several files; `work` says which codemods look at which path. Unreadable files are passed over."""
    found: list[Finding] = []
    for path in sorted(work):
        if module := project.module(path):
            found += find_in(module, project, work[path])
    return found


def fix_project(
    project: Project,
    work: Callable[[Project, Iterable[str]], Mapping[str, Sequence[DdpCodemod]]],
    paths: Iterable[str],
    accept: Accept = safe,
) -> FixResult:
    """Fix until nothing acceptable is found.

    work: given the project as it stands and paths, which codemods look at which of them (the byte gate). paths: the files
    that may be looked at. accept: which fixable findings to fix.
    """
    paths = tuple(paths)
    changed: dict[str, bytes] = {}
    fixed: list[Finding] = []
    withdrawn: dict[str, tuple[Finding, str]] = {}
    left: list[Finding] = []
    for _ in range(ROUNDS):
        left = find_all(project, work(project, paths))
        wanted = [f for f in left if f.fix and accept(f) and f.id not in withdrawn]
        chosen, _later = without_conflicts(wanted)
        if not chosen:
            break
        made, new, failed = _make(project, chosen)
        for finding, reason in failed:
            withdrawn[finding.id] = (finding, reason)
        fixed += made
        changed |= new
        if not new:
            if failed:
                continue
            break
        project = project.with_overlay(new)
    remaining = tuple(f for f in left if not any(f.id == g.id for g in fixed) or f.id in withdrawn)
    return FixResult(changed, tuple(fixed), remaining, tuple(withdrawn.values()))


def _make(
    project: Project, chosen: Sequence[Finding]
) -> tuple[list[Finding], dict[str, bytes], list[tuple[Finding, str]]]:
    """Write the edits of non-conflicting findings. A finding that cannot be written is left out, and so is its group."""
    from codemods.rewriter import RewriteError, rewrite_bytes, with_deep_stack

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
            except (RewriteError, ValueError, RecursionError) as error:
                culprit = _blame(project, todo, path, str(error))
                break
        if culprit is None:
            return todo, {p: b for p, b in new.items() if b != project.read(p)}, failed
        gone = [f for f in todo if f is culprit[0] or _same_group(f, culprit[0])]
        failed += [(f, culprit[1]) for f in gone]
        todo = [f for f in todo if f not in gone]


def _blame(project: Project, findings: Sequence[Finding], path: str, reason: str) -> tuple[Finding, str]:
    """The first finding whose own edits in `path` cannot be written, else the last of the file."""
    from codemods.rewriter import RewriteError, rewrite, with_deep_stack

    module = project.module(path)
    here = [f for f in findings if any(e.path == path for e in f.edits)]
    for finding in here:
        edits = [e for e in finding.edits if e.path == path]
        try:
            with_deep_stack(lambda e=edits: rewrite(module, e))  # type: ignore[misc, arg-type]
        except (RewriteError, ValueError, RecursionError) as error:
            return finding, str(error)
    return here[-1], reason


def _same_group(a: Finding, b: Finding) -> bool:
    return bool(a.fix and b.fix and a.fix.group and a.fix.group == b.fix.group)


def _by_path(findings: Iterable[Finding]) -> dict[str, list[Edit]]:
    out: dict[str, list[Edit]] = {}
    for finding in findings:
        for edit in finding.edits:
            out.setdefault(edit.path, []).append(edit)
    return out


def without_conflicts(findings: Sequence[Finding]) -> tuple[list[Finding], list[Finding]]:
    """(findings that can be fixed together, findings for the next round). The safer wins, then the lower code."""
    order = sorted(findings, key=lambda f: (-f.applicability.rank, f.code, f.path, f.span))
    taken: dict[str, list[Edit]] = {}
    now: list[Finding] = []
    later: list[Finding] = []
    for finding in order:
        if any(clash(edit, other) for edit in finding.edits for other in taken.get(edit.path, ())):
            later.append(finding)
            continue
        now.append(finding)
        for edit in finding.edits:
            taken.setdefault(edit.path, []).append(edit)
    return now, later


def clash(a: Edit, b: Edit) -> bool:
    """True where two edits of a file cannot both be made as they were meant."""
    if a == b:
        return False
    region, other = claims(a), claims(b)
    if isinstance(a, (SetKeyword, DropKeyword)) and isinstance(b, (SetKeyword, DropKeyword)) and region == other:
        return a.name == b.name
    if isinstance(a, WrapInGuard) and isinstance(b, WrapInGuard):
        return region.overlaps(other)
    for one, two, inner, outer in ((a, b, region, other), (b, a, other, region)):
        if isinstance(two, (RemoveStatement, ReplaceExpression)) and outer.holds(inner):
            return True
        # under the decorator a guard inside would be idle: the next round sees whether it is still wanted
        if isinstance(two, AddDecorator) and isinstance(one, WrapInGuard) and outer.holds(inner):
            return True
    return False


def fix_source(
    source: str | bytes, codemods: Sequence[DdpCodemod], *, path: str = "module.py", accept: Accept = safe
) -> FixResult:
    """Fix one file on its own. Raises source.Unreadable where it cannot be read."""
    data = source.encode() if isinstance(source, str) else source
    SourceModule(path, data)
    return fix_project(Project.of({path: data}), lambda _p, paths: {p: codemods for p in paths}, [path], accept)
