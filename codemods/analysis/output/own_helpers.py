"""The project's own question for rank 0: a function that works with and without a process group, a flag of the class."""

from __future__ import annotations

import ast

from codemods.analysis.call_graph import FunctionSite, find_function
from codemods.analysis.conditions import conjuncts
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.rank_guards import Ranks, ranks_of_test
from codemods.analysis.ranks.rank_tests import asks_the_rank
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.store.project import Project

_RANKS = ("get_rank", "get_global_rank", "get_dist_rank")
_FLAGS = ("is_main_process", "is_master", "is_main", "is_rank_zero", "is_rank0", "is_primary", "is_global_master",
          "is_main_worker")  # fmt: skip
_STEPS = 2
_STARTS = ("init_process_group", "init_distributed_mode", "init_distributed", "setup_distributed", "ddp_setup", "init_dist")


def own_helper(project: Project, module: SourceModule, function: FunctionNode | None, statement: ast.stmt) -> str:
    """`is_master()`, `get_rank() == 0`: by a function that the file itself calls for it already; "" where there is none."""
    if not (module.holds(b"rank") or module.holds(b"is_ma")):
        return ""
    starts = (c for c in module.calls_named(*_STARTS) if module.function_of(c) is function)
    if any(c.lineno > statement.lineno for c in starts):
        return ""  # until then every process takes itself for the only one
    for name in (*_FLAGS, *_RANKS):
        for call in module.calls_named(name):
            text = dotted(call.func)
            if call.args or call.keywords or not text or text.startswith(("self.", "cls.")):
                continue
            site = find_function(project, module, text)
            if site is None or not _works_alone(project, site.module, site.node):
                continue
            asked = call if name in _FLAGS else module.parent(call)
            if name in _FLAGS and ranks_of_test(module, call, project=project) is Ranks.ZERO:
                return f"{text}()"
            if name in _RANKS and isinstance(asked, ast.Compare) and ranks_of_test(module, asked, project=project) is Ranks.ZERO:
                return f"{text}() == 0"
    return ""


def is_own_rank(project: Project, module: SourceModule, value: ast.expr) -> bool:
    """True for `comm.get_rank()`: a function of the project that gives the group's rank, and 0 without a group."""
    if not isinstance(value, ast.Call) or value.args or value.keywords or last(dotted(value.func)) not in _RANKS:
        return False
    site = find_function(project, module, dotted(value.func))
    if site is None or not _works_alone(project, site.module, site.node):
        return False
    return any(
        isinstance(n, ast.Call) and qualified(site.module, n.func) == "torch.distributed.get_rank" for n in walk(site.node)
    )


def asks_own_helper(project: Project, module: SourceModule, test: ast.expr) -> bool:
    """True for a test by a function of the project that asks the group: it says nothing where there is none yet."""
    for call in (n for n in walk(test) if isinstance(n, ast.Call) and not n.args and not n.keywords):
        if last(dotted(call.func)) in (*_FLAGS, *_RANKS):
            site = find_function(project, module, dotted(call.func))
            if site is not None and _comes_to_group(project, site, _STEPS):
                return True
    return False


def _comes_to_group(project: Project, site: FunctionSite, steps: int) -> bool:
    """True for a function that asks torch.distributed for the rank, itself or by those that it calls, and no launcher."""
    called = [n for n in walk(site.node) if isinstance(n, ast.Call)]
    if any("environ" in dotted(c.func) or last(dotted(c.func)) == "getenv" for c in called):
        return False
    if any(qualified(site.module, c.func) == "torch.distributed.get_rank" for c in called):
        return True
    sites = (find_function(project, site.module, dotted(c.func)) for c in called if steps and dotted(c.func))
    return any(s is not None and s.node is not site.node and _comes_to_group(project, s, steps - 1) for s in sites)


def _works_alone(project: Project, module: SourceModule, function: FunctionNode) -> bool:
    """True for a function that asks whether there is a group before it asks the group."""
    if any(isinstance(n, ast.Attribute) and n.attr in ("is_initialized", "is_available") for n in walk(function)):
        return True
    called = (dotted(n.func) for n in walk(function) if isinstance(n, ast.Call))
    sites = (find_function(project, module, name) for name in called if name and "." not in name)
    return any(s is not None and s.node is not function and "is_initialized" in s.module.text_of(s.node) for s in sites)


def own_flag(project: Project, module: SourceModule, function: FunctionNode | None, *, lines: bool) -> str:
    """`self._is_main_worker`: a flag or property of the class that another method of it tests already; "" where there is none.

    lines: the process of each node may print, too.
    """
    owner = module.parent(function) if function is not None else None
    if function is None or not isinstance(owner, ast.ClassDef) or function.name == "__init__" or not function.args.args:
        return ""
    if function.args.args[0].arg != "self":
        return ""
    wanted = (Ranks.ZERO, Ranks.LOCAL_ZERO) if lines else (Ranks.ZERO,)
    above = {last(dotted(base)) for base in owner.bases}
    owners = [owner, *(c for c in module.nodes(ast.ClassDef) if c.name in above)]
    methods = [m for o in owners for m in o.body if isinstance(m, ast.FunctionDef)]
    given = {t for m in owner.body if isinstance(m, ast.FunctionDef) and m.name == "__init__" for t in _bound(m)}
    properties = {m.name for m in methods if _is_property(m)} - {function.name}
    for test in (n.test for n in module.nodes(ast.If) if module.class_of(n) in owners):
        for part in conjuncts(test):
            name = dotted(part)
            if name.startswith("self.") and name.count(".") == 1 and last(name) in given | properties:
                if ranks_of_test(module, part, project=project) in wanted and asks_the_rank(module, part, project):
                    return name
    return ""


def _bound(constructor: ast.FunctionDef) -> list[str]:
    """The fields that the constructor gives a value, under no test."""
    plain = (s for s in constructor.body if isinstance(s, ast.Assign))
    return [t.attr for s in plain for t in s.targets if isinstance(t, ast.Attribute) and dotted(t.value) == "self"]


def _is_property(method: ast.FunctionDef) -> bool:
    return any(last(dotted(d)) in ("property", "cached_property") for d in method.decorator_list)
