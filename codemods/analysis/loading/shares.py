"""Does a data set hold a rank's own share already? By the values it is made of, and by the words of its class."""

from __future__ import annotations

import ast
import re

from codemods.analysis.bindings import attribute_bindings, bindings_of
from codemods.analysis.class_index import ClassSite, class_facts
from codemods.analysis.loading.origins import Origin, made_class, origins
from codemods.analysis.loading.passes import Pass
from codemods.analysis.loading.samplers import Loader
from codemods.analysis.names import dotted, family, last, qualified
from codemods.analysis.ranks.rank_sources import rank_source
from codemods.analysis.variance.analysis import variance
from codemods.analysis.variance.values import Cause
from codemods.data.rank_variance import RANDOM_OF_TORCH
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_WORDS = lazy(
    r"rank|world_?size|Distributed\w*Sampler|shard|num_replicas|process_index|num_processes|process_count|node_?id|LOCAL_|split_by_node",
    re.I,
)
_OPTIONS = lazy(r"^(args?|opts?|options|cfg|config|conf|hparams|params|flags)$", re.I)
_PACKAGES = frozenset({"torch", "torchvision", "torchaudio"})
_DEPTH = 5


def may_hold_a_share(project: Project, loader: Loader) -> bool:
    """False only where the whole data set is seen to be made, the same on every rank."""
    dataset = loader.dataset
    if dataset is None:
        return True
    value = variance(project).argument(loader.module, loader.call, 0 if loader.call.args else "dataset")
    if value.differs and value.cause is not Cause.PLACE:  # random numbers are a matter of their seeds
        return True
    made = origins(project, loader.module, dataset)
    return not made or any(_is_share(project, o, 0) for o in made) or speaks_of_ranks(project, loader.module, dataset)


def is_told_its_share(project: Project, loader: Loader) -> bool:
    """True where the data set, its class or what it is made of speaks of ranks, or its arguments differ between them."""
    dataset = loader.dataset
    if dataset is None or speaks_of_ranks(project, loader.module, dataset):
        return True
    value = variance(project).argument(loader.module, loader.call, 0 if loader.call.args else "dataset")
    if value.differs and value.cause is not Cause.PLACE:
        return True
    for origin in origins(project, loader.module, dataset):
        site = made_class(project, origin)
        if site is not None and class_speaks_of_ranks(project, site):
            return True
        if origin.known and speaks_of_ranks(project, origin.module, origin.node):
            return True
    return False


def _is_share(project: Project, origin: Origin, depth: int) -> bool:
    """True for a data set that is not seen, or is made of something that speaks of ranks."""
    call = origin.node
    if not origin.known or not isinstance(call, ast.Call) or depth > _DEPTH:
        return True
    if (site := made_class(project, origin)) is not None:
        return class_speaks_of_ranks(project, site) or speaks_of_ranks(project, origin.module, call)
    name = qualified(origin.module, call.func)
    if family(name) not in _PACKAGES or last(name) == "DataLoader":
        return True
    if speaks_of_ranks(project, origin.module, call) or any(isinstance(a, ast.Starred) for a in call.args):
        return True
    if last(name) in ("Subset", "random_split", "ConcatDataset", "ChainDataset") and call.args:
        inner = call.args[0]
        parts = inner.elts if isinstance(inner, (ast.List, ast.Tuple)) else [inner]
        return any(_is_share(project, o, depth + 1) for part in parts for o in origins(project, origin.module, part))
    return False


def class_speaks_of_ranks(project: Project, site: ClassSite) -> bool:
    """True where a class, or a project class that it derives from, has words of ranks in it, or a base that nobody sees."""
    facts = class_facts(project, site.module, site.node)
    if facts.unresolved or any(family(n) not in (*_PACKAGES, "abc", "typing", "collections") for n in facts.external):
        return True
    return any(_WORDS.search(code_of(s.module, s.node)) for s in facts.lineage)


def code_of(module: SourceModule, node: ast.AST) -> str:
    """The names and texts of a piece of code, without its comments and docstrings."""
    out: list[str] = []
    for inner in walk(node):
        if isinstance(inner, ast.Name):
            out.append(inner.id)
        elif isinstance(inner, ast.Attribute):
            out.append(inner.attr)
        elif isinstance(inner, ast.arg):
            out.append(inner.arg)
        elif isinstance(inner, ast.keyword):
            out.append(inner.arg or "")
        elif isinstance(inner, ast.Constant) and isinstance(inner.value, str) and not isinstance(module.parent(inner), ast.Expr):
            out.append(inner.value)
    return " ".join(out)


