"""Buffers of a model: the forward of its wrapper broadcasts them, so that it waits for all ranks."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import name_or_field_bindings
from codemods.analysis.class_index import ClassSite, class_facts, find_class
from codemods.analysis.distribution import is_test_file
from codemods.analysis.names import dotted, family, last, qualified
from codemods.data.rank_variance import HOST_PACKAGES
from codemods.files.source import SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project

_MOST = 400  # classes of one model that are looked at
_REGISTERING = frozenset({"register_buffer", "spectral_norm"})  # the latter keeps its vectors in buffers
_ATTENTION = "scaled_dot_product_attention"  # torch has it since 2.0
# Of timm's layers those without buffers; its models have BatchNorm more often than not.
_PLAIN_PARTS = frozenset(
    {"DropPath", "trunc_normal_", "lecun_normal_", "to_2tuple", "to_3tuple", "to_ntuple", "Mlp", "PatchEmbed", "LayerNorm",
     "LayerNorm2d", "register_model", "drop_path"}
)  # fmt: skip
_OF_PLAIN_MODEL = frozenset({"Block", "Attention", "LayerScale"})  # those of its plain vision transformer: others keep masks
# Of PyTorch Geometric's layers those without buffers (2.6; what is cached is no buffer).
_PLAIN_OF_GRAPHS = frozenset(
    {"GINConv", "GINEConv", "TransformerConv", "GATConv", "GATv2Conv", "SAGEConv", "GCNConv", "GraphConv", "Linear", "LayerNorm",
     "GraphNorm", "EdgeConv"}
)  # fmt: skip


@record
class _Own:
    """What a class says itself. known: it has buffers, has none, or has a part that is not seen. parts: classes it makes."""

    known: bool | None
    parts: tuple[ClassSite, ...] = ()


def has_buffers(project: Project, site: ClassSite) -> bool | None:
    """Does a model have buffers? None where it is put together from what the source does not show.

    Each class is looked at once: a large model reaches its parts on very many ways.
    """
    weighs = {id(site.node): True}  # whether what is not seen of a class leaves the answer open: not of a base
    below = [site]
    known: bool | None = False
    while below:
        one = below.pop()
        own = _own(project, one)
        if own.known is True:
            return True
        here = weighs[id(one.node)]
        known = None if here and own.known is None else known
        bases = class_facts(project, one.module, one.node).lineage[1:]
        for part, counts in (*((p, here) for p in own.parts), *((b, False) for b in bases)):
            if id(part.node) not in weighs or (counts and not weighs[id(part.node)]):
                weighs[id(part.node)] = counts
                below.append(part)
        if len(weighs) > _MOST:
            return None
    return known


def _own(project: Project, site: ClassSite) -> _Own:
    return project.memo(("own buffers", site.module.path, site.node.lineno), lambda: _read(project, site))


def _read(project: Project, site: ClassSite) -> _Own:
    known: bool | None = None if _runs_what_it_is_given(site) else False
    parts: dict[int, ClassSite] = {}
    for node in walk(site.node):
        if not isinstance(node, ast.Call):
            continue
        name, full = dotted(node.func), qualified(site.module, node.func)
        if _is_plain_part(full):
            continue
        if last(name) in _REGISTERING and is_for_older_torch(site.module, node):
            continue
        if "BatchNorm" in last(name) or last(name) in _REGISTERING or full.startswith(("torchvision.models.", "timm.")):
            return _Own(True)
        if full.startswith(("torch.", "super", "self.")) or not name:
            continue
        part = find_class(project, site.module, name) if last(name)[:1].isupper() else None
        if part is not None:
            parts[id(part.node)] = part
        elif _is_part(site.module, node):
            known = None
    return _Own(known, tuple(parts.values()))


def _is_plain_part(full: str) -> bool:
    if full.startswith("timm.models.vision_transformer.") and last(full) in _OF_PLAIN_MODEL:
        return True
    if full.startswith("torch_geometric.nn."):
        return last(full) in _PLAIN_OF_GRAPHS
    return full.startswith("timm.") and last(full) in _PLAIN_PARTS


def _runs_what_it_is_given(site: ClassSite) -> bool:
    """True for a model round another one: `self.body = body` of a parameter, and `self.body(x)` or a method of it."""
    init = site.methods().get("__init__")
    if init is None:
        return False
    names = {a.arg for a in (*init.args.args, *init.args.kwonlyargs)}
    assigned = (n for n in walk(init) if isinstance(n, ast.Assign) and dotted(n.value) in names)
    held = {dotted(t) for n in assigned for t in n.targets} - {""}
    calls = (dotted(n.func) for n in walk(site.node) if isinstance(n, ast.Call))
    return any(called == name or called.startswith(f"{name}.") for called in calls for name in held)


def speaks_of_buffers(project: Project) -> bool:
    """False where no file of the project gives a model buffers: then a model that is not seen counts as one without."""
    words = (b"BatchNorm", b"register_buffer")
    paths = {path for word in words for path in project.files_containing(word) if not is_test_file(path)}
    return any(_gives_buffers(project, path) for path in sorted(paths))


def _gives_buffers(project: Project, path: str) -> bool:
    data = project.read(path) or b""
    if b"BatchNorm" in data or _ATTENTION.encode() not in data or (module := project.module(path)) is None:
        return True
    calls = module.calls_named("register_buffer")
    return not calls or not all(is_for_older_torch(module, c) for c in calls)


def is_for_older_torch(module: SourceModule, node: ast.AST) -> bool:
    """True in the arm for a torch before 2.0: `self.flash = hasattr(F, "scaled_dot_product_attention")`, `if not self.flash:`."""
    if not module.holds(_ATTENTION.encode()):
        return False
    below = node
    for up in module.ancestors(node):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        if isinstance(up, ast.If):
            turned = isinstance(up.test, ast.UnaryOp) and isinstance(up.test.op, ast.Not)
            asked = up.test.operand if isinstance(up.test, ast.UnaryOp) and turned else up.test
            arm = up.body if turned else up.orelse
            if any(s is below for s in arm) and _asks_for_attention(module, asked):
                return True
        below = up
    return False


def _asks_for_attention(module: SourceModule, test: ast.expr) -> bool:
    if isinstance(test, ast.Call):
        named = test.args[1] if dotted(test.func) == "hasattr" and len(test.args) == 2 else None
        return isinstance(named, ast.Constant) and named.value == _ATTENTION
    bound = name_or_field_bindings(module, test)
    return bool(bound) and all(isinstance(b.value, ast.Call) and _asks_for_attention(module, b.value) for b in bound)


def _is_part(module: SourceModule, node: ast.Call) -> bool:
    """True for `self.name = make(...)` with a function or class from elsewhere: a part of the model that is not seen."""
    up = module.parent(node)
    given = isinstance(up, ast.Assign) and any(isinstance(t, ast.Attribute) for t in up.targets)
    if family(qualified(module, node.func)) in {"math", *HOST_PACKAGES}:  # `self.scale = math.sqrt(width)`
        return False
    return given and dotted(node.func).partition(".")[0] in module.imports
