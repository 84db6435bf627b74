"""Functions that the project calls only where there is a process group: each call under a test for a distributed run."""

from __future__ import annotations

import ast

from codemods.analysis.callers import entries
from codemods.analysis.class_index import class_facts
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.rank_tests import means_process_group
from codemods.analysis.ranks.reach import called_by_framework
from codemods.analysis.ranks.uses import CallSite, calls_of
from codemods.files.source import FunctionNode, SourceModule, walk, walk_scope
from codemods.store.project import Project

SPEAKING = ("dist", "ddp", "world", "multi", "parallel", "num_proc", "n_gpu", "num_gpus")
_READING = frozenset({"get", "getattr", "getenv", "bool", "int"})
_DEPTH = 3  # callers of callers
_ONE_BELOW = {ast.Gt: 1, ast.GtE: 2}  # the least number that leaves one process out: `world_size > 1`
_ONE_WITHIN = {ast.Lt: 2, ast.LtE: 1, ast.Eq: 1}


def called_with_group(project: Project, module: SourceModule, function: FunctionNode, depth: int = _DEPTH) -> bool:
    """True where every call of the function is known and stands where there are several processes."""
    sites = _known_calls(project, module, function) if depth else None
    return bool(sites) and all(_has_group(project, site, depth) for site in sites or ())


def words_of(test: ast.expr) -> set[str]:
    """Names, attributes and keys in a test: `dist` of `opt["dist"]` too."""
    found: set[str] = set()
    for node in walk(test):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
    return found


def fails_without_group(module: SourceModule, test: ast.expr) -> bool:
    """True for a test that fails in every run of one process, and asks nothing else: `args.distributed`, `world_size > 1`.

    Of `args.distributed and args.last` the second part may keep a group.
    """
    return not isinstance(test, ast.BoolOp) and _says_group(module, test, holds=True)


def _known_calls(project: Project, module: SourceModule, function: FunctionNode) -> list[CallSite] | None:
    """Every call, those that a base class makes on itself as well; None where there may be others."""
    if called_by_framework(project, module, function) is not None:
        return None
    sites = calls_of(project, module, function)
    owner = module.parent(function)
    if sites is None or not isinstance(owner, ast.ClassDef):
        return list(sites) if sites is not None else None
    reached = entries(project, class_facts(project, module, owner), function)
    if function.name in reached.hooks:
        return None
    inherited = [
        CallSite(step.site.module, step.call) for step in reached.steps
        if isinstance(step.call.func, ast.Attribute) and step.call.func.attr == function.name
    ]  # fmt: skip
    if reached.unknown and not (sites or inherited):
        return None
    return list({id(site.call): site for site in (*sites, *inherited)}.values())


def _has_group(project: Project, site: CallSite, depth: int) -> bool:
    module, function = site.module, site.module.function_of(site.call)
    below: ast.AST = site.call
    for up in module.ancestors(site.call):
        if up is function:
            break
        if isinstance(up, (ast.If, ast.IfExp)) and below is not up.test:
            bodies = up.body if isinstance(up, ast.If) else [up.body]
            if _says_group(module, up.test, holds=any(part is below for part in bodies)):
                return True
        below = up
    for exit_ in walk_scope(function or module.tree):
        if isinstance(exit_, ast.If) and exit_.lineno < site.call.lineno and _says_group(module, exit_.test, holds=False):
            if isinstance(exit_.body[-1], (ast.Return, ast.Raise, ast.Continue)) and not _is_inside(module, site.call, exit_):
                return True
    return function is not None and called_with_group(project, module, function, depth - 1)


def _is_inside(module: SourceModule, node: ast.AST, statement: ast.stmt) -> bool:
    return any(up is statement for up in module.ancestors(node))


def _says_group(module: SourceModule, test: ast.expr, *, holds: bool) -> bool:
    """True where a test that holds, or that does not, leaves only a run of several processes."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _says_group(module, test.operand, holds=not holds)
    if isinstance(test, ast.BoolOp):
        each = [_says_group(module, part, holds=holds) for part in test.values]
        return any(each) if isinstance(test.op, ast.And) is holds else all(each)
    if isinstance(test, ast.Compare):
        known = _speaks(words_of(test)) or means_process_group(module, test)
        return known and len(test.ops) == 1 and _compared(test.ops[0], test.comparators[0]) is holds
    if isinstance(test, ast.Call):
        name = last(dotted(test.func))
        words = words_of(test) if name in _READING else {name}
        return holds and name != "is_available" and (_speaks(words) or means_process_group(module, test))
    return holds and (_speaks(words_of(test)) or means_process_group(module, test))


def _compared(op: ast.cmpop, other: ast.expr) -> bool | None:
    """Whether the comparison holds with several processes only (True), or fails with them only (False)."""
    if isinstance(op, (ast.In, ast.NotIn)):
        return isinstance(op, ast.In) if last(dotted(other)) == "environ" else None
    value = other.value if isinstance(other, ast.Constant) else ...
    if isinstance(op, (ast.Is, ast.IsNot, ast.Eq, ast.NotEq)):
        if value is None or isinstance(value, bool):
            return bool(value) is isinstance(op, (ast.Is, ast.Eq))
        if ast.unparse(other) == "-1":
            return isinstance(op, (ast.IsNot, ast.NotEq))
    if not isinstance(value, int):
        return None
    if isinstance(op, ast.NotEq):
        return True if value == 1 else None
    if least := _ONE_BELOW.get(type(op)):
        return True if value >= least else None
    most = _ONE_WITHIN.get(type(op))
    return False if most is not None and value == most else None


def _speaks(words: set[str]) -> bool:
    return "is_initialized" in words or any(speaking in word.lower() for word in words for speaking in SPEAKING)
