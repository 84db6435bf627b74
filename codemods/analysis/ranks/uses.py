"""Where the project calls a function or makes an object of a class, and where it hands either on as a value."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from codemods.analysis.call_graph import called_function, find_function
from codemods.analysis.class_index import ClassSite, find_class, has_many_heirs, subclasses
from codemods.analysis.distribution import is_test_file, is_test_module
from codemods.analysis.importing import importers
from codemods.analysis.local_names import is_local_value
from codemods.analysis.names import dotted, last
from codemods.analysis.other_names import reads_by_other_names
from codemods.analysis.ranks.other_methods import (
    cannot_take,
    has_its_own,
    is_of_a_module,
    is_of_another_object,
    of_another_class,
)  # fmt: skip
from codemods.analysis.ranks.other_packages import is_of_another_package, is_one_of_several
from codemods.analysis.ranks.tested_reads import is_only_tested
from codemods.analysis.ranks.value_calls import plain_calls
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.record import record, replace
from codemods.store.corpus import may_bring_in
from codemods.store.file_facts import file_fact
from codemods.store.project import Project

MANY = 60  # a name that is called in more places than this belongs to more than one function
MANY_FILES = 25  # and so does one that stands in more files than this


@record
class CallSite:
    """A call, and the file it stands in."""

    module: SourceModule
    call: ast.Call


@record
class HandedOn:
    """A place that names a function or class without calling it, and the file it stands in."""

    module: SourceModule
    node: ast.expr


@record
class Uses:
    """Every place of the project that uses a function or a class; nothing in it where nobody does.

    Tests of the repository count where nothing else uses it: they run on one process, and are not parsed else.

    more: there are too many places of that name to look at; these are in the files that speak of its class.
    """

    calls: tuple[CallSite, ...] = ()
    handed_on: tuple[HandedOn, ...] = ()
    more: bool = False

    def outside_tests(self) -> Uses:
        """Without those of the repository's own tests, unless there are no others."""
        calls = tuple(s for s in self.calls if not is_test_module(s.module))
        handed_on = tuple(h for h in self.handed_on if not is_test_module(h.module))
        return Uses(calls, handed_on, self.more) if calls or handed_on else self


def calls_of(project: Project, module: SourceModule, function: FunctionNode) -> tuple[CallSite, ...] | None:
    """Every call in the project that may be one of `function`: by its name, on `self` of its class or on any object.

    Empty where nobody calls it. None where there may be others: it is handed on, or there are too many to look at.
    """
    found = uses_of(project, module, function)
    return None if found.more or found.handed_on else found.calls


def uses_of(project: Project, module: SourceModule, function: FunctionNode) -> Uses:
    """Every use of `function`, as far as there are not too many to look at."""
    key = ("uses of", module.path, function.lineno, function.name)
    return project.memo(key, lambda: _followed(project, _of_function(project, module, function)))


def _followed(project: Project, found: Uses) -> Uses:
    """With the calls of what is handed on as a value in its place, where all of them are seen: `TASKS[name](cfg)`."""
    calls, handed_on = list(found.calls), []
    for place in found.handed_on:
        led = plain_calls(project, place.module, place.node)
        calls += [CallSite(module, call) for module, call in led]
        handed_on += [] if led else [place]
    return found if len(handed_on) == len(found.handed_on) else Uses(tuple(calls), tuple(handed_on), found.more)


def _of_function(project: Project, module: SourceModule, function: FunctionNode) -> Uses:
    owner = module.parent(function)
    if not isinstance(owner, ast.ClassDef):
        users = _bringing_in(project, module, function.name)
        return _in_files(project, module, function, users) or Uses(more=True)
    users = project.files_using(function.name, most=MANY_FILES)
    if found := _in_files(project, module, function, users):
        return found
    if has_many_heirs(project, ClassSite(module, owner)):
        return Uses(more=True)  # a base class of half a repository: all its heirs would be parsed
    names = {owner.name, *(s.node.name for s in subclasses(project, ClassSite(module, owner)))}
    speaking = {path for name in names for path in project.files_containing(name.encode())}
    users = project.files_using(function.name, most=MANY_FILES, among=speaking)
    near = _in_files(project, module, function, users)
    return replace(near, more=True) if near is not None else Uses(more=True)


