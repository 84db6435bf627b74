"""How a sampler can be told its epoch: how loader and counter are written at the loop over epochs, and who does it already."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_of, only_value
from codemods.analysis.distribution import is_test_file
from codemods.analysis.loading.origins import all_known, made_facts, origins
from codemods.analysis.loading.passes import Epochs, Pass
from codemods.analysis.loading.same_program import reached, whole_program
from codemods.analysis.loading.samplers import is_distributed_sampler
from codemods.analysis.model.signatures import bind
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.uses import CallSite
from codemods.analysis.variance.paths import unpacked
from codemods.files.source import SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project

_RANGES = frozenset({"range", "trange"})


@record
class Counter:
    """The number of the epoch. name: how it is written. sure: it begins at a constant and grows by one in each round."""

    name: str
    sure: bool = True


def counter_of(epochs: Epochs) -> Counter | None:
    """The number that a loop counts; None where it goes through something else."""
    loop = epochs.loop
    if isinstance(loop, ast.While):
        return _grown(epochs.module, loop)
    target: ast.expr = loop.target
    inner = _range(epochs.module, loop.iter)
    if isinstance(loop.iter, ast.Call) and last(dotted(loop.iter.func)) == "enumerate" and isinstance(target, ast.Tuple):
        return Counter(epochs.module.text_of(target.elts[0]))
    if isinstance(target, (ast.Tuple, ast.List)):
        return None
    name = epochs.module.text_of(target)
    if inner is not None:
        start = inner.args[0] if len(inner.args) > 1 else None
        return Counter(name, sure=start is None or _is_number(epochs.module, start))
    return Counter(name, sure=False) if "epoch" in name.lower() else None


def _is_number(module: SourceModule, node: ast.expr) -> bool:
    """True for a number, and for a name that is given one, and nothing else."""
    value = only_value(bindings_of(module, node)) if isinstance(node, ast.Name) else node
    return isinstance(value, ast.Constant)


def _range(module: SourceModule, node: ast.expr) -> ast.Call | None:
    """The `range` or `trange` that a loop goes through, behind bars, and behind a name that is given nothing else."""
    if (found := _behind_bars(node)) is not None:
        return found
    inner = unpacked(node)
    values = [b.value for b in bindings_of(module, inner)] if isinstance(inner, ast.Name) else []
    return _behind_bars(values[0]) if len(values) == 1 and values[0] is not None else None


def _behind_bars(node: ast.expr) -> ast.Call | None:
    """`trange(n)`, which is a bar and a range in one, is not taken apart."""
    node = node.value if isinstance(node, ast.NamedExpr) else node
    inner = node if isinstance(node, ast.Call) and last(dotted(node.func)) in _RANGES else unpacked(node)
    return inner if isinstance(inner, ast.Call) and last(dotted(inner.func)) in _RANGES else None


def _grown(module: SourceModule, loop: ast.While) -> Counter | None:
    """What a `while` adds one to, if it is called an epoch."""
    for node in walk(loop):
        one = isinstance(node, ast.AugAssign) and isinstance(node.value, ast.Constant) and node.value.value == 1
        if isinstance(node, ast.AugAssign) and one and "epoch" in dotted(node.target).lower():
            return Counter(dotted(node.target), sure=False)
    return None


def written_at(epochs: Epochs, found: Pass) -> str:
    """How the loader of a pass is written in the function of the loop over epochs; "" where it has no name there."""
    name, module = dotted(found.source), found.module
    for site in reversed(epochs.way):
        name = _one_up(module, found, site, name)
        module = site.module
        if not name:
            return ""
        found = Pass(module, found.loop, found.source, found.backward)
    return name


def _one_up(module: SourceModule, found: Pass, site: CallSite, name: str) -> str:
    """The name of a function's value at a call of the function."""
    function = _called(module, found, site)
    root, _, rest = name.partition(".")
    if function is None or not name:
        return ""
    spec = function.args
    parameters = [a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]
    method = isinstance(module.parent(function), ast.ClassDef)
    if method and parameters and root == parameters[0] and isinstance(site.call.func, ast.Attribute):
        holder = dotted(site.call.func.value)
        return f"{holder}.{rest}" if holder and rest else ""
    if root in parameters:
        given = (bind(function, site.call, bound=method) or {}).get(root)
        text = dotted(given)
        return f"{text}.{rest}" if text and rest else text
    stored = any(isinstance(n, ast.Name) and n.id == root and isinstance(n.ctx, ast.Store) for n in walk(function))
    return name if not stored and module is site.module else ""


