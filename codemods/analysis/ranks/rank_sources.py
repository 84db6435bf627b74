"""Is this expression the rank of a process? Names, attributes, calls and the environment, and what names were bound to."""

from __future__ import annotations

import ast
import re

from codemods.analysis.bindings import Binding, attribute_bindings, bindings_at_top, bindings_of
from codemods.analysis.call_graph import FunctionSite, may_speak_of_ranks
from codemods.analysis.names import dotted, end_of, imported_as, is_from, last, qualified
from codemods.analysis.ranks.bound_to_rank import bound_to_rank
from codemods.analysis.ranks.given_numbers import is_an_option_with_a_number, is_given_a_number
from codemods.analysis.ranks.handed_arguments import arguments
from codemods.analysis.ranks.member_values import member_values
from codemods.analysis.ranks.rank_members import called_sites, field_bindings, properties
from codemods.analysis.ranks.rank_sets import Ranks
from codemods.analysis.ranks.returned_items import returned_items
from codemods.analysis.ranks.spawned import process_number
from codemods.data.rank_names import GLOBAL_NAMES, GROUP_NAMES, HOLDERS, LOCAL_NAMES, PROCESS_WORDS, WEAK_NAMES
from codemods.files.source import SourceModule, walk_scope
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project
from codemods.store.tables import Table

DEPTH = 8
_MOST_CALLS = 6
_Known = Table[tuple[int, str], Ranks | None]  # by function and parameter
_LOW_RANK = lazy(r"lora|lokr|loha|low_?rank|svd|dora|adapter", re.I)
# What a global rank is taken modulo of, to get the local one.
_PER_NODE = lazy(r"gpu|device_count|per_node|local|nproc|per_machine", re.I)


def shows_processes(module: SourceModule) -> bool:
    """True where the file has words of several processes in it."""
    return any(module.holds(word) for word in PROCESS_WORDS)


def rank_source(module: SourceModule, node: ast.AST, project: Project | None = None, depth: int = 0) -> Ranks | None:
    """ZERO for an expression that is the global rank, LOCAL_ZERO for the local one (the ranks where it is 0).

    UNKNOWN for a rank within a part of the processes; None for anything else.
    """
    if depth > DEPTH:
        return None
    if isinstance(node, ast.Call):
        return _called(module, node, project, depth)
    if isinstance(node, ast.Attribute):
        return _attribute(module, node, project, depth)
    if isinstance(node, ast.Name):
        return _name(module, node, project, depth)
    if isinstance(node, ast.Subscript):
        return _item(module, node, project, depth)
    if isinstance(node, ast.NamedExpr):
        return rank_source(module, node.value, project, depth + 1)
    if isinstance(node, ast.BoolOp):  # `os.environ.get("RANK") or 0`, `dist.is_initialized() and dist.get_rank()`
        return rank_source(module, node.values[0 if isinstance(node.op, ast.Or) else -1], project, depth + 1)
    if isinstance(node, ast.IfExp):
        return rank_source(module, node.body, project, depth + 1) or rank_source(module, node.orelse, project, depth + 1)
    return _computed(module, node, project, depth) if isinstance(node, ast.BinOp) else None


def _is_a_literal(value: ast.expr | None) -> bool:
    """True for what a run of one process has in place of a rank: `0`, `-1`, `None`."""
    return isinstance(value.operand if isinstance(value, ast.UnaryOp) else value, ast.Constant)


def _computed(module: SourceModule, node: ast.BinOp, project: Project | None, depth: int) -> Ranks | None:
    """`rank % gpus_per_node` is the local rank, `node_rank * gpus + local_rank` the global one; `rank % 2` is neither."""
    if isinstance(node.op, (ast.Mod, ast.FloorDiv)):
        of = rank_source(module, node.left, project, depth + 1)
        if of is None:
            return None
        by = node.right
        local = by.value != 2 if isinstance(by, ast.Constant) else bool(_PER_NODE.search(module.text_of(by)))
        return Ranks.LOCAL_ZERO if local and of is Ranks.ZERO and isinstance(node.op, ast.Mod) else Ranks.UNKNOWN
    if isinstance(node.op, ast.Add):
        for product, rest in ((node.left, node.right), (node.right, node.left)):
            if isinstance(product, ast.BinOp) and isinstance(product.op, ast.Mult):
                return Ranks.ZERO if rank_source(module, rest, project, depth + 1) is Ranks.LOCAL_ZERO else None
    return None


