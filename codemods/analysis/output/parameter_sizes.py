"""What a function of the project tells of a model's parameters: names, shapes and counts, and none of their numbers.

Every rank has the same to tell, where nothing cuts the model up between the ranks.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.output.natures import values_of
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.store.project import Project

_PARTS = frozenset({"named_parameters", "parameters"})
_ASKED = frozenset({"numel", "nelement", "size", "dim", "shape", "ndim", "requires_grad", "dtype"})
_OF_TEXT = frozenset(
    {"append", "extend", "join", "format", "ljust", "rjust", "center", "split", "strip", "rstrip", "replace", "items"}
)
_OF_NUMBERS = frozenset({"numpy.prod", "math.prod", "numpy.sum"})
_BUILTINS = frozenset(
    {"str", "len", "sum", "tuple", "list", "int", "float", "round", "max", "min", "sorted", "enumerate", "zip", "dict"}
)
_CUT_UP = (
    b"FullyShardedDataParallel", b"FSDP", b"fully_shard", b"deepspeed", b"DeepSpeed", b"megatron", b"ipelineParallel",
    b"pipeline_parallel", b"PipelineModule", b"tensor_parallel", b"parallelize_module", b"bnb.", b"device_mesh",
)  # fmt: skip
_NO_TEXT = (ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom, ast.Await, ast.Lambda, ast.NamedExpr, ast.With, ast.Try)
_DEPTH = 3


def is_told_of_sizes(project: Project, module: SourceModule, name: ast.expr) -> bool:
    """True for a name that is bound to what such functions give back, and to nothing else."""
    values = values_of(module, name)
    made = bool(values) and all(isinstance(v, ast.Call) and _tells_of_sizes(project, module, v, _DEPTH) for v in values)
    return made and not any(project.files_containing(word) for word in _CUT_UP)


def _tells_of_sizes(project: Project, module: SourceModule, call: ast.Call, depth: int) -> bool:
    """True for a call with the model, and literals beside it, of a function that reads the sizes of its parameters alone."""
    site = called_function(project, module, call) if depth else None
    if site is None or len(call.args) > len(site.node.args.args) or any(k.arg is None for k in call.keywords):
        return False
    function = site.node
    given = {a.arg: v for a, v in zip(function.args.args, call.args, strict=False)}
    given |= {k.arg: k.value for k in call.keywords if k.arg}
    models = _models(project, site)
    plain = all(isinstance(v, ast.Constant) or name in models for name, v in given.items())
    return bool(models) and plain and _is_plain(project, site, models, depth)


def _models(project: Project, site: FunctionSite) -> frozenset[str]:
    """The parameters of a function that it asks for their parameters, itself or by another such function."""
    names = {a.arg for a in site.node.args.args}
    asked = {dotted(c.func.value) for c in _calls(site.node) if isinstance(c.func, ast.Attribute) and c.func.attr in _PARTS}
    for call in _calls(site.node):
        if call.args and dotted(call.args[0]) in names and called_function(project, site.module, call) is not None:
            asked.add(dotted(call.args[0]))
    return frozenset(names & asked)


def _is_plain(project: Project, site: FunctionSite, models: frozenset[str], depth: int) -> bool:
    """True where nothing but texts, numbers and sizes is read in the function."""
    module, function = site.module, site.node
    nodes = [n for s in function.body for n in walk(s)]
    defaults = [d for d in (*function.args.defaults, *function.args.kw_defaults) if d is not None]
    if function.decorator_list or any(isinstance(n, _NO_TEXT) for n in nodes):
        return False
    if not all(isinstance(d, ast.Constant) for d in defaults):
        return False
    bound = {a.arg for a in (*function.args.args, *function.args.kwonlyargs)}
    bound |= {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    members = set(_members(function))
    if not all(_is_known_call(project, module, c, models, depth) for c in _calls(function)):
        return False
    for node in nodes:
        up = module.parent(node)
        if isinstance(node, ast.Attribute):
            called = isinstance(up, ast.Call) and up.func is node
            if not called and node.attr not in _ASKED:
                return False
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            if node.id in members and not isinstance(up, ast.Attribute):
                return False  # its numbers
            if node.id in models and not _is_of_a_model(up):
                return False
            root = isinstance(up, (ast.Attribute, ast.Call)) and node.id in module.imports
            named = isinstance(up, ast.Call) and up.func is node
            if node.id not in bound and not root and not named and not hasattr(builtins, node.id):
                return False
    return True


def _is_of_a_model(up: ast.AST | None) -> bool:
    """True for `model.parameters` and for the argument of a call, which is looked at as a call."""
    return (isinstance(up, ast.Attribute) and up.attr in _PARTS) or isinstance(up, ast.Call)


def _is_known_call(project: Project, module: SourceModule, call: ast.Call, models: frozenset[str], depth: int) -> bool:
    given = any(dotted(a) in models for a in (*call.args, *(k.value for k in call.keywords)))
    if given:
        return _reads_sizes_of(project, module, call, depth)
    if isinstance(call.func, ast.Attribute):
        end = call.func.attr
        if end in _PARTS:
            return dotted(call.func.value) in models and _is_gone_through(module, call)
        return end in _ASKED or end in _OF_TEXT or qualified(module, call.func) in _OF_NUMBERS
    return last(dotted(call.func)) in _BUILTINS


def _reads_sizes_of(project: Project, module: SourceModule, call: ast.Call, depth: int) -> bool:
    """True for a model that is handed on to another such function; what stands beside it is a text or a number."""
    site = called_function(project, module, call) if depth > 1 else None
    if site is None:
        return False
    models = _models(project, site)
    return bool(models) and _is_plain(project, site, models, depth - 1)


def _is_gone_through(module: SourceModule, call: ast.Call) -> bool:
    up = module.parent(call)
    return isinstance(up, (ast.For, ast.comprehension)) and up.iter is call


def _members(function: FunctionNode) -> Iterator[str]:
    """The names of single parameters in the loops over them."""
    for node in walk(function):
        if isinstance(node, (ast.For, ast.comprehension)) and isinstance(node.iter, ast.Call):
            if isinstance(node.iter.func, ast.Attribute) and node.iter.func.attr in _PARTS:
                whole = isinstance(node.target, ast.Tuple) and node.iter.func.attr == "named_parameters"
                target = node.target.elts[-1] if whole and isinstance(node.target, ast.Tuple) else node.target
                yield from (n.id for n in walk(target) if isinstance(n, ast.Name))


def _calls(function: FunctionNode) -> list[ast.Call]:
    return [n for n in walk(function) if isinstance(n, ast.Call)]
