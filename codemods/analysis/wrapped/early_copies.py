"""Copies of a network that are made above its wrap: DDP then gives all ranks rank 0's weights, and the copy keeps its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_in
from codemods.analysis.branches import branches_round
from codemods.analysis.class_index import ClassSite, class_facts, find_class
from codemods.analysis.literals import is_none
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.wrapped.arms import are_other_arms
from codemods.analysis.wrapped.saving_calls import of_state
from codemods.analysis.wrapped.wraps import inner_of, is_prepare, without_moves, wraps_in
from codemods.files.source import FunctionNode, SourceModule, stands_above, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

# Averages whose first steps take the weights over as they are: a counter of steps, or a rate that is worked out from one.
_WARMS_UP = lazy(r"\bmin\(|\bexp\(|\btanh\(|n_averaged|self\.\w+ \+= |def \w+\([^)]*\b\w*(?:step|iter|epoch|num_updates)\w*")
_OF_TIMM = {"ModelEma": "ema", "ModelEmaV2": "module"}  # the third version takes the weights over in its first step
LOADS = lazy(r"load|restore|resume|pretrain")
_EVENS = lazy(r"broadcast|all_reduce|(?:^|[._])sync(?!_?b)")


@record
class EarlyCopy:
    """A copy and the wrap below it. name, model: how the two are written; fields: under which names the copy holds a network."""

    module: SourceModule
    made: ast.AST
    source: ast.expr
    wrap: ast.Call
    name: str
    model: str
    fields: tuple[str, ...] = ()


def early_copies(project: Project, module: SourceModule) -> Iterator[EarlyCopy]:
    """Each copy that stands in the function of a wrap, above it, and is not made equal on all ranks in that function."""
    done: set[int] = set()
    for wrap, model in _wrapped(module):
        for copy in _copies_in(project, module, wrap, model):
            if id(copy.made) in done or copy.name == model or are_other_arms(module, copy.made, wrap):
                continue
            done.add(id(copy.made))
            if not _is_evened(module, copy):
                yield copy


def _wrapped(module: SourceModule) -> Iterator[tuple[ast.Call, str]]:
    """The calls that wrap, each with how the network inside is written."""
    for wrap in wraps_in(module):
        alone = any(k.arg == "init_sync" and isinstance(k.value, ast.Constant) and not k.value.value for k in wrap.keywords)
        inner = inner_of(wrap)
        if inner is not None and dotted(inner) and not alone:
            yield wrap, dotted(inner)


def _copies_in(project: Project, module: SourceModule, wrap: ast.Call, model: str) -> Iterator[EarlyCopy]:
    function = module.function_of(wrap)
    same = _names_of(module, function, model)
    for call in module.nodes(ast.Call):
        if module.function_of(call) is not function or not stands_above(call, wrap):
            continue
        for name, source, fields in _copied(project, module, call):
            if dotted(source) in same and name and name not in same:
                yield EarlyCopy(module, call, source, wrap, name, model, fields)
    for loop in module.nodes(ast.For):
        if module.function_of(loop) is function and stands_above(loop, wrap) and (pair := _copied_in_turn(loop)) is not None:
            name, source = pair
            if dotted(source) in same and name not in same:
                yield EarlyCopy(module, loop, source, wrap, name, model)


def _names_of(module: SourceModule, function: FunctionNode | None, model: str) -> frozenset[str]:
    """The names in a function for one network: `bare = model`."""
    found = {model}
    for node in walk(function if function is not None else module.tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and dotted(node.value) in found:
            name = dotted(node.targets[0])
            if name and len(bindings_in(module, function, name)) < 2:
                found.add(name)
    return frozenset(found)


def _copied(project: Project, module: SourceModule, call: ast.Call) -> Iterator[tuple[str, ast.expr, tuple[str, ...]]]:
    """What a call copies, to which name, and under which fields: `deepcopy(net)`, an average of it, `b.load_state_dict(...)`."""
    end = last(dotted(call.func))
    if end == "load_state_dict" and isinstance(call.func, ast.Attribute) and len(call.args) == 1:
        source = of_state(call.args[0])
        if source is not None:
            yield dotted(call.func.value), source, ()
        return
    if not call.args:
        return
    name = _target(module, call)
    if end == "deepcopy":
        yield name, without_moves(call.args[0]), ()
    elif qualified(module, call.func).startswith("timm.") and end in _OF_TIMM:
        yield name, call.args[0], (_OF_TIMM[end],)
    elif end[:1].isupper() and name:
        site = find_class(project, module, dotted(call.func))
        if site is not None and (fields := _fields_of_average(project, site)):
            yield name, call.args[0], fields


def _target(module: SourceModule, call: ast.Call) -> str:
    """The name that a copy goes to, moves of it included."""
    node: ast.AST = call
    while isinstance(up := module.parent(node), (ast.Attribute, ast.Call)) and _moves(up, call):
        node = up
    if isinstance(up, ast.Assign) and len(up.targets) == 1 and up.value is node:
        return dotted(up.targets[0])
    return dotted(up.target) if isinstance(up, ast.AnnAssign) else ""


def _moves(node: ast.AST, call: ast.Call) -> bool:
    """True for `copy.to(device)` and the `copy.to` in it."""
    if isinstance(node, ast.Attribute):
        return node.value is call or without_moves(node.value) is call
    return isinstance(node, ast.Call) and without_moves(node) is call


def _fields_of_average(project: Project, site: ClassSite) -> tuple[str, ...]:
    """The fields of a class of the project that hold a deep copy of what its constructor is handed first."""
    facts = class_facts(project, site.module, site.node)
    made = facts.method("__init__")
    if made is None or any(_WARMS_UP.search(s.module.text_of(s.node)) for s in facts.lineage):
        return ()
    first = next((a.arg for a in made[1].args.args[1:]), "")
    found: list[str] = []
    for node in walk(made[1]):
        if isinstance(node, ast.Assign) and dotted(node.targets[0]).startswith("self."):
            value = without_moves(node.value)
            if isinstance(value, ast.Call) and last(dotted(value.func)) == "deepcopy" and value.args:
                if first and dotted(without_moves(value.args[0])) == first:
                    found.append(dotted(node.targets[0]).removeprefix("self."))
    return tuple(found)


def _copied_in_turn(loop: ast.For) -> tuple[str, ast.expr] | None:
    """`for q, k in zip(a.parameters(), b.parameters()): k.data.copy_(q.data)`: `b`, and the expression for `a`."""
    if not isinstance(loop.iter, ast.Call) or dotted(loop.iter.func) != "zip" or not isinstance(loop.target, ast.Tuple):
        return None
    sides: dict[str, ast.expr] = {}
    for target, source in zip(loop.target.elts, loop.iter.args, strict=False):
        if isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute) and source.func.attr == "parameters":
            sides[dotted(target)] = source.func.value
    for node in walk(loop):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "copy_" and node.args:
            to, of = dotted(node.func.value).removesuffix(".data"), dotted(node.args[0]).removesuffix(".data")
            if to in sides and of in sides and to != of:
                return dotted(sides[to]), sides[of]
    return None


def _is_evened(module: SourceModule, copy: EarlyCopy) -> bool:
    """True where the function makes the copy, or the network above it, the same on all ranks, or may do so."""
    function = module.function_of(copy.wrap)
    for node in walk(function if function is not None else module.tree):
        if isinstance(node, ast.Call) and node is not copy.made and _may_even(module, copy, node):
            return True
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and stands_above(copy.made, node) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if copy.name in [dotted(t) for t in targets] and not _mentions(node.value, copy.name):
                if not is_none(node.value):
                    return True
    return False


def _may_even(module: SourceModule, copy: EarlyCopy, call: ast.Call) -> bool:
    loop = next((up for up in module.ancestors(call) if isinstance(up, (ast.For, ast.While))), None)
    about = loop if isinstance(loop, ast.For) and len(loop.body) == 1 else module.statement_of(call)
    name = dotted(call.func)
    if _EVENS.search(name) and (_mentions(about, copy.name) or _mentions(about, copy.model)) and call is not copy.wrap:
        return True
    if not _mentions(call, copy.name):
        return False
    if call in wraps_in(module) or is_prepare(module, call) or last(name) in ("DataParallel", "setup", "fully_shard"):
        return True
    if not stands_above(copy.wrap, call):
        return False
    given = [*call.args, *(k.value for k in call.keywords)]
    both = any(_mentions(a, copy.model) for a in given)
    if LOADS.search(last(name)) and (not both or len(given) > 2):
        # What is handed more, or comes there in some runs alone, goes on with an earlier run.
        return not both and always_runs_beside(module, call, copy.wrap)
    return loop is None and both and not last(name)[:1].isupper()  # handed both, once: it may copy


def always_runs_beside(module: SourceModule, call: ast.AST, other: ast.AST) -> bool:
    """True where `call` runs whenever `other` does, as far as the tests round the two say."""
    round_other = {ast.dump(t) for t in _tests(module, other)}
    return all(ast.dump(t) in round_other for t in _tests(module, call))


def _tests(module: SourceModule, node: ast.AST) -> list[ast.expr]:
    return [branch.test for branch in branches_round(module, node, kinds=(ast.If, ast.IfExp, ast.While))]


def _mentions(node: ast.AST, name: str) -> bool:
    return any(isinstance(n, (ast.Name, ast.Attribute)) and dotted(n) == name for n in walk(node))
