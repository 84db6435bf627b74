"""Is a sampler told the same number in each epoch? Its order is then that of the first, as if nobody had told it anything."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from codemods.analysis.bindings import bindings_in
from codemods.analysis.callers import family_of
from codemods.analysis.class_index import ClassSite, class_facts
from codemods.analysis.distribution import is_test_file
from codemods.analysis.loading.epochs import counter_of
from codemods.analysis.loading.origins import all_known, origins
from codemods.analysis.loading.passes import Epochs, loops_round
from codemods.analysis.model.signatures import bind, defaults, is_bound
from codemods.analysis.names import dotted, last
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_EVALUATES = lazy(r"(^|[_.])(eval|evaluate|evaluation|valid|validate|validation|val|test|dev)([_.]|$)")
_HIDDEN = frozenset({"setattr", "vars", "__dict__", "__getattr__", "__getattribute__", "__setattr__"})


@record
class EpochStays:
    """A call of `set_epoch`, the loop over epochs round it, and how its function writes the number of the round; "" for none."""

    call: ast.Call
    number: ast.expr
    epochs: Epochs
    counted: str


def epochs_that_stay(project: Project, module: SourceModule) -> Iterator[EpochStays]:
    """The calls of a file that hand over what no round of the training changes."""
    for call in module.calls_named("set_epoch"):
        if not isinstance(call.func, ast.Attribute) or len(call.args) != 1 or call.keywords:
            continue
        receiver = dotted(call.func.value).lower()
        if "sampler" not in last(receiver) or _EVALUATES.search(receiver) or _is_told_below(module, call):
            continue
        if _is_of_evaluation(module, call):
            continue
        loops = loops_round(project, module, call)
        if loops and all(_trains(project, module, call, e) and _stays(project, module, call.args[0], e, 0) for e in loops):
            yield EpochStays(call, call.args[0], loops[0], _counted(module, call, loops))


def _is_of_evaluation(module: SourceModule, call: ast.Call) -> bool:
    """True in a function that evaluates and does not train: each pass in one order is what it wants."""
    function = module.function_of(call)
    if function is None or not _EVALUATES.search(function.name.lower()) or "train" in function.name.lower():
        return False
    return not any(isinstance(n, ast.Attribute) and n.attr == "backward" for n in walk(function))


def _is_told_below(module: SourceModule, call: ast.Call) -> bool:
    """True where the function tells the same sampler another number behind it."""
    function, told = module.function_of(call), ast.unparse(call.func)
    later = (c for c in module.calls_named("set_epoch") if c.lineno > call.lineno and module.function_of(c) is function)
    return any(ast.unparse(c.func) == told for c in later)


def _trains(project: Project, module: SourceModule, call: ast.Call, epochs: Epochs) -> bool:
    """True for a loop that is one over epochs by its words, and by what it calls one that trains."""
    loop = epochs.loop
    head = [loop.target, loop.iter] if isinstance(loop, ast.For) else [loop.test]
    if not any("epoch" in epochs.module.text_of(part).lower() for part in head):
        return False
    if "train" in dotted(call.func).lower():
        return True
    owner = module.class_of(call)
    family = _family(project, ClassSite(module, owner)) if owner is not None else ()
    return any(name == "backward" or "train" in name.lower() for name in _named_from(loop, epochs.module, family))


def _stays(project: Project, module: SourceModule, node: ast.expr, epochs: Epochs, climbed: int) -> bool:
    """True where a number is the same in each round. climbed: how many calls stand between the function here and the first."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int)
    if isinstance(node, ast.BinOp):
        return all(_stays(project, module, n, epochs, climbed) for n in (node.left, node.right))
    if isinstance(node, ast.Name):
        return _name_stays(project, module, node, epochs, climbed)
    if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
        return False
    owner = module.class_of(node)
    if node.value.id == "self" and owner is not None:
        return _own_stays(project, ClassSite(module, owner), node.attr, epochs)
    return _option_stays(project, module, node)


def _name_stays(project: Project, module: SourceModule, node: ast.Name, epochs: Epochs, climbed: int) -> bool:
    function = module.function_of(node)
    bound = bindings_in(module, function, node.id)
    level = len(epochs.way) - 1 - climbed
    if level < 0:  # the loop stands in this function
        return bool(bound) and not _is_stored_in(epochs.loop, node.id)
    if function is None or len(bound) != 1:
        return False
    if not bound[0].parameter:
        value = bound[0].value
        return value is not None and not bound[0].part and _stays(project, module, value, epochs, climbed)
    site = epochs.way[level]
    given = bind(function, site.call, bound=is_bound(module, function))
    if given is None:
        return False
    if node.id in given:
        return _stays(project, site.module, given[node.id], epochs, climbed + 1)
    return isinstance(defaults(function).get(node.id), ast.Constant)


def _is_stored_in(loop: ast.AST, name: str) -> bool:
    stored = any(isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Load) for n in walk(loop))
    return stored or any(isinstance(n, (ast.Global, ast.Nonlocal)) and name in n.names for n in walk(loop))


