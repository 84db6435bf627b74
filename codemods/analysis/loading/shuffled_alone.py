"""Data sets whose constructor shuffles what a DistributedSampler's indices point into, with random numbers that nothing seeds."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import ClassSite, class_facts
from codemods.analysis.loading.dealt_out import dealt_out
from codemods.analysis.loading.origins import Origin, made_class, origins
from codemods.analysis.loading.samplers import Loader
from codemods.analysis.loading.seeds import is_seeded, seeded_by_rank
from codemods.analysis.model.signatures import bind, defaults, parameters
from codemods.analysis.names import dotted, qualified
from codemods.analysis.ranks.several_processes import several_processes
from codemods.findings import Edit, ReplaceExpression, SetKeyword
from codemods.project import Project
from codemods.record import record
from codemods.source import SourceModule, walk

_IN_PLACE = {"random.shuffle": "Random", "numpy.random.shuffle": "default_rng"}
_NEW = {"numpy.random.permutation": "default_rng", "torch.randperm": ""}


@record
class Shuffled:
    """call: it shuffles `name`, an attribute that `item` takes an element of by its index. loader: what deals the indices out."""

    call: ast.Call
    name: str
    item: ast.Subscript
    loader: Loader


def shuffled_alone(project: Project, module: SourceModule) -> Iterator[Shuffled]:
    if not any(word in module.data for word in (b"shuffle(", b"permutation(", b"randperm(")):
        return
    if is_seeded(project) and not seeded_by_rank(project, module.path):
        return
    for site, loader in dealt_out(project, module):
        taken = _taken_by_index(project, site)
        for call, name in _shuffles(module, site):
            if name in taken and not _is_off(project, site, call, loader):
                yield Shuffled(call, name, taken[name], loader)


def _is_off(project: Project, site: ClassSite, call: ast.Call, loader: Loader) -> bool:
    """True where the constructor shuffles by a parameter that is False for this loader, in a run of several at least."""
    tests = [up.test for up in site.module.ancestors(call) if isinstance(up, ast.If) and any(call in walk(s) for s in up.body)]
    names = {t.id for t in tests if isinstance(t, ast.Name)}
    if not names or loader.dataset is None:
        return False
    makings = [o for o in origins(project, loader.module, loader.dataset) if made_class(project, o) == site]
    return bool(makings) and all(any(_is_given_false(site, o, name) for name in names) for o in makings)


def _is_given_false(site: ClassSite, made: Origin, name: str) -> bool:
    constructor = site.methods()["__init__"]
    bound = bind(constructor, made.node, bound=True) if isinstance(made.node, ast.Call) else None
    value = (bound or {}).get(name)
    if value is None and bound is not None:
        value = defaults(constructor).get(name)
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not):
        return several_processes(made.module, value.operand) is True
    if isinstance(value, ast.IfExp) and (several := several_processes(made.module, value.test)) is not None:
        value = value.body if several else value.orelse
    return isinstance(value, ast.Constant) and not value.value


def _taken_by_index(project: Project, site: ClassSite) -> dict[str, ast.Subscript]:
    """The attributes of which `__getitem__` takes an element by its own argument."""
    method = class_facts(project, site.module, site.node).method("__getitem__")
    if method is None or method[0].module is not site.module:
        return {}
    index = {a.arg for a in parameters(method[1], bound=True)}
    found: dict[str, ast.Subscript] = {}
    for node in walk(method[1]):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Name) and node.slice.id in index:
            if dotted(node.value).startswith("self."):
                found.setdefault(dotted(node.value), node)
    return found


def _shuffles(module: SourceModule, site: ClassSite) -> Iterator[tuple[ast.Call, str]]:
    """The shuffles of attributes in the constructor, by the generator that all of the program shares."""
    constructor = site.methods().get("__init__")
    if constructor is None:
        return
    for node in walk(constructor):
        if not isinstance(node, ast.Call):
            continue
        name = qualified(module, node.func)
        if name in _IN_PLACE and node.args and dotted(node.args[0]).startswith("self."):
            yield node, dotted(node.args[0])
        elif name in _NEW and not any(k.arg == "generator" for k in node.keywords):
            up = module.statement_of(node)
            if isinstance(up, ast.Assign) and len(up.targets) == 1 and dotted(up.targets[0]).startswith("self."):
                yield node, dotted(up.targets[0])


def alike(module: SourceModule, call: ast.Call) -> list[Edit]:
    """The same shuffle by a generator of its own that begins alike on every rank; nothing where it is written in another way."""
    name = qualified(module, call.func)
    span = module.span(call)
    if name == "torch.randperm":
        root = module.text_of(call.func).removesuffix(".randperm")
        return [SetKeyword(module.path, span, "generator", f"{root}.Generator().manual_seed(0)")] if root == "torch" else []
    if not isinstance(call.func, ast.Attribute):
        return []
    holder = module.text_of(call.func.value)
    maker = (_IN_PLACE | _NEW)[name]
    return [ReplaceExpression(module.path, module.span(call.func), f"{holder}.{maker}(0).{call.func.attr}")]
