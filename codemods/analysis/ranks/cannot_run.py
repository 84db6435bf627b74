"""Code that cannot run: behind a bare `return` or `raise`, and files whose imports lead to nothing in the project any more."""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from posixpath import basename, dirname, join, normpath, splitext

from codemods.analysis.distribution import is_test_file
from codemods.analysis.job_files.documented_starts import is_named_once, script_names, starts
from codemods.analysis.positions import position
from codemods.analysis.ranks.leaving import leaves
from codemods.analysis.ranks.moved_parts import has_moved
from codemods.analysis.ranks.top_imports import brought_in, has_at_top
from codemods.files.left_alone import left
from codemods.files.source import SourceModule, once_a_module
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_SETTINGS = lazy(r"(?:^|[._])(?:configs?|cfg|settings|secrets?|credentials|local)(?:$|[._])")  # each user writes their own
_BUILT = lazy(r"^_|_pb2(?:_grpc)?$|^version$|^build$|^generated|_ext(?:ension)?s?$|_cuda$|_cpp$|_lib$|^ops$")  # made on the spot


def is_behind_an_end(module: SourceModule, node: ast.AST) -> bool:
    """True where a `return`, `raise`, `assert False`, `break` or exit above, in a block round the place, ends every run.

    Also in `if False:`.
    """
    below: ast.AST = node
    for up in module.ancestors(node):
        if (place := position(module, below)) is not None:
            if place.index > _ends(module).get(id(place.block), place.index):
                return True
            if place.name == "body" and isinstance(up, (ast.If, ast.While)) and is_never(up.test):
                return True
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        below = up
    return False


@once_a_module
def _ends(module: SourceModule) -> Mapping[int, int]:
    """Block, by id -> the first of its statements whose end no run passes."""
    found: dict[int, int] = {}
    for block in (module.tree.body, *(b for _, b in module.blocks())):
        first = next((i for i, s in enumerate(block) if leaves([s]) or _fails(s)), None)
        if first is not None:
            found[id(block)] = first
    return found


def _fails(statement: ast.stmt) -> bool:
    """`assert False`: where somebody stopped the program to look at it."""
    return isinstance(statement, ast.Assert) and is_never(statement.test)


def is_never(test: ast.expr) -> bool:
    return isinstance(test, ast.Constant) and not test.value


def cannot_be_imported(project: Project, module: SourceModule) -> bool:
    """True where an import at the top of the file names a part of the project that is not there, or a name it does not have.

    It does not start at all, so nobody sees what stands in it happen. A file that others import at their top is alive: all of
    them need the part that is not there, so that it lies elsewhere; but not where the part is there, and lacks the name. So is a
    program that a launcher is said to start, and one whose settings are left to be written.
    """
    return project.keep(("cannot be imported", module.path), lambda: _cannot(project, module))


def _cannot(project: Project, module: SourceModule) -> bool:
    lost = [(source, name) for source, name in brought_in(module) if _leads_nowhere(project, module, source, name)]
    if not lost:
        moved = (source for source, name in brought_in(module) if has_moved(project, module, source, name))
        lost = [(source, "") for source in moved]
    if not lost or all(_is_left_to_be_written(project, module, s) for s, _ in lost) or _is_started(project, module.path):
        return False
    if not any(_is_surely_without(project, module, s, n) for s, n in lost) and _is_imported(project, module):
        return False
    source, name = lost[0]
    why = "the file cannot be imported: `{}` is not in the project, or lacks what is taken from it ({})"
    return left(module, None, why, source, name or "all of it")


def _is_left_to_be_written(project: Project, module: SourceModule, source: str) -> bool:
    """True for settings that each user writes; one whose file is there, and lacks a name, is as its author left it."""
    if not _SETTINGS.search(source):
        return False
    found = project.resolve(source, module.path)
    return found is None or bool(found.rest)


def _is_surely_without(project: Project, module: SourceModule, source: str, name: str) -> bool:
    """True for a name that the project's own file lacks, where no installed package can be meant.

    For another part of the same folder, which only that file can be, is imported beside it: so the folder is searched first.
    """
    found = project.resolve(source, module.path) if name else None
    if found is None or found.rest:
        return False
    if source.startswith("."):
        return True
    root = _root_of(source, found.path)
    beside = {s for s, _ in brought_in(module) if "." in s and not s.startswith(".") and s.split(".")[0] != source.split(".")[0]}
    places = ((s, project.resolve(s, module.path)) for s in sorted(beside))
    return root is not None and any(f is not None and not f.rest and _root_of(s, f.path) == root for s, f in places)


