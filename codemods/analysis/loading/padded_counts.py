"""Evaluations over padded shares whose counts or predictions are put together over the ranks.

A DistributedSampler repeats samples until every rank has as many. What is counted in such a share, and summed or gathered over
the ranks, counts the repeated ones twice.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.distribution import is_test_file
from codemods.analysis.loading.arms_of_modes import loaders_without_training
from codemods.analysis.loading.collected_loaders import elements
from codemods.analysis.loading.dropped_rest import dropped_rest
from codemods.analysis.loading.filled_lists import filled_at, is_off_at, made_at
from codemods.analysis.loading.joined_counts import Joined, joined, joined_by_callers, names_samples
from codemods.analysis.loading.keyed_results import merges_by_key
from codemods.analysis.loading.origins import Origin, Passed, made_class, origins, passed_by
from codemods.analysis.loading.padded_samplers import counts_twice, keeps_order
from codemods.analysis.loading.samplers import Loader, loader_of, samplers_of
from codemods.analysis.loading.valid_rounds import tests_which_count
from codemods.analysis.model.signatures import bind
from codemods.analysis.names import dotted, last
from codemods.analysis.variance.paths import unpacked
from codemods.files.left_alone import left
from codemods.files.source import FunctionNode, SourceModule, walk_scope
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_QUIET = (b"no_grad", b"inference_mode", b".eval()", b"set_grad_enabled")  # files without one of them evaluate nothing
_DEPTH = 3
_EVALUATES = lazy(r"(^|_)(eval\w*|valid\w*|val|test\w*|infer\w*|predict\w*)(_|$)")

_MODE = lazy(r"\b(train|training|is_train|is_training|phase|mode|split|stage|optimi[sz]er)\b")


@record
class PaddedCount:
    """A sampler that pads. loop: where its share is counted; joined: where the counts of the ranks come together.

    dropping: in place of the sampler the `drop_last=True` of its loader, which leaves samples out.
    """

    module: SourceModule
    sampler: ast.expr
    where: SourceModule
    loop: ast.For
    joined_in: SourceModule
    joined: ast.Call
    dropping: bool = False


def padded_counts(project: Project) -> tuple[PaddedCount, ...]:
    """Every such evaluation of the project, once a sampler."""

    def build() -> tuple[PaddedCount, ...]:
        found: dict[int, PaddedCount] = {}
        for path in _files(project):
            module = project.module(path)
            for one in _in_file(project, module) if module is not None else ():
                found.setdefault(id(one.sampler), one)
        return tuple(found.values())

    return project.memo("padded counts", build)


def _files(project: Project) -> list[str]:
    if not project.files_containing(b"DistributedSampler"):
        return []
    near = {p for word in _QUIET for p in project.files_containing(word)}
    return sorted(p for p in near if not is_test_file(p))


def _in_file(project: Project, module: SourceModule) -> Iterator[PaddedCount]:
    scopes: list[FunctionNode | ast.Module] = [*module.functions, module.tree]
    for scope in scopes:
        loops = [n for n in walk_scope(scope) if isinstance(n, ast.For)]
        loops = [n for n in loops if _reads_batches(n) and (not trains(n) or _trains_in_one_mode(module, n))]
        if not loops or not (evaluates(module, scope) or any(map(trains, loops))):
            continue
        for loop in loops:
            samplers: list[tuple[SourceModule, ast.expr]] = list(padded_samplers_of(project, module, loop, ordered=trains(loop)))
            dropping = not samplers and not trains(loop)
            samplers = list(_dropping(project, module, loop)) if dropping else samplers
            if not samplers and left(module, loop, "no sampler that repeats samples is seen behind {}", loop.iter):
                continue
            together = _together(project, module, scope, loop)
            if together is None and left(module, loop, "the ranks' results are not seen to come together behind the loop"):
                continue
            if names_samples(_text(module, scope)) and left(module, loop, "samples are distinguished by name or number"):
                continue
            if tests_which_count(module, scope) and left(module, loop, "a test asks the sampler which rows are not repeated"):
                continue
            if together is None or (_cuts_what_is_over(module, scope) and left(module, loop, "what is over is cut off")):
                continue
            for where, call in samplers:
                yield PaddedCount(where, call, module, loop, together.module, together.call, dropping)


def _together(project: Project, module: SourceModule, scope: FunctionNode | ast.Module, loop: ast.For) -> Joined | None:
    found = joined(project, module, scope, 0, after=loop.lineno)
    while found is not None and found.module is module and merges_by_key(project, module, loop, found.call):
        left(module, loop, "{} merges what the ranks keep under the samples' keys", found.call)
        found = joined(project, module, scope, 0, after=found.call.lineno + 1)
    if found is not None or isinstance(scope, ast.Module) or trains(loop):
        return found
    return joined_by_callers(project, module, scope)


def _cuts_what_is_over(module: SourceModule, scope: FunctionNode | ast.Module) -> bool:
    """True for `rows[:-over]` where `over` is a difference: how many more there are than samples."""
    for piece in (n for n in walk_scope(scope) if isinstance(n, ast.Slice)):
        cut = piece.upper.operand if isinstance(piece.upper, ast.UnaryOp) and isinstance(piece.upper.op, ast.USub) else None
        values = [cut, *(b.value for b in bindings_of(module, cut))] if isinstance(cut, ast.Name) else [cut]
        if any(isinstance(v, ast.BinOp) and isinstance(v.op, ast.Sub) for v in values):
            return True
    return False


def _text(module: SourceModule, scope: FunctionNode | ast.Module) -> str:
    if not isinstance(scope, ast.Module):
        return module.text_of(scope)
    own = (s for s in scope.body if not isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)))
    return "\n".join(module.text_of(s) for s in own)


def _reads_batches(loop: ast.For) -> bool:
    source = unpacked(loop.iter)
    return isinstance(source, (ast.Name, ast.Attribute, ast.Subscript))


def trains(loop: ast.For) -> bool:
    """True for a backward pass, and where gradients are cleared: an evaluation that keeps none may do so out of habit."""
    marks = {n.attr for n in walk_scope(loop) if isinstance(n, ast.Attribute)}
    return "backward" in marks or ("zero_grad" in marks and not _keeps_no_gradients(loop))


def _keeps_no_gradients(loop: ast.For) -> bool:
    """True where a round runs without gradients, and uses an optimizer for nothing but `zero_grad()`."""
    nodes = list(walk_scope(loop))
    if not any(_is_quiet(i.context_expr) for n in nodes if isinstance(n, ast.With) for i in n.items):
        return False
    cleared = [n.value for n in nodes if isinstance(n, ast.Attribute) and n.attr == "zero_grad"]
    names = {dotted(c) for c in cleared}
    uses = [n for n in nodes if isinstance(n, (ast.Name, ast.Attribute)) and dotted(n) in names]
    return len(uses) == len(cleared)


def _is_quiet(node: ast.expr) -> bool:
    """True for `no_grad()`, `inference_mode()` and `set_grad_enabled(False)`."""
    name = last(dotted(node.func if isinstance(node, ast.Call) else node))
    if name in ("no_grad", "inference_mode"):
        return True
    given = node.args[0] if isinstance(node, ast.Call) and node.args else None
    return name == "set_grad_enabled" and isinstance(given, ast.Constant) and given.value is False


def _trains_in_one_mode(module: SourceModule, loop: ast.For) -> bool:
    """True for a loop that trains under a test of a parameter or name (`if phase == "train":`), and evaluates without it."""
    steps = [n for n in walk_scope(loop) if isinstance(n, ast.Attribute) and n.attr in ("backward", "zero_grad", "step")]
    return bool(steps) and all(_is_under_a_mode(module, n, loop) for n in steps)


def _is_under_a_mode(module: SourceModule, node: ast.AST, loop: ast.For) -> bool:
    for up in module.ancestors(node):
        if up is loop:
            return False
        if isinstance(up, ast.If) and _MODE.search(module.text_of(up.test)):
            return True
    return False


def evaluates(module: SourceModule, scope: FunctionNode | ast.Module) -> bool:
    """True by the name of a function or class, and where gradients are switched off in it, or by the file for good."""
    decorators: list[ast.expr] = []
    if not isinstance(scope, ast.Module):
        owner = module.parent(scope)
        if _EVALUATES.search(scope.name.lower()) or (isinstance(owner, ast.ClassDef) and "eval" in owner.name.lower()):
            return True
        decorators = scope.decorator_list
    if _switches_gradients_off(module, scope):
        return True
    blocks = [n for n in walk_scope(scope) if isinstance(n, ast.With)]
    quiet = [*decorators, *(i.context_expr for block in blocks for i in block.items)]
    return any(map(_is_quiet, quiet))


def _switches_gradients_off(module: SourceModule, scope: FunctionNode | ast.Module) -> bool:
    """True for the statement `torch.set_grad_enabled(False)` in the scope, or at the top of the file."""
    for call in module.calls_named("set_grad_enabled"):
        here = module.function_of(call) in (None, scope) and isinstance(module.parent(call), ast.Expr)
        if here and call.args and isinstance(call.args[0], ast.Constant) and call.args[0].value is False:
            return True
    return False


def padded_samplers_of(
    project: Project, module: SourceModule, loop: ast.For, *, ordered: bool
) -> Iterator[tuple[SourceModule, ast.Call]]:
    """The samplers whose shares a loop goes through, and which repeat samples. ordered: only those that keep the order.

    Of a loader that is given one or the other, the one that keeps the order is that of the evaluation. So is any that the loop
    goes through where it does not train.
    """
    yield from _padding(project, module, unpacked(loop.iter), ordered)
    for held in loaders_without_training(module, loop) if ordered else ():
        yield from _padding(project, module, held, ordered=False)


def _padding(
    project: Project, module: SourceModule, source: ast.expr, ordered: bool
) -> Iterator[tuple[SourceModule, ast.Call]]:
    passed = passed_by(project, module, source)
    for origin in _sources(project, module, source, 0):
        for loader, made in _loaders_at(project, origin, passed):
            for sampler in made:
                if counts_twice(project, loader, sampler, passed) and isinstance(sampler.node, ast.Call):
                    if keeps_order(sampler) or not (ordered or any(map(keeps_order, made))):
                        yield sampler.module, sampler.node


def _loaders_at(project: Project, origin: Origin, passed: Passed) -> Iterator[tuple[Loader, tuple[Origin, ...]]]:
    """The loader that an origin makes, with its samplers; of a list that a loop fills, that of the place."""
    if (loader := loader_of(origin)) is not None:
        yield loader, samplers_of(project, loader)
    filled = filled_at(origin)
    for inner in origins(project, filled.module, filled.element) if filled is not None else ():
        loader = loader_of(inner)
        given = loader.sampler if loader is not None else None
        if filled is None or loader is None or given is None or filled.module is not loader.module:
            continue
        drop = loader.argument("drop_last", 8)
        if drop is None or is_off_at(project, filled, drop, passed):
            yield loader, made_at(project, filled, given, passed)


def _dropping(project: Project, module: SourceModule, loop: ast.For) -> Iterator[tuple[SourceModule, ast.expr]]:
    """The `drop_last=True` of the loaders that a loop goes through, where their samplers shuffle."""
    for origin in _sources(project, module, unpacked(loop.iter), 0):
        loader = loader_of(origin)
        made = samplers_of(project, loader) if loader is not None else ()
        for sampler in made if not any(map(keeps_order, made)) else ():
            if loader is not None and (given := dropped_rest(project, loader, sampler)) is not None:
                yield loader.module, given


def _sources(project: Project, module: SourceModule, node: ast.expr, depth: int) -> Iterator[Origin]:
    """What a loop goes through, behind names for `enumerate(loader)`, and behind the call of an object with `__call__`."""
    for origin in origins(project, module, node):
        inner = unpacked(origin.node)
        kept = elements(origin.module, origin.node) if not origin.known and depth < _DEPTH else ()
        if inner is not origin.node and depth < _DEPTH:
            yield from _sources(project, origin.module, inner, depth + 1)
        elif kept:
            for element in kept:
                yield from _sources(project, origin.module, element, depth + 1)
        else:
            yield origin
    if isinstance(node, ast.Name) and depth < _DEPTH:
        for there, given in _given_to_object(project, module, node):
            yield from _sources(project, there, given, depth + 1)


def _given_to_object(project: Project, module: SourceModule, name: ast.Name) -> Iterator[tuple[SourceModule, ast.expr]]:
    """What the file's calls of an object hand to a parameter of its `__call__`."""
    function = module.function_of(name)
    owner = module.parent(function) if function is not None and function.name == "__call__" else None
    if not isinstance(owner, ast.ClassDef) or function is None:
        return
    for call in module.nodes(ast.Call):
        if not isinstance(call.func, ast.Name) or owner.name not in module.text:
            continue
        makers = [made_class(project, o) for o in origins(project, module, call.func)]
        if any(m is not None and m.node is owner for m in makers):
            given = (bind(function, call, bound=True) or {}).get(name.id)
            if given is not None:
                yield module, given