def _strong(name: str) -> Ranks | None:
    if name in LOCAL_NAMES:
        return Ranks.LOCAL_ZERO
    if name in GLOBAL_NAMES:
        return Ranks.ZERO
    return Ranks.UNKNOWN if name in GROUP_NAMES else None


def _called(module: SourceModule, node: ast.Call, project: Project | None, depth: int) -> Ranks | None:
    name = last(imported_as(module, node.func) or end_of(node.func)).lstrip("_")
    if name in ("int", "str") and node.args:
        return rank_source(module, node.args[0], project, depth + 1)
    if (name in ("get", "getenv", "environ") or "env" in name.lower()) and node.args:
        if found := _environment(module, node.func, node.args[0]):
            return found
    if name == "getattr" and len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
        return _strong(str(node.args[1].value)) or (Ranks.ZERO if node.args[1].value in WEAK_NAMES else None)
    if name in ("get_rank", "Get_rank", "rank"):
        if not any(_is_group(a) for a in [*node.args, *(k.value for k in node.keywords)]):
            return Ranks.ZERO if name != "rank" or shows_processes(module) else None
        if is_from(qualified(module, node.func), "torch"):
            return Ranks.UNKNOWN
        own = _returned(module, node, project, depth)
        return own or (Ranks.UNKNOWN if name == "get_rank" and shows_processes(module) else None)
    if found := _strong(name):
        return found
    return _returned(module, node, project, depth)


def _is_group(argument: ast.expr) -> bool:
    """False for an argument that means the group of all processes."""
    return not (isinstance(argument, ast.Constant) and argument.value is None) and end_of(argument) != "WORLD"


def _returned(module: SourceModule, call: ast.Call, project: Project | None, depth: int) -> Ranks | None:
    """The rank that a project function returns."""
    if depth > 5 or not may_speak_of_ranks(project, module, call):
        return None
    return _returned_by(called_sites(project, module, call), project, depth)


def _returned_by(sites: tuple[FunctionSite, ...], project: Project | None, depth: int) -> Ranks | None:
    """The one rank that functions return: all their returns are that rank, or constants (one process)."""
    if depth > 5:
        return None
    answers = set()
    for site in sites:
        values = [r.value for r in walk_scope(site.node) if isinstance(r, ast.Return) and r.value is not None]
        if len(values) > 4:
            return None
        found = [rank_source(site.module, v, project, depth + 2) for v in values if not _is_a_literal(v)]
        answers |= set(found) or {None}
    return answers.pop() if len(answers) == 1 else None


def _environment(module: SourceModule, function: ast.expr, key: ast.expr) -> Ranks | None:
    if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
        return None
    if found := _strong(key.value):
        return found
    if key.value == "RANK":
        return Ranks.ZERO
    holder = end_of(getattr(function, "value", function))
    return Ranks.ZERO if key.value == "rank" and holder in HOLDERS and shows_processes(module) else None


def _item(module: SourceModule, node: ast.Subscript, project: Project | None, depth: int) -> Ranks | None:
    """`os.environ["RANK"]`, `opt["rank"]`."""
    if not isinstance(node.slice, ast.Constant):
        return None
    holder = end_of(node.value)
    if holder == "environ" and node.slice.value == "RANK":
        return Ranks.ZERO
    if holder not in HOLDERS and holder != "environ":
        if node.slice.value in WEAK_NAMES:
            found = {rank_source(m, v, project, depth + 1) for m, v in returned_items(project, module, node)}
            return found.pop() if len(found) == 1 else None
        return _strong(node.slice.value) if isinstance(node.slice.value, str) else None  # `params["world_rank"]`
    return _environment(module, node, node.slice)


