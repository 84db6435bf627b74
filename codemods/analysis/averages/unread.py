"""Tensors that are summed over the ranks in place, and that nobody reads behind it: the own number was taken above."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from codemods.analysis.averages.fresh_tensors import COPIED, KEPT, Made, made_new
from codemods.analysis.bindings import Binding, bindings_in
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.output.run_before import run_before
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project

_REDUCES = ("torch.distributed.all_reduce", "torch.distributed.reduce")
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_MAKES = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.AugAssign, ast.FormattedValue, ast.If, ast.While, ast.Assert)
_SCALES = frozenset({"div_", "mul_", "true_divide_"})
# Calls that look at a tensor and keep nothing of it.
_LOOKS = frozenset({"print", "float", "int", "bool", "str", "len", "isnan", "isinf", "isfinite", "backward", "scale"})


@record
class Unread:
    """call: the reduction. name: what it sums. taken: the statement above that takes the own number, None for none."""

    call: ast.Call
    name: str
    taken: ast.stmt | None


def sums_nobody_reads(project: Project, module: SourceModule) -> Iterator[Unread]:
    """The reductions of the file whose result is read by nobody, in the order of the file."""
    for call in module.calls_named("all_reduce", "reduce"):
        if qualified(module, call.func) not in _REDUCES or not isinstance(module.parent(call), ast.Expr):
            continue
        function, name = module.function_of(call), _summed(call)
        if function is not None and name and (found := _judged(project, module, function, call, name)) is not None:
            yield found


def _summed(call: ast.Call) -> str:
    """`loss` of `all_reduce(loss)` and `all_reduce(loss.data)`; "" for another argument, and a call that gives a handle."""
    if any(k.arg in ("async_op", None) for k in call.keywords) or len(call.args) > 4:
        return ""
    given = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "tensor"), None)
    if isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute) and given.func.attr == "detach":
        given = given.func.value
    if isinstance(given, ast.Attribute) and given.attr == "data":
        given = given.value
    return given.id if isinstance(given, ast.Name) else ""


def _judged(project: Project, module: SourceModule, function: FunctionNode, call: ast.Call, name: str) -> Unread | None:
    bound = bindings_in(module, function, name)
    reads = [n for n in _named(function, frozenset({name})) if not _is_anothers(module, n, function)]
    if not bound or any(module.function_of(n) is not function for n in reads):
        return None
    loops = [up for up in _up_to(module, call, function) if isinstance(up, _LOOPS)]
    round_ = loops[0] if loops else function
    made = _last_made(project, module, bound, call)
    if made is None or not any(up is round_ for up in _up_to(module, made.node, function, itself=True)):
        return None
    if not _is_always_set(module, round_, call, name):
        return None
    others = [n for n in reads if not _sets_itself(module, n, name) and not any(up is call for up in module.ancestors(n))]
    if any(n.lineno > (call.end_lineno or call.lineno) for n in others) or _read_first(loops, others, bound):
        return None
    if any(n.lineno > made.line for n in _named(function, made.sources)):
        return None  # the tensor has another name, too
    between = [n for n in others if n.lineno >= made.line]
    if not all(_is_copied(module, n) for n in between):
        return None
    taken = [n for n in others if any(up is round_ for up in module.ancestors(n)) and _is_taken(module, n)]
    if not taken and made.filler and not any(isinstance(b.node, ast.AugAssign) for b in bound):
        return None  # handed round for its own sake
    if not taken and any(n.lineno > (call.end_lineno or call.lineno) and _is_turned(module, n, name) for n in reads):
        return None  # one of several that are summed and turned into numbers alike: without the sum it would be the own one
    return Unread(call, name, module.statement_of(taken[-1]) if taken else None)


def _up_to(module: SourceModule, node: ast.AST, function: FunctionNode, *, itself: bool = False) -> Iterator[ast.AST]:
    for up in module.ancestors(node):
        if up is function:
            if itself:
                yield up
            return
        yield up


def _named(function: FunctionNode, names: frozenset[str]) -> Iterator[ast.Name]:
    return (n for n in walk(function) if isinstance(n, ast.Name) and n.id in names and isinstance(n.ctx, ast.Load))


def _is_anothers(module: SourceModule, node: ast.Name, function: FunctionNode) -> bool:
    """True in an inner function that has a name of its own like that."""
    inner = module.function_of(node)
    return inner is not None and inner is not function and bool(bindings_in(module, inner, node.id))


# The tensor


def _last_made(project: Project, module: SourceModule, bound: list[Binding], call: ast.Call) -> Made | None:
    """What makes the tensor that is summed; None where one of the bindings is not seen to make a tensor of its own."""
    above = [b for b in bound if getattr(b.node, "lineno", 0) <= call.lineno and not isinstance(b.node, ast.AugAssign)]
    newest = max(above, key=lambda b: getattr(b.node, "lineno", 0), default=None)
    if newest is None or newest.value is None or newest.parameter or newest.part:
        return None
    statement = module.statement_of(newest.value)
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or statement.value is not newest.value:
        return None
    if isinstance(statement, ast.Assign) and len(statement.targets) != 1:
        return None
    return made_new(project, module, newest.value, statement)


def _is_always_set(module: SourceModule, within: ast.AST, call: ast.Call, name: str) -> bool:
    """True where every round that comes to the call has given the name a value before."""
    before = run_before(module, module.statement_of(call))
    return any(_gives(s, name) and any(up is within for up in module.ancestors(s)) for s in before)


def _gives(statement: ast.stmt, name: str) -> bool:
    """True for an assignment of the name, a `with` that holds one, and an `if` with one in both arms."""
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        return any(isinstance(t, ast.Name) and t.id == name for t in targets)
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        return any(_gives(s, name) for s in statement.body)
    if isinstance(statement, ast.If):
        return all(any(_gives(s, name) for s in arm) for arm in (statement.body, statement.orelse))
    return False


# Its readers


def _sets_itself(module: SourceModule, node: ast.Name, name: str) -> bool:
    """True for a read that only makes the name's next value: `loss /= n`, `loss.data = loss.data / n`, `loss.div_(n)`."""
    statement = module.statement_of(node)
    scaled = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(scaled, ast.Call) and isinstance(scaled.func, ast.Attribute):
        of = scaled.func.value
        return scaled.func.attr in _SCALES and dotted(of) in (name, f"{name}.data") and node in ast.walk(of)
    if isinstance(statement, ast.AugAssign):
        return dotted(statement.target) in (name, f"{name}.data")
    return isinstance(statement, ast.Assign) and {dotted(t) for t in statement.targets} <= {name, f"{name}.data"}


