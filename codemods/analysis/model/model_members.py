"""The sub-modules and parameters a model class registers: what makes each one, and under which condition it exists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.class_index import ClassFacts, ClassSite, Role, class_facts
from codemods.analysis.model.added_layers import Added, added_by, alternatives
from codemods.analysis.model.member_expressions import METRIC, Maker
from codemods.analysis.model.member_kinds import (
    Kind,
    Member,
    Members,
    condition,
    in_loop,
    is_false,
    joined,
    literal_name,
    marked,
    without_aliases,
    without_copies,
)
from codemods.analysis.model.setting_values import values_of
from codemods.analysis.names import dotted, last
from codemods.data import torch_modules as table
from codemods.files.source import FunctionNode, line_of, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import replace
from codemods.store.project import Project


def members_of(project: Project, facts: ClassFacts) -> Members:
    """What the class and its project ancestors register, remembered for the project."""
    site = facts.lineage[0]
    return project.memo(("model members", site.module.path, site.node.lineno), lambda: _Reader(project, facts).read())


# The name under which the parameters of a torch base hang.
BASE = "(base)"
# Methods that change what a call or an attribute of the model means.
_INTERCEPTORS = ("__call__", "__getattr__", "__getattribute__", "__setattr__")
# What modules are asked for beside `forward`.
_MODULE_METHOD = lazy(r"_?(forward|encode|decode|embed|score|loss|compute_loss|extract_features)")


class _Reader:
    """Reads the constructors of one class, its ancestors' first."""

    def __init__(self, project: Project, facts: ClassFacts) -> None:
        self.project, self.facts = project, facts
        self.made_by = Maker(project, facts).member
        self.found: dict[str, list[Member]] = {}
        self.constants: dict[str, list[object]] = {}
        self.frozen: set[str] = set()
        self.state: set[str] = set()
        self.problems: list[str] = []
        self.added: dict[str, list[Added]] = {}

    def read(self) -> Members:
        self.problems += [f"its base {name} is not part of the project" for name in self.facts.opaque]
        self._inherited()
        for site in reversed(self.facts.lineage):
            self.problems += [f"{site.name} has its own {name}" for name in _INTERCEPTORS if name in site.methods()]
            builders = set(_builders(site))
            for function in site.methods().values():
                if function in builders:
                    self._constructor(site, function)
                else:
                    self._other_method(site, function)
        merged = {name: joined(name, values) for name, values in self.found.items() if values}
        merged = {name: without_copies(member, merged) for name, member in merged.items()}
        merged = {name: without_aliases(member, merged) for name, member in merged.items()}
        changed = self._assigned_twice | self.state
        constants = {n: v[0] for n, v in self.constants.items() if len(v) == 1 and n not in changed}
        return Members(merged, constants, frozenset(self.state), frozenset(self.frozen), tuple(dict.fromkeys(self.problems)))

    def _inherited(self) -> None:
        """Parameters that a base of torch itself registers: `class Norm(nn.LayerNorm)`."""
        site = self.facts.lineage[0]
        for name in self.facts.external:
            end = last(name)
            if not name.startswith("torch.nn.") or end == "Module":
                continue
            if end in table.PARAMETRISED or end in table.AFFINE:
                member = Member(BASE, Kind.LEAF, end, site.module.path, site.node.lineno)
                self.found[BASE] = [member]
            elif end in table.CONTAINERS or end in table.UNSURE or not end[:1].isupper():
                self.problems.append(f"its base nn.{end} may register modules of its own")

    @property
    def _assigned_twice(self) -> set[str]:
        return {name for name, values in self.found.items() if len(values) > 1}

    def _constructor(self, site: ClassSite, function: FunctionNode) -> None:
        for node in walk(function):
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    self._assignment(site, function, target, node.value)
            elif isinstance(node, ast.Call):
                self._call(site, function, node)
        for name, layers in self.added.items():
            more = alternatives(layers)
            self.found[name] = [replace(old, parts=(*old.parts, *more)) for old in self.found.get(name, [])]
        self.added.clear()

    def _assignment(self, site: ClassSite, function: FunctionNode, target: ast.expr, value: ast.expr) -> None:
        name = dotted(target)
        if name.endswith(".requires_grad") and isinstance(value, ast.Constant) and value.value is False:
            self._freeze(site, function, target)
            return
        if isinstance(target, ast.Attribute) and name.count(".") == 1 and name.startswith("self."):
            made = self._unless_called(target.attr, value, self.made_by(site, function, value))
            under = condition(site.module, target, function)
            line = target.lineno
            self.found.setdefault(target.attr, []).append(
                replace(made, name=target.attr, line=line, path=site.module.path, condition=under)
            )
            constant = value.value if isinstance(value, ast.Constant) and not under else value
            self.constants.setdefault(target.attr, []).append(constant)
            if not isinstance(value, ast.Constant) or under:
                self.constants[target.attr].append(value)  # two entries: never taken for a constant
        elif isinstance(target, (ast.Tuple, ast.List)) and _matches(target, value):
            for element, one in zip(target.elts, value.elts, strict=True):  # type: ignore[attr-defined]
                self._assignment(site, function, element, one)
        elif isinstance(target, (ast.Tuple, ast.List)):
            for element in target.elts:
                if dotted(element).startswith("self."):
                    self.problems.append(f"{dotted(element)} is unpacked from {site.module.text_of(value)[:60]}")
        elif isinstance(target, ast.Subscript) and dotted(target.value).startswith("self."):
            owner = dotted(target.value).split(".")[1]
            made = marked(self.made_by(site, function, value), in_loop(site.module, target, function))
            for i, old in enumerate(self.found.get(owner, [])):
                self.found[owner][i] = replace(old, parts=(*old.parts, made)) if made.kind is not Kind.PLAIN else old

    def _call(self, site: ClassSite, function: FunctionNode, call: ast.Call) -> None:
        """Registrations by call: `register_parameter`, `add_module`, `self.blocks.append(…)`, `setattr`."""
        func = call.func
        name = dotted(func)
        if name == "setattr" or (name in ("self.add_module", "self.register_module") and not literal_name(call)):
            text = " ".join(site.module.text_of(call).split())[:60]
            self.problems.append(f"{text} registers under a name that is not written out")
        elif name in ("self.add_module", "self.register_module", "self.register_parameter") and len(call.args) > 1:
            key = literal_name(call)
            made = self.made_by(site, function, call.args[1])
            under = condition(site.module, call, function)
            if key:
                named = replace(made, name=key, line=call.lineno, path=site.module.path, condition=under)
                self.found.setdefault(key, []).append(named)
        elif isinstance(func, ast.Attribute) and func.attr in ("append", "extend", "insert", "add_module", "update"):
            owner = dotted(func.value)
            if owner.count(".") == 1 and owner.startswith("self.") and call.args:
                made = self.made_by(site, function, call.args[-1])
                added = made.parts if func.attr == "extend" else (made,)
                self.added.setdefault(owner[5:], []).append(added_by(site.module, function, call, added))
        elif isinstance(func, ast.Attribute) and func.attr == "requires_grad_" and is_false(call):
            self._freeze(site, function, func.value)
        elif isinstance(func, ast.Attribute) and func.attr == "freeze" and not call.args and not call.keywords:
            self._frozen_by_lightning(site, function, func.value)

    def _freeze(self, site: ClassSite, function: FunctionNode, what: ast.AST) -> None:
        """`self.x.requires_grad_(False)`, or `p.requires_grad = False` in a loop over `self.x.parameters()`."""
        module = site.module
        name = dotted(what.value if isinstance(what, ast.Attribute) and what.attr == "requires_grad" else what)
        loop: ast.For | None = None
        for up in module.ancestors(what) if not name.startswith("self.") else ():
            if isinstance(up, ast.For) and isinstance(up.iter, ast.Call) and isinstance(up.iter.func, ast.Attribute):
                loop, name = up, dotted(up.iter.func.value) if up.iter.func.attr == "parameters" else ""
                break
        under = condition(module, what, function)
        if under and not self._made_under(name.removeprefix("self."), under):
            self.problems.append(f"parameters are frozen under a test ({module.path}:{line_of(what)})")
        elif name.startswith("self."):
            self.frozen.add(name[5:])
        elif name == "self" and loop is not None:
            self.problems.append(f"parameters are frozen one by one ({module.path}:{loop.lineno})")

    def _made_under(self, name: str, tests: str) -> bool:
        """True for a module that exists only where all of these tests hold: frozen under them, it is always frozen."""
        made = self.found.get(name, [])
        return bool(made) and all(set(tests.split(" and ")) <= set(m.condition.split(" and ")) for m in made)

    def _frozen_by_lightning(self, site: ClassSite, function: FunctionNode, what: ast.expr) -> None:
        """`self.x.freeze()`: of a LightningModule it stops every gradient; of another class it may do anything."""
        found = self.found.get(dotted(what).removeprefix("self."), [])
        made = [part for member in found for part in (member.parts if member.kind is Kind.CHOICE else (member,))]
        homes = [member.site for member in made if member.site is not None]
        facts = [class_facts(self.project, home.module, home.node) for home in homes]
        if facts and len(facts) == len(made) and all(f.is_a(Role.LIGHTNING_MODULE) and not f.method("freeze") for f in facts):
            self._freeze(site, function, what)
        elif dotted(what).startswith("self."):
            self.problems.append(f"what {dotted(what)}.freeze() freezes is not shown ({site.module.path}:{what.lineno})")

    def _other_method(self, site: ClassSite, function: FunctionNode) -> None:
        """A module made outside the constructor, or a freeze during training, hides what DDP was told."""
        for node in walk(function):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    name = dotted(target)
                    if name.endswith(".requires_grad"):
                        self.problems.append(f"{function.name} changes requires_grad ({site.module.path}:{node.lineno})")
                        continue
                    if name.startswith("self.") and name.count(".") == 1:
                        changed = self.constants.setdefault(name[5:], [])
                        changed += [node.value, node.value]  # two entries: never taken for a constant
                        if not isinstance(node.value, ast.Constant):
                            self.state.add(name[5:])
                    if name.startswith("self.") and name.count(".") == 1 and isinstance(node.value, ast.Call):
                        made = self.made_by(site, function, node.value)
                        if made.kind not in (Kind.PLAIN, Kind.FREE, Kind.UNKNOWN, Kind.ALIAS):
                            self.problems.append(f"{name} is made in {function.name} ({site.module.path}:{node.lineno})")
            elif isinstance(node, ast.Call) and last(dotted(node.func)) in ("requires_grad_", "freeze", "unfreeze"):
                self.problems.append(f"{function.name} freezes or unfreezes ({site.module.path}:{node.lineno})")

    def _unless_called(self, name: str, value: ast.expr, made: Member) -> Member:
        """What seems to be no module but is called as one (`self.net(…)`, `self.net.encode(…)`) may be a module."""
        if made.kind is not Kind.PLAIN or made.note == METRIC or isinstance(value, (ast.Constant, ast.Lambda)):
            return made
        if not self._called(name):
            return made
        values = values_of(self.project, self.facts, name)
        if values is not None and all(isinstance(v, (str, int, float)) for v in values.found):
            return made  # a word or a number wherever the project gives it: `if callable(self.loss): …` is for others
        return replace(made, kind=Kind.UNKNOWN, note=f"what self.{name} is made of is not shown")

    def _called(self, name: str) -> bool:
        return any(name in _called_as_modules(self.project, site) for site in self.facts.lineage)


