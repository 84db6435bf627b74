"""Rejected findings as suppression comments: `# ddpfix: ignore[CODE] reason` above the statement, written by the same writer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Finding
from codemods.engine import suppressions
from codemods.engine.find import find_all
from codemods.files.text_file import NOTEBOOK
from codemods.store.project import Project
from ddpfix import engine
from ddpfix.decided import origin
from ddpfix.discovery import Tree
from ddpfix.results import Fixed

NO_REASON = "rejected in review"


def with_comments(
    tree: Tree,
    codemods: Sequence[DdpCodemod],
    fixed: Fixed,
    rejected: Mapping[str, str],
    *,
    read: Callable[[str], bytes | None] | None = None,
) -> Fixed:
    """`fixed` with a comment at each finding that is `rejected` (id -> reason) and still stands.

    A comment after which the finding is not silent is not written: the finding is among `withdrawn` then, with the reason.
    """
    from codemods.rewriting.rewriter import RewriteError, rewrite_bytes

    wanted = [f for f in fixed.left if origin(fixed, f) in rejected and f.code != suppressions.CODE]
    reasons = {f: rejected[origin(fixed, f)] or NO_REASON for f in wanted}
    project = Project(tree.files, read or engine.disk_reader(tree.root), observed=tree.observed)
    now = project.with_overlay({path: data for path, data in fixed.after.items() if not path.endswith(NOTEBOOK)})
    before, after = dict(fixed.before), dict(fixed.after)
    failed: list[tuple[Finding, str]] = []
    for path in sorted({f.path for f in reasons}):
        found = [(f, why) for f, why in reasons.items() if f.path == path]
        here = now.with_overlay({path: fixed.after.get(path, project.raw(path) or b"")}) if path.endswith(NOTEBOOK) else now
        module = here.module(path)
        try:
            if module is None:
                raise RewriteError(f"{path} cannot be read")
            data = rewrite_bytes(module, suppressions.comments(module, found))
            must_be_silent(here, path, data, codemods, [f for f, _ in found])
        except RewriteError as error:
            failed += [(f, f"no comment was written: {error}") for f, _ in found]
            continue
        before.setdefault(path, project.raw(path) or b"")
        after[path] = engine.as_file(path, before[path], data)
    silent = {f.id for f in reasons} - {f.id for f, _ in failed}
    left = tuple(f for f in fixed.left if f.id not in silent)
    return replace(fixed, before=before, after=after, left=left, withdrawn=(*fixed.withdrawn, *failed))


def must_be_silent(
    project: Project, path: str, data: bytes, codemods: Sequence[DdpCodemod], findings: Sequence[Finding]
) -> None:
    """Raises RewriteError unless exactly these findings of the file are gone."""
    from codemods.rewriting.rewriter import RewriteError

    then = Counter((f.code, f.symbol) for f in find_all(project, {path: codemods}))
    now = Counter((f.code, f.symbol) for f in find_all(project.with_overlay({path: data}), {path: codemods}))
    if then - now != Counter((f.code, f.symbol) for f in findings) or now - then:
        raise RewriteError("behind it the findings would not be those that are left")
