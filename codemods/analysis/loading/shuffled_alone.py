"""Data sets whose constructor shuffles what a DistributedSampler's indices point into, with random numbers that nothing seeds."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import ClassSite, class_facts
from codemods.analysis.loading.dealt_out import Deal, deals
from codemods.analysis.loading.origins import Origin, made_class, origins
from codemods.analysis.loading.samplers import Loader
from codemods.analysis.loading.seeds import is_of_rank, is_seeded, seeds_of_stream, stream_of
from codemods.analysis.model.signatures import bind, defaults, parameters
from codemods.analysis.names import dotted, qualified
from codemods.analysis.ranks.several_processes import several_processes
from codemods.findings import Edit, ReplaceExpression, SetKeyword
from codemods.project import Project
from codemods.record import record
from codemods.source import FunctionNode, SourceModule, walk

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
    seen: set[int] = set()
    for deal in deals(project, module.path):
        taken = taken_by_index(project, deal.site)
        inside = _shuffles(module, deal.site) if deal.site.module is module else ()
        for call, name in (*inside, *_shuffled_before(module, deal)):
            if name not in taken or id(call) in seen or _is_off(project, deal.site, call, deal.loader):
                continue
            if _differs(project, module, call):
                seen.add(id(call))
                yield Shuffled(call, name, taken[name], deal.loader)


def _differs(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True where each rank draws numbers of its own: nothing seeds them, or all that seeds them does so by the rank.

    What the function broadcasts below, or seeds itself above the call, is the same on all ranks.
    """
    function = module.function_of(call)
    stream = stream_of(qualified(module, call.func))
    seeds = seeds_of_stream(project, module.path, stream)
    if function is not None:
        if any("broadcast" in dotted(c.func) for c in walk(function) if isinstance(c, ast.Call)):
            return False
        near = [s for s in seeds if s.module is module and module.function_of(s.call) is function]
        seeds = tuple(s for s in near if s.call.lineno < call.lineno) or seeds
    return all(is_of_rank(project, s) for s in seeds) if seeds else not is_seeded(project, stream)


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


def taken_by_index(project: Project, site: ClassSite) -> dict[str, ast.Subscript]:
    """The attributes of which `__getitem__` takes an element by its own argument, or by what such an element is."""
    method = class_facts(project, site.module, site.node).method("__getitem__")
    if method is None or method[0].module is not site.module:
        return {}
    index = {a.arg for a in parameters(method[1], bound=True)}
    found: dict[str, ast.Subscript] = {}
    for node in walk(method[1]):
        if not isinstance(node, ast.Subscript) or not dotted(node.value).startswith("self."):
            continue
        place = node.slice
        while isinstance(place, ast.Subscript) and dotted(place.value).startswith("self."):
            place = place.slice  # `self.rows[self.order[index]]`
        if isinstance(place, ast.Name) and place.id in index:
            found.setdefault(dotted(node.value), node)
    return found


def _shuffles(module: SourceModule, site: ClassSite) -> Iterator[tuple[ast.Call, str]]:
    """The shuffles of attributes in the constructor and the methods that it calls, with the attribute of each."""
    constructor = site.methods().get("__init__")
    if constructor is None:
        return
    called = (dotted(c.func) for c in walk(constructor) if isinstance(c, ast.Call))
    parts = [site.methods().get(name.removeprefix("self.")) for name in called if name.startswith("self.")]
    for method in (constructor, *dict.fromkeys(m for m in parts if m is not None)):
        for call in (c for c in walk(method) if isinstance(c, ast.Call)):
            shuffled = _shuffled(module, call)
            for name in (shuffled, *_kept_as(method, shuffled)):
                if name.startswith("self."):
                    yield call, name


def _shuffled_before(module: SourceModule, deal: Deal) -> Iterator[tuple[ast.Call, str]]:
    """The shuffles of what the constructor is handed and keeps, in the function that makes the data set."""
    constructor, made = deal.site.methods().get("__init__"), deal.made
    if made.module is not module or constructor is None or not isinstance(made.node, ast.Call):
        return
    function = module.function_of(made.node)
    for parameter, value in (bind(constructor, made.node, bound=True) or {}).items():
        for call in module.calls_named("shuffle") if isinstance(value, ast.Name) else ():
            if call.lineno < made.line and module.function_of(call) is function and _shuffled(module, call) == dotted(value):
                yield from ((call, name) for name in _kept_as(constructor, parameter))


def _shuffled(module: SourceModule, call: ast.Call) -> str:
    """The name of what a call brings into another order, by the numbers that all of the program shares."""
    name = qualified(module, call.func)
    if name in _IN_PLACE and call.args:
        return dotted(call.args[0])
    up = module.statement_of(call)
    if name not in _NEW or any(k.arg == "generator" for k in call.keywords):
        return ""
    return dotted(up.targets[0]) if isinstance(up, ast.Assign) and len(up.targets) == 1 else ""


def _kept_as(function: FunctionNode, name: str) -> tuple[str, ...]:
    """The attributes that a function gives the object of this name: `self.rows = rows`."""
    given = (n for n in walk(function) if isinstance(n, ast.Assign) and name and dotted(n.value) == name)
    return tuple(dotted(t) for n in given for t in n.targets if dotted(t).startswith("self."))


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