def _attribute(module: SourceModule, node: ast.Attribute, project: Project | None, depth: int) -> Ranks | None:
    name = node.attr.lstrip("_")
    if found := _strong(name):
        return found
    own = attribute_bindings(module, node)
    if name in WEAK_NAMES:
        holder = last(dotted(node.value)).lstrip("_")
        if holder not in HOLDERS and "dist" not in holder:
            return _of_member(module, node, project, depth)
        if own:
            return _weak_binding(module, node, own, project, depth)
        if holder != "self" and is_an_option_with_a_number(project):
            return None
        if holder == "self" and (found := _returned_by(properties(project, module, node), project, depth)):
            return found
        if low_rank_place(module, node):
            return None
        return Ranks.ZERO if shows_processes(module) else _of_field(module, node, project, depth)
    if own:
        return _agreed(module, own, project, depth)
    if found := _of_field(module, node, project, depth):
        return found
    return _returned_by(properties(project, module, node), project, depth)


def _of_field(module: SourceModule, node: ast.Attribute, project: Project | None, depth: int) -> Ranks | None:
    """`args.gpu = int(os.environ["LOCAL_RANK"])`, wherever that is done."""
    values = [(m, b.value) for m, b in field_bindings(project, module, node) if not _is_a_literal(b.value)]
    found = {rank_source(m, v, project, depth + 1) for m, v in values if v is not None and not _is_alias(v, node)}
    found = {f for f in found if f is not None} if len(values) > 1 else found
    return found.pop() if len(found) == 1 else None


def _of_member(module: SourceModule, node: ast.Attribute, project: Project | None, depth: int) -> Ranks | None:
    """`environment.rank`, of a holder that says nothing itself: by the class of the object."""
    if project is None:
        return None
    values = [(m, v) for m, v in member_values(project, module, node) if not _is_a_literal(v)]
    found = {rank_source(m, v, project, depth + 2) for m, v in values}
    return found.pop() if len(found) == 1 else None


def _is_alias(value: ast.expr, node: ast.Attribute) -> bool:
    """`args.gpu = cfg.gpu` says nothing; `args.gpu = gpu` what the parameter is given."""
    return isinstance(value, ast.Attribute) and value.attr == node.attr


def _name(module: SourceModule, node: ast.Name, project: Project | None, depth: int) -> Ranks | None:
    name = node.id.lstrip("_")
    if found := _strong(name):
        return found
    bound = bindings_of(module, node)
    if name in WEAK_NAMES:
        if bound:
            return _weak_binding(module, node, bound, project, depth)
        imported = imported_value(module, node, project)
        if imported is not None:
            return rank_source(imported[0], imported[1], project, depth + 2)
        return Ranks.ZERO if shows_processes(module) else None
    if len(bound) == 1 and bound[0].parameter and (number := process_number(project, module, node)) is not None:
        return number
    if not bound and (imported := imported_value(module, node, project)) is not None:
        return rank_source(imported[0], imported[1], project, depth + 2)
    if bound and _is_handed_on(name, project) and (handed := _handed(module, node, bound, project, depth)) is not None:
        return handed
    return _agreed(module, bound, project, depth)


def _is_handed_on(name: str, project: Project | None) -> bool:
    return any(word in name.lower() for word in ("rank", "gpu")) or (project is not None and name in bound_to_rank(project))


def _agreed(module: SourceModule, bound: list[Binding], project: Project | None, depth: int) -> Ranks | None:
    """The rank that a name of any other spelling stands for: every binding but constants (one process) is that rank."""
    values = [b.value for b in bound if b.value is not None and not b.part and not _is_a_literal(b.value)]
    if not values or len(values) > 4 or any(b.value is None or b.part for b in bound):
        return None
    found = {rank_source(module, v, project, depth + 1) for v in values}
    return found.pop() if len(found) == 1 else None


