"""Workers of a loader that are seeded by nothing that tells the ranks apart: by a constant, or by the worker's number alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.call_graph import FunctionSite, called_function, find_function
from codemods.analysis.class_index import class_facts
from codemods.analysis.distribution import is_test_file
from codemods.analysis.loading.dealt_out import Deal, deals
from codemods.analysis.loading.same_program import reached
from codemods.analysis.loading.seeds import depends_on_rank, stream_of
from codemods.analysis.names import dotted, last, qualified
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project

_SEEDS = frozenset({"random.seed", "numpy.random.seed", "torch.manual_seed", "torch.random.manual_seed"})
# What stands for the numbers that torch gives each worker, for those of the process, or for a clock.
_OWN = frozenset({"initial_seed", "seed", "get_state", "getstate", "get_rng_state", "time", "now", "urandom", "getpid"})
_INFO = "get_worker_info"
_DRAWS = (b"rand",)  # of `random` as well
_NO_DRAW = frozenset({"seed", "manual_seed", "initial_seed", "get_state", "set_state", "getstate", "setstate", "get_rng_state"})
_MOST_FILES = 30


@record
class SeededWorkers:
    """seed: the call that seeds each worker. by_worker: with the worker's number in it. draw: what a sample is drawn by."""

    module: SourceModule
    seed: ast.Call
    by_worker: bool
    draw_in: SourceModule
    draw: ast.Call
    deal: Deal


def seeded_workers(project: Project, module: SourceModule) -> Iterator[SeededWorkers]:
    """The seeds in this file that the workers of a training's loader get, the same ones on every rank."""
    done: set[int] = set()
    for deal in deals(project, module.path):
        if deal.by_lightning:
            continue  # the sampler is put in by Lightning, and so may be a seed of the workers
        for site, number in (*_of_loader(project, deal), *_of_items(project, deal)):
            if site.module is not module or id(site.node) in done:
                continue
            found = _judged(project, site, number, deal)
            if found is not None:
                done.add(id(site.node))
                yield found


def _of_loader(project: Project, deal: Deal) -> Iterator[tuple[FunctionSite, str]]:
    """(what `worker_init_fn` runs, the name of the worker's number in it)."""
    given = deal.loader.argument("worker_init_fn", 10)
    module = deal.loader.module
    if isinstance(given, ast.Call):
        made = called_function(project, module, given)
        inner = [n for n in made.node.body if isinstance(n, ast.FunctionDef)] if made is not None else []
        if made is not None and len(inner) == 1:
            yield FunctionSite(made.module, inner[0]), _first(inner[0])
        return
    name = dotted(given) if given is not None else ""
    near = [f for f in module.functions if f.name == name]
    if len(near) == 1:
        yield FunctionSite(module, near[0]), _first(near[0])
    elif not near and name and (site := find_function(project, module, name)) is not None:
        yield site, _first(site.node)


def _of_items(project: Project, deal: Deal) -> Iterator[tuple[FunctionSite, str]]:
    """`__getitem__` that seeds a worker once by its number: `seed(torch.utils.data.get_worker_info().id)`."""
    facts = class_facts(project, deal.site.module, deal.site.node)
    found = facts.method("__getitem__")
    if found is None or not found[0].module.holds(_INFO.encode()):
        return
    yield FunctionSite(found[0].module, found[1]), ""
    called = {dotted(c.func) for c in walk(found[1]) if isinstance(c, ast.Call)}
    for name in sorted(c.removeprefix("self.") for c in called if c.startswith("self.") and c.count(".") == 1):
        if (own := facts.method(name)) is not None:
            yield FunctionSite(own[0].module, own[1]), ""


def _first(function: FunctionNode) -> str:
    return next((a.arg for a in function.args.args), "")


