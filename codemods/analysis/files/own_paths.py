"""Is a path each rank's own? By its text, by what its names were made from, and by what callers hand in."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.bound_values import assigned
from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.distribution import is_test_file
from codemods.analysis.files.constructor_calls import constructor_calls
from codemods.analysis.files.field_defaults import field_defaults
from codemods.analysis.files.file_paths import arguments_of
from codemods.analysis.files.named_by_setting import leads_by_setting
from codemods.analysis.files.versioned_folders import is_in_numbered_folder
from codemods.analysis.names import dotted, is_parameter
from codemods.analysis.output.effect_kinds import names_rank
from codemods.analysis.output.own_lines import names_own_items
from codemods.analysis.output.rank_share import is_of_own_item
from codemods.analysis.paths import is_from_one_rank, origin_text
from codemods.analysis.ranks.device_tests import names_a_device
from codemods.analysis.ranks.rank_sources import rank_source
from codemods.analysis.ranks.uses import CallSite, constructions, uses_of
from codemods.analysis.variance.analysis import variance
from codemods.files.source import FunctionNode, SourceModule, walk, walk_scope
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_TEMPORARY = lazy(r"Temporary|tempfile|mkstemp|tmp_path|worker_id|/dev/null|os\.devnull", re.IGNORECASE)
# What a tracker calls the run that each process starts for itself, where nobody gives it a name.
_OF_A_RUN = lazy(r"\bwandb\.run\.(?P<what>name|id|dir)\b")
_CALLERS = 6
_LOOKED_AT = 24
_DEPTH = 3
_FILES = 4  # a field that more files set is not the settings' own


def is_own_path(
    project: Project, module: SourceModule, path: ast.expr, depth: int = _DEPTH, *, whole: bool = True
) -> bool:
    """True where the path holds the rank, the process, or something made for one process, here or in what a caller gives.

    whole: for `args.data`, all that makes up the caller's `args` counts too; else what is put into its `data`.
    """
    key = ("own path", module.path, path, depth, whole)
    return project.memo(key, lambda: _is_own_path(project, module, path, depth, whole))


def _is_own_path(project: Project, module: SourceModule, path: ast.expr, depth: int, whole: bool) -> bool:
    if is_from_one_rank(path):
        return False
    text = origin_text(module, path)
    if names_rank(text) or _TEMPORARY.search(text) or is_of_own_item(module, path):
        return True
    if _holds_a_rank(project, module, path) or is_in_numbered_folder(project, module, path) or _is_of_own_run(project, text):
        return True
    if names_own_items(project, module, path) or names_a_device(module, path) or works_in_own_folders(project):
        return True
    if depth == 0:
        return False
    given = (
        *given_to(project, module, path, whole=whole), *(given_to(project, module, path, whole=False) if whole else ()),
        *_returned(project, module, path), *_stored(project, module, path), *field_defaults(project, module, path),
    )  # fmt: skip
    return any(is_own_path(project, home, value, depth - 1, whole=whole) for home, value in given)


def _holds_a_rank(project: Project, module: SourceModule, path: ast.expr) -> bool:
    """True for `f"part-{index}.pt"`, where `index` is the number that `mp.spawn` hands to each process: by what it is."""
    names = [n for n in walk(path) if isinstance(n, ast.Name)]
    made = (v for name in names for v in assigned(module, name, name.id)[:4] if isinstance(v, ast.JoinedStr))
    names += [n for value in made for n in walk(value) if isinstance(n, ast.Name)]
    return any(rank_source(module, name, project) is not None for name in names)


def _is_of_own_run(project: Project, text: str) -> bool:
    """True for `wandb.run.name`, where no `wandb.init` of the project gives its run that name."""
    asked = {m["what"] for m in _OF_A_RUN.finditer(text)}
    return any(what == "dir" or what not in _given_to_runs(project) for what in asked)


def _given_to_runs(project: Project) -> frozenset[str]:
    def build() -> frozenset[str]:
        found: set[str] = set()
        for path in project.files_containing(b"wandb"):
            module = project.module(path)
            calls = module.calls_named("init", "WandbLogger") if module is not None else ()
            found.update(k.arg or "name" for call in calls for k in call.keywords)
        given = any(b"WANDB_NAME" in (project.read(p) or b"") for p in project.files_containing(b"WANDB_NAME"))
        return frozenset(found | {"name"} if given else found)

    return project.keep("given to runs", build)


def works_in_own_folders(project: Project) -> bool:
    """True where a program of the project changes into a folder of each rank: no relative path is shared from there on."""
    return project.keep("own folders", lambda: any(_changes_by_rank(m) for m in _changing(project)))


def _changing(project: Project) -> Iterator[SourceModule]:
    for path in project.files_containing(b"chdir("):
        module = project.module(path) if not is_test_file(path) else None
        if module is not None:
            yield module


def _changes_by_rank(module: SourceModule) -> bool:
    calls = module.calls_named("chdir")
    return any(call.args and names_rank(origin_text(module, call.args[0])) for call in calls)


def _stored(project: Project, module: SourceModule, path: ast.expr) -> Iterator[tuple[SourceModule, ast.expr]]:
    """What is put into the fields that a path is made of: into `conf.dump` in this file, and by other files into any `dump`.

    The settings say `self.dump = ...` there.
    """
    for part in walk(path):
        if not isinstance(part, ast.Attribute) or dotted(part.value) in ("self", "os", "torch") or not dotted(part):
            continue
        written = dotted(part)
        for node in module.nodes(ast.Assign):
            if any(isinstance(t, ast.Attribute) and t.attr == part.attr and dotted(t) == written for t in node.targets):
                yield module, node.value
        for home in _storing(project, module, part.attr):
            for node in home.nodes(ast.Assign):
                if any(isinstance(t, ast.Attribute) and t.attr == part.attr for t in node.targets):
                    yield home, node.value


def _storing(project: Project, module: SourceModule, name: str) -> Iterator[SourceModule]:
    paths = [p for p in project.files_containing(f".{name} = ".encode()) if p != module.path and not is_test_file(p)]
    for path in paths if len(paths) <= _FILES else ():
        if (home := project.module(path)) is not None:
            yield home


def is_path_of_one(project: Project, module: SourceModule, path: ast.expr) -> bool:
    """`is_own_path` for what hangs on a path alone: of a caller's `args`, only what is put into the part that is asked for.

    `args.rank` beside it makes no path each rank's own. What any file puts into an attribute of that name counts.
    """
    if not is_own_path(project, module, path):
        return False
    if is_own_path(project, module, path, whole=False):
        return True
    parts = {n.attr for n in walk(path) if isinstance(n, ast.Attribute)}
    made = (v for n in walk(path) if isinstance(n, ast.Name) for v in assigned(module, n, n.id)[:4])
    parts |= {n.attr for value in made for n in walk(value) if isinstance(n, ast.Attribute)}
    return any(_is_put_by_rank(project, part) for part in parts)


def _is_put_by_rank(project: Project, attribute: str) -> bool:
    """True where a file of the project puts something that names the rank into `x.<attribute>`."""
    return project.keep(("put by rank", attribute), lambda: _any_put_by_rank(project, attribute))


def _any_put_by_rank(project: Project, attribute: str) -> bool:
    put = re.compile(rb"\.%b\s*(?::[^=\n]+)?=(?!=)(?!\s*[\w.]*broadcast\w*\()[^\n]+" % re.escape(attribute.encode()))
    for path in project.files_containing(f".{attribute}".encode()):
        lines = (m.group().decode("utf-8", "replace") for m in put.finditer(project.read(path) or b""))
        if any(names_rank(line) or _TEMPORARY.search(line) for line in lines):
            return True
    return False


def is_named_by_rank(project: Project, module: SourceModule, path: ast.expr) -> bool:
    """True where what stands there puts the rank into the path, itself or by a function of the project; callers are not asked."""
    text = origin_text(module, path)
    if names_rank(text) or _TEMPORARY.search(text) or is_of_own_item(module, path) or names_a_device(module, path):
        return True
    if works_in_own_folders(project):
        return True
    given = (*_returned(project, module, path), *field_defaults(project, module, path))
    return any(names_rank(origin_text(home, value)) for home, value in given)


def _returned(project: Project, module: SourceModule, path: ast.expr) -> Iterator[tuple[SourceModule, ast.expr]]:
    """What the project's functions give that a path is made by: `state_path(folder)`, `self.file(step)`."""
    made = [path, *(v for n in walk(path) if isinstance(n, ast.Name) for v in assigned(module, n, n.id)[:4])]
    for call in (n for value in made for n in walk(value) if isinstance(n, ast.Call) and not is_from_one_rank(n)):
        site = called_function(project, module, call)
        for node in walk_scope(site.node) if site is not None and site.node.name != "__init__" else ():
            if site is not None and isinstance(node, ast.Return) and node.value is not None:
                yield site.module, node.value


