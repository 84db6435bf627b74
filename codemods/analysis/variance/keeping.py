"""Objects that keep what they are told: lists, meters, objects of the project, containers that a function fills."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_in
from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.names import dotted, last
from codemods.analysis.variance.paths import own_field, path_of
from codemods.analysis.variance.state import State
from codemods.analysis.variance.substitution import substituted
from codemods.analysis.variance.values import SAME, Cause, Value, along, join, made_of, plain
from codemods.files.source import walk
from codemods.runtime.record import replace

_ONE_MORE = frozenset({"append", "appendleft", "insert", "add"})


def put(state: State, path: str, value: Value) -> None:
    """The object at `path` is another one from here on, for whoever handed it over and for the other methods too."""
    state.env[path] = value
    if state.is_parameter(path) or is_field_of_parameter(state, path):
        state.filled.add(path)
    if name := own_field(path):
        state.sets[name] = join((state.sets[name], value)) if name in state.sets and value.cause.differs else value


def is_field_of_parameter(state: State, path: str) -> bool:
    """True for `state.best` in `def update(state, value)`: whoever handed the object over has it changed."""
    root, dot, _ = path.partition(".")
    if not dot or "[" in path or root in ("self", "cls") or state.function is None or not state.is_parameter(root):
        return False
    return all(b.parameter for b in bindings_in(state.module, state.function, root))


def taint(state: State, path: str, kept: Value, before: Value) -> None:
    """The object at `path` holds, from here on, what it was given too."""
    found = join((plain(before), plain(kept)))
    if state.data_loops and kept.chain and found.chain == before.chain and not found.cause.differs:
        found = replace(found, chain=kept.chain)  # what the batches bring is told, not what it held before them
    listed = before.listed or before.thing is None
    for inner in [known for known in state.env if known.startswith(f"{path}.")]:  # what was put there is no longer all of it
        del state.env[inner]
    put(state, path, replace(found, thing=before.thing, listed=listed, mean=found.mean or state.data_loops > 0))


def fill(state: State, node: ast.Call, path: str, holder: Value, told: Value) -> None:
    """`losses.append(loss)`: the list holds a rank's own values; under a test of such a value its length differs as well."""
    both_ways = any(path in names for names in state.alike)  # rank 0 fills it under a bar, the others without one
    if both_ways and told.cause is Cause.RANK and told.decided:
        told = replace(SAME, params=told.params)
    begun = state.begun.get(path, ())
    inside = state.control[len(begun) :] if tuple(state.control[: len(begun)]) == begun else state.control  # since it was empty
    controls = [c for c in inside if not both_ways or c.cause in (Cause.DATA, Cause.PLACE)]
    deciding = join(controls) if controls else SAME
    link = state.link(node, f"`{state.short(node)}`")
    if last(dotted(node.func)) in _ONE_MORE:
        told = replace(told, sized=False)  # how often it is called decides how long the list is, not how long the element is
    kept = along(told, link)
    # settings that the object holds are the same on all ranks; where the elements differ, the length would be said to as well
    asked = any(p.partition(".")[0] != "self" for p in deciding.params)
    asked_later = asked and not deciding.length and not told.cause.differs
    if deciding.cause.differs or asked_later:
        kept = replace(along(made_of(told, deciding), link), sized=True)
    if _is_deep(node):
        kept = replace(kept, sized=False)
        holder = holder if holder.cause.differs else replace(holder, sized=False)
    if kept.cause.differs or kept.params:
        taint(state, path, kept, holder)


def _is_deep(node: ast.Call) -> bool:
    """True for `parts[i][key].append(x)`: how many `parts` there are, and of which keys, does not change with it."""
    held = node.func.value if isinstance(node.func, ast.Attribute) else None
    return isinstance(held, ast.Subscript) and isinstance(held.value, ast.Subscript)


def change_object(state: State, node: ast.Call, receiver: str, before: Value, summary: State, binding: dict[str, Value]) -> None:
    """A method that keeps what it is given: the object differs as that does; one that reduces makes it equal."""
    kept = made_of(*(substituted(v, binding, lambda _: plain(before)) for v in summary.sets.values()))
    if summary.carries():
        kept = SAME
    if kept.cause.differs or kept.params:
        link = state.link(node, f"`{state.short(node)}` keeps it")
        taint(state, receiver, along(kept, link), before)
    elif before.cause.differs or (summary.carries() and before.params):
        put(state, receiver, Value(thing=before.thing))


def held_under(state: State, node: ast.Call, receiver: str, summary: State) -> list[str]:
    """The paths of an object, of its fields and of what it was made of that hold what comes of the own data."""
    # a number that was handed over stays what it was; a meter whose method makes it equal does not
    roots = (receiver, *(() if summary.carries() else _made_of(state, node, receiver)))
    found = (p for p in state.env if any(p == root or p.startswith((f"{root}.", f"{root}[")) for root in roots))
    return [p for p in found if state.env[p].cause is Cause.DATA]


def _made_of(state: State, node: ast.Call, receiver: str) -> set[str]:
    """`board = Board([loss, *meters.values()])`: the names that were handed over when the function made the object."""
    function = state.module.function_of(node)
    bound = (n for n in walk(function) if isinstance(n, ast.Assign) and isinstance(n.value, ast.Call)) if function else ()
    made = [n.value for n in bound if any(isinstance(t, ast.Name) and t.id == receiver for t in n.targets)]
    if len(made) != 1 or not isinstance(made[0], ast.Call):
        return set()
    given = (*made[0].args, *(k.value for k in made[0].keywords))
    return {n.id for part in given for n in walk(part) if isinstance(n, ast.Name)}


def reduces_what_it_holds(state: State, node: ast.Call, site: FunctionSite, summary: State) -> bool:
    """`board.settle()` that makes each of the meters it holds equal: by its own collective, or by a method of theirs."""
    if not isinstance(state.module.parent(node), ast.Expr):
        return False
    if summary.carries():
        return True
    loops = (n for n in walk(site.node) if isinstance(n, ast.For) and any(dotted(a) == "self" for a in walk(n.iter)))
    for loop in loops:
        held = {n.id for n in walk(loop.target) if isinstance(n, ast.Name)}
        for call in (s.value for s in walk(loop) if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call)):
            method = call.func.attr if isinstance(call.func, ast.Attribute) and dotted(call.func.value) in held else ""
            if method and _all_carry(state, site, method):
                return True
    return False


def _all_carry(state: State, site: FunctionSite, name: str) -> bool:
    """True where each other method of that name in the file has a collective that makes values equal."""
    found = [f for f in site.module.functions if f.name == name and f is not site.node]
    summaries = [state.summaries.of(FunctionSite(site.module, f)) for f in found]
    return bool(found) and all(s is not None and s.carries() for s in summaries)


def change_arguments(state: State, written: dict[str, ast.expr], summary: State, binding: dict[str, Value]) -> None:
    """What a function puts into the containers and objects that it is handed. written: parameter -> the argument."""
    for name in sorted(summary.filled):
        root, _, field = name.partition(".")
        path = path_of(written[root]) if root in written else ""
        if not path or name not in summary.env:
            continue
        kept = substituted(summary.env[name], binding, None)
        if field:
            put(state, f"{path}.{field}", kept)
        elif kept.cause.differs or kept.params:
            taint(state, path, kept, state.env.get(path, SAME))
