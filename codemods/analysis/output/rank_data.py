"""Is this value the rank's own? What steps and batch hooks have filled in, and what a hook is handed of a batch."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from itertools import takewhile

from codemods.analysis.class_index import ClassFacts, Role, class_facts, subclasses
from codemods.analysis.logged.value_kinds import EQUAL_ATTRIBUTES
from codemods.analysis.model.signatures import bind, parameters
from codemods.analysis.names import dotted, last
from codemods.analysis.output.natures import MODEL_NAMES, values_of
from codemods.analysis.output.own_lines import Own, own_line
from codemods.analysis.output.receivers import classes_of
from codemods.data.host_only import MUTATORS
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

# What a step or batch hook is handed, and what people call the model's answers.
_BATCH = frozenset({"batch", "outputs", "output", "preds", "predictions", "logits", "targets", "labels", "samples", "images"})
_STEP = lazy(r"(^|_)step(_|$)|_batch_(start|end)$|^forward$|_epoch_end_outputs")
_STAGES = lazy(r"validation_|test_|predict_")
_DEPTH = 2  # methods that hand a value on
_COUNTERS = frozenset({"batch_idx", "dataloader_idx"})
_JOINS = lazy(r"gather_|_gather|all_reduce|broadcast")
_GATHERS = ("all_gather", "gather_for_metrics", "gather_object", "all_gather_object", "all_reduce", "gather")


def rank_local(project: Project, module: SourceModule, function: FunctionNode, nodes: Iterable[ast.AST]) -> str:
    """What in `nodes`, or in the methods that they call, only this rank has seen; "" where nothing.

    Methods of the class are followed, and of objects that the nodes themselves call: `self.scores.show()`.
    """
    place = module.method_of(function) if module.class_of(function) else None
    owner = place[0] if place else module.class_of(function)
    facts = class_facts(project, module, owner) if owner is not None else None
    if any(last(dotted(c.func)) in _GATHERS for c in ast.walk(function) if isinstance(c, ast.Call)):
        return ""
    seen: set[int] = {id(function)}
    queue: list[tuple[SourceModule, ast.AST, ClassFacts | None]] = [(module, n, facts) for n in nodes]
    first = len(queue)
    while queue:
        home, top, facts = queue.pop(0)
        first -= 1
        for node in walk(top):
            if found := _own(project, home, facts, node, asking=function.name):
                return found
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            called = facts.method(node.func.attr) if facts and dotted(node.func).startswith("self.") else None
            if called and id(called[1]) not in seen:
                seen.add(id(called[1]))
                queue += [(called[0].module, s, facts) for s in called[1].body]
            other = _method_of_another(project, home, node.func) if called is None and first >= 0 else None
            if other is not None and id(other[1]) not in seen:
                seen.add(id(other[1]))
                queue += [(other[0].lineage[0].module, s, other[0]) for s in other[1].body]
    return ""


def _method_of_another(project: Project, module: SourceModule, func: ast.Attribute) -> tuple[ClassFacts, FunctionNode] | None:
    """The class of the project that the object of `self.scores.show()` is made from, and its method."""
    for site in classes_of(project, module, func):
        facts = class_facts(project, site.module, site.node)
        if (called := facts.method(func.attr)) is not None:
            return facts, called[1]
    return None


def tells_of_its_own(project: Project, module: SourceModule, function: FunctionNode, body: Sequence[ast.stmt]) -> bool:
    """True where the lines of a body show what this rank alone has seen: no other rank says the same.

    The time that it took is not meant: it is much the same for all.
    """
    line = own_line(project, module, function, body)
    return (line.own is not Own.NOTHING and not line.is_of_the_clock) or bool(rank_local(project, module, function, body))


def _own(
    project: Project, module: SourceModule, facts: ClassFacts | None, node: ast.AST, depth: int = 0, *, asking: str
) -> str:
    """asking: the function that writes; what only the hooks of another stage fill is nothing to it."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        function = module.function_of(node)
        if function is None:
            return ""
        if all(a.arg != node.id for a in parameters(function, bound=False)):
            return _made_of_own(project, module, facts, node, depth, asking)
        if node.id in _BATCH:
            return f"`{node.id}` is this rank's own"
        return _given(project, facts, function, node.id, depth, asking) if facts and depth < _DEPTH else ""
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
        name = dotted(node)
        if facts and name.startswith("self.") and name.count(".") == 1:
            kin = (*facts.lineage, *(subclasses(project, facts.lineage[0]) if facts.lineage else ()))
            return _filled(node.attr, [(s.module, s.node) for s in kin], name, asking)
        if name.count(".") == 1 and name.partition(".")[0].lstrip("_") in MODEL_NAMES:
            return _filled(node.attr, _lightning_modules(project, node.attr), name, asking)
    return ""


def _made_of_own(
    project: Project, module: SourceModule, facts: ClassFacts | None, name: ast.Name, depth: int, asking: str
) -> str:
    """Which field with what this rank has seen a local name is made of: `rows` of `rows = DataFrame(self.rows)`."""
    if depth >= _DEPTH:
        return ""
    parts = (p for value in values_of(module, name) for p in walk(value) if isinstance(p, ast.Attribute))
    return next((found for part in parts if (found := _own(project, module, facts, part, depth + 1, asking=asking))), "")