def given_to(
    project: Project, module: SourceModule, path: ast.expr, *, whole: bool = True
) -> Iterator[tuple[SourceModule, ast.expr]]:
    """What the callers hand to the parameters that a path is made of."""
    for name in _parameters(module, path, 3):
        function = module.function_of(name)
        if function is None:
            continue
        calls = (*callers_of(project, module, function), *constructor_calls(project, module, function))
        for site in dict.fromkeys(calls):
            value = arguments_of(function, site.call).get(name.id)
            part = module.parent(name)
            if not whole and isinstance(value, ast.Name) and isinstance(part, ast.Attribute) and part.value is name:
                yield from ((site.module, v) for v in _put_into(site.module, value.id, part.attr))
            elif value is not None:
                yield site.module, value


def _put_into(module: SourceModule, name: str, attribute: str) -> Iterator[ast.expr]:
    """The values of `args.data = ...` in a file, and of `args = Namespace(data=...)`."""
    for node in module.nodes(ast.Assign):
        if any(isinstance(t, ast.Attribute) and dotted(t) == f"{name}.{attribute}" for t in node.targets):
            yield node.value
        if isinstance(node.value, ast.Call) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            yield from (k.value for k in node.value.keywords if k.arg == attribute)


def callers_of(project: Project, module: SourceModule, function: FunctionNode) -> tuple[CallSite, ...]:
    """The first calls of a function, for a constructor those that make the object.

    Of the calls of a method's name, those that are seen to be on an object of its class, where there are such.
    """
    owner = module.parent(function)
    if function.name == "__init__" and isinstance(owner, ast.ClassDef):
        made = constructions(project, module, owner)
        return made.outside_tests().calls[:_CALLERS] if made is not None else ()
    if function.name == "__call__" and isinstance(owner, ast.ClassDef):
        return tuple(_calls_of_objects(project, module, owner, function))[:_CALLERS]
    sites = uses_of(project, module, function).outside_tests().calls
    if isinstance(owner, ast.ClassDef) and len(sites) > 1:
        sites = tuple(s for s in sites[:_LOOKED_AT] if leads_to(project, s, function)) or sites
    return sites[:_CALLERS]