def _option_stays(project: Project, module: SourceModule, node: ast.Attribute) -> bool:
    """True for an option of the command line that nothing in the project changes."""
    made = origins(project, module, node.value)
    calls = [o.node for o in made if isinstance(o.node, ast.Call) and not o.path]
    parsed = [c for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr == "parse_args"]
    return bool(made) and all_known(made) and len(parsed) == len(made) and not any(_stores(project, node.attr))


def _stores(project: Project, name: str) -> Iterator[tuple[SourceModule, ast.Attribute]]:
    """Where the project gives an attribute of this name a value."""
    for path in sorted(p for p in project.files_containing(name.encode()) if p.endswith(".py") and not is_test_file(p)):
        module = project.module(path)
        for node in module.nodes(ast.Attribute) if module is not None else ():
            if module is not None and node.attr == name and not isinstance(node.ctx, ast.Load):
                yield module, node


def _own_stays(project: Project, site: ClassSite, name: str, epochs: Epochs) -> bool:
    """True for an attribute of self that is set, but not by anything that a round calls by its name."""
    family = _family(project, site)
    if not family or any(_is_hidden(one, name) for one in family):
        return False
    called = _named_from(epochs.loop, epochs.module, family)
    seen = False
    for module, store in _stores(project, name):
        if dotted(store.value) != "self":
            return False
        owner = module.class_of(store)
        if not any(one.node is owner for one in family):
            continue
        seen = True
        function = module.function_of(store)
        if function is None or (function.name in called and function.name != "__init__"):
            return False
        if any(up is epochs.loop for up in module.ancestors(store)):
            return False
    return seen


def _family(project: Project, site: ClassSite) -> tuple[ClassSite, ...]:
    """A class, what it derives from and what derives from it; empty where some of that is not seen."""
    family = family_of(project, class_facts(project, site.module, site.node))
    return () if any(class_facts(project, one.module, one.node).opaque for one in family) else family


def _is_hidden(site: ClassSite, name: str) -> bool:
    """True where a class answers for the attribute in another way than by a value that its methods set."""
    if name in site.methods():
        return True
    words = {getattr(n, "id", "") or getattr(n, "attr", "") or getattr(n, "name", "") for n in walk(site.node)}
    return not words.isdisjoint(_HIDDEN)


def _named_from(loop: ast.AST, module: SourceModule, family: Iterable[ClassSite]) -> frozenset[str]:
    """The names that a loop reads, and those of what these may lead to: functions of its file, methods of a family of classes.

    In a method of the family, what is read from something else than `self` is no method of the family: `self.model.train()`.
    """
    functions: dict[str, list[ast.AST]] = {}
    for function in module.functions:
        if not isinstance(module.parent(function), ast.ClassDef):
            functions.setdefault(function.name, []).append(function)
    methods: dict[str, list[ast.AST]] = {}
    for site in family:
        for name, method in site.methods().items():
            methods.setdefault(name, []).append(method)
    owner = module.class_of(loop)
    found: set[str] = set()
    done: set[int] = set()
    todo: list[tuple[ast.AST, bool]] = [(loop, any(site.node is owner for site in family))]
    while todo:
        body, inside = todo.pop()
        if id(body) in done:
            continue
        done.add(id(body))
        for node in walk(body):
            if isinstance(node, ast.Name):
                found.add(node.id)
                todo += [(f, False) for f in functions.get(node.id, ())]
            elif isinstance(node, ast.Attribute):
                found.add(node.attr)
                if not inside or _is_self(node.value):
                    todo += [(f, True) for f in methods.get(node.attr, ())]
    reached = {
        getattr(body, "name", "") for bodies in (functions, methods) for f in bodies.values() for body in f if id(body) in done
    }
    return frozenset(found - {*functions, *methods} | reached)


def _is_self(node: ast.expr) -> bool:
    """True for `self`, `cls` and `super()`."""
    return dotted(node) in ("self", "cls") or (isinstance(node, ast.Call) and dotted(node.func) == "super")


def _counted(module: SourceModule, call: ast.Call, loops: tuple[Epochs, ...]) -> str:
    """The number of the round as it is written at the call: the loop's own name for it, or the parameter that is handed it."""
    if len(loops) != 1 or len(loops[0].way) > 1:
        return ""
    epochs, function = loops[0], module.function_of(call)
    counter = counter_of(epochs)
    if counter is None or not counter.name.isidentifier() or counter.name == "_" or not isinstance(epochs.loop, ast.For):
        return ""
    if not epochs.way:
        return counter.name
    given = bind(function, epochs.way[0].call, bound=is_bound(module, function)) if function is not None else None
    handed = [name for name, value in (given or {}).items() if isinstance(value, ast.Name) and value.id == counter.name]
    return handed[0] if len(handed) == 1 and len(bindings_in(module, function, handed[0])) == 1 else ""
