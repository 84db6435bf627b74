"""Which hooks a method runs under: the hook itself, or every hook that reaches a helper through `self.helper(...)`."""

from __future__ import annotations

import ast
import re

from codemods.analysis.class_index import ClassFacts, ClassSite, Role, class_facts, subclasses
from codemods.analysis.distribution import is_test_file
from codemods.analysis.hooks import LIGHTNING_HOOKS
from codemods.analysis.names import dotted, last
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.record import field, record
from codemods.store.project import Project


@record
class Caller:
    """A call of a method through `self` (or `super()`), and the method it stands in."""

    site: ClassSite
    function: FunctionNode
    call: ast.Call


@record
class Outside:
    """A call of a method on another object: `model.validation_step(batch)`."""

    module: SourceModule
    call: ast.Call


@record
class Entries:
    """How a method is reached. hooks: names of the framework's hooks. steps: the calls on the way. outside: calls that other
    code makes. unknown: why it may be reached in other ways too, "" where it is not."""

    hooks: frozenset[str]
    steps: tuple[Caller, ...]
    outside: tuple[Outside, ...] = ()
    unknown: str = ""


@record(frozen=False)
class _SelfCalls:
    """What one class calls on itself. inner: names called from a function inside a method. passed: names handed on."""

    calls: dict[str, list[Caller]] = field(default_factory=dict)
    inner: dict[str, str] = field(default_factory=dict)
    passed: dict[str, str] = field(default_factory=dict)


def family_of(project: Project, facts: ClassFacts) -> tuple[ClassSite, ...]:
    """The class, its project ancestors and everything that derives from it: whoever can call its methods through self."""
    start = facts.lineage[0]
    wider = [*facts.lineage, *subclasses(project, start)]
    return tuple({(s.module.path, s.node.lineno): s for s in wider}.values())


def entries(project: Project, facts: ClassFacts, function: FunctionNode) -> Entries:
    """The hooks from which `function` is reached, remembered for the project."""
    key = ("entries", facts.lineage[0].module.path, facts.lineage[0].node.lineno, function.lineno, function.name)
    return project.memo(key, lambda: _entries(project, facts, function))


def _entries(project: Project, facts: ClassFacts, function: FunctionNode) -> Entries:
    kin = family_of(project, facts)
    hooks: set[str] = set()
    steps: list[Caller] = []
    outside: list[Outside] = []
    unknown = ""
    seen: set[str] = set()
    queue = [function.name]
    while queue:
        name = queue.pop()
        if name in seen:
            continue
        seen.add(name)
        callers, other = _callers(project, kin, name)
        outside += _outside(project, name)
        if name in LIGHTNING_HOOKS:
            hooks.add(name)
            callers = [c for c in callers if name == function.name or c.function.name != name]
        else:
            unknown = unknown or other
            if not callers and name == function.name:
                unknown = unknown or f"nobody in the project is seen to call {name}"
        for caller in callers:
            steps.append(caller)
            queue.append(caller.function.name)
    return Entries(frozenset(hooks), tuple(steps), tuple(outside), unknown)


def _callers(project: Project, kin: tuple[ClassSite, ...], name: str) -> tuple[list[Caller], str]:
    """(calls of `self.name(...)` in these classes, why there may be others)."""
    found: list[Caller] = []
    for site in kin:
        own = _self_calls(project, site)
        found += own.calls.get(name, [])
        if name in own.inner:
            return found, f"{name} is called from a function inside {own.inner[name]}"
        if name in own.passed:
            return found, f"{name} is passed on as a value in {site.name}.{own.passed[name]}"
    return found, ""


def _self_calls(project: Project, site: ClassSite) -> _SelfCalls:
    return project.memo(("self calls", site.module.path, site.node.lineno), lambda: _read(site))


def _read(site: ClassSite) -> _SelfCalls:
    out = _SelfCalls()
    for method in site.node.body:
        if not isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        heads: set[int] = set()
        for node in walk(method):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                heads.add(id(node.func))
                receiver = node.func.value
                upward = isinstance(receiver, ast.Call) and dotted(receiver.func) == "super"
                if upward or (isinstance(receiver, ast.Name) and receiver.id == "self"):
                    if site.module.function_of(node) is method:
                        out.calls.setdefault(node.func.attr, []).append(Caller(site, method, node))
                    else:
                        out.inner[node.func.attr] = method.name
            elif isinstance(node, ast.Attribute) and id(node) not in heads and isinstance(node.ctx, ast.Load):
                if isinstance(node.value, ast.Name) and node.value.id == "self":
                    out.passed[node.attr] = method.name
    return out


# How other code calls a LightningModule.
_MODULE_NAMES = frozenset({"pl_module", "model", "module", "lightning_module", "net", "system", "task", "litmodel", "pl_model"})
_CALLED = re.compile(rf"\b(?:{'|'.join(sorted(_MODULE_NAMES))})[\s\\]*\.([^\s.()\\]+)\(".encode())


def _outside(project: Project, name: str) -> list[Outside]:
    """Calls of a method of that name on a model, outside the repository's tests."""
    return project.memo(("outside calls", name), lambda: _find_outside(project, name))


def _find_outside(project: Project, name: str) -> list[Outside]:
    found = []
    for path in project.files_containing(f".{name}(".encode()):
        if is_test_file(path) or name.encode() not in _called(project, path) or (module := project.module(path)) is None:
            continue
        for call in module.calls_named(name):
            receiver = dotted(call.func.value) if isinstance(call.func, ast.Attribute) else ""
            if last(receiver) in _MODULE_NAMES and not _of_a_part(project, module, call, receiver):
                found.append(Outside(module, call))
    return found


def _called(project: Project, path: str) -> frozenset[bytes]:
    """The names that a file calls on a model, by its bytes alone."""
    return project.memo(("called on a model", path), lambda: frozenset(_CALLED.findall(project.read(path) or b"")))


def _of_a_part(project: Project, module: SourceModule, call: ast.Call, receiver: str) -> bool:
    """True for `self.model.name(...)` in a LightningModule: its part is a plain network nearly always."""
    owner = module.class_of(call)
    if not receiver.startswith("self.") or owner is None:
        return False
    return class_facts(project, module, owner).is_a(Role.LIGHTNING_MODULE)