def _given(project: Project, facts: ClassFacts, function: FunctionNode, name: str, depth: int, asking: str) -> str:
    """What a method of the class hands over for a parameter, where that is this rank's own."""
    for site in facts.lineage:
        for call in site.module.calls_named(function.name):
            if not _is_of_self(call) or site.module.class_of(call) is not site.node:
                continue
            given = (bind(function, call, bound=True) or {}).get(name)
            for part in walk(given) if given is not None else ():
                if found := _own(project, site.module, facts, part, depth + 1, asking=asking):
                    return found
    return ""


def _lightning_modules(project: Project, attribute: str) -> list[tuple[SourceModule, ast.ClassDef]]:
    """The LightningModules of the project whose text holds `self.attribute`."""

    def build() -> list[tuple[SourceModule, ast.ClassDef]]:
        out = []
        for path in project.files_containing(f"self.{attribute}".encode()):
            module = project.module(path)
            for node in module.nodes(ast.ClassDef) if module else ():
                if module and class_facts(project, module, node).is_a(Role.LIGHTNING_MODULE):
                    out.append((module, node))
        return out

    return project.memo(("lightning modules with", attribute), build)


def _filled(attribute: str, homes: Iterable[tuple[SourceModule, ast.ClassDef]], name: str, asking: str) -> str:
    """Where `self.attribute` is filled or set by a function that sees batches, or by a method that such a one comes to.

    The step of an heir may call the method of the base that fills it, so all classes are looked at together.
    """
    methods = [(module, home, f) for module, home in homes for f in _methods(home)]
    coming = {id(f) for _, _, f in methods if sees_batches(f) and not _is_of_another_stage(f.name, asking)}
    for _ in range(_DEPTH):
        called = {name for _, _, f in methods if id(f) in coming for name in _own_calls(f)}
        coming |= {id(f) for _, _, f in methods if f.name in called}
    for module, home, function in sorted(methods, key=lambda m: not sees_batches(m[2])):
        for node in walk(function) if id(function) in coming and not _gathers(function) else ():
            if _changes(node, f"self.{attribute}") and not _counts_alike(module, node):
                return f"`{name}` is filled in {home.name}.{function.name} with what this rank has seen"
    return ""


def _is_of_another_stage(filling: str, asking: str) -> bool:
    """True for a hook of the validation where one of the test asks, or the reverse: `trainer.test` runs no validation."""
    one, other = (_STAGES.match(name.removeprefix("on_")) for name in (filling, asking))
    return one is not None and other is not None and one[0] != other[0]


def _gathers(function: FunctionNode) -> bool:
    """True where a method puts together what the ranks have: what it keeps is everybody's. `x.gather(1, index)` is a pick."""
    names = (dotted(n.func) for n in walk(function) if isinstance(n, ast.Call))
    return any(_JOINS.search(last(n)) or (last(n) == "gather" and "accelerator" in n) for n in names)


def _methods(home: ast.ClassDef) -> list[FunctionNode]:
    return [f for f in home.body if isinstance(f, (ast.FunctionDef, ast.AsyncFunctionDef))]


def _own_calls(function: FunctionNode) -> set[str]:
    """The methods that a function calls; at the end of an epoch those that are handed something: the others see no batches."""
    calls = [n for n in walk(function) if isinstance(n, ast.Call) and _is_of_self(n)]
    return {last(dotted(n.func)) for n in calls if n.args or n.keywords or not function.name.endswith("epoch_end")}


def _is_of_self(call: ast.Call) -> bool:
    name = dotted(call.func)
    return name == f"self.{last(name)}"


def _counts_alike(module: SourceModule, node: ast.AST) -> bool:
    """True where what is put in is the Trainer's count, or one more: `self.done = trainer.global_step + 1`, `self.n += 1`.

    `self.hits[label] += 1`, and one more for some batches alone, or for each sample, count what this rank has seen.
    """
    up = module.parent(node)
    if isinstance(up, ast.AugAssign):
        inside = takewhile(lambda a: not isinstance(a, (ast.FunctionDef, ast.AsyncFunctionDef)), module.ancestors(up))
        each = any(isinstance(a, (ast.If, ast.For, ast.While)) for a in inside)
        return isinstance(up.value, ast.Constant) and isinstance(node, ast.Attribute) and not each
    return isinstance(up, (ast.Assign, ast.AnnAssign)) and up.value is not None and _is_a_count(up.value)


def _is_a_count(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_a_count(node.left) and _is_a_count(node.right)
    if isinstance(node, ast.Attribute):
        return node.attr in EQUAL_ATTRIBUTES and last(dotted(node.value)).lstrip("_") in ("trainer", "self", "pl_module")
    return isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and node.id in _COUNTERS)


def sees_batches(function: FunctionNode) -> bool:
    """True for a step or batch hook, by its name or its arguments."""
    arguments = {a.arg for a in (*function.args.args, *function.args.kwonlyargs)}
    return _STEP.search(function.name) is not None or bool(arguments & {"batch", "outputs"})


def _changes(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS:
        receiver = node.func.value
        while isinstance(receiver, ast.Subscript):
            receiver = receiver.value
        return dotted(receiver) == name
    if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store):
        target: ast.expr = node
        while isinstance(target, ast.Subscript):
            target = target.value
        return dotted(target) == name
    return False
