"""Files that every rank writes under one name, with what is its own: its share of the data, or what it has made of that."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from codemods.analysis.class_index import Role, class_facts
from codemods.analysis.files.file_calls import Act, FileCall, file_call
from codemods.analysis.files.files_of_all import FileOfAll, files_of_all
from codemods.analysis.hooks import WRITER_HOOKS
from codemods.analysis.names import last, qualified
from codemods.analysis.positions import behind
from codemods.analysis.variance.analysis import Analysis, variance
from codemods.analysis.variance.values import Cause, Value
from codemods.files.source import SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project

_HOOKS = (Role.LIGHTNING_CALLBACK, Role.LIGHTNING_MODULE, Role.HF_CALLBACK)
SPEAKING = (b"Sampler", b"rank", b"RANK", b"ccelerat", b".predict(")  # what a file holds in which each rank's part is told of
_OPENS = frozenset({"open"})
_OF_ITS_OWN_FORM = frozenset({"to_csv", "to_json", "to_parquet", "to_pickle", "to_feather"})


@record
class OwnContent:
    """found: the file, and how every rank comes to it. text: what is written; value: what is known of it."""

    found: FileOfAll
    text: str
    value: Value


def own_contents(project: Project, module: SourceModule) -> tuple[OwnContent, ...]:
    """Those of a file, in order."""
    return project.memo(("own contents", module.path), lambda: tuple(_find(project, module)))


def holds_own(project: Project, module: SourceModule, calls: Iterator[ast.Call]) -> bool:
    """True where one of the calls opens or writes such a file, in a file that DDP211 looks at."""
    if not any(module.holds(word) for word in SPEAKING):
        return False
    known = {id(one.found.file.call) for one in own_contents(project, module)}
    return bool(known) and any(id(call) in known for call in calls)


def own_among(project: Project, module: SourceModule, statements: Iterable[ast.stmt]) -> tuple[str, Value] | None:
    """(a name in these statements, what is known of it), where it is made of this rank's own share of the data."""
    analysis = variance(project)
    names = (n for s in statements for n in walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
    return next((found for n in names if (found := _own(analysis, module, n)) is not None), None)


def own_in(project: Project, module: SourceModule, opening: ast.Call) -> tuple[str, Value] | None:
    """(what is written, what is known of it) of the file that a call opens, where it is made of this rank's own share."""
    analysis, file = variance(project), file_call(module, opening)
    written = contents(module, file) if file is not None else ()
    return next((own for node in written if (own := _own(analysis, module, node)) is not None), None)


def _find(project: Project, module: SourceModule) -> Iterator[OwnContent]:
    analysis = variance(project)
    for found in files_of_all(project, module):
        if found.file.act is not Act.WRITES or found.home is not module or analysis.value(module, found.file.path).differs:
            continue
        owner, function = module.class_of(found.file.call), module.function_of(found.file.call)
        writer = function is not None and function.name in WRITER_HOOKS
        if owner is not None and not writer and any(class_facts(project, module, owner).is_a(role) for role in _HOOKS):
            continue
        own = next((o for node in contents(module, found.file) if (o := _own(analysis, module, node)) is not None), None)
        if own is not None:
            yield OwnContent(found, *own)


def _own(analysis: Analysis, module: SourceModule, node: ast.expr) -> tuple[str, Value] | None:
    """(the value as it is written, what is known of it), where it is made of the rank's own data and no name alone says so."""
    value = analysis.value(module, node)
    sure = value.differs and value.cause is Cause.DATA and not any(link.by_name for link in value.chain)
    return (" ".join(module.text_of(node).split()), value) if sure and value.chain else None


def contents(module: SourceModule, file: FileCall) -> Iterator[ast.expr]:
    """What a call puts into the file: its other arguments, the object that is asked to write, or what its handle is given."""
    call = file.call
    if (last(qualified(module, call.func)) or "") in _OPENS:
        taker = module.parent(call)
        taker = module.parent(taker) if isinstance(taker, ast.keyword) else taker
        if isinstance(taker, ast.Call) and taker.func is not call:  # `json.dump(rows, open(path, "w"))`
            yield from (a for a in (*taker.args, *(k.value for k in taker.keywords)) if a is not call)
        handle = _handle(module, call)
        yield from _given(module, call, handle) if handle is not None else ()
        return
    yield from (a for a in (*call.args, *(k.value for k in call.keywords)) if a is not file.path)
    if isinstance(call.func, ast.Attribute) and call.func.attr in _OF_ITS_OWN_FORM:
        yield call.func.value


def _handle(module: SourceModule, call: ast.Call) -> tuple[str, list[ast.stmt]] | None:
    """(the name of the handle, the statements in which it is open)."""
    up = module.parent(call)
    if isinstance(up, ast.withitem) and isinstance(up.optional_vars, ast.Name):
        return up.optional_vars.id, next((w.body for w in module.ancestors(up) if isinstance(w, ast.With)), [])
    if isinstance(up, ast.Assign) and len(up.targets) == 1 and isinstance(up.targets[0], ast.Name):
        return up.targets[0].id, behind(module, up)
    return None


def _given(module: SourceModule, opened: ast.Call, handle: tuple[str, list[ast.stmt]]) -> Iterator[ast.expr]:
    name, body = handle
    for call in (n for s in body for n in walk(s) if isinstance(n, ast.Call) and n is not opened):
        given = [*call.args, *(k.value for k in call.keywords)]
        takes = any(isinstance(a, ast.Name) and a.id == name for a in given)
        writes = isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name) and call.func.value.id == name
        if takes or writes:
            yield from (a for a in given if not (isinstance(a, ast.Name) and a.id == name))