def _judged(project: Project, site: FunctionSite, number: str, deal: Deal) -> SeededWorkers | None:
    calls = [c for c in walk(site.node) if isinstance(c, ast.Call) and qualified(site.module, c.func) in _SEEDS and c.args]
    if not calls or (not number and not all(_is_of_info(site, c.args[0]) for c in calls)):
        return None
    if any(_is_own(project, site, c.args[0], set()) for c in calls):
        return None
    streams = {stream_of(qualified(site.module, c.func)) for c in calls}
    found = _draw(project, deal, streams)
    if found is None:
        return None
    first = next(c for c in calls if stream_of(qualified(site.module, c.func)) == stream_of(qualified(found[0], found[1].func)))
    return SeededWorkers(site.module, first, _names(site, first.args[0], number), found[0], found[1], deal)


def _is_of_info(site: FunctionSite, value: ast.expr) -> bool:
    """True for `info.id` of what `get_worker_info()` gives."""
    if not isinstance(value, ast.Attribute) or value.attr != "id":
        return False
    return any(isinstance(v, ast.Call) and last(dotted(v.func)) == _INFO for v in (value.value, *_given(site, value.value)))


def _given(site: FunctionSite, node: ast.AST) -> list[ast.expr]:
    """What the function itself gives a name."""
    if not isinstance(node, ast.Name):
        return []
    made = (a for a in walk(site.node) if isinstance(a, ast.Assign))
    return [a.value for a in made if any(isinstance(t, ast.Name) and t.id == node.id for t in a.targets)]


def _is_own(project: Project, site: FunctionSite, value: ast.expr, seen: set[str]) -> bool:
    """True where the seed may differ between the ranks, or is one that torch or the process has drawn."""
    if depends_on_rank(project, site.module, value):
        return True
    for node in walk(value):
        if isinstance(node, ast.Call) and last(dotted(node.func)) in _OWN:
            return True
        if isinstance(node, ast.Attribute) and ("rank" in node.attr.lower() or _is_seed_of_info(site, node)):
            return True
        if isinstance(node, ast.Name) and node.id not in seen:
            seen.add(node.id)
            if "rank" in node.id.lower() or any(_is_own(project, site, v, seen) for v in _given(site, node)):
                return True
    return False


def _is_seed_of_info(site: FunctionSite, node: ast.Attribute) -> bool:
    """True for `get_worker_info().seed`, which torch has drawn."""
    return node.attr == "seed" and _INFO in site.module.text_of(site.node)


def _names(site: FunctionSite, value: ast.expr, number: str) -> bool:
    """True where the number of the worker stands in the seed."""
    if not number:
        return True
    names = {n.id for n in walk(value) if isinstance(n, ast.Name)}
    return number in names or any(
        number in {m.id for m in walk(v) if isinstance(m, ast.Name)}
        for n in walk(value) for v in _given(site, n)
    )  # fmt: skip


def _draw(project: Project, deal: Deal, streams: set[str]) -> tuple[SourceModule, ast.Call] | None:
    """Where a sample is drawn for by these numbers: in the data set's class, or in one of a file that it imports."""
    near = sorted(reached(project, deal.site.module.path))
    paths = [p for p in near if not is_test_file(p) and any(w in (project.read(p) or b"") for w in _DRAWS)]
    for path in (deal.site.module.path, *(p for p in paths[:_MOST_FILES] if p != deal.site.module.path)):
        module = project.module(path)
        for call in module.nodes(ast.Call) if module is not None else ():
            if module is not None and _is_draw(module, call, streams) and _is_for_a_sample(module, call):
                return module, call
    return None


def _is_draw(module: SourceModule, call: ast.Call, streams: set[str]) -> bool:
    name = qualified(module, call.func)
    stream = stream_of(name)
    if stream not in streams or last(name) in _NO_DRAW or last(name)[:1].isupper():
        return False
    return stream == "random" or ".random." in name or last(name).startswith(("rand", "normal", "bernoulli", "multinomial"))


def _is_for_a_sample(module: SourceModule, call: ast.Call) -> bool:
    """True in a method of a data set, or of what is called for each sample, but the constructor."""
    owner, function = module.class_of(call), module.function_of(call)
    if owner is None or function is None or function.name == "__init__":
        return False
    return bool({"__getitem__", "__call__"} & set(module.methods_of(owner)))