def _weak_binding(
    module: SourceModule, node: ast.expr, bound: list[Binding], project: Project | None, depth: int
) -> Ranks | None:
    """What `rank` stands for here: a source it was bound to, else its word where processes are shown."""
    open_ended = False
    for binding in bound:
        value = binding.value
        if binding.part and value is not None and _may_be_rank(value) and not low_rank_place(module, node):
            return Ranks.ZERO  # rank, world_size = get_dist_info()
        if binding.parameter and isinstance(node, ast.Name) and _is_a_number(module, node, project):
            return None
        if binding.parameter or binding.part:
            open_ended = True
        elif value is None:  # a loop over ranks, a ranking
            return None
        elif found := rank_source(module, value, project, depth + 1):
            return found
        elif isinstance(value, ast.Name) and _is_a_number(module, value, project):
            return None  # self.rank = rank, of an adapter
        elif isinstance(value, (ast.Call, ast.Attribute, ast.Name, ast.Subscript)):
            open_ended = open_ended or _may_be_rank(value)
    if not open_ended or low_rank_place(module, node):
        return None
    return Ranks.ZERO if shows_processes(module) else _handed(module, node, bound, project, depth)


def _handed(
    module: SourceModule, node: ast.expr, bound: list[Binding], project: Project | None, depth: int
) -> Ranks | None:
    """The rank that all callers hand over for a parameter, in a file that itself says nothing of processes: a logger's."""
    function = module.function_of(node)
    if project is None or function is None or not isinstance(node, ast.Name) or not all(b.parameter for b in bound):
        return None
    known: _Known = project.memo(("handed ranks", module.path), lambda: Table(project))
    key = (function.lineno, node.id)
    if key not in known:
        with project.apart() as rest:
            known.put(key, None, rest)  # a function that hands it to itself adds nothing
            given = [(m, v) for m, v in arguments(project, module, function, node.id) if not _is_a_literal(v)]
            found = {rank_source(m, v, project, depth + 2) for m, v in given[:_MOST_CALLS]}
        known.put(key, found.pop() if len(found) == 1 else None, rest)
    return known[key]


def _is_a_number(module: SourceModule, node: ast.Name, project: Project | None) -> bool:
    function = module.function_of(node)
    parameter = function is not None and any(b.parameter for b in bindings_of(module, node))
    return function is not None and parameter and is_given_a_number(project, module, function, node.id)


def _may_be_rank(value: ast.expr) -> bool:
    if isinstance(value, ast.Subscript):
        return False
    name = last(dotted(value.func if isinstance(value, ast.Call) else value)).lower()
    return any(word in name for word in ("rank", "dist", "init", "setup", "ddp")) and "matrix" not in name


def low_rank_place(module: SourceModule, node: ast.AST) -> bool:
    """True inside a function or class of low-rank adapters, where `rank` is the size of a matrix."""
    if _LOW_RANK.search(module.symbol(node)):
        return True
    function = module.function_of(node)
    if function is None:
        return False
    arguments = {a.arg for a in [*function.args.args, *function.args.kwonlyargs]}
    return bool(arguments & {"alpha", "lora_alpha", "network_alpha", "conv_rank", "new_rank", "dynamic_param"})


def imported_value(
    module: SourceModule, node: ast.Name, project: Project | None
) -> tuple[SourceModule, ast.expr] | None:
    """The one value a name has in the project file it is imported from."""
    if project is None or node.id not in module.imports:
        return None
    return project.memo(("imported value", module.path, node.id), lambda: _imported_value(module, node.id, project))


def _imported_value(module: SourceModule, name: str, project: Project) -> tuple[SourceModule, ast.expr] | None:
    for found in module.imports.get(name, ()):
        resolved = project.resolve(found.dotted, module.path)
        if resolved is None or len(resolved.rest) != 1 or (inner := project.module(resolved.path)) is None:
            continue
        values = [b.value for b in bindings_at_top(inner, resolved.rest[0]) if b.value is not None]
        if len(values) == 1:
            return inner, values[0]
    return None