def _calls_of_objects(
    project: Project, module: SourceModule, owner: ast.ClassDef, function: FunctionNode
) -> Iterator[CallSite]:
    """`stopper(loss)` for a class with `__call__`, in the files that make such objects."""
    made = constructions(project, module, owner)
    for home in {c.module.path: c.module for c in (made.outside_tests().calls if made is not None else ())}.values():
        for call in home.nodes(ast.Call):
            outer = home.function_of(call)
            state = variance(project).of(FunctionSite(home, outer)) if outer else variance(project).top_level(home)
            target = state.targets.get(id(call)) if state is not None else None
            if target is not None and target.node is function:
                yield CallSite(home, call)


def are_sure(project: Project, sites: tuple[CallSite, ...], function: FunctionNode) -> bool:
    """True where it is shown whose method the calls run: `save` is that of many objects."""
    return len(sites) < 2 or all(leads_to(project, s, function) for s in sites)


def leads_to(project: Project, site: CallSite, function: FunctionNode) -> bool:
    """True for a call that is shown to run the function, and not one of the same name."""
    if isinstance(site.call.func, ast.Name) or function.name in ("__init__", "__call__"):
        return True
    if (found := called_function(project, site.module, site.call)) is not None:
        return found.node is function
    if leads_by_setting(project, site.module, site.call, function):
        return True
    analysis = variance(project)
    outer = site.module.function_of(site.call)
    state = analysis.of(FunctionSite(site.module, outer)) if outer else analysis.top_level(site.module)
    target = state.targets.get(id(site.call)) if state is not None else None
    return target is not None and target.node is function


def _parameters(module: SourceModule, path: ast.expr, depth: int) -> Iterator[ast.Name]:
    """The parameters in an expression and in what its names were given."""
    for node in walk(path):
        if not isinstance(node, (ast.Name, ast.Attribute)) or not (name := dotted(node)):
            continue
        if isinstance(node, ast.Name) and is_parameter(module, name, node):
            if name not in ("self", "cls"):
                yield node
        elif depth > 0 and (isinstance(node, ast.Name) or name.startswith("self.")):
            for value in assigned(module, node, name)[:4]:
                yield from _parameters(module, value, depth - 1)