def _in_files(project: Project, module: SourceModule, function: FunctionNode, users: Iterable[str] | None) -> Uses | None:
    """The uses in these files and its own, in tests where there are no others; None where there are too many."""
    if users is None:
        return None
    others, tests = _parted(module, users)
    found = _read_in(project, module, function, others)
    return found if found is None or found.calls or found.handed_on or not tests else _read_in(project, module, function, tests)


def _parted(module: SourceModule, users: Iterable[str]) -> tuple[list[str], list[str]]:
    """(files, the repository's own tests among them): half of all files that use a name may be tests, on one process."""
    paths = list(users)
    tests = [p for p in paths if is_test_file(p)] if not is_test_module(module) else []
    return [p for p in paths if p not in tests], tests


def _read_in(project: Project, module: SourceModule, function: FunctionNode, users: Iterable[str]) -> Uses | None:
    owner = module.parent(function)
    nested = not isinstance(owner, ast.ClassDef) and module.function_of(function) is not None  # `x.sample()` is not `sample`
    calls: list[CallSite] = []
    handed_on: list[HandedOn] = []
    for other in _modules(project, module, users):
        for node, call in _reads(other, function.name):
            if _of_a_package(project, other, node) or (nested and isinstance(node, ast.Attribute)):
                continue
            if not nested and isinstance(node, ast.Name) and is_local_value(other, node):
                continue  # `if evaluate`, where `evaluate` is a parameter
            if call is None:
                if not function.decorator_list and is_only_tested(other, node):
                    continue
                if isinstance(owner, ast.ClassDef) or not _is_another(project, other, node, function):
                    handed_on.append(HandedOn(other, node))
            elif isinstance(owner, ast.ClassDef):
                own = has_its_own(project, module, other, owner, function.name) and not _hands_on(other, node)
                if isinstance(node, ast.Name) or own:
                    continue
                if cannot_take(function, call) or is_of_another_object(project, module, owner, other, call):
                    continue
                if is_of_a_module(project, module, owner, other, call):
                    continue
                if not of_another_class(project, module, other, call, owner):
                    calls.append(CallSite(other, call))
            elif not _of_an_object(other, node) and not _leads_elsewhere(project, other, call, function):
                calls.append(CallSite(other, call))
        if len(calls) > MANY:
            return None
    for read in () if nested or isinstance(owner, ast.ClassDef) else reads_by_other_names(project, module, function):
        _add(read.module, read.node, read.call, calls, handed_on)
    return Uses(tuple(calls), tuple(handed_on))


def _hands_on(module: SourceModule, node: ast.Name | ast.Attribute) -> bool:
    """True for `self.model.save(path)` in a method `save`: what is called there is another object's method."""
    place = module.method_of(node)
    if place is None or not isinstance(node, ast.Attribute) or place[1].name != node.attr:
        return False
    return isinstance(node.value, ast.Attribute) and dotted(node.value).startswith("self.")


def _add(
    module: SourceModule, node: ast.expr, call: ast.Call | None, calls: list[CallSite], handed_on: list[HandedOn]
) -> None:
    if call is not None:
        calls.append(CallSite(module, call))
    else:
        handed_on.append(HandedOn(module, node))


def constructions(project: Project, module: SourceModule, owner: ast.ClassDef) -> Uses | None:
    """Every place that makes an object of the class, or of one that derives from it; None where there are too many."""
    key = ("constructions", module.path, owner.lineno, owner.name)
    return project.memo(key, lambda: _of_class(project, ClassSite(module, owner)))


def _of_class(project: Project, site: ClassSite) -> Uses | None:
    if has_many_heirs(project, site):
        return None
    users: list[tuple[ClassSite, list[str], list[str]]] = []
    for made in (site, *subclasses(project, site)):
        bringing = _bringing_in(project, made.module, made.node.name)
        if bringing is None:
            return None
        users.append((made, *_parted(made.module, bringing)))
    found = _made_in(project, [(made, others) for made, others, _ in users])
    if found is None or found.calls or found.handed_on:
        return found
    return _made_in(project, [(made, tests) for made, _, tests in users])


def _made_in(project: Project, users: Iterable[tuple[ClassSite, list[str]]]) -> Uses | None:
    """The places that make objects of classes, each in its own file and those beside it; None where there are too many."""
    calls: list[CallSite] = []
    handed_on: list[HandedOn] = []
    for made, paths in users:
        for other in _modules(project, made.module, paths):
            for node, call in _reads(other, made.node.name):
                if only_names(other, node) or not means(project, other, node, made):
                    continue
                _add(other, node, call, calls, handed_on)
        for read in reads_by_other_names(project, made.module, made.node):
            if not only_names(read.module, read.node):
                _add(read.module, read.node, read.call, calls, handed_on)
        if len(calls) > MANY:
            return None
    return Uses(tuple(calls), tuple(handed_on))


