"""Is this expression the rank of a process? Names, attributes, calls and the environment, and what names were bound to."""

from __future__ import annotations

import ast
import re
from enum import Enum

from codemods.analysis.bindings import Binding, attribute_bindings, bindings_at_top, bindings_of
from codemods.analysis.call_graph import called_function, may_speak_of_ranks
from codemods.analysis.names import dotted, is_from, last, qualified
from codemods.project import Project
from codemods.source import SourceModule, walk_scope

DEPTH = 6


class Ranks(Enum):
    """A set of processes, as far as the source shows it."""

    ALL = "every rank"
    ZERO = "global rank 0"
    LOCAL_ZERO = "local rank 0 of each node"
    OTHERS = "ranks other than 0"
    LOCAL_OTHERS = "ranks other than local rank 0"
    UNKNOWN = "ranks that the source does not show"

    @property
    def some(self) -> bool:
        """True unless every rank comes here."""
        return self is not Ranks.ALL


GLOBAL_NAMES = frozenset(
    {"global_rank", "world_rank", "process_index", "distributed_rank", "get_global_rank", "get_world_rank", "ddp_rank",
     "dist_rank", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "GLOBAL_RANK", "ddp_global_rank", "get_process_rank"}
)  # fmt: skip
LOCAL_NAMES = frozenset(
    {"local_rank", "LOCAL_RANK", "get_local_rank", "local_process_index", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK",
     "ddp_local_rank", "MPI_LOCALRANKID"}
)  # fmt: skip
# The rank within some part of the processes: which processes a test on it lets through is not shown.
GROUP_NAMES = frozenset(
    {"data_parallel_rank", "tensor_parallel_rank", "tp_rank", "pp_rank", "sp_rank", "cp_rank", "dp_rank", "node_rank",
     "group_rank", "NODE_RANK", "GROUP_RANK", "get_data_parallel_rank", "get_tensor_model_parallel_rank", "mp_rank"}
)  # fmt: skip
# A word of many trades (low-rank adapters, rankings): it counts only where processes are shown.
_WEAK_NAMES = frozenset({"rank", "RANK"})
_HOLDERS = frozenset(
    {"args", "opt", "opts", "cfg", "config", "self", "cls", "dist", "comm", "accelerator", "fabric", "trainer", "strategy",
     "rank_zero_only", "hparams", "env", "context", "ctx", "training_args", "flags", "distributed_training", "state",
     "runner", "info"}
)  # fmt: skip
_PROCESS_WORDS = (
    b"torch.distributed", b"init_process_group", b"get_rank", b"local_rank", b"LOCAL_RANK", b"world_size", b"WORLD_SIZE",
    b"DistributedDataParallel", b"DistributedSampler", b"rank_zero", b"is_main_process", b"global_rank", b"horovod", b"mpi4py",
)  # fmt: skip
_LOW_RANK = re.compile(r"lora|lokr|loha|low_?rank|svd|dora|adapter", re.I)


def shows_processes(module: SourceModule) -> bool:
    """True where the file has words of several processes in it."""
    return any(word in module.data for word in _PROCESS_WORDS)


def rank_source(module: SourceModule, node: ast.AST, project: Project | None = None, depth: int = 0) -> Ranks | None:
    """ZERO for an expression that is the global rank, LOCAL_ZERO for the local one (the ranks where it is 0).

    UNKNOWN for a rank within a part of the processes; None for anything else.
    """
    if depth > DEPTH:
        return None
    if isinstance(node, ast.Call):
        return _called(module, node, project, depth)
    if isinstance(node, ast.Subscript):
        return _item(module, node)
    if isinstance(node, ast.BoolOp):  # os.environ.get("RANK") or 0
        return rank_source(module, node.values[0], project, depth + 1)
    if isinstance(node, ast.IfExp):
        return rank_source(module, node.body, project, depth + 1) or rank_source(module, node.orelse, project, depth + 1)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):  # rank % processes_per_node
        inner = rank_source(module, node.left, project, depth + 1)
        return Ranks.LOCAL_ZERO if inner else None
    if isinstance(node, ast.Attribute):
        return _attribute(module, node, project, depth)
    if isinstance(node, ast.Name):
        return _name(module, node, project, depth)
    return None


def _strong(name: str) -> Ranks | None:
    if name in LOCAL_NAMES:
        return Ranks.LOCAL_ZERO
    if name in GLOBAL_NAMES:
        return Ranks.ZERO
    return Ranks.UNKNOWN if name in GROUP_NAMES else None


