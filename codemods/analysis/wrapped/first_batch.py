"""Parameters that a module sets by its first batch: `ActNorm` and its kin. Each rank has a first batch of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import attribute_bindings, bindings_in
from codemods.analysis.class_index import ClassSite, Role, class_facts
from codemods.analysis.distribution import is_test_module
from codemods.analysis.model.signatures import parameters
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.uses import constructions
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_FLAG = lazy(r"init(?!_)|first|ddi|calibrat|is_set", 0)
_SHARED = lazy(r"all_?reduce|all_?gather|broadcast|get_world_size|sync|dist\.|\.reduce\(", 0)
_WRITES = frozenset({"copy_", "set_", "fill_", "add_", "mul_", "sub_"})


@record
class FirstBatch:
    """A parameter that is set from a batch. node: the statement; flag: what says that it has been."""

    node: ast.stmt
    parameter: str
    flag: str


def set_by_first_batch(project: Project, module: SourceModule) -> Iterator[FirstBatch]:
    """One place for each class that sets its parameters so, without a word to the other ranks."""
    for node in module.nodes(ast.ClassDef):
        if "forward" not in module.methods_of(node) or not class_facts(project, module, node).is_a(Role.NN_MODULE):
            continue
        if _SHARED.search(module.text_of(node)) or not _is_made(project, module, node):
            continue
        found = next(_in_class(project, module, node), None)
        if found is not None:
            yield found


def _is_made(project: Project, module: SourceModule, node: ast.ClassDef) -> bool:
    """True where an object of the class is made whatever the settings are: one that a setting asks for may never be."""
    made = constructions(project, module, node)
    return made is not None and any(not is_test_module(c.module) and not _is_chosen(c.module, c.call) for c in made.calls)


def _is_chosen(module: SourceModule, call: ast.Call) -> bool:
    for up in module.ancestors(call):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        if isinstance(up, (ast.If, ast.IfExp, ast.Match)):
            return True
    return False


def _in_class(project: Project, module: SourceModule, node: ast.ClassDef) -> Iterator[FirstBatch]:
    site = ClassSite(module, node)
    forward = site.methods()["forward"]
    methods: list[FunctionNode] = [forward, *(m for m in _called(site, forward) if m is not forward)]
    for method in methods:
        for statement, target, value in _writes(module, method):
            name = _parameter(module, target)
            flag = _flag(module, site, statement, method, forward) if name else ""
            if flag and _is_of_batch(module, method, value) and not _is_set_outside(site, flag, (forward, method)):
                yield FirstBatch(statement, name, flag)


def _called(site: ClassSite, forward: FunctionNode) -> list[FunctionNode]:
    methods = site.methods()
    names = [last(dotted(n.func)) for n in walk(forward) if isinstance(n, ast.Call) and dotted(n.func).startswith("self.")]
    return [methods[name] for name in dict.fromkeys(names) if name in methods]


def _writes(module: SourceModule, method: FunctionNode) -> Iterator[tuple[ast.stmt, ast.expr, ast.expr]]:
    """(statement, what is written, value) for `self.p.data.copy_(v)` and `self.p.data = v`."""
    for node in walk(method):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute) and node.targets[0].attr == "data":
            yield node, node.targets[0].value, node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _WRITES and node.args:
            holder = node.func.value
            bare = holder.value if isinstance(holder, ast.Attribute) and holder.attr == "data" else holder
            yield module.statement_of(node), bare, node.args[0]


def _parameter(module: SourceModule, target: ast.expr) -> str:
    """The name of an attribute of self that is an `nn.Parameter`, "" for any other."""
    if not isinstance(target, ast.Attribute) or dotted(target.value) != "self":
        return ""
    made = [b.value for b in attribute_bindings(module, target)] + [
        c.args[1] for c in module.calls_named("register_parameter")
        if len(c.args) > 1 and isinstance(c.args[0], ast.Constant) and c.args[0].value == target.attr
        and module.class_of(c) is module.class_of(target)
    ]  # fmt: skip
    plain = [c for c in made if isinstance(c, ast.Call) and last(qualified(module, c.func)) == "Parameter"]
    frozen = any(k.arg == "requires_grad" and module.text_of(k.value) == "False" for c in plain for k in c.keywords)
    return target.attr if plain and not frozen else ""


def _flag(module: SourceModule, site: ClassSite, statement: ast.stmt, method: FunctionNode, forward: FunctionNode) -> str:
    """The attribute that is asked whether it has been done: over the statement, over the call, or in an early return."""
    calls = [n for n in walk(forward) if isinstance(n, ast.Call) and dotted(n.func) == f"self.{method.name}"]
    tests = [up.test for place in (statement, *calls) for up in module.ancestors(place) if isinstance(up, ast.If)]
    tests += [s.test for s in method.body if isinstance(s, ast.If) and s.lineno < statement.lineno and _leaves(s)]
    for test in tests:
        for node in walk(test):
            name = dotted(node)
            if isinstance(node, ast.Attribute) and name.startswith("self.") and _FLAG.search(name.split(".")[1].lower()):
                return name.split(".")[1]
    return ""


def _leaves(statement: ast.If) -> bool:
    return any(isinstance(s, ast.Return) for s in statement.body)


def _is_of_batch(module: SourceModule, method: FunctionNode, value: ast.expr) -> bool:
    """True where the value is computed from an argument of the method."""
    given = {p.arg for p in parameters(method, bound=False)} - {"self"}
    names = [n.id for n in walk(value) if isinstance(n, ast.Name)]
    seen: set[str] = set()
    while names:
        name = names.pop()
        if name in given:
            return True
        if name not in seen:
            seen.add(name)
            values = (b.value for b in bindings_in(module, method, name) if b.value is not None)
            names += [n.id for v in values for n in walk(v) if isinstance(n, ast.Name)]
    return False


def _is_set_outside(site: ClassSite, flag: str, own: tuple[FunctionNode, ...]) -> bool:
    """True where another method sets the flag: who calls it may do the first batch in a run of its own."""
    for name, method in site.methods().items():
        if method in own or name == "__init__":
            continue
        for node in walk(method):
            written = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
            if written and dotted(node) == f"self.{flag}":
                return True
    return False