def speaks_of_ranks(project: Project, module: SourceModule, node: ast.expr, *, fields: bool = False) -> bool:
    """True where an expression, or what its names are given, by callers too, or what is done to them, speaks of ranks.

    fields: of an object's own fields those that are named count; otherwise whatever the function does to the object.
    """
    todo: list[tuple[SourceModule, ast.AST, int]] = [(module, node, 0)]
    seen: set[int] = set()
    while todo:
        module, top, depth = todo.pop()
        for inner in walk(top):
            if id(inner) in seen:
                continue
            seen.add(id(inner))
            if isinstance(inner, (ast.Name, ast.Attribute, ast.Call)):
                end = last(dotted(inner.func if isinstance(inner, ast.Call) else inner))
                if _WORDS.search(end) or rank_source(module, inner, project) is not None:
                    return True
            if isinstance(inner, ast.keyword) and _WORDS.search(inner.arg or ""):
                return True
            if fields and isinstance(inner, ast.Attribute) and depth < _DEPTH and dotted(inner.value) == "self":
                todo += [(module, v, depth + 1) for v in _kept(module, inner)]
            if isinstance(inner, ast.Name) and depth < _DEPTH and _is_followed(module, inner, fields=fields):
                todo += [(m, n, depth + 1) for m, n in _behind(project, module, inner)]
                todo += [(module, s, _DEPTH) for s in _done_to(module, inner)]
    return False


def _is_followed(module: SourceModule, name: ast.Name, *, fields: bool) -> bool:
    """False for `self` where each field is asked by itself."""
    return not (fields and name.id == "self") and "device" not in name.id and name.id not in module.imports


def _kept(module: SourceModule, field: ast.Attribute) -> list[ast.expr]:
    """What a field is given, and what is done to it, anywhere in its class."""
    out = [b.value for b in attribute_bindings(module, field) if b.value is not None]
    name, owner = dotted(field), module.class_of(field)
    for read in module.reads_of(field.attr):
        up = module.parent(read)
        if isinstance(up, ast.Attribute) and dotted(read) == name and module.class_of(read) is owner:
            out += _given_to(module, up)
    return out


def _behind(project: Project, module: SourceModule, name: ast.Name) -> list[tuple[SourceModule, ast.expr]]:
    """What a name is given: values, what a loop goes through, and what callers hand to a parameter."""
    out: list[tuple[SourceModule, ast.expr]] = []
    for binding in bindings_of(module, name):
        if binding.parameter:
            out += [(o.module, o.node) for o in origins(project, module, name) if o.node is not name]
        elif isinstance(binding.node, (ast.For, ast.AsyncFor)):
            out.append((module, binding.node.iter))
        elif binding.value is not None:
            out.append((module, binding.value))
    return out


def _done_to(module: SourceModule, name: ast.Name) -> list[ast.expr]:
    """Calls of methods of a name, and values that its attributes are given, in the same function.

    Of options (`args.data`) what the one that is read is given: that `args.rank` is set says nothing of the others.
    """
    function, holder = module.function_of(name), module.parent(name)
    option = holder.attr if isinstance(holder, ast.Attribute) and _OPTIONS.search(name.id) is not None else ""
    out: list[ast.expr] = []
    for read in module.reads_of(name.id):
        up = module.parent(read)
        if isinstance(up, ast.Attribute) and module.function_of(read) is function and up.value is read:
            if option and up.attr != option:
                continue
            out += _given_to(module, up)
    return out


def _given_to(module: SourceModule, method: ast.Attribute) -> list[ast.expr]:
    """The arguments of `x.method(...)`, or the value of `x.attribute = ...`."""
    holder = module.parent(method)
    if isinstance(holder, ast.Call) and holder.func is method:
        return [*holder.args, *(k.value for k in holder.keywords)]
    return [holder.value] if isinstance(method.ctx, ast.Store) and isinstance(holder, ast.Assign) else []


def is_random(project: Project, origin: Origin) -> bool:
    """True where a data set is made of random numbers of torch that have no generator of their own."""
    return _draws(origin.module, origin.node, 0)


def _draws(module: SourceModule, node: ast.expr, depth: int) -> bool:
    for inner in walk(node):
        if isinstance(inner, ast.Call) and qualified(module, inner.func) in RANDOM_OF_TORCH:
            if not any(k.arg == "generator" for k in inner.keywords):
                return True
        if isinstance(inner, ast.Name) and depth < _DEPTH and isinstance(inner.ctx, ast.Load):
            if any(b.value is not None and _draws(module, b.value, depth + 1) for b in bindings_of(module, inner)):
                return True
    return False


def takes_a_share(project: Project, found: Pass) -> bool:
    """True where the loop itself leaves batches, or parts of them, to the other ranks: `x[rank::world]`, `i % world`."""
    module = found.module
    for node in walk(found.loop):
        if isinstance(node, ast.Slice):
            bounds = [b for b in (node.lower, node.upper, node.step) if b is not None]
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            bounds = [node.left, node.right]
        else:
            continue
        if any(speaks_of_ranks(project, module, b) for b in bounds):
            return True
    iterated = [found.loop.iter] if isinstance(found.loop, ast.For) else []
    return any(speaks_of_ranks(project, module, a) for i in iterated if isinstance(i, ast.Call) for a in i.args[1:])
