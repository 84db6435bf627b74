"""Handlers round the whole work of a rank that let it go on, or end well, after an error that the other ranks know nothing of."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.guards.decorated_runs import run_by_decorator
from codemods.analysis.guards.last_attempts import waited_for_at_the_end
from codemods.analysis.handlers import takes
from codemods.analysis.names import dotted, end_of, last, qualified
from codemods.analysis.positions import behind, is_in_a_loop
from codemods.analysis.ranks.rank_sets import Ranks
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.analysis.variance.analysis import variance
from codemods.analysis.variance.may_meet import may_meet
from codemods.analysis.variance.state import STEP, Meeting, State
from codemods.analysis.wrapped.losses import backward_passes
from codemods.analysis.wrapped.past_wrapper import past_the_wrapper
from codemods.files.left_alone import left
from codemods.files.source import FunctionNode, SourceModule, walk, walk_scope
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_BROAD = frozenset({"Exception", "BaseException"})
# What a whole run comes to; a helper with one reduction in a `try` is no worker.
_RUNS = frozenset({"backward", "fit", "train", "validate", "evaluate", "test", "predict"})
# A call of such a name may end the run, or tell the others.
_ENDS = lazy(
    r"exit|quit|abort|kill|terminate|destroy|shut_?down|clean_?up|die|fatal|fail|raise|signal|teardown|stop|broadcast|reduce"
    r"|gather|barrier|error_handler|handle_"
)
_KEEPS = frozenset({"append", "put", "set", "send", "add", "update", "write"})
_EXITS = frozenset({"sys.exit", "exit", "quit", "os._exit"})


_NO_RUN = "no run of training, and no more than a few collectives, are seen in the attempt"
_TOLD = "the handler, or the `finally`, lets the error out, ends the process with a status, or may warn others"


@record
class Swallowed:
    """node: the handler, the decorated function's decorator, or the `with` item that takes the error.

    handler: set where it is an `except`. meeting: what the other ranks wait in. goes_on: what the rank comes to next, None where
    its process ends.
    """

    node: ast.ExceptHandler | ast.expr
    handler: ast.ExceptHandler | None
    meeting: Meeting
    goes_on: Meeting | None


def swallowed(project: Project, module: SourceModule) -> Iterator[Swallowed]:
    """What swallows the errors of a worker in this file."""
    analysis = variance(project)
    if not analysis.is_parallel(module):
        return
    for attempt in module.nodes(ast.Try):
        handler = next((h for h in attempt.handlers if _is_broad(h)), None)
        if handler is None or (is_in_a_loop(module, attempt) and left(module, attempt, "the attempt stands in a loop")):
            continue
        if _tells(project, module, attempt, handler) and left(module, attempt, _TOLD, at=handler):
            continue
        met_behind = _run_by_decorator(project, module, attempt.body)
        if met_behind is None and not may_meet(project, module, attempt.body):
            continue
        state = _state_of(project, module, attempt)
        meeting = met_behind or (_run_in(project, state, attempt.body) if state is not None else None)
        if meeting is None and state is not None:
            meeting = waited_for_at_the_end(project, module, attempt, _meets(state, attempt.body))
        if meeting is None and left(module, attempt, _NO_RUN):
            continue
        if state is None or meeting is None or (_meets(state, handler.body) and left(module, attempt, "the handler meets them")):
            continue
        yield Swallowed(handler, handler, meeting, _next(state, module, attempt))
    for function in module.functions:
        for decorator in function.decorator_list:
            if _catches(module, decorator) and (state := analysis.of(FunctionSite(module, function))) is not None:
                if (meeting := _run_in(project, state, function.body)) is not None:
                    yield Swallowed(decorator, None, meeting, None)
    for block in module.nodes(ast.With):
        for item in block.items if not is_in_a_loop(module, block) else ():
            if _catches(module, item.context_expr) or _suppresses(module, item.context_expr):
                if not may_meet(project, module, block.body):
                    continue
                state = _state_of(project, module, block)
                if state is not None and (meeting := _run_in(project, state, block.body)) is not None:
                    yield Swallowed(item.context_expr, None, meeting, _next(state, module, block))


def _run_by_decorator(project: Project, module: SourceModule, body: list[ast.stmt]) -> Meeting | None:
    """The first collective of what a decorator runs, where the attempt stands in its inner function."""
    analysis = variance(project)
    for site in run_by_decorator(project, module, body):
        state = analysis.of(site) if analysis.is_parallel(site.module) else None
        if state is not None and (meeting := _run_in(project, state, site.node.body)) is not None:
            return meeting
    return None


def _state_of(project: Project, module: SourceModule, node: ast.AST) -> State | None:
    function = module.function_of(node)
    analysis = variance(project)
    return analysis.of(FunctionSite(module, function)) if function is not None else analysis.top_level(module)


# What runs in there


def _meets(state: State, statements: Iterable[ast.stmt]) -> list[Meeting]:
    return [m for s in statements for n in walk(s) for m in state.met.get(id(n), ())]


def _run_in(project: Project, state: State, body: list[ast.stmt]) -> Meeting | None:
    """The first collective of a run that the statements start: training, or a function with more than one of them."""
    found = _meets(state, body)
    run = next((m for m in found if m.name in _RUNS), None)
    if run is not None and run.name == "backward" and _is_for_one(project, state, body):
        return next((m for m in found if m.name not in ("backward", "forward", STEP)), None)
    if run is not None and run.name == "backward" and _waits_for_nobody(project, run):
        return next((m for m in found if m.name not in ("backward", STEP)), None)
    if run is not None:
        return None if run.name != "backward" and _has_one_device(state.module) else run
    deep = [m for m in found if len(m.steps) > 1]
    return deep[0] if len({m.place for m in deep}) > 2 else None


def _is_for_one(project: Project, state: State, body: list[ast.stmt]) -> bool:
    """True where one rank alone comes here: in its steps of training no other waits for it."""
    return ranks_reaching(project, state.module, body[0]) in (Ranks.ZERO, Ranks.LOCAL_ZERO)


def _waits_for_nobody(project: Project, run: Meeting) -> bool:
    """True for the backward pass of a loss that is made past the wrapper: its hooks have nothing to reduce."""
    path, line = run.place
    module = project.module(path)
    passes = [one for one in backward_passes(module) if one.call.lineno == line] if module is not None else []
    return any(past_the_wrapper(project, one) for one in passes)


def _has_one_device(module: SourceModule) -> bool:
    """True where a Trainer of the file is made for one device."""
    given = [k.value for c in module.calls_named("Trainer") for k in c.keywords if k.arg in ("devices", "gpus")]
    return any(isinstance(g, ast.Constant) and g.value in (1, "1") for g in given)


def _next(state: State, module: SourceModule, node: ast.stmt) -> Meeting | None:
    """The first collective behind the statement in its function."""
    below: ast.AST = node
    for up in module.ancestors(node):
        if found := _meets(state, behind(module, below)):
            return found[0]
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)):
            return None
        below = up
    return None


# What takes the error


def _is_broad(handler: ast.ExceptHandler) -> bool:
    return takes(handler, _BROAD)


def _catches(module: SourceModule, node: ast.expr) -> bool:
    """True for loguru's `logger.catch` that does not raise the error again, for every kind of error."""
    call = node if isinstance(node, ast.Call) else None
    name = qualified(module, call.func if call is not None else node)
    if name != "loguru.logger.catch":
        return False
    if call is None:
        return True
    given = {k.arg: k.value for k in call.keywords}
    again = given.get("reraise")
    kept = again is None or (isinstance(again, ast.Constant) and again.value is False)
    kinds = [*call.args[:1], *([given["exception"]] if "exception" in given else [])]
    return kept and "onerror" not in given and all(last(dotted(k)) in _BROAD for k in kinds)


