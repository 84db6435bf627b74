"""Functions that `mp.spawn` starts, in the file of the call or in another one: their first parameter is a process's number."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache

from codemods.analysis.call_graph import find_function
from codemods.analysis.distribution import is_test_file
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.handed_arguments import arguments
from codemods.analysis.ranks.rank_sets import Ranks
from codemods.files.source import FunctionNode, SourceModule
from codemods.files.spelling import own_names
from codemods.runtime.lazy_pattern import lazy
from codemods.store.file_facts import file_fact
from codemods.store.project import Project

STARTS = ("spawn", "start_processes")
_SPAWNED = lazy(rb"\b(?:spawn|start_processes)\(\s*(?:fn\s*=\s*)?([\w.]+)")
_DEFINED = r"^def[ \t]+{0}[ \t]*\(\s*(\w+)"
_SPAWNS = lazy(rb"\b(?:mp|multiprocessing)\.spawn\b|\bstart_processes\(")
_SHORT = 2  # letters: `r` and `i` are everything else in a file, too


def spawned_parameter(project: Project | None, module: SourceModule, node: ast.Name) -> bool:
    """True for the first argument of a function that `mp.spawn` starts: the number of the process on this machine."""
    function = module.function_of(node)
    if function is None or not function.args.args or function.args.args[0].arg != node.id:
        return False
    return is_spawned(project, module, function)


def process_number(project: Project | None, module: SourceModule, node: ast.Name) -> Ranks | None:
    """What a parameter counts: all processes, where its function joins the group by it, else those of this machine."""
    if _joins_by(module, node) and not _is_handed_a_literal(project, module, node):
        return Ranks.ZERO
    return Ranks.LOCAL_ZERO if spawned_parameter(project, module, node) else None


def _joins_by(module: SourceModule, node: ast.Name) -> bool:
    """True for `number` of `init_process_group(…, rank=number)`, in the function that is handed it."""
    function = module.function_of(node)
    for call in module.calls_named("init_process_group") if module.holds(b"init_process_group") else ():
        given = next((k.value for k in call.keywords if k.arg == "rank"), None)
        if isinstance(given, ast.Name) and given.id == node.id and module.function_of(call) is function:
            return True
    return False


def _is_handed_a_literal(project: Project | None, module: SourceModule, node: ast.Name) -> bool:
    """True where a caller writes the number down: `run(0, args)` is one process."""
    function = module.function_of(node)
    if project is None or function is None:
        return False
    return any(isinstance(value, ast.Constant) for _, value in arguments(project, module, function, node.id))


def is_spawned(project: Project | None, module: SourceModule, function: FunctionNode) -> bool:
    """True for what `mp.spawn` starts, here or in another file."""
    if function.name in _spawned(module.data):
        return True
    if project is None or module.function_of(function) is not None or module.class_of(function) is not None:
        return False
    starting = _starting(project).get(function.name, ())
    return any(_starts(project, path, function) for path in starting)


def _starts(project: Project, path: str, function: FunctionNode) -> bool:
    """True where a file starts this function; where nothing shows which one it means, one whose name no other has."""
    other = project.module(path)
    for call in other.calls_named(*STARTS) if other is not None else ():
        assert other is not None
        name = dotted(given_to_spawn(call))
        site = find_function(project, other, name) if name else None
        if site is not None and site.node is function:
            return True
        if site is None and last(name) == function.name and len(project.files_defining(function.name)) == 1:
            return True
    return False


def given_to_spawn(call: ast.Call) -> ast.expr | None:
    """What `mp.spawn` is told to start: the first argument, or `fn`."""
    return call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "fn"), None)


def numbered_elsewhere(project: Project) -> frozenset[str]:
    """`work(device` for `def work(device, …)`, which another file starts: told from the bytes, before any file is parsed.

    A number that is called `rank` is a word of ranks already.
    """
    return project.keep("numbered elsewhere", lambda: frozenset(_numbered(project)))


def _numbered(project: Project) -> set[str]:
    found: set[str] = set()
    for name, starting in _starting(project).items():
        for path in project.files_defining(name):
            number = project.fact(_first_parameter, path, name) if set(starting) - {path} and not is_test_file(path) else ""
            if len(number) > _SHORT and "rank" not in number.lower() and number != "self":
                found.add(f"{name}({number}")
    return found


@file_fact
def _first_parameter(path: str, data: bytes, name: str) -> str:
    """The first parameter of the function of that name at the top of a file, "" where there is none."""
    del path
    match = re.search(_DEFINED.format(re.escape(name)).encode(), data, re.M)
    return match.group(1).decode() if match else ""


def _starting(project: Project) -> dict[str, tuple[str, ...]]:
    """Name -> the files that start a function of that name."""

    def build() -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for path in sorted({p for start in STARTS for p in project.files_containing(f"{start}(".encode())}):
            for name in sorted(project.fact(_spawned_in, path)):
                found[name] = (*found.get(name, ()), path)
        return found

    return project.keep("starting files", build)


@file_fact
def _spawned_in(path: str, data: bytes) -> frozenset[str]:
    del path
    return _spawned(data)


@lru_cache(maxsize=64)
def _spawned(data: bytes) -> frozenset[str]:
    """The own names of the functions that a file starts: of `work as w`, `work`."""
    return frozenset(_started_in(data)) | _renamed(data)


def _started_in(data: bytes) -> Iterator[str]:
    for found in _SPAWNED.finditer(data):
        if not _is_commented_out(data, found.start()):
            yield found.group(1).rpartition(b".")[2].decode()


def _is_commented_out(data: bytes, place: int) -> bool:
    """True in a line that begins with `#`: a start that somebody has replaced."""
    return data[data.rfind(b"\n", 0, place) + 1 : place].lstrip().startswith(b"#")


def spawns(module: SourceModule) -> bool:
    """True for a file that starts processes by torch.multiprocessing."""
    data = own_names(module.data) if module.holds(b" as ") else module.data
    return any(not _is_commented_out(text, m.start()) for text in {module.data, data} for m in _SPAWNS.finditer(text))


def _renamed(data: bytes) -> frozenset[str]:
    if b" as " not in data or _SPAWNED.search(data) is None:
        return frozenset()
    return frozenset(_started_in(own_names(data)))
