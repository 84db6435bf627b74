"""What holds a DDP wrapper as soon as several processes run: stricter than `wraps.held`, which asks what may hold one.

A name counts from the wrap on, until anything else is bound to it; a field of an object in the methods that run behind the wrap;
a parameter where every caller hands a wrapper over. Lists of wrapped models are followed through loops.
"""

from __future__ import annotations

import ast

from codemods.analysis.bindings import Binding, bindings_in
from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.class_index import class_facts
from codemods.analysis.class_values import Given, class_values
from codemods.analysis.model.signatures import bind, returned
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.wrapped.annotated import annotated_class, given_back
from codemods.analysis.wrapped.bound_places import (
    bound_by,
    comprehension_of,
    first_use,
    is_alike,
    is_parallel_beside_bare,
    leaves,
    place_in,
    reaches,
)
from codemods.analysis.wrapped.global_names import binding_function, first_come_to
from codemods.analysis.wrapped.made_models import is_wrapped_by_prepare
from codemods.analysis.wrapped.method_order import always_runs, runs_behind
from codemods.analysis.wrapped.wrap_files import callers, giving
from codemods.analysis.wrapped.wrapper_tests import arms_exclude, conditions_of, is_tested
from codemods.analysis.wrapped.wraps import is_prepare, is_wrap, without_moves
from codemods.files.source import FunctionNode, SourceModule, line_of, walk
from codemods.runtime.record import record, replace
from codemods.store.project import Project

DEPTH = 6
PARAMETERS = 2  # how deep the callers of a function are still asked
MOST_CALLERS = 8


@record
class Wrapped:
    """A wrapper: the call that makes it, and the expression of the model that goes in.

    prepared: Accelerate makes it, for several processes only. always: no test stands between the wrap and the place. many: it is
    one of several in a list; the place may hold any of them. whole: the list itself.
    """

    module: SourceModule
    wrap: ast.Call
    model: ast.expr | None
    prepared: bool = False
    always: bool = True
    many: bool = False
    whole: bool = False


def wrapper_in(project: Project, module: SourceModule, node: ast.expr) -> Wrapped | None:
    """The wrapper that `node` holds at its place; None where the source does not show one."""
    found = _Search(project).of(module, node, 0)
    return found if found is not None and not found.whole else None


def gives_wrapper(project: Project, module: SourceModule, node: ast.expr) -> bool:
    """True where `node`, or an element of it, holds a wrapper, or a list of them, by its file alone: no caller is asked."""
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    return any(_Search(project).of(module, part, PARAMETERS + 1) is not None for part in parts)


