"""Ranks that a loop forks, of which the parent waits for one: `os.fork()` in a loop, one `os.wait()` behind it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from codemods.analysis.call_graph import called_function
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.positions import loop_round
from codemods.analysis.ranks.started_ranks import reaches_group
from codemods.api.findings import Evidence
from codemods.files.source import SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project

_VARIABLES = frozenset({"RANK", "LOCAL_RANK", "NODE_RANK"})
_WAITS = ("wait", "waitpid", "wait3", "wait4")
_ENDS = ("kill", "killpg", "terminate", "send_signal", "pidfd_send_signal")
_ROUNDS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)


@record
class WaitForOne:
    """call: the only wait of the parent; loop: the loop that forks; why: what shows that each child is a rank."""

    call: ast.Call
    loop: ast.For | ast.AsyncFor | ast.While
    why: Evidence


def waits_for_one(project: Project, module: SourceModule) -> Iterator[WaitForOne]:
    if not module.holds(b"fork(") or module.calls_named(*_ENDS):
        return
    waits = [c for c in module.calls_named(*_WAITS) if qualified(module, c.func) in {f"os.{name}" for name in _WAITS}]
    if len(waits) != 1 or _is_repeated(module, waits[0]):
        return
    wait = waits[0]
    for fork in module.calls_named("fork"):
        loop = loop_round(module, fork) if qualified(module, fork.func) == "os.fork" else None
        if loop is None or module.function_of(loop) is not module.function_of(wait) or wait.lineno <= (loop.end_lineno or 0):
            continue
        if why := _why_rank(project, module, _of_the_child(module, fork, loop)):
            shown = Evidence("static", f"a process is forked in each round: {why}", module.path, fork.lineno)
            yield WaitForOne(wait, loop, shown)
            return


def _is_repeated(module: SourceModule, wait: ast.Call) -> bool:
    """True where the wait stands in a loop."""
    for up in module.ancestors(wait):
        if isinstance(up, _ROUNDS):
            return True
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return False
    return False


def _of_the_child(module: SourceModule, fork: ast.Call, loop: ast.For | ast.AsyncFor | ast.While) -> list[ast.stmt]:
    """What the child alone does in the loop: the branch for the number 0."""
    statement = module.statement_of(fork)
    names = [t.id for t in statement.targets if isinstance(t, ast.Name)] if isinstance(statement, ast.Assign) else []
    found: list[ast.stmt] = []
    for branch in (n for n in walk(loop) if isinstance(n, ast.If)):
        found += _arm_of_zero(branch, names, fork)
    return found


def _arm_of_zero(branch: ast.If, names: list[str], fork: ast.Call) -> list[ast.stmt]:
    def is_number(node: ast.expr) -> bool:
        node = node.value if isinstance(node, ast.NamedExpr) else node
        return node is fork or (isinstance(node, ast.Name) and node.id in names)

    test = branch.test
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) and is_number(test.operand):
        return branch.body
    if is_number(test):
        return branch.orelse
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and is_number(test.left):
        right = test.comparators[0]
        if isinstance(right, ast.Constant) and right.value == 0:
            return branch.body if isinstance(test.ops[0], ast.Eq) else branch.orelse
    return []


def _why_rank(project: Project, module: SourceModule, body: Iterable[ast.stmt]) -> str:
    for statement in body:
        if name := _tells_its_number(statement):
            return f"it is given {name}"
        for call in (n for n in walk(statement) if isinstance(n, ast.Call)):
            site = called_function(project, module, call)
            if site is None:
                continue
            if name := _tells_its_number(site.node):
                return f"{site.node.name}() gives it {name}"
            if reaches_group(project, site):
                return f"{site.node.name}() joins the process group"
    return ""


def _tells_its_number(node: ast.AST) -> str:
    """The variable of a launcher that is set in the environment here: `os.environ["RANK"] = str(rank)`."""
    for inner in walk(node):
        if isinstance(inner, ast.Assign):
            for target in (t for t in inner.targets if isinstance(t, ast.Subscript) and last(dotted(t.value)) == "environ"):
                key = target.slice
                if isinstance(key, ast.Constant) and key.value in _VARIABLES and not isinstance(inner.value, ast.Constant):
                    return str(key.value)
        elif isinstance(inner, ast.Call) and last(dotted(inner.func)) == "update":
            if dotted(inner.func).endswith("environ.update"):
                words: list[object] = [k.arg for k in inner.keywords]
                words += [k.value for a in inner.args if isinstance(a, ast.Dict) for k in a.keys if isinstance(k, ast.Constant)]
                if found := next((w for w in words if w in _VARIABLES), None):
                    return str(found)
    return ""