def _modules(project: Project, module: SourceModule, users: Iterable[str]) -> Iterator[SourceModule]:
    yield module
    for path in users:
        if path != module.path and (other := project.module(path)) is not None:
            yield other


def _bringing_in(project: Project, module: SourceModule, name: str) -> tuple[str, ...] | None:
    """The files in which `name` may be the one that stands at the top of this module; None where too many hold the word.

    It comes into another file by an import, as an attribute of the module, or with everything else (`import *`): most files
    that hold the word of a well-known class only speak of it.
    """
    users = project.files_using(name, most=MANY_FILES, among=importers(project, module.path))
    if users is None:
        return None
    return tuple(p for p in users if p == module.path or project.fact(_brings_in, p, name))


@file_fact
def _brings_in(path: str, data: bytes, name: str) -> bool:
    del path
    return may_bring_in(data, name.encode())


def _reads(module: SourceModule, name: str) -> Iterator[tuple[ast.Name | ast.Attribute, ast.Call | None]]:
    """Where the name is read, with the call that it is the function of."""
    for node in module.reads_of(name):
        up = module.parent(node)
        yield node, up if isinstance(up, ast.Call) and up.func is node else None


def _of_a_package(project: Project, module: SourceModule, node: ast.Name | ast.Attribute) -> bool:
    """True for a function of an installed package: `torch.load`, `json.load`.

    A folder of the project need not be a package: `import lib.steps` resolves where `lib` alone does not.
    """
    root, _, rest = dotted(node).partition(".")
    imported = module.imports.get(root, ()) if rest else ()
    if not imported or any(project.resolve(i.dotted, module.path) is not None for i in imported):
        return False
    return project.resolve(dotted(node), module.path) is None


def _of_an_object(module: SourceModule, node: ast.Name | ast.Attribute) -> bool:
    """True for `net.train()` of a plain function `train`: only what was imported holds one."""
    root = dotted(node).partition(".")[0]
    return isinstance(node, ast.Attribute) and root not in module.imports


def _leads_elsewhere(project: Project, module: SourceModule, call: ast.Call, function: FunctionNode) -> bool:
    """True for a call of another function of that name: a method, one of another file."""
    found = called_function(project, module, call)
    return found.node is not function if found is not None else dotted(call.func).startswith(("self.", "cls."))


def _is_another(project: Project, module: SourceModule, node: ast.Name | ast.Attribute, function: FunctionNode) -> bool:
    """True for another function of that name, of the file itself or of one that it imports: `spawn(worker)` in each program."""
    if isinstance(node, ast.Attribute) and dotted(node).partition(".")[0] not in module.imports:
        return False
    found = find_function(project, module, dotted(node)) if dotted(node) else None
    return found is not None and found.node is not function


def only_names(module: SourceModule, node: ast.expr, *, made_by_methods: bool = False) -> bool:
    """True where a class is named as a type or a base, or for what it holds: no object of it is made there.

    made_by_methods: what it holds may make one: `Model.load_from_checkpoint(path)`.
    """
    below: ast.AST = node
    for up in module.ancestors(node):
        if isinstance(up, ast.Attribute) and up.value is node:
            return not made_by_methods  # `Net.x`, and not `Net().train()`
        if isinstance(up, ast.arg) or (isinstance(up, ast.AnnAssign) and up.annotation is below):
            return True
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)) and up.returns is below:
            return True
        if isinstance(up, ast.ClassDef) and any(b is below for b in up.bases):
            return True
        if isinstance(up, ast.Call) and last(dotted(up.func)) in ("isinstance", "issubclass", "super"):
            return True
        if isinstance(up, ast.stmt):
            return False
        below = up
    return False


def means(project: Project, module: SourceModule, node: ast.Name | ast.Attribute, site: ClassSite) -> bool:
    """False where a name in `module` is another class's than `site`; what the source does not show counts."""
    found = find_class(project, module, dotted(node)) if dotted(node) else None
    if found is None:
        return not is_of_another_package(project, module, dotted(node))
    return found.node is site.node or is_one_of_several(project, module, dotted(node), site)