def _root_of(source: str, path: str) -> str | None:
    """The folder that is searched where the dotted name of a module leads to the file."""
    end = source.replace(".", "/")
    stem = path.removesuffix(".py").removesuffix("/__init__")
    return stem[: -len(end)] if f"/{stem}".endswith(f"/{end}") else None


def _is_started(project: Project, path: str) -> bool:
    """True for a script that a command of the repository starts on several processes."""
    names = script_names(path)
    return any(s.launched and s.script in names for s in starts(project)) and is_named_once(project, path)


def _is_imported(project: Project, module: SourceModule) -> bool:
    """True where a file that is no test imports this one at its top."""
    for path in project.files_importing(splitext(basename(module.path))[0]):
        other = project.module(path) if path != module.path and not is_test_file(path) else None
        for source, name in brought_in(other) if other is not None else ():
            found = project.resolve(f"{source}.{name}" if name and not source.endswith(".") else f"{source}{name}", path)
            found = found or project.resolve(source, path)
            if found is not None and found.path == module.path:
                return True
    return False


def _leads_nowhere(project: Project, module: SourceModule, source: str, name: str) -> bool:
    parts = source.lstrip(".").split(".") if source.strip(".") else []
    if not source.startswith(".") and parts and parts[0] in sys.stdlib_module_names:
        return False
    found = project.resolve(source, module.path) if parts else None
    if any(_BUILT.search(p) for p in (*parts, name)):
        return False
    if found is None or found.rest:
        nested = len(parts) > 1 or source.startswith(".")
        return bool(parts) and nested and _is_missing(project, module, source, parts)
    return bool(name) and lacks(project, module, found.path, parts, name)


def _is_missing(project: Project, module: SourceModule, source: str, parts: list[str]) -> bool:
    """True for a module below one of the project's folders that no file of the project can be, whatever its kind."""
    stem = "/".join(parts)
    if level := len(source) - len(source.lstrip(".")):
        base = normpath(join(dirname(module.path), *[".."] * (level - 1)))
        whole = stem if base == "." else f"{base}/{stem}"
        return not base.startswith("..") and not any(p.startswith((f"{whole}.", f"{whole}/")) for p in project.files)
    if not module.path.startswith((f"{parts[0]}/", f"src/{parts[0]}/")):
        package = join(dirname(module.path), parts[0], "__init__.py") in project.files
        if not (package or _has_others(project, module, parts[0])):
            return False  # an installed package may bear the name
    return not any(f"/{stem}." in f"/{p}" or f"/{stem}/" in f"/{p}" for p in project.files)


def lacks(project: Project, module: SourceModule, path: str, parts: list[str], name: str) -> bool:
    """True for a name that the file does not bind at its top, where no other file can be the one that is meant."""
    if path == module.path:
        return False
    if path.endswith("/__init__.py"):
        return _packagelacks(project, parts, name)
    end = "/".join(parts) + ".py"
    same = [p for p in project.python_files if f"/{p}".endswith(f"/{end}")]
    if any(f"/{end[:-3]}/" in f"/{p}" for p in project.python_files):
        return False  # a folder of that name
    other = project.module(path) if same == [path] else None
    return other is not None and not other.holds(b"__getattr__") and not has_at_top(other, name)


def _packagelacks(project: Project, parts: list[str], name: str) -> bool:
    """True for a name that no package or file of that name binds, or has as a part."""
    end = "/".join(parts)
    meant = [p for p in project.python_files if f"/{p}".endswith((f"/{end}/__init__.py", f"/{end}.py"))]
    return all(_is_without(project, path, name) for path in meant)


def _is_without(project: Project, path: str, name: str) -> bool:
    part = f"{dirname(path)}/{name}"
    if path.endswith("/__init__.py") and any(p.startswith((f"{part}.", f"{part}/")) for p in project.files):
        return False
    module = project.module(path)
    return module is not None and not module.holds(b"__getattr__") and not has_at_top(module, name)


def _has_others(project: Project, module: SourceModule, folder: str) -> bool:
    """True where the file imports other parts of a folder of that name, which are there."""
    sources = {source for source, _ in brought_in(module) if source.startswith(f"{folder}.")}
    found = (project.resolve(source, module.path) for source in sources)
    return any(f is not None and not f.rest for f in found)
