"""Checkpoints that every rank restores, from a path that only rank 0 has worked out: a folder with the time, the best epoch.

The path is followed by the analysis of what differs between the ranks; what counts is an assignment under a test for rank 0,
beside which the others keep what they began with. A path with the number of the rank in it is meant to differ.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.distribution import is_test_file
from codemods.analysis.model.signatures import bind, is_bound
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.rank_guards import Ranks, ranks_at
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.analysis.ranks.uses import uses_of
from codemods.analysis.variance.analysis import variance
from codemods.analysis.variance.values import Cause, How, Value
from codemods.analysis.wrapped.training_state import ONE, What, handed_on, kind_of
from codemods.analysis.wrapped.wraps import held
from codemods.files.source import FunctionNode, SourceModule, walk, walk_scope
from codemods.runtime.record import record
from codemods.store.project import Project

_RESUMES = {"fit": "ckpt_path", "train": "resume_from_checkpoint"}  # of Lightning's Trainer, and of the one of transformers


@record
class OwnPath:
    """call: restores, on every rank; path: what it reads; what: the state it fills. value: how the path comes to differ.

    made: where rank 0 alone works the path out, in `module`.
    """

    call: ast.Call
    path: ast.expr
    what: What
    value: Value
    module: SourceModule
    made: ast.Assign


def restored_from_own_paths(project: Project, module: SourceModule) -> Iterator[OwnPath]:
    for call, path in _restoring(project, module):
        if isinstance(path, ast.Constant) or ranks_reaching(project, module, call) is not Ranks.ALL:
            continue
        value = variance(project).value(module, path)
        made = _worked_out_by_one(project, value)
        if made is None or handed_on(project, made[0], made[1]) or handed_on(project, module, call):
            continue
        if (what := _filled(project, module, call)) is not None:
            yield OwnPath(call, path, what, value, *made)


def _restoring(project: Project, module: SourceModule) -> Iterator[tuple[ast.Call, ast.expr]]:
    """The calls that read a checkpoint, here or in the function of the project that they run, and the path that they read."""
    for call in module.calls_named("load", "load_state", *_RESUMES):
        keyword = _RESUMES.get(last(dotted(call.func)))
        path = next((k.value for k in call.keywords if k.arg == keyword), None) if keyword is not None else None
        if path is None and keyword is None and call.args and (_reads(module, call) or _is_accelerates(call)):
            path = call.args[0]
        if path is not None and not _is_parameter(module, path):
            yield call, path
    for other, function, name in project.memo("functions that read a checkpoint", lambda: tuple(_readers(project))):
        for site in uses_of(project, other, function).calls:
            given = bind(function, site.call, bound=is_bound(other, function)) if site.module is module else None
            if given is not None and name in given:
                yield site.call, given[name]


def _readers(project: Project) -> Iterator[tuple[SourceModule, FunctionNode, str]]:
    """The functions that load what a parameter of theirs names: `torch.load(path)`."""
    for path in sorted(project.files_containing(b"load_state_dict")):
        module = project.module(path) if not is_test_file(path) else None
        for load in module.calls_named("load") if module is not None else ():
            assert module is not None
            function = module.function_of(load)
            given = load.args[0] if load.args and _reads(module, load) else None
            if function is not None and isinstance(given, ast.Name) and _is_parameter(module, given):
                yield module, function, given.id


def _is_parameter(module: SourceModule, node: ast.expr) -> bool:
    """True for a parameter of the function that is given nothing else in it: its callers are looked at."""
    found = bindings_of(module, node) if isinstance(node, ast.Name) else []
    return bool(found) and all(b.parameter for b in found)


def _reads(module: SourceModule, call: ast.Call) -> bool:
    return qualified(module, call.func) == "torch.load"


def _is_accelerates(call: ast.Call) -> bool:
    func = call.func
    return isinstance(func, ast.Attribute) and func.attr == "load_state" and "accelerator" in last(dotted(func.value)).lower()


# Where the path comes from


def _worked_out_by_one(project: Project, value: Value) -> tuple[SourceModule, ast.Assign] | None:
    """The assignment under a test for rank 0 by which the path differs, where the other ranks give its target no value there."""
    origin = value.origin
    if origin is None or not value.differs or value.cause is not Cause.RANK or value.by_name or origin.how is How.RANK:
        return None
    module = project.module(origin.path)
    tests = [t for t in module.nodes(ast.If) if t.lineno == origin.line] if module is not None else []
    if module is None or len(tests) != 1:
        return None
    test = tests[0]
    inside = {s.lineno: s for b in test.body for s in walk(b) if isinstance(s, ast.Assign)}
    for link in value.chain:
        made = inside.get(link.line) if link.path == origin.path else None
        if made is None or len(made.targets) != 1 or ranks_at(module, made, project=project) not in ONE:
            continue
        if not _others_have_theirs(project, module, made, test):
            return module, made
    return None


def _others_have_theirs(project: Project, module: SourceModule, made: ast.Assign, test: ast.If) -> bool:
    """True where the other ranks are given a value, or the object that holds it, in the other arm or further down.

    It may be the same one: `config = load(path)` behind the `dump` of rank 0.
    """
    target = dotted(made.targets[0])
    if not target:
        return True
    parts = target.split(".")
    names = {".".join(parts[: n + 1]) for n in range(len(parts))} - {"self", "cls"}
    arm = {id(n) for s in test.orelse for n in walk(s)}
    for node in (n for kind in (ast.Assign, ast.AnnAssign, ast.With) for n in module.nodes(kind)):
        if node is made or module.function_of(node) is not module.function_of(made) or not _gives(node, names):
            continue
        later = node.lineno > made.lineno and ranks_at(module, node, project=project) not in ONE
        if id(node) in arm or later:
            return True
    return False


def _gives(node: ast.AST, names: set[str]) -> bool:
    """True where one of the names is given more than nothing (`path = None`)."""
    targets: list[ast.expr | None] = []
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        if isinstance(node.value, ast.Constant) and not node.value.value:
            return False
        targets = [*node.targets] if isinstance(node, ast.Assign) else [node.target]
    elif isinstance(node, ast.With):
        targets = [item.optional_vars for item in node.items]
    given = (n for t in targets if t is not None for n in walk(t) if isinstance(n, (ast.Name, ast.Attribute)))
    return any(isinstance(n.ctx, ast.Store) and dotted(n) in names for n in given)


# What is filled with it


def _filled(project: Project, module: SourceModule, call: ast.Call) -> What | None:
    """What of the training state the call restores: the optimizer before the weights, and these only behind the DDP wrap."""
    if not _reads(module, call) and last(dotted(call.func)) in (*_RESUMES, "load_state"):
        return What.ALL
    if _reads(module, call):
        function = module.function_of(call)
        scope = walk_scope(function) if function is not None else iter(module.nodes(ast.Call))
        receivers = _fed_by(scope, call)
    else:
        receivers = [*call.args, *(k.value for k in call.keywords)]  # the objects that the function fills
    found = {_kind(project, module, r) for r in receivers}
    order = (What.OPTIMIZER, What.SCHEDULER, What.SCALER, What.WEIGHTS)
    return next((what for what in order if what in found), None)


def _kind(project: Project, module: SourceModule, receiver: ast.expr) -> What | None:
    known = kind_of(module, receiver)
    if known is not None or not dotted(receiver):
        return known
    inside = held(project, module, receiver)
    if inside is None or inside.module is not module:
        return None
    wraps, here = module.function_of(inside.wrap), module.function_of(receiver)
    first = wraps is not here and wraps is not None and wraps.name == "__init__"
    return What.WEIGHTS if first or (wraps is here and inside.wrap.lineno < receiver.lineno) else None


def _fed_by(scope: Iterable[ast.AST], load: ast.Call) -> list[ast.expr]:
    """The receivers of the `load_state_dict` calls below that take from what was read, over names in between."""
    nodes = [n for n in scope if getattr(n, "lineno", 0) >= load.lineno]
    names: set[str] = set()
    assigns = [n for n in nodes if isinstance(n, (ast.Assign, ast.For))]
    for _ in range(4):  # names behind names
        for node in assigns:
            source = node.value if isinstance(node, ast.Assign) else node.iter
            if any(n is load or (isinstance(n, ast.Name) and n.id in names) for n in walk(source)):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names |= {n.id for t in targets for n in walk(t) if isinstance(n, ast.Name) and not _is_key(t, n)}
    return [
        n.func.value
        for n in nodes
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "load_state_dict"
        and any(x is load or (isinstance(x, ast.Name) and x.id in names) for a in n.args for x in walk(a))
    ]  # fmt: skip


def _is_key(target: ast.expr, name: ast.Name) -> bool:
    """`key` of `weights[key] = …`."""
    return isinstance(target, ast.Subscript) and any(n is name for n in walk(target.slice))