def _called(module: SourceModule, node: ast.Call, project: Project | None, depth: int) -> Ranks | None:
    name = last(dotted(node.func)).lstrip("_")
    if name in ("int", "str") and node.args:
        return rank_source(module, node.args[0], project, depth + 1)
    if name in ("get", "getenv", "environ") and node.args:
        return _environment(module, node.func, node.args[0])
    if name == "getattr" and len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
        return _strong(str(node.args[1].value)) or (Ranks.ZERO if node.args[1].value in _WEAK_NAMES else None)
    if name in ("get_rank", "Get_rank", "rank"):
        if not node.args and not node.keywords:
            return Ranks.ZERO if name != "rank" or shows_processes(module) else None
        return Ranks.UNKNOWN if is_from(qualified(module, node.func), "torch") else None
    if found := _strong(name):
        return found
    return _returned(module, node, project, depth)


def _returned(module: SourceModule, call: ast.Call, project: Project | None, depth: int) -> Ranks | None:
    """The rank that a project function returns: all its returns are that rank, or constants (one process)."""
    if depth > 3 or not may_speak_of_ranks(project, module, call):
        return None
    site = called_function(project, module, call)
    if site is None:
        return None
    values = [r.value for r in walk_scope(site.node) if isinstance(r, ast.Return) and r.value is not None]
    if len(values) > 4:
        return None
    found = [rank_source(site.module, v, project, depth + 2) for v in values if not isinstance(v, ast.Constant)]
    return found[0] if found and len(set(found)) == 1 else None


def _environment(module: SourceModule, function: ast.expr, key: ast.expr) -> Ranks | None:
    if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
        return None
    if found := _strong(key.value):
        return found
    if key.value == "RANK":
        return Ranks.ZERO
    holder = last(dotted(getattr(function, "value", None)))
    return Ranks.ZERO if key.value == "rank" and holder in _HOLDERS and shows_processes(module) else None


def _item(module: SourceModule, node: ast.Subscript) -> Ranks | None:
    """`os.environ["RANK"]`, `opt["rank"]`."""
    if not isinstance(node.slice, ast.Constant):
        return None
    holder = last(dotted(node.value))
    if holder == "environ" and node.slice.value == "RANK":
        return Ranks.ZERO
    if holder not in _HOLDERS and holder != "environ":
        return None
    return _environment(module, node, node.slice)


def _attribute(module: SourceModule, node: ast.Attribute, project: Project | None, depth: int) -> Ranks | None:
    name = node.attr.lstrip("_")
    own = attribute_bindings(module, node)
    if found := _strong(name):
        return found
    if name in _WEAK_NAMES:
        holder = last(dotted(node.value)).lstrip("_")
        if holder not in _HOLDERS and "dist" not in holder:
            return None
        if own:
            return _weak_binding(module, node, own, project, depth)
        return Ranks.ZERO if shows_processes(module) and not low_rank_place(module, node) else None
    return _agreed(module, own, project, depth) if own else None


def _name(module: SourceModule, node: ast.Name, project: Project | None, depth: int) -> Ranks | None:
    name = node.id.lstrip("_")
    if found := _strong(name):
        return found
    bound = bindings_of(module, node)
    if name in _WEAK_NAMES:
        if bound:
            return _weak_binding(module, node, bound, project, depth)
        imported = imported_value(module, node, project)
        if imported is not None:
            return rank_source(imported[0], imported[1], project, depth + 2)
        return Ranks.ZERO if shows_processes(module) else None
    return _agreed(module, bound, project, depth)


def _agreed(module: SourceModule, bound: list[Binding], project: Project | None, depth: int) -> Ranks | None:
    """The rank that a name of any other spelling stands for: every binding but constants (one process) is that rank."""
    values = [b.value for b in bound if b.value is not None and not b.part and not isinstance(b.value, ast.Constant)]
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
        if binding.parameter or binding.part:
            open_ended = True
        elif value is None:  # a loop over ranks, a ranking
            return None
        elif found := rank_source(module, value, project, depth + 1):
            return found
        elif isinstance(value, (ast.Call, ast.Attribute, ast.Name, ast.Subscript)):
            open_ended = open_ended or _may_be_rank(value)
    if not open_ended or low_rank_place(module, node) or not shows_processes(module):
        return None
    return Ranks.ZERO


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
    if project is None:
        return None
    for found in module.imports.get(node.id, ()):
        resolved = project.resolve(found.dotted, module.path)
        if resolved is None or len(resolved.rest) != 1 or (inner := project.module(resolved.path)) is None:
            continue
        values = [b.value for b in bindings_at_top(inner, resolved.rest[0]) if b.value is not None]
        if len(values) == 1:
            return inner, values[0]
    return None
