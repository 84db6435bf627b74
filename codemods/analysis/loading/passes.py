"""The training loops of raw torch: a `for` over batches in which a loss goes backward, and the loop over epochs round it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import attribute_bindings, bindings_of, only_value
from codemods.analysis.call_graph import called_function
from codemods.analysis.distribution import is_test_file
from codemods.analysis.loading.same_program import callers, same_program
from codemods.analysis.model.signatures import returned
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.uses import CallSite
from codemods.analysis.variance.paths import unpacked
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

CLIMBS = 4  # from the backward pass to the loop over batches, and from there to the loop over epochs
_BARS = frozenset({"tqdm", "enumerate", "track", "progress_bar", "auto_tqdm", "prange", "alive_it"})
_COUNTS = frozenset({"range", "trange", "count", "xrange"})
# Words of frameworks that share loaders out, and start the epochs of samplers, on their own.
_FRAMEWORKS = frozenset(
    {"accelerate", "lightning", "pytorch_lightning", "lightning_fabric", "deepspeed", "horovod", "ray", "colossalai", "composer",
     "ignite", "catalyst", "fastai", "fairseq"}
)  # fmt: skip
_NO_GRADIENT = lazy(r"\b(no_grad|inference_mode)\b")
_EVALUATES = lazy(r"_?(eval|evaluate|evaluation|validate|validation|val|valid|test|infer|predict|sample)(_|$)")


@record
class Pass:
    """A loop over batches that trains. source: what it goes through, without `enumerate` and the like around it.

    backward: the call in which the gradients are made. stepped: the batches come from `next(...)`, in a loop that counts steps.
    begun: the one call of `iter` that these are drawn from, in front of that loop.
    """

    module: SourceModule
    loop: ast.For | ast.While
    source: ast.expr
    backward: CallSite
    stepped: bool = False
    begun: ast.Call | None = None

    @property
    def start(self) -> ast.AST:
        """Where the order of the batches is drawn."""
        return self.loop if self.begun is None else self.begun


@record
class Epochs:
    """A loop round passes. way: the calls from it down to the function with the pass, outermost first."""

    module: SourceModule
    loop: ast.For | ast.While
    way: tuple[CallSite, ...] = ()


def training_passes(project: Project, path: str) -> tuple[Pass, ...]:
    """Every pass in the programs of a file, outside of tests and of frameworks that make the loop their own."""
    files = project.keep("files with passes", lambda: _files(project))
    near = [back for back, loops in files if any(same_program(project, path, p) for p in loops)]
    return tuple(found for back in near for found in _passes_from(project, back))


def _files(project: Project) -> tuple[tuple[str, frozenset[str]], ...]:
    """(file with backward passes, the files of the loops round them)."""
    paths = (p for p in project.files_containing(b"backward(") if not is_test_file(p))
    found = ((p, frozenset(f.module.path for f in _passes_from(project, p))) for p in paths)
    return tuple((p, loops) for p, loops in found if loops)


def _passes_from(project: Project, path: str) -> tuple[Pass, ...]:
    return project.memo(("passes from", path), lambda: tuple(_all(project, path)))


def uses_framework(module: SourceModule) -> bool:
    """True where the file works with a framework that shares the data out by itself."""
    return any(name.partition(".")[0] in _FRAMEWORKS for name in module.imported_modules)


def leaves_samplers_alone(module: SourceModule) -> bool:
    """True where no framework tells a sampler that the file makes itself its epoch.

    DeepSpeed makes a loader of its own only of what `initialize` is handed as `training_data`.
    """
    roots = {name.partition(".")[0] for name in module.imported_modules} & _FRAMEWORKS
    return not roots or (roots == {"deepspeed"} and not module.holds(b"training_data"))


def _all(project: Project, path: str) -> Iterator[Pass]:
    seen: set[tuple[int, int]] = set()
    module = project.module(path)
    if module is None or not leaves_samplers_alone(module):
        return
    engines, elsewhere = uses_framework(module), bool(project.files_containing(b"deepspeed.initialize"))
    for call in module.calls_named("backward"):
        if not (_of_a_loss(call) or ((engines or (elsewhere and _is_stepped(module, call))) and _of_an_engine(call))):
            continue
        for found in _round(project, CallSite(module, call), CallSite(module, call), 0, frozenset()):
            key = (id(found.loop), id(found.source))
            if key not in seen and leaves_samplers_alone(found.module):
                seen.add(key)
                yield found


def _of_a_loss(call: ast.Call) -> bool:
    """False for `accelerator.backward(loss)`, and for `ctx`'s and functions of that name."""
    return isinstance(call.func, ast.Attribute) and not call.args and dotted(call.func.value) not in ("self", "super")