class _Search:
    def __init__(self, project: Project) -> None:
        self.project = project
        self.seen: set[int] = set()

    def of(self, module: SourceModule, node: ast.expr | None, depth: int) -> Wrapped | None:
        if node is None:
            return None
        node = without_moves(node)
        if depth > DEPTH or id(node) in self.seen:
            return None
        self.seen.add(id(node))
        try:
            return self._of(module, node, depth)
        finally:
            self.seen.discard(id(node))

    def _of(self, module: SourceModule, node: ast.expr, depth: int) -> Wrapped | None:
        if isinstance(node, ast.Call):
            return self._call(module, node, depth)
        if isinstance(node, ast.Name):
            return self._name(module, node, depth) if node.id not in ("self", "cls") else None
        if isinstance(node, ast.Attribute):
            return self._attribute(module, node, depth)
        if isinstance(node, ast.Subscript):
            return _element(self.of(module, node.value, depth + 1))
        if isinstance(node, ast.IfExp):  # `model.module if many else model` takes it out: only the wrap itself counts
            arms = [a for a in (node.body, node.orelse) if is_wrap(module, a) or is_prepare(module, a)]
            found = self.of(module, arms[0], depth) if arms else None
            return replace(found, always=False) if found is not None else None
        if isinstance(node, (ast.List, ast.Tuple)) and node.elts:
            parts = [self.of(module, e, depth + 1) for e in node.elts]
            first = parts[0]
            return replace(first, many=True, whole=True) if first is not None and None not in parts else None
        if isinstance(node, ast.ListComp):
            made = self.of(module, node.elt, depth + 1)
            return replace(made, many=True, whole=True) if made is not None else None
        return None

    def _call(self, module: SourceModule, call: ast.Call, depth: int) -> Wrapped | None:
        if is_wrap(module, call):
            if not qualified(module, call.func).startswith(("torch.", "apex.")):
                return None
            given = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "module"), None)
            return Wrapped(module, call, given)
        if is_prepare(module, call):
            return self._prepared(module, call, 0) if len(call.args) == 1 else None
        name = last(dotted(call.func))
        if name == "deepcopy" and call.args:
            return self.of(module, call.args[0], depth + 1)
        if "compile" in name:  # compiled in place or wrapped once more: neither has the model's attributes
            found = next((f for a in call.args if (f := self.of(module, a, depth + 1)) is not None), None)
            torch_own = qualified(module, call.func) == "torch.compile"
            return found if torch_own or found is None else replace(found, always=False)
        if call.args and (handed_on := given_back(self.project, module, call)) is not None:
            return self.of(module, handed_on, depth + 1)
        if name not in giving(self.project):
            return None
        return self._returned(module, call, None, depth)

    def _returned(self, module: SourceModule, call: ast.Call, part: int | None, depth: int) -> Wrapped | None:
        """What a function of the project gives back; part: the element of the tuple that it gives."""
        site = called_function(self.project, module, call) or self._method_of(module, call)
        if site is None or site.node.name == "__init__":
            return None
        given = returned(site.node, site.module)
        if part is not None:
            tuples = [v for v in given if isinstance(v, ast.Tuple) and _has_part(v, part)]
            if len(tuples) < len(given):
                return self._of_list(site, given, depth) if not tuples else None
            given = [v.elts[part] for v in tuples]
        values = [v for v in given if not (isinstance(v, ast.Constant) and v.value is None)]
        made = [self.of(site.module, v, depth + 1) for v in values]
        sure = [m for m in made if m is not None]
        if not sure or (len(sure) < len(made) and not self._only_wraps(site, given)):
            return None
        return replace(sure[0], always=sure[0].always and len(sure) == len(made))

    def _of_list(self, site: FunctionSite, values: list[ast.expr], depth: int) -> Wrapped | None:
        """An element of the list that a function gives, where each element is a wrapper: `return [DDP(m) for m in models]`."""
        made = [self.of(site.module, v, depth + 1) for v in values]
        found = [_element(m) for m in made if m is not None and m.whole]
        return found[0] if found and len(found) == len(made) else None

    def _only_wraps(self, site: FunctionSite, values: list[ast.expr]) -> bool:
        """True for a function that hands on its argument bare where it does not wrap it: `if n == 1: return model`."""
        own = {a.arg for a in (*site.node.args.posonlyargs, *site.node.args.args)}
        return all(self.of(site.module, v, 0) is not None or dotted(v) in own for v in values)

    def _prepared(self, module: SourceModule, call: ast.Call, index: int) -> Wrapped | None:
        """The element of what `accelerator.prepare(...)` gives, where that is a model with something to train."""
        if len(call.args) == 1 and isinstance(call.args[0], ast.Starred):
            given: ast.expr = call.args[0].value
            many = is_wrapped_by_prepare(self.project, module, call, given, many=True)
            return Wrapped(module, call, None, prepared=True, many=True, whole=True) if many else None
        if index >= len(call.args) or any(isinstance(a, ast.Starred) for a in call.args[: index + 1]):
            return None
        given = call.args[index]
        if not is_wrapped_by_prepare(self.project, module, call, given):
            return None
        return Wrapped(module, call, given, prepared=True)

    def _method_of(self, module: SourceModule, call: ast.Call) -> FunctionSite | None:
        """`trainer.model_of(name)`: the method of the class that the receiver is annotated with."""
        facts = annotated_class(self.project, module, call.func.value) if isinstance(call.func, ast.Attribute) else None
        method = facts.method(call.func.attr) if facts is not None and isinstance(call.func, ast.Attribute) else None
        return FunctionSite(method[0].module, method[1]) if method is not None else None

    # Names

    def _name(self, module: SourceModule, name: ast.Name, depth: int) -> Wrapped | None:
        if (loop := comprehension_of(module, name)) is not None:
            return self._loop_element(module, loop.target, loop.iter, name.id, depth)
        own = module.function_of(name)
        scope, inner = own, own
        while not (bound := bindings_in(module, scope, name.id)):
            if scope is None:
                return None
            inner, scope = scope, module.function_of(scope)
        home = binding_function(module, bound) if scope is None else None
        if home is not None:
            if own is not home and own is not inner:
                return None
            limit = name.lineno if own is home else first_come_to(module, inner, home) if inner is not None else 0
            scope = home if own is home else None
        else:
            limit = name.lineno if scope is own else first_use(module, inner, scope)
        above = [b for b in bound if b.parameter or bound_by(b.node) < limit]
        for one in sorted(above, key=lambda b: line_of(b.node) if not b.parameter else 0, reverse=True):
            if scope is own and arms_exclude(module, one.node, name):
                continue
            if leaves(module, one.node, name) or _is_moved_elsewhere(module, name.id, one, above):
                continue
            if not self._is_clear(module, name.id, one, above, depth):
                return None
            found = self._bound(module, scope, name, one, depth)
            if found is not None and scope is own and not reaches(module, one.node, name):
                found = replace(found, always=False)
            return found
        return None

    def _is_clear(self, module: SourceModule, name: str, one: Binding, above: list[Binding], depth: int) -> bool:
        """False where a test asks for the wrapper before the name is bound, and where its other arm binds something not known."""
        if one.parameter or one.value is None:
            return True
        made = one.value.elt if isinstance(one.value, ast.ListComp) else one.value
        if not self._wraps(module, made, depth) and not is_prepare(module, one.value) and is_tested(module, one.node):
            return False
        others = (b for b in above if b is not one and not b.parameter and arms_exclude(module, b.node, one.node))
        return all(
            is_alike(module, b.value, name) or self._is_given_back(module, b.value) or self._always_wraps(module, b, depth)
            for b in others
        )

    def _wraps(self, module: SourceModule, made: ast.expr, depth: int) -> bool:
        """True for a wrap, also one by a function of the project: `if is_distributed(): model = wrap(model)`."""
        made = without_moves(made)
        if is_wrap(module, made) or not isinstance(made, ast.Call):
            return is_wrap(module, made)
        return last(dotted(made.func)) in giving(self.project) and self._returned(module, made, None, depth) is not None

    def _always_wraps(self, module: SourceModule, other: Binding, depth: int) -> bool:
        """True where the other arm makes a wrapper, too: `model = build(args, 0)` beside `model = build(args, 4)`."""
        found = self.of(module, other.value, depth + 1) if other.value is not None and not other.part else None
        return found is not None and found.always and not found.prepared and not found.many

    def _is_given_back(self, module: SourceModule, value: ast.expr | None) -> bool:
        return isinstance(value, ast.Call) and given_back(self.project, module, value) is not None

    def _bound(
        self, module: SourceModule, scope: FunctionNode | None, name: ast.Name, one: Binding, depth: int
    ) -> Wrapped | None:
        if one.parameter:
            return self._parameter(module, scope, name.id, depth) if scope is not None else None
        if isinstance(one.node, (ast.For, ast.AsyncFor)):
            return self._loop_element(module, one.node.target, one.node.iter, name.id, depth)
        if not one.part:
            return self.of(module, one.value, depth + 1)
        index = place_in(one.node, name.id)
        if index is None or not isinstance(one.value, ast.Call):
            return None
        if is_prepare(module, one.value):
            return self._prepared(module, one.value, index)
        given = last(dotted(one.value.func)) in giving(self.project)
        return self._returned(module, one.value, index, depth + 1) if given else None

    def _loop_element(self, module: SourceModule, target: ast.expr, source: ast.expr, name: str, depth: int) -> Wrapped | None:
        """What the name of a loop holds: `for m in models`, `for i, m in enumerate(models)`, `for a, m in zip(names, models)`."""
        called = dotted(source.func) if isinstance(source, ast.Call) else ""
        index = next((i for i, e in enumerate(getattr(target, "elts", ())) if dotted(e) == name), None)
        if isinstance(source, ast.Call) and called == "enumerate" and index == 1 and source.args:
            assert isinstance(target, (ast.Tuple, ast.List))
            return self._loop_element(module, target.elts[1], source.args[0], name, depth)
        if isinstance(source, ast.Call) and called == "enumerate" and isinstance(target, ast.Tuple) and len(target.elts) == 2:
            return self._loop_element(module, target.elts[1], source.args[0], name, depth) if source.args else None
        if isinstance(source, ast.Call) and called == "zip" and index is not None and index < len(source.args):
            return _element(self.of(module, source.args[index], depth + 1))
        if isinstance(target, ast.Name) and target.id == name:
            return _element(self.of(module, source, depth + 1))
        return None

    def _parameter(self, module: SourceModule, function: FunctionNode, name: str, depth: int) -> Wrapped | None:
        """A parameter, where each caller outside the tests hands over a wrapper."""
        owner = module.parent(function)
        built = isinstance(owner, ast.ClassDef) and function.name == "__init__"
        word = owner.name if built and isinstance(owner, ast.ClassDef) else function.name
        if depth > PARAMETERS:
            return None
        from codemods.analysis.wrapped.near_wraps import handed  # it asks what the functions of a file give

        if word not in handed(self.project):
            return None
        calls = callers(self.project, module, function)
        made: list[Wrapped | None] = []
        for site in calls[:MOST_CALLERS]:
            given = bind(function, site.call, bound=isinstance(owner, ast.ClassDef))
            made.append(self.of(site.module, given[name], depth + 1) if given is not None and name in given else None)
        sure = [m for m in made if m is not None]
        return replace(sure[0], always=all(m.always for m in sure)) if sure and len(sure) == len(calls) else None

    # Fields

    def _attribute(self, module: SourceModule, node: ast.Attribute, depth: int) -> Wrapped | None:
        if dotted(node.value) != "self":
            return self._field_of_object(module, node, depth)
        place = module.method_of(node)
        if place is None:
            return None
        facts = class_facts(self.project, module, place[0])
        given = class_values(self.project, facts).given.get(node.attr, ())
        for one in given:
            found = self._given(one, depth) if one.function is not None else None
            if found is None or one.function is None:
                continue
            statement = one.site.module.statement_of(one.value)
            others = [g for g in given if g is not one and (place[1] is not one.function or g.function is one.function)]
            if any(self._undone(other, one, node.attr, depth) for other in others):
                return None
            if not runs_behind(facts, (place[1], node), (one.function, statement)):
                return None
            round_it = {id(up) for up in module.ancestors(node)}
            sure = all(id(c) in round_it for c in conditions_of(one.site.module, statement, one.function))
            sure = sure and (place[1] is one.function or always_runs(facts, one.site, one.function, statement))
            return found if sure else replace(found, always=False)
        return None

    def _field_of_object(self, module: SourceModule, node: ast.Attribute, depth: int) -> Wrapped | None:
        """`task.net` of a `task = Task()` that this function makes: what the methods that have run gave the field."""
        from codemods.analysis.wrapped.made_objects import made_object  # it asks which files get a wrapper

        made = made_object(self.project, module, node) if depth <= PARAMETERS else None
        if made is None:
            return None
        given = class_values(self.project, made.facts).given.get(node.attr, ())
        for one in given:
            found = self._given(one, depth) if one.function is not None and made.has_run(one.function) else None
            if found is None or one.function is None:
                continue
            if any(self._undone(other, one, node.attr, depth) for other in given if other is not one):
                return None
            sure = not conditions_of(one.site.module, one.site.module.statement_of(one.value), one.function)
            return found if sure else replace(found, always=False)
        return None

    def _given(self, one: Given, depth: int) -> Wrapped | None:
        module, value = one.site.module, one.value
        if one.part is not None:
            return self._prepared(module, value, one.part) if is_prepare(module, value) and isinstance(value, ast.Call) else None
        return self.of(module, value, depth + 1) if isinstance(value, (ast.Call, ast.Name, ast.IfExp, ast.ListComp)) else None

    def _undone(self, other: Given, wrap: Given, name: str, depth: int) -> bool:
        """True where the field is given something else behind the wrap, or in a method of which the order is not seen."""
        if isinstance(other.value, ast.Constant) and other.value.value is None:
            return False
        if other.function is wrap.function and arms_exclude(wrap.site.module, other.value, wrap.value):
            return not is_alike(wrap.site.module, other.value, f"self.{name}")
        if other.function is wrap.function and line_of(other.value) <= line_of(wrap.value):
            return False
        if other.function is None or (other.function.name == "__init__" and wrap.function is not other.function):
            return False
        if isinstance(other.value, (ast.List, ast.Tuple)) and [dotted(e) for e in other.value.elts] == [f"self.{name}"]:
            return False
        if any(dotted(n) == f"self.{name}" for n in walk(other.value)) and isinstance(other.value, ast.Call):
            if without_moves(other.value) is not other.value or _is_compiled(other.site.module, other.value, f"self.{name}"):
                return False
        return self._given(other, depth) is None


