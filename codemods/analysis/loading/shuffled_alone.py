"""Data sets whose constructor shuffles or draws what the indices of the ranks point into, with numbers that nothing seeds."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import ClassSite, class_facts
from codemods.analysis.loading.dealt_out import deals
from codemods.analysis.loading.origins import Origin, made_class, origins
from codemods.analysis.loading.samplers import Loader
from codemods.analysis.loading.seeded_way import is_seeded_on_the_way
from codemods.analysis.loading.seeds import is_of_another_program, is_of_rank, is_seeded, is_unused, seeds_of_stream, stream_of
from codemods.analysis.loading.trainer_deals import trainer_deals
from codemods.analysis.model.signatures import bind, defaults, parameters
from codemods.analysis.names import dotted, qualified
from codemods.analysis.ranks.several_processes import several_processes
from codemods.api.findings import Edit, ReplaceExpression, SetKeyword
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project

_IN_PLACE = {"random.shuffle": "Random", "numpy.random.shuffle": "default_rng"}
_NEW = {"numpy.random.permutation": "default_rng", "torch.randperm": ""}
_DRAWN = {"random.sample": "Random", "random.choices": "Random", "numpy.random.choice": "default_rng"}
_BEFORE = ("shuffle", "sample", "choices")  # what is looked for in front of the data set
_STEPS = 3  # over how many names the rows go to the attribute
_WORDS = (b"shuffle(", b"permutation(", b"randperm(", b"random.sample(", b"random.choice")


@record
class Shuffled:
    """call: it shuffles `name`, or draws a part of it: an attribute that `item` takes an element of by its index.

    dealer: what deals the indices out, at `dealt` in `dealt_in`. drawn: each rank has other elements, and not only another order.
    """

    call: ast.Call
    name: str
    item: ast.Subscript
    dealer: str
    dealt_in: SourceModule
    dealt: ast.Call
    drawn: bool = False


def shuffled_alone(project: Project, module: SourceModule) -> Iterator[Shuffled]:
    if not any(word in module.data for word in _WORDS):
        return
    seen: set[int] = set()
    for deal in deals(project, module.path):
        for call, item in _of_deal(project, module, deal.site, deal.made):
            loader = deal.loader
            if id(call) not in seen and not _is_off(project, deal.site, call, loader) and _differs(project, module, call, loader):
                seen.add(id(call))
                yield _found(module, call, item, "DistributedSampler", loader.module, loader.call)
    for given in trainer_deals(project):
        for call, item in _of_deal(project, module, given.site, given.made):
            if id(call) not in seen and not _is_tested(given.site, call) and _differs_above(project, module, call):
                seen.add(id(call))
                yield _found(module, call, item, "the Trainer", given.trainer.module, given.trainer.call)


def _found(
    module: SourceModule, call: ast.Call, item: ast.Subscript, dealer: str, dealt_in: SourceModule, dealt: ast.Call
) -> Shuffled:
    drawn = qualified(module, call.func) in _DRAWN
    return Shuffled(call, dotted(item.value), item, dealer, dealt_in, dealt, drawn)


def _of_deal(
    project: Project, module: SourceModule, site: ClassSite, made: Origin
) -> Iterator[tuple[ast.Call, ast.Subscript]]:
    """The shuffles of this file in a data set, or just before it is made, each with the element that is taken by its index."""
    taken = taken_by_index(project, site)
    inside = _shuffles(module, site) if site.module is module else ()
    for call, name in (*inside, *_shuffled_before(module, site, made)):
        if name in taken:
            yield call, taken[name]


def _differs_above(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """As `_differs`, of what happens before a Trainer is made, which seeds what comes behind: asked of the way to the call."""
    stream = stream_of(qualified(module, call.func))
    seeds = seeds_of_stream(project, module.path, stream)
    return all(is_of_rank(project, s) for s in seeds) and not is_seeded_on_the_way(project, module, call, stream)


def _is_tested(site: ClassSite, call: ast.Call) -> bool:
    """True for a shuffle by a parameter or a setting of the data set: whether it is on is not seen."""
    tests = (up.test for up in site.module.ancestors(call) if isinstance(up, ast.If))
    return any(isinstance(t, (ast.Name, ast.Attribute)) and "shuf" in dotted(t).lower() for t in tests)


def _differs(project: Project, module: SourceModule, call: ast.Call, loader: Loader) -> bool:
    """True where each rank draws numbers of its own: nothing seeds them, or all that seeds them does so by the rank.

    What the function broadcasts below, or seeds itself above the call, is the same on all ranks. What only another program
    seeds, or a helper that nobody calls, is no matter where a seed of this one is each rank's own.
    """
    function = module.function_of(call)
    stream = stream_of(qualified(module, call.func))
    seeds = seeds_of_stream(project, module.path, stream)
    if function is not None:
        if any("broadcast" in dotted(c.func) for c in walk(function) if isinstance(c, ast.Call)):
            return False
        near = [s for s in seeds if s.module is module and module.function_of(s.call) is function]
        seeds = tuple(s for s in near if s.call.lineno < call.lineno) or seeds
    own = [s for s in seeds if not is_unused(project, s) and not is_of_another_program(project, s, loader.module.path)]
    return all(is_of_rank(project, s) for s in own or seeds) if seeds else not is_seeded(project, stream)


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
    found = _taken_in(method[1], {a.arg for a in parameters(method[1], bound=True)})
    for call, other in _handed_the_index(site, method[1]):
        names = {p for p, v in (bind(other, call, bound=True) or {}).items() if dotted(v) in _names_of(method[1])}
        for name, item in _taken_in(other, names).items():
            found.setdefault(name, item)
    return found


def _names_of(function: FunctionNode) -> set[str]:
    return {a.arg for a in parameters(function, bound=True)}


def _handed_the_index(site: ClassSite, function: FunctionNode) -> Iterator[tuple[ast.Call, FunctionNode]]:
    """The methods that `__getitem__` hands its index: `return self._get_item(i)`."""
    for call in (n for n in walk(function) if isinstance(n, ast.Call)):
        holder, _, name = dotted(call.func).rpartition(".")
        if holder == "self" and (method := site.methods().get(name)) is not None and method is not function:
            yield call, method


def _taken_in(function: FunctionNode, index: set[str]) -> dict[str, ast.Subscript]:
    found: dict[str, ast.Subscript] = {}
    index = index | {
        t.id for n in walk(function) if isinstance(n, ast.Assign) and _is_index(n.value, index)
        for t in n.targets if isinstance(t, ast.Name)
    }  # fmt: skip
    for node in walk(function):
        if not isinstance(node, ast.Subscript) or not dotted(node.value).startswith("self."):
            continue
        place = node.slice
        while isinstance(place, ast.Subscript) and dotted(place.value).startswith("self."):
            place = place.slice  # `self.rows[self.order[index]]`
        if _is_index(place, index):
            found.setdefault(dotted(node.value), node)
    return found


def _is_index(node: ast.expr, index: set[str]) -> bool:
    """True for the index itself, as a whole number, and as what is left of it: `index % len(self.rows)`."""
    if isinstance(node, ast.Call):
        return dotted(node.func) == "int" and len(node.args) == 1 and _is_index(node.args[0], index)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return _is_index(node.left, index)
    return isinstance(node, ast.Name) and node.id in index


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


def _shuffled_before(module: SourceModule, site: ClassSite, made: Origin) -> Iterator[tuple[ast.Call, str]]:
    """The shuffles of what the constructor is handed and keeps, in the function that makes the data set."""
    constructor = site.methods().get("__init__")
    if made.module is not module or constructor is None or not isinstance(made.node, ast.Call):
        return
    function = module.function_of(made.node)
    for parameter, value in (bind(constructor, made.node, bound=True) or {}).items():
        for call in module.calls_named(*_BEFORE) if isinstance(value, ast.Name) else ():
            if call.lineno < made.line and module.function_of(call) is function and _shuffled(module, call) == dotted(value):
                yield from ((call, name) for name in _kept_as(constructor, parameter))


def _shuffled(module: SourceModule, call: ast.Call) -> str:
    """The name of what a call brings into another order, by the numbers that all of the program shares."""
    name = qualified(module, call.func)
    if name in _IN_PLACE and call.args:
        return dotted(call.args[0])
    up = module.statement_of(call)
    if name not in (_NEW | _DRAWN) or any(k.arg == "generator" for k in call.keywords):
        return ""
    return dotted(up.targets[0]) if isinstance(up, ast.Assign) and len(up.targets) == 1 else ""


def _kept_as(function: FunctionNode, name: str) -> tuple[str, ...]:
    """The attributes that a function gives the object of this name: `self.rows = rows`, also over `all_rows += rows`."""
    names = {name} - {""}
    for _ in range(_STEPS if names else 0):
        names |= {dotted(t) for targets, value in _given_on(function) for t in targets if dotted(value) in names} - {""}
    return tuple(sorted(n for n in names - {name} if n.startswith("self.")))


def _given_on(function: FunctionNode) -> Iterator[tuple[list[ast.expr], ast.expr]]:
    """What a function hands from one name to another whole: `a = b`, `a += b`, `a.extend(b)`, `a = [f(x) for x in b]`."""
    for node in walk(function):
        if isinstance(node, ast.Assign):
            yield node.targets, _gone_through(node.value)
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
            yield [node.target], _gone_through(node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "extend" and node.args:
            yield [node.func.value], _gone_through(node.args[0])


def _gone_through(value: ast.expr) -> ast.expr:
    return value.generators[0].iter if isinstance(value, ast.ListComp) and len(value.generators) == 1 else value


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
    maker = (_IN_PLACE | _NEW | _DRAWN)[name]
    return [ReplaceExpression(module.path, module.span(call.func), f"{holder}.{maker}(0).{call.func.attr}")]