def _called(module: SourceModule, found: Pass, site: CallSite) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The function that a call leads to: one of those in the file, by its name."""
    name = last(dotted(site.call.func))
    named = [f for f in module.functions if f.name == name]
    return named[-1] if len(named) == 1 else None


def place_for(epochs: Epochs, found: Pass, name: str) -> ast.stmt | None:
    """The statement of the loop in front of which the epoch is told: the first behind the count, or the one with the pass where
    the loader is made in the loop. None where it is made and gone through in one statement.
    """
    module, loop = epochs.module, epochs.loop
    inside: ast.AST = epochs.way[0].call if epochs.way else found.start
    chain = [inside, *module.ancestors(inside)]
    holding = next((s for s in loop.body if any(s is up for up in chain)), None)
    root = name.partition(".")[0]
    made = [s for s in loop.body if _stores(s, name, root)]
    if holding is None or any(s is holding for s in made):
        return None
    return holding if made else _behind_the_count(loop, holding)


def _behind_the_count(loop: ast.For | ast.While, holding: ast.stmt) -> ast.stmt:
    """The first statement of the loop; behind `epoch += 1`, where that stands above the pass: its number is the one meant."""
    above = [s for s in loop.body if s.lineno < holding.lineno] if isinstance(loop, ast.While) else []
    raised = [s for s in above if isinstance(s, ast.AugAssign) and "epoch" in dotted(s.target).lower()]
    return loop.body[loop.body.index(raised[-1]) + 1] if raised else loop.body[0]


def _stores(statement: ast.stmt, name: str, root: str) -> bool:
    for node in walk(statement):
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store) and dotted(node) in (name, root):
            return True
    return False


def parts_round(epochs: Epochs, name: str) -> Epochs | None:
    """The loop round one over parts of the data (files, folders); the loop itself where it is none. `name`: the loader there.

    A loop over parts makes a loader anew from its own variable: its number is the same for a part in each round of the outer
    loop. None where no loop stands round it: each part is gone through once.
    """
    module, loop = epochs.module, epochs.loop
    counter = counter_of(epochs)
    if not isinstance(loop, ast.For) or counter is None or "epoch" in counter.name.lower():
        return epochs
    if not _makes_from(loop, counter.name, name):
        return epochs
    below: ast.AST = loop
    for up in module.ancestors(loop):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return None
        if isinstance(up, (ast.For, ast.While)) and below in up.body:
            return Epochs(module, up)
        below = up
    return None


def _makes_from(loop: ast.For, counted: str, name: str) -> bool:
    """True where the loop makes `name` out of its own variable, through what else it makes in each round."""
    wanted = {name.partition(".")[0], name}
    before = -1
    while before != len(wanted):
        before = len(wanted)
        for node in (n for s in loop.body for n in walk(s) if isinstance(n, (ast.Assign, ast.AnnAssign))):
            if node.value is None:
                continue
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(dotted(n) in wanted for t in targets for n in walk(t)):
                wanted |= {dotted(n) for n in walk(node.value) if isinstance(n, (ast.Name, ast.Attribute)) and dotted(n)}
    made = any(_stores(s, name, name.partition(".")[0]) for s in loop.body)
    return made and counted in wanted


# Who tells samplers their epoch


def may_be_told(project: Project, paths: frozenset[str]) -> bool:
    """True where a `set_epoch` in the project may be for a sampler that these files make and use."""
    return any(_concerns(project, path, paths) for path in project.files_containing(b"set_epoch") if not is_test_file(path))


def _concerns(project: Project, path: str, paths: frozenset[str]) -> bool:
    module = project.module(path)
    if module is None or not _calls_it(module) or _tells_others(project, module):
        return False
    if path in paths:
        return True
    if _tells_its_own(project, module):
        return False
    if _is_of_another_program(project, path, paths):
        return False
    if not module.holds(b"__main__") or project.files_importing(path.removesuffix(".py").rpartition("/")[2]):
        return True
    return bool(reached(project, path) & paths)


def _is_of_another_program(project: Project, path: str, paths: frozenset[str]) -> bool:
    """True where the files hold a whole program, which imports what it uses, and `path` is not among that."""
    programs = [m for p in sorted(paths) if p.endswith(".py") and (m := project.module(p)) is not None and m.holds(b"__main__")]
    if not programs or any(m.holds(b"import_module") or m.holds(b"__import__") for m in programs):
        return False
    return not any(path in whole_program(project, m.path) for m in programs)


def _tells_others(project: Project, module: SourceModule) -> bool:
    """True where each `set_epoch` of the file is of an object whose class keeps the number to itself: statistics, a logger."""
    calls = [c for c in module.calls_named("set_epoch") if isinstance(c.func, ast.Attribute)]
    if not calls or len(calls) != _mentions(module):
        return False
    return all(isinstance(c.func, ast.Attribute) and _keeps_to_itself(project, module, c.func.value) for c in calls)


def _keeps_to_itself(project: Project, module: SourceModule, holder: ast.expr) -> bool:
    """True for objects of classes without a base, whose `set_epoch` calls nothing: no order of any data is made from it.

    A data set may read the field where it fetches its items: such a class counts as one that may.
    """
    made = origins(project, module, holder) if isinstance(holder, (ast.Name, ast.Attribute)) else ()
    for origin in made:
        facts = made_facts(project, origin)
        method = facts.method("set_epoch") if facts is not None else None
        if facts is None or method is None or facts.external or facts.unresolved:
            return False
        if any(facts.method(name) is not None for name in ("__iter__", "__getitem__")):
            return False
        if any(isinstance(n, ast.Call) for n in walk(method[1])):
            return False
    return bool(made)


def _mentions(module: SourceModule) -> int:
    named = sum(a.attr == "set_epoch" for a in module.nodes(ast.Attribute))
    return named + sum(c.value == "set_epoch" for c in module.nodes(ast.Constant))


def _tells_its_own(project: Project, module: SourceModule) -> bool:
    """True where each `set_epoch` of the file is of a sampler, or of a loader's sampler, that the file itself makes."""
    calls = [c for c in module.calls_named("set_epoch") if isinstance(c.func, ast.Attribute)]
    if not calls or len(calls) != sum(a.attr == "set_epoch" for a in module.nodes(ast.Attribute)):
        return False
    for call in calls:
        holder = call.func.value if isinstance(call.func, ast.Attribute) else call.func
        if isinstance(holder, ast.Attribute) and holder.attr in ("sampler", "batch_sampler"):
            holder = holder.value
        made = origins(project, module, holder) if isinstance(holder, ast.Name) else ()
        if not made or not all_known(made) or any(o.module.path != module.path for o in made):
            return False
    return True


def are_told_instead(project: Project, module: SourceModule, sampler: ast.AST) -> bool:
    """True where every `set_epoch` of the project is in this file, of a sampler that is made beside this one."""
    if any(p != module.path and not is_test_file(p) for p in project.files_containing(b"set_epoch")):
        return False
    calls = [c for c in module.calls_named("set_epoch") if isinstance(c.func, ast.Attribute)]
    if not calls or len(calls) != sum(a.attr == "set_epoch" for a in module.nodes(ast.Attribute)):
        return False
    for call in calls:
        holder = call.func.value if isinstance(call.func, ast.Attribute) else call.func
        made = origins(project, module, holder) if isinstance(holder, (ast.Name, ast.Attribute)) else ()
        if not made or not all_known(made) or any(o.node is sampler for o in made):
            return False
        if not all(is_distributed_sampler(project, o) for o in made):
            return False
    return True


def _calls_it(module: SourceModule) -> bool:
    if any(a.attr == "set_epoch" for a in module.nodes(ast.Attribute)):
        return True
    return any(c.value == "set_epoch" for c in module.nodes(ast.Constant))