def _matches(target: ast.Tuple | ast.List, value: ast.expr) -> bool:
    """True for `self.a, self.b = one, other`: each has its own value."""
    if not isinstance(value, (ast.Tuple, ast.List)) or len(value.elts) != len(target.elts):
        return False
    return not any(isinstance(e, ast.Starred) for e in (*target.elts, *value.elts))


def _called_as_modules(project: Project, site: ClassSite) -> frozenset[str]:
    """The attributes of self that a class calls (`self.net(…)`), or a module's method of them; one walk a class."""

    def search() -> frozenset[str]:
        found: set[str] = set()
        for node in walk(site.node):
            if isinstance(node, ast.Call):
                found.add(dotted(node.func))
                if isinstance(node.func, ast.Attribute) and _MODULE_METHOD.match(node.func.attr):
                    found.add(dotted(node.func.value))
        return frozenset(name[5:] for name in found if name.startswith("self.") and name.count(".") == 1)

    return project.keep(("called as modules", site.module.path, site.node.lineno), search)


def _builders(site: ClassSite) -> Iterator[FunctionNode]:
    """The constructor and the methods it calls on self."""
    methods = site.methods()
    queue, seen = ["__init__", "__post_init__", "configure_model", "configure_sharded_model"], set()
    while queue:
        name = queue.pop()
        if name in seen or name not in methods:
            continue
        seen.add(name)
        yield methods[name]
        for node in walk(methods[name]):
            if isinstance(node, ast.Call) and dotted(node.func).startswith("self."):
                queue.append(dotted(node.func)[5:])


def set_from_outside(project: Project, name: str) -> bool:
    """True if some file assigns `something.name = …` on another object than self."""

    def search() -> bool:
        pattern = re.compile(rb"(?<!\bself)\." + re.escape(name.encode()) + rb"\s*=(?!=)")
        return any(pattern.search(project.read(path) or b"") for path in project.files_containing(f".{name}".encode()))

    return project.keep(("set from outside", name), search)