def _is_turned(module: SourceModule, node: ast.Name, name: str) -> bool:
    """True for `loss = loss.cpu().numpy()`: the name goes on as something else than the tensor."""
    statement = module.statement_of(node)
    value = statement.value if isinstance(statement, ast.Assign) else None
    return _sets_itself(module, node, name) and isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute)


def _read_first(loops: Sequence[ast.AST], reads: list[ast.Name], bound: list[Binding]) -> bool:
    """True where a loop may read the name above what sets it: in the next round that is the sum of all ranks."""
    if not loops:
        return False
    inside = {id(n) for n in walk(loops[-1])}
    lines = [getattr(b.node, "lineno", 0) for b in bound if id(b.node) in inside and not isinstance(b.node, ast.AugAssign)]
    return any(id(n) in inside and n.lineno <= min(lines, default=0) for n in reads)


def _is_copied(module: SourceModule, node: ast.Name) -> bool:
    """True for a read that makes something of its own of the tensor, or only looks at it: nobody holds the tensor itself."""
    below: ast.AST = node
    for up in module.ancestors(node):
        if isinstance(up, _MAKES):
            return True
        if isinstance(up, ast.Attribute):
            if up.attr in COPIED or up.attr == "backward":
                return True
            if up.attr not in KEPT:
                return False
        elif isinstance(up, ast.Call) and below is not up.func:
            name = qualified(module, up.func)
            return last(dotted(up.func)) in _LOOKS or name.startswith(("torch.", "math."))
        elif not isinstance(up, (ast.Call, ast.List, ast.Tuple, ast.Starred)):
            return False
        below = up
    return False


def _is_taken(module: SourceModule, node: ast.Name) -> bool:
    """True where the own number goes on to be shown: it is added to a sum, made a plain number, or put into a list."""
    for up in module.ancestors(node):
        if isinstance(up, ast.Attribute) and up.attr in ("item", "tolist"):
            return True
        if isinstance(up, ast.AugAssign):
            return isinstance(up.op, ast.Add)
        if isinstance(up, ast.Call) and isinstance(up.func, ast.Attribute) and up.func.attr in ("append", "update"):
            return True
        if isinstance(up, (ast.stmt, ast.Compare)):
            return False
    return False