def _suppresses(module: SourceModule, node: ast.expr) -> bool:
    if not isinstance(node, ast.Call) or qualified(module, node.func) != "contextlib.suppress":
        return False
    return any(last(dotted(a)) in _BROAD for a in node.args)


def _tells(project: Project, module: SourceModule, attempt: ast.Try, handler: ast.ExceptHandler) -> bool:
    """True where the handler, or the `finally`, lets the error out, ends the process with a status, or may tell others."""
    nodes = [n for s in (*handler.body, *attempt.finalbody) for n in walk(s)]
    if any(isinstance(n, (ast.Raise, ast.Continue, ast.Break)) for n in nodes):
        return True
    if any(isinstance(n, ast.Return) and not _is_nothing(n.value) for n in nodes):
        return True
    if any(isinstance(n, ast.Call) and _ends_loudly(project, module, n) for n in nodes):
        return True
    return _is_kept(module, attempt, handler)


def _is_nothing(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value is None)


def _ends_loudly(project: Project, module: SourceModule, call: ast.Call) -> bool:
    name = dotted(call.func)
    if name in _EXITS:
        status = call.args[0] if call.args else None
        return not (status is None or (isinstance(status, ast.Constant) and status.value in (0, None, False)))
    if _ENDS.search(end_of(call.func).lower()):
        return True
    site = called_function(project, module, call)
    return site is not None and _raises(project, site, 0)


def _raises(project: Project, site: FunctionSite, depth: int) -> bool:
    for node in walk_scope(site.node):
        if isinstance(node, ast.Raise):
            return True
        if isinstance(node, ast.Call) and depth < 3:
            inner = called_function(project, site.module, node)
            if _ENDS.search(end_of(node.func).lower()) or (inner is not None and _raises(project, inner, depth + 1)):
                return True
    return False


def _is_kept(module: SourceModule, attempt: ast.Try, handler: ast.ExceptHandler) -> bool:
    """True where the handler sets something that is read later: the error may be told, or raised, from there."""
    stored = {n.id for s in handler.body for n in walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    nodes = [n for s in handler.body for n in walk(s)]
    if any(isinstance(n, (ast.Attribute, ast.Subscript)) and isinstance(n.ctx, ast.Store) for n in nodes):
        return True
    if any(isinstance(n, ast.Call) and end_of(n.func) in _KEEPS for n in nodes):
        return True
    function: FunctionNode | ast.Module = module.function_of(attempt) or module.tree
    inside = {id(n) for n in walk(handler)}
    reads = (n for n in walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and id(n) not in inside)
    return any(n.id in stored and n.lineno > attempt.lineno for n in reads)
