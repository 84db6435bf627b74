"""Where the ranks are to meet: `MASTER_ADDR`, `MASTER_PORT` and `tcp://` addresses that each process works out for itself."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from enum import Enum

from codemods.analysis.bindings import bindings_of
from codemods.analysis.call_graph import called_function
from codemods.analysis.conditions import is_main_block
from codemods.analysis.guards.entry_points import entries
from codemods.analysis.guards.probed_ports import probes_for_a_port, probes_of
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.handed_arguments import arguments
from codemods.analysis.ranks.launcher_variables import variables_set
from codemods.analysis.ranks.rank_guards import guards_over
from codemods.data.rank_variance import CLOCKS, RANDOM_PACKAGES
from codemods.files.source import FunctionNode, SourceModule, walk, walk_scope
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_DEPTH = 5  # names and callers between an address and what it is made of
_SEEDS = frozenset({"seed", "manual_seed", "set_seed", "seed_everything", "seed_all", "default_rng", "RandomState"})
_SPAWNS = frozenset({"spawn", "start_processes", "Process", "Popen"})
_SHARED = lazy(r"broadcast|bcast", re.I)
_NODES = lazy(r"^(?:n|num|number_of)?_?(?:nodes?|nnodes|machines)$|^(?:node|machine)_?(?:rank|id)$|^nr$")
_SLURM_NODES = frozenset({"SLURM_JOB_NODELIST", "SLURM_NODELIST", "SLURM_NNODES", "SLURM_NODEID", "SLURM_JOB_NUM_NODES"})
_ADDRESSES = lazy(r"master_?addr|dist_?url|init_?method|master_?ip|master_?host|rdzv|init_?addr|dist_?addr", re.I)
_LOCAL = frozenset({"localhost", "127.0.0.1"})


class Where(Enum):
    """Who works it out."""

    RANK = "each rank"
    NODE = "each node"


@record
class Meeting:
    """at: the statement that works it out. what: the variable, or the address. drawn: the call that each process makes anew.

    nodes: the place that speaks of several nodes.
    """

    at: ast.stmt
    what: str
    where: Where
    drawn: ast.Call | None
    nodes: ast.AST | None = None


def meetings_of_each_process(project: Project, module: SourceModule) -> Iterator[Meeting]:
    """Ports and addresses that differ between the processes, and `localhost` where there are several nodes."""
    seen: set[int] = set()
    for node, value, what in _addresses(module):
        if any(g.ranks.some for g in guards_over(module, node, project=project)) or _is_asked_for(module, node):
            continue
        for other, draw in _draws(project, module, value, _DEPTH):
            where = _runs(project, other, draw)
            if where is not None and other is module and id(draw) not in seen:
                seen.add(id(draw))
                yield Meeting(module.statement_of(draw), what, where, draw, _nodes(module))
        if what == "MASTER_ADDR" and isinstance(value, ast.Constant) and value.value in _LOCAL:
            nodes = _option_for_nodes(module) if module.data.count(b"MASTER_ADDR") == 1 else None
            if nodes is not None and not _has_address_option(module) and not _uses_file(module):
                yield Meeting(module.statement_of(node), what, Where.NODE, None, nodes)


def handed_to_others(project: Project, module: SourceModule) -> Iterator[Meeting]:
    """Draws of this file that another file makes an address of."""
    for other_path in project.files_containing(b"MASTER_PORT"):
        other = project.module(other_path) if other_path != module.path else None
        if other is None:
            continue
        for node, value, what in _addresses(other):
            if any(g.ranks.some for g in guards_over(other, node, project=project)) or _is_asked_for(other, node):
                continue
            for holder, draw in _draws(project, other, value, _DEPTH):
                where = _runs(project, holder, draw) if holder is module else None
                if where is not None:
                    yield Meeting(module.statement_of(draw), what, where, draw, _nodes(module))


# Addresses


def _addresses(module: SourceModule) -> Iterator[tuple[ast.stmt, ast.expr, str]]:
    """(statement, value, what) of each environment variable of the rendezvous, and of each address that is put together."""
    for found in variables_set(module):
        if found.variable in ("MASTER_PORT", "MASTER_ADDR"):
            yield found.statement, found.value, found.variable
    for node in module.nodes(ast.Assign):
        if _is_address(node.value):
            yield node, node.value, "the address"
    for call in module.calls_named("init_process_group"):
        given = next((k.value for k in call.keywords if k.arg == "init_method"), None)
        if given is not None and _is_address(given):
            yield module.statement_of(call), given, "the address"


def _is_address(value: ast.expr) -> bool:
    """True for `f"tcp://…"` and the like, made of other values."""
    if isinstance(value, (ast.Constant, ast.Name, ast.Attribute)):
        return False
    texts = (n.value for n in walk(value) if isinstance(n, ast.Constant) and isinstance(n.value, str))
    return any(t.startswith("tcp://") for t in texts)


def _is_asked_for(module: SourceModule, node: ast.stmt) -> bool:
    """True under a test that asks for the variable, or for one node."""
    for up in module.ancestors(node):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        if isinstance(up, (ast.If, ast.Try)):
            test: ast.AST = up.test if isinstance(up, ast.If) else up
            if any(_names_environment(n) or _NODES.search(last(dotted(n))) for n in walk(test)):
                return True
    return False


def _names_environment(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value in ("MASTER_PORT", "MASTER_ADDR", "RANK", "LOCAL_RANK")


# What they are made of


def _draws(project: Project, module: SourceModule, value: ast.expr, depth: int) -> Iterator[tuple[SourceModule, ast.Call]]:
    """The calls by which each process gets another number, also behind names and parameters."""
    for node in walk(value):
        if isinstance(node, ast.Call) and _is_own(project, module, node):
            yield module, node
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and depth > 0:
            if probes := list(probes_of(project, module, node)):
                yield from ((module, p) for p in probes if not any(g.ranks.some for g in guards_over(module, p, project=project)))
            else:
                yield from _behind(project, module, node, depth)


def _behind(project: Project, module: SourceModule, name: ast.Name, depth: int) -> Iterator[tuple[SourceModule, ast.Call]]:
    bound = bindings_of(module, name)
    if any(b.value is not None and any(_SHARED.search(last(dotted(n))) for n in walk(b.value)) for b in bound):
        return
    function = module.function_of(name)
    for binding in bound:
        if binding.value is not None and not any(n is name for n in walk(binding.value)):
            yield from _draws(project, module, binding.value, depth - 1)
        elif binding.parameter and function is not None and len(bound) == 1:
            for other, given in arguments(project, module, function, name.id):
                yield from _draws(project, other, given, depth - 1)


def _is_own(project: Project, module: SourceModule, call: ast.Call) -> bool:
    name = qualified(module, call.func)
    if name in CLOCKS:
        return True
    if name.startswith(RANDOM_PACKAGES):
        return not any(True for _ in module.calls_named(*_SEEDS))
    site = called_function(project, module, call) if "port" in last(name).lower() else None
    if site is None:
        return False
    return any(_binds_any_port(n) for n in walk(site.node)) or probes_for_a_port(project, module, call)


def _binds_any_port(node: ast.AST) -> bool:
    """True for `s.bind(("", 0))`: the system gives a port that is free on this node now."""
    if not isinstance(node, ast.Call) or last(dotted(node.func)) != "bind" or not node.args:
        return False
    place = node.args[0]
    port = place.elts[1] if isinstance(place, ast.Tuple) and len(place.elts) == 2 else None
    return isinstance(port, ast.Constant) and port.value == 0


# Who runs it


def _runs(project: Project, module: SourceModule, draw: ast.Call) -> Where | None:
    """Each rank, where it stands in what is spawned, or at the top of a file that its children read again."""
    function = module.function_of(draw)
    if function is None:
        if not any(is_main_block(up) for up in module.ancestors(draw)):
            return Where.RANK if _spawns_here(module, module.tree) else None
        return Where.NODE if _nodes(module) is not None and _spawns_here(module, module.tree) else None
    if any(e.call is None and e.function is not None for e in entries(project, module, draw)):
        return Where.RANK
    return Where.NODE if _nodes(module) is not None and _spawns_here(module, function) else None


def _spawns_here(module: SourceModule, scope: FunctionNode | ast.Module) -> bool:
    calls = (n for n in (walk(scope) if isinstance(scope, ast.Module) else walk_scope(scope)) if isinstance(n, ast.Call))
    return any(last(dotted(c.func)) in _SPAWNS and "multiprocessing" in qualified(module, c.func) for c in calls)


def speaks_of_nodes(module: SourceModule) -> bool:
    """True for a script that takes a number of nodes, or asks Slurm for them."""
    return _nodes(module) is not None


def _nodes(module: SourceModule) -> ast.AST | None:
    """What speaks of several nodes: an option for them that is read, or a variable of SLURM."""
    option = _option_for_nodes(module)
    return option or next((n for n in module.nodes(ast.Constant) if n.value in _SLURM_NODES), None)


def _option_for_nodes(module: SourceModule) -> ast.Call | None:
    for call in module.calls_named("add_argument"):
        for option in call.args:
            name = str(option.value).lstrip("-").replace("-", "_") if isinstance(option, ast.Constant) else ""
            if name and _NODES.search(name) and any(isinstance(n, ast.Attribute) for n in module.reads_of(name)):
                return call
    return None


def _has_address_option(module: SourceModule) -> bool:
    options = (a.value for c in module.calls_named("add_argument") for a in c.args if isinstance(a, ast.Constant))
    return any(_ADDRESSES.search(str(o).replace("-", "_")) for o in options)


def _uses_file(module: SourceModule) -> bool:
    """True where the ranks meet in a file: the address is not asked for."""
    return any(isinstance(n.value, str) and n.value.startswith("file:") for n in module.nodes(ast.Constant))
