"""The global rank under the name `local_rank`: where it is bound, and what reads the name beside the devices of the file."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_in
from codemods.analysis.distribution import is_test_file
from codemods.analysis.guards.global_rank_at import is_global
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.output.natures import values_of
from codemods.analysis.ranks.values_behind import Value, values_behind
from codemods.files.source import SourceModule
from codemods.files.text_file import PYTHON_KINDS
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

LOCAL = frozenset({"local_rank", "LOCAL_RANK", "ddp_local_rank"})
DEVICE_CALLS = frozenset({"torch.cuda.set_device", "torch.device", "torch.cuda.device"})
DEVICE_KEYWORDS = frozenset({"device", "index", "map_location", "device_map", "device_ids", "output_device"})
_MOST_FILES = 40
_A_DEVICE = lazy(r"(?:cuda|xpu|npu|hpu|mps):", 0)


def bound_as_local(module: SourceModule, rank: ast.expr) -> ast.expr | None:
    """The value that is bound to `local_rank`, or to `args.local_rank`, and is the global one."""
    if last(dotted(rank)) not in LOCAL:
        return None
    if isinstance(rank, ast.Name):
        values = values_of(module, rank)
        return values[0] if len(values) == 1 else None
    text, home = module.text_of(rank), module.function_of(rank)
    bound = [a for a in module.nodes(ast.Assign) if any(module.text_of(target) == text for target in a.targets)]
    if len(bound) != 1 or len(bound[0].targets) != 1 or module.function_of(bound[0]) is not home:
        return None
    return bound[0].value if is_global(module, bound[0].value) else None


def is_handed_on(module: SourceModule, node: ast.expr) -> bool:
    """True for `args.local_rank = local_rank` and `f(local_rank=local_rank)`."""
    up = module.parent(node)
    if isinstance(up, ast.Assign):
        return all(last(dotted(target)) in LOCAL for target in up.targets)
    return isinstance(up, ast.keyword) and (up.arg in LOCAL or up.arg in DEVICE_KEYWORDS)


def read_otherwise(project: Project, name: str, source: ast.AST | None) -> tuple[str, int] | None:
    """A place of the project that reads `local_rank` and is no device: it may mean the one process of all nodes.

    `if args.local_rank == 0:` and `DistributedSampler(data, rank=args.local_rank)` work by the global rank that stands there.
    A variable that gets a value of its own elsewhere is another one. source: the function where the name is bound.
    """
    paths = sorted(p for p in project.files_containing(name.encode()) if p.endswith(PYTHON_KINDS) and not is_test_file(p))
    for path in paths[:_MOST_FILES]:
        module = project.module(path)
        if module is None:
            continue
        for node in module.reads_of(name):
            if is_handed_on(module, node) or chooses_a_device(module, node):
                continue
            if module.function_of(node) is source or not _has_its_own(module, node, name):
                return path, node.lineno
    return (paths[_MOST_FILES], 1) if len(paths) > _MOST_FILES else None


def _has_its_own(module: SourceModule, node: ast.expr, name: str) -> bool:
    values = values_of(module, node) if isinstance(node, ast.Name) else []
    return bool(values) and not any(last(dotted(value)) == name for value in values)


def handed_as_local(project: Project, module: SourceModule, rank: ast.expr) -> Value | None:
    """The global rank that another file binds to `local_rank` and hands over as the parameter of that name.

    One name, one meaning: a local rank at this place alone would leave the other devices by that name as they are.
    """
    if not isinstance(rank, ast.Name) or rank.id not in LOCAL or not _is_parameter(module, rank):
        return None
    for value in values_behind(project, module, rank):
        bound = value.module.parent(value.node)
        targets = bound.targets if isinstance(bound, ast.Assign) else []
        if value.module is not module and any(last(dotted(target)) in LOCAL for target in targets):
            return value
    return None


def _is_parameter(module: SourceModule, name: ast.Name) -> bool:
    bound = bindings_in(module, module.function_of(name), name.id)
    return bool(bound) and all(b.parameter for b in bound)


def chooses_a_device(module: SourceModule, node: ast.expr) -> bool:
    up = module.parent(node)
    if _names_a_device(module, up):
        return True
    while isinstance(up, (ast.List, ast.Tuple, ast.FormattedValue, ast.JoinedStr, ast.Dict)):
        node, up = up, module.parent(up)
    if isinstance(up, ast.keyword):
        return up.arg in DEVICE_KEYWORDS
    if not isinstance(up, ast.Call) or node is up.func:
        return False
    return qualified(module, up.func) in DEVICE_CALLS or (isinstance(up.func, ast.Attribute) and up.func.attr in ("cuda", "to"))


def _names_a_device(module: SourceModule, up: ast.AST | None) -> bool:
    """True in `f"cuda:{local_rank}"`, `"cuda:%d" % local_rank` and `"cuda:{}".format(local_rank)`, whatever takes the text."""
    text: ast.AST | None = None
    if isinstance(up, ast.FormattedValue):
        text = module.parent(up)
    elif isinstance(up, ast.BinOp) and isinstance(up.op, ast.Mod):
        text = up.left
    elif isinstance(up, ast.Call) and isinstance(up.func, ast.Attribute) and up.func.attr == "format":
        text = up.func.value
    parts = text.values if isinstance(text, ast.JoinedStr) else [text]
    return any(isinstance(p, ast.Constant) and isinstance(p.value, str) and _A_DEVICE.match(p.value) for p in parts)