def _is_compiled(module: SourceModule, call: ast.Call, name: str) -> bool:
    """True for `torch.compile(self.net)`, in front of the wrap or behind it: what it gives asks what it was handed."""
    return qualified(module, call.func) == "torch.compile" and any(dotted(a) == name for a in call.args[:1])


def _is_moved_elsewhere(module: SourceModule, name: str, one: Binding, above: list[Binding]) -> bool:
    """True for `elif gpu is not None: model = model.cuda(gpu)` below an arm that wraps, and for `nn.DataParallel(model)` there.

    In a run of several processes it is the wrapper of the other arm.
    """
    if one.parameter or one.part or one.value is None:
        return False
    value = without_moves(one.value)
    if dotted(value) != name and not is_parallel_beside_bare(module, value):
        return False
    others = (b for b in above if not b.parameter and b is not one and is_wrap(module, without_moves(b.value or one.value)))
    return any(arms_exclude(module, b.node, one.node) for b in others)


def _has_part(values: ast.Tuple, part: int) -> bool:
    """True where the element stands there, whatever the run."""
    return part < len(values.elts) and not any(isinstance(e, ast.Starred) for e in values.elts)


def _element(found: Wrapped | None) -> Wrapped | None:
    return replace(found, whole=False) if found is not None and found.whole else None