def _of_an_engine(call: ast.Call) -> bool:
    """True for `model.backward(loss)` of DeepSpeed."""
    return isinstance(call.func, ast.Attribute) and len(call.args) == 1 and dotted(call.func.value) not in ("self", "super", "")


def _is_stepped(module: SourceModule, call: ast.Call) -> bool:
    """True where the same object makes the step beside: an engine of DeepSpeed, which another file of the program may make."""
    holder, function = dotted(call.func).rpartition(".")[0], module.function_of(call)
    steps = (s for s in module.calls_named("step") if module.function_of(s) is function and not s.args)
    return bool(holder) and any(dotted(s.func) == f"{holder}.step" for s in steps)


def _round(project: Project, place: CallSite, backward: CallSite, climbs: int, seen: frozenset[int]) -> Iterator[Pass]:
    """The loops over batches round a place: in its function, or round the calls of that."""
    module = place.module
    if any(_without_gradients(module, up) for up in module.ancestors(place.call)):
        return
    below: ast.AST = place.call
    for up in module.ancestors(place.call):
        head, below = is_head(up, below), up
        if head:
            continue
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _in_callers(project, module, up, backward, climbs, seen)
            return
        if isinstance(up, ast.For) and (sources := sources_of(project, module, up.iter)):
            for source in sources:
                yield Pass(module, up, source, backward)
            return
        if isinstance(up, (ast.For, ast.While)) and (drawn := _drawn(module, up)):
            for source, begun in drawn:
                yield Pass(module, up, source, backward, stepped=True, begun=begun)
            return


def is_head(loop: ast.AST, below: ast.AST) -> bool:
    """True where `below` is what a loop goes through, or its test, and not what it does."""
    return below is (loop.iter if isinstance(loop, ast.For) else loop.test if isinstance(loop, ast.While) else None)


def _without_gradients(module: SourceModule, node: ast.AST) -> bool:
    """True for `with torch.no_grad():`, and a function that is decorated so or says in its name that it evaluates."""
    if isinstance(node, (ast.With, ast.AsyncWith)):
        return any(_NO_GRADIENT.search(module.text_of(item.context_expr)) for item in node.items)
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and evaluates(node)


def evaluates(function: FunctionNode) -> bool:
    """True for a function that is decorated with `no_grad`, or says in its name that it evaluates."""
    if any(_NO_GRADIENT.search(ast.unparse(d)) for d in function.decorator_list):
        return True
    return evaluates_by_name(function)


def evaluates_by_name(function: FunctionNode) -> bool:
    return _EVALUATES.match(function.name) is not None


def _in_callers(
    project: Project, module: SourceModule, function: FunctionNode, backward: CallSite, climbs: int, seen: frozenset[int]
) -> Iterator[Pass]:
    if climbs >= CLIMBS or id(function) in seen:
        return
    for site in callers(project, module, function):
        yield from _round(project, site, backward, climbs + 1, seen | {id(function)})


def sources_of(project: Project, module: SourceModule, iterated: ast.expr) -> list[ast.expr]:
    """What a loop goes through; nothing for one that counts, or goes through something that is written out."""
    if _counts(module, iterated):
        return []
    inner = _behind_an_own_bar(project, module, _behind_a_bar(module, _either(iterated)))
    if isinstance(inner, ast.Call) and last(dotted(inner.func)) == "zip":
        return [s for a in inner.args for s in sources_of(project, module, a)]
    if _counts(module, inner):
        return []
    if isinstance(inner, (ast.List, ast.Tuple, ast.Set, ast.Dict, ast.Constant, ast.ListComp, ast.GeneratorExp)):
        return []
    return [inner]


def _counts(module: SourceModule, node: ast.expr) -> bool:
    """True for `range(n)`, a part of it, and a name that is given nothing else, behind a bar too."""
    if isinstance(node, ast.Name):
        node = only_value(bindings_of(module, node)) or node
    return any(_is_range(one) for one in (node, unpacked(node)))


def _is_range(node: ast.expr) -> bool:
    node = node.value if isinstance(node, ast.Subscript) else node
    return isinstance(node, ast.Call) and last(dotted(node.func)) in _COUNTS


def _either(node: ast.expr) -> ast.expr:
    """`loader` for `tqdm(loader) if rank == 0 else loader`."""
    if isinstance(node, ast.IfExp):
        ways = [unpacked(node.body), unpacked(node.orelse)]
        return ways[0] if ast.dump(ways[0]) == ast.dump(ways[1]) else node
    return unpacked(node)


