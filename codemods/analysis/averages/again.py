"""Running sums that take the place of this rank's own part when they are reduced, and are added to and reduced again."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.accelerators import is_accelerator
from codemods.analysis.call_graph import called_function
from codemods.analysis.names import dotted, last, qualified
from codemods.files.source import SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project

_REDUCES = "torch.distributed.all_reduce"
_ZEROES = frozenset({"zero_", "fill_", "mul_", "copy_", "div_", "clear"})
_LOOPS = (ast.For, ast.While)
_DISTRIBUTED = ("dist", "world", "ddp", "rank", "gpu", "parallel")


@record
class ReducedAgain:
    """name: the running sum. reduction: where it is summed over the ranks. added: where the loop adds to it."""

    name: str
    reduction: ast.Call
    added: ast.stmt


def sums_reduced_again(project: Project, module: SourceModule) -> Iterator[ReducedAgain]:
    """The running sums of the file that a loop reduces in their own place, and goes on with."""
    for call, name in _reductions(project, module):
        statement = module.statement_of(call)
        below: ast.AST = statement
        for up in module.ancestors(statement):
            if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
                break
            if isinstance(up, _LOOPS) and any(below is s for s in up.body):
                if (added := _goes_on(module, up, statement, name)) is not None:
                    yield ReducedAgain(name, call, added)
                    break
                if _is_set(module, up, name):
                    break
            below = up


def _reductions(project: Project, module: SourceModule) -> Iterator[tuple[ast.Call, str]]:
    """(the call, the name) of what is summed over the ranks in its own place: `all_reduce(x)`, `x = reduce_sum(x)`."""
    for call in module.calls_named("all_reduce"):
        if isinstance(module.parent(call), ast.Expr) and _sums(module, call) and isinstance(call.args[0], ast.Name):
            yield call, call.args[0].id
    for made in module.nodes(ast.Assign):
        for target, value in _pairs(made):
            if isinstance(target, ast.Name) and isinstance(value, ast.Call) and len(value.args) == 1:
                given = value.args[0]
                if isinstance(given, ast.Name) and given.id == target.id and _gives_the_sum(project, module, value):
                    yield value, target.id


def sums_its_argument(project: Project, module: SourceModule, call: ast.Call) -> ast.expr | None:
    """What `dist.all_reduce(x)` or `reduce_sum(x)` adds up over all ranks; None for any other call."""
    if not call.args or not ("reduce" in (name := last(dotted(call.func))) or "sum" in name):
        return None
    if last(dotted(call.func)) == "all_reduce" and qualified(module, call.func) == _REDUCES:
        return call.args[0] if _sums(module, call) else None
    return call.args[0] if len(call.args) == 1 and _gives_the_sum(project, module, call) else None


def _pairs(made: ast.Assign) -> list[tuple[ast.expr, ast.expr]]:
    if len(made.targets) != 1:
        return []
    target, value = made.targets[0], made.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return list(zip(target.elts, value.elts, strict=True))
    return [(target, value)]


def _sums(module: SourceModule, call: ast.Call) -> bool:
    """True for `dist.all_reduce(x)` that adds, over all ranks."""
    if qualified(module, call.func) != _REDUCES or not call.args or any(k.arg in ("group", None) for k in call.keywords):
        return False
    op = call.args[1] if len(call.args) > 1 else next((k.value for k in call.keywords if k.arg == "op"), None)
    return len(call.args) < 3 and (op is None or last(dotted(op)) == "SUM")


def _gives_the_sum(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True for `accelerator.reduce(x)`, and a function of the project that sums over the ranks and divides by nothing."""
    if isinstance(call.func, ast.Attribute) and call.func.attr == "reduce" and is_accelerator(project, module, call.func.value):
        how = next((k.value for k in call.keywords if k.arg == "reduction"), None)
        return len(call.keywords) <= 1 and (how is None or (isinstance(how, ast.Constant) and how.value == "sum"))
    site = called_function(project, module, call) if not call.keywords else None
    if site is None or len(site.node.args.args) - len(site.node.args.defaults) != 1:
        return False
    inside = list(walk(site.node))
    divides = any(isinstance(n, (ast.BinOp, ast.AugAssign)) and isinstance(n.op, ast.Div) for n in inside) or any(
        isinstance(n, ast.Attribute) and n.attr in ("div", "div_", "mean", "true_divide", "AVG") for n in inside
    )
    joins = [n for n in inside if isinstance(n, ast.Call) and qualified(site.module, n.func) == _REDUCES]
    return not divides and len(joins) == 1 and _sums(site.module, joins[0])


def _goes_on(module: SourceModule, loop: ast.For | ast.While, reduction: ast.stmt, name: str) -> ast.stmt | None:
    """Where the loop adds to the sum in each round in which it is reduced, with nothing that sets it as often."""
    if _ends(module, reduction):
        return None
    tests = _tests(module, loop, reduction)
    added: ast.stmt | None = None
    for node in walk(loop):
        if not _sets(node, name) or (statement := module.statement_of(node)) is reduction:
            continue
        mine = _tests(module, loop, node)
        if _adds(statement, name):
            if all(t in tests for t in mine) and _are_of_group(tests, mine):
                added = added or statement
        elif isinstance(statement, ast.AugAssign) or all(t in tests for t in mine):
            return None  # set anew as often as it is reduced; divided or scaled: what is in it is not known
    return added


def _adds(statement: ast.stmt, name: str) -> bool:
    """`total += x` and `total = total + x`."""
    if isinstance(statement, ast.AugAssign):
        return isinstance(statement.op, ast.Add)
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.BinOp):
        return False
    sides = (statement.value.left, statement.value.right)
    return isinstance(statement.value.op, ast.Add) and any(isinstance(s, ast.Name) and s.id == name for s in sides)


def _are_of_group(tests: list[ast.If], others: list[ast.If]) -> bool:
    """True where the reduction stands under the tests of the sum alone, and at most under one for a run with several ranks."""
    more = [t for t in tests if t not in others]
    return all(any(word in ast.unparse(t.test).lower() for word in _DISTRIBUTED) for t in more)


def _sets(node: ast.AST, name: str) -> bool:
    """True for what gives the name another value, or another content."""
    if isinstance(node, ast.Name):
        return node.id == name and isinstance(node.ctx, (ast.Store, ast.Del))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _ZEROES:
        return isinstance(node.func.value, ast.Name) and node.func.value.id == name
    return isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and dotted(node.value) == name


def _is_set(module: SourceModule, loop: ast.For | ast.While, name: str) -> bool:
    return any(_sets(n, name) and not isinstance(module.parent(n), ast.AugAssign) for n in walk(loop))


def _tests(module: SourceModule, loop: ast.AST, node: ast.AST) -> list[ast.If]:
    """The `if` statements between the loop and the node."""
    found: list[ast.If] = []
    for up in module.ancestors(node):
        if up is loop:
            break
        if isinstance(up, ast.If):
            found.append(up)
    return found


def _ends(module: SourceModule, reduction: ast.stmt) -> bool:
    """True where the loop is left behind the reduction."""
    block = module.block_of(reduction)
    return any(isinstance(s, (ast.Break, ast.Return, ast.Raise)) for s in block or ())