def _behind_a_bar(module: SourceModule, node: ast.expr) -> ast.expr:
    """`loader` for `bar`, where `bar` is `tqdm(loader)`, or on other ranks the loader itself, and nothing else."""
    if isinstance(node, ast.Name):
        for up in module.ancestors(node):  # `with tqdm(loader) as bar:`
            for item in up.items if isinstance(up, ast.With) else ():
                opened = item.context_expr
                if dotted(item.optional_vars) == node.id and isinstance(opened, ast.Call) and last(dotted(opened.func)) in _BARS:
                    return unpacked(opened)
    bound = bindings_of(module, node) if isinstance(node, ast.Name) else []
    given = [b.value for b in bound if b.value is not None]
    if len(given) != len(bound):
        return node
    values = [v for g in given for v in ([g.body, g.orelse] if isinstance(g, ast.IfExp) else [g])]
    if not any(isinstance(v, ast.Call) and last(dotted(v.func)) in _BARS for v in values):
        return node
    behind = [unpacked(v) for v in values]
    alike = {ast.unparse(b) for b in behind}
    return behind[0] if len(alike) == 1 and dotted(behind[0]) else node


def _behind_an_own_bar(project: Project, module: SourceModule, node: ast.expr) -> ast.expr:
    """`loader` for `show(loader)`, and for a name that is given nothing else: a function that puts a bar round its argument."""
    value = (only_value(bindings_of(module, node)) if isinstance(node, ast.Name) else None) or node
    if not isinstance(value, ast.Call) or not value.args or not dotted(value.args[0]):
        return node
    called = called_function(project, module, value)
    if called is None or not called.node.args.args:
        return node
    values = returned(called.node, called.module)
    first = called.node.args.args[0].arg
    barred = any(isinstance(v, ast.Call) for v in values) and all(dotted(unpacked(v)) == first for v in values)
    return value.args[0] if barred else node


def _drawn(module: SourceModule, loop: ast.For | ast.While) -> list[tuple[ast.expr, ast.Call | None]]:
    """What `next(...)` in a loop draws from: the argument of the `iter` that its name was given, and that call where it is the
    only one, and stands in front of the loop.
    """
    out: dict[str, tuple[ast.expr, ast.Call | None]] = {}
    for node in walk(loop):
        if (inner := drawn_from(node)) is None:
            continue
        bound = bindings_of(module, inner) if isinstance(inner, ast.Name) else []
        bound = attribute_bindings(module, inner) if isinstance(inner, ast.Attribute) else bound
        for value in (b.value for b in bound):
            if isinstance(value, ast.Call) and dotted(value.func) == "iter" and value.args:
                alone = len(bound) == 1 and isinstance(inner, ast.Name) and loop not in module.ancestors(value)
                out.setdefault(module.text_of(value.args[0]), (value.args[0], value if alone else None))
    return list(out.values())


def drawn_from(node: ast.AST) -> ast.expr | None:
    """`batches` for `next(batches)`, `batches.next()` and `batches.__next__()`."""
    if not isinstance(node, ast.Call):
        return None
    if dotted(node.func) == "next":
        return node.args[0] if node.args else None
    own = isinstance(node.func, ast.Attribute) and node.func.attr in ("next", "__next__") and not node.args
    return node.func.value if own and isinstance(node.func, ast.Attribute) else None


def epochs_of(project: Project, found: Pass) -> tuple[Epochs, ...]:
    """The nearest loops round a pass, in its function or round the calls of it; none for steps over no one iterator."""
    if found.stepped and found.begun is None:
        return ()
    return tuple(_epochs(project, found.module, found.start, (), 0))


def goes_round_once(loop: ast.For | ast.While) -> bool:
    """True for a loop that its own body leaves in the first round, whatever happens: of a trial run."""
    return any(isinstance(s, (ast.Break, ast.Return)) for s in loop.body)


def loops_round(project: Project, module: SourceModule, node: ast.AST) -> tuple[Epochs, ...]:
    """The nearest loops round any place, in its function or round the calls of it."""
    return tuple(_epochs(project, module, node, (), 0))


def _epochs(project: Project, module: SourceModule, node: ast.AST, way: tuple[CallSite, ...], climbs: int) -> Iterator[Epochs]:
    below = node
    for up in module.ancestors(node):
        head, below = is_head(up, below), up
        if isinstance(up, (ast.For, ast.While)) and not head:
            yield Epochs(module, up, way)
            return
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if climbs >= CLIMBS or any(_function(s) is up for s in way):
                return
            for site in callers(project, module, up):
                yield from _epochs(project, site.module, site.call, (site, *way), climbs + 1)
            return


def _function(site: CallSite) -> FunctionNode | None:
    return site.module.function_of(site.call)
