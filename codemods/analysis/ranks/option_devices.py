"""Where an option `--local_rank` chooses the GPU of a process that joins a group, in the parser's file or in one beside it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_in
from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.distribution import is_test_file
from codemods.analysis.handed import held_as
from codemods.analysis.loading.same_program import is_another_script, whole_program
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.fetched_functions import fetched_by
from codemods.files.import_statements import stem_of
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_DEPTH = 3
_PLACES = frozenset({"set_device", "device", "DistributedDataParallel", "DDP", "cuda", "to"})
_NUMBERS = frozenset({"int", "list", "range", "tuple"})
_SPAWNS = (b"mp.spawn", b"multiprocessing.spawn", b"start_processes(")
# A comment asks for nothing, and starts nothing; `cfg.LOCAL_RANK` is a field of the program's own.
ASKED = lazy(rb"(?m)^[^#\n]*(?<![\w.])LOCAL_RANK")
_OPTION = lazy(rb"add_argument\(\s*[\"']--local[_-]rank")
_STARTED = lazy(rb"(?m)^[^#\n]*init_process_group")
_GIVEN_ELSEWHERE = lazy(rb"(?<!self)\.local_rank[ \t]*=(?!=)[ \t]*(?!-?\d)")


@record
class Place:
    """A device that is chosen by the option."""

    module: SourceModule
    node: ast.expr


def device_by_option(project: Project, module: SourceModule) -> Place | None:
    """The first device that the local rank of the options chooses, where the file or one beside it starts a group.

    Nothing where such a file reads `LOCAL_RANK`, and nothing of other files where the project gives the field a value itself.
    """
    if _asks_the_environment(module):
        return None
    if _starts_a_group(module) and (found := _place(project, module)) is not None:
        return found
    if any(module.holds(word) for word in _SPAWNS):
        return None
    near = [m for m in _beside(project, module) if not _asks_the_environment(m) and not m.holds(b"deepspeed")]
    groups = [m for m in near if _starts_a_group(m)]
    if not groups and not _starts_a_group(module):
        return None
    places = (_place(project, m) for m in (module, *groups))
    found = next((p for p in places if p is not None), None)
    return found if found is not None and not _is_given_elsewhere(project, module) else None


def _asks_the_environment(module: SourceModule) -> bool:
    return module.holds(b"LOCAL_RANK") and ASKED.search(module.data) is not None


def _starts_a_group(module: SourceModule) -> bool:
    return module.holds(b"init_process_group") and _STARTED.search(module.data) is not None


def _beside(project: Project, module: SourceModule) -> Iterator[SourceModule]:
    """The project's files that the file imports, and those that import it."""
    seen = {module.path}
    stem = module.path.removesuffix(".py").rpartition("/")[2]
    for item in (i for found in module.imports.values() for i in found):
        resolved = project.resolve(item.dotted.removesuffix(".*"), module.path)
        if resolved is not None and resolved.path not in seen and not is_test_file(resolved.path):
            seen.add(resolved.path)
            if (other := project.module(resolved.path)) is not None:
                yield other
    for path in project.files_importing(stem) if stem != "__init__" else ():
        if path in seen or is_test_file(path) or b"init_process_group" not in (project.read(path) or b""):
            continue
        seen.add(path)
        other = project.module(path)
        names = [i.dotted for found in other.imports.values() for i in found] if other is not None else []
        resolved_to = (project.resolve(name.removesuffix(".*"), path) for name in names)
        if other is not None and any(r is not None and r.path == module.path for r in resolved_to):
            yield other


def _is_given_elsewhere(project: Project, module: SourceModule) -> bool:
    """True where a file of the project sets the field: `args.local_rank = gpu`. Another script sets that of its own options."""
    paths = (p for p in project.files_containing(b".local_rank") if not is_test_file(p))
    found = (p for p in paths if _GIVEN_ELSEWHERE.search(project.read(p) or b""))
    return any(not has_its_own(project, p, module.path) for p in found)


def has_its_own(project: Project, path: str, own: str) -> bool:
    """True for another script, whose options are not those of `own`, though it may import functions of that."""
    if is_another_script(project, path, own):
        return True
    data, mine = project.read(path) or b"", project.read(own) or b""
    scripts = b"__main__" in data and b"__main__" in mine and not project.files_importing(stem_of(path))
    return scripts and _OPTION.search(data) is not None and path not in whole_program(project, own)


def _place(project: Project, module: SourceModule) -> Place | None:
    """Those that the field chooses itself come first: nothing has to be followed to see them."""
    asked: list[ast.Attribute | ast.Subscript] = [n for n in module.reads_of("local_rank") if isinstance(n, ast.Attribute)]
    keys = [n for n in module.nodes(ast.Subscript) if isinstance(n.slice, ast.Constant) and n.slice.value == "local_rank"]
    direct = next((n for n in (*asked, *keys) if _chooses(module, n)), None)
    if direct is not None:
        return Place(module, direct)
    spawned = any(module.holds(word) for word in _SPAWNS)
    for read in (*asked, *keys) if not spawned and not _GIVEN_ELSEWHERE.search(module.data) else ():
        if isinstance(read.ctx, ast.Load) and (found := _followed(project, module, read, _DEPTH)) is not None:
            return found
    return None


def _chooses(module: SourceModule, node: ast.expr) -> bool:
    """True inside of `torch.device(…)` and its kin, and in a text that begins with `cuda:`."""
    if _is_in_a_text(module, node):
        return True
    for up in module.ancestors(node):
        if isinstance(up, ast.Call) and last(dotted(up.func)) in _PLACES:
            return True
        if isinstance(up, ast.stmt):
            break
    return False


def _is_in_a_text(module: SourceModule, node: ast.expr) -> bool:
    up = module.parent(node)
    if isinstance(up, ast.FormattedValue):
        text = module.parent(up)
        return isinstance(text, ast.JoinedStr) and _is_cuda(text.values[0])
    if isinstance(up, ast.BinOp) and isinstance(up.op, ast.Mod):
        return _is_cuda(up.left)
    called = up.func if isinstance(up, ast.Call) else None
    return isinstance(called, ast.Attribute) and called.attr == "format" and _is_cuda(called.value)


def _is_cuda(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("cuda:")


def _followed(project: Project, module: SourceModule, read: ast.expr, depth: int) -> Place | None:
    """The place that a value comes to: under another name, in a field, or as the parameter of a function that it is handed."""
    if depth == 0:
        return None
    read = _worked_out(module, read)
    up = module.parent(read)
    if isinstance(up, ast.Assign) and up.value is read:
        return _first(project, module, [n for t in up.targets for n in _reads_of(module, up, t)], depth)
    call = module.parent(up) if isinstance(up, ast.keyword) else up
    if isinstance(call, ast.Call) and call.func is not read:
        return _in_the_function(project, module, call, read, depth)
    return None


def _worked_out(module: SourceModule, read: ast.expr) -> ast.expr:
    """What a number becomes in its place: `[n]`, `list(range(n * each, (n + 1) * each))`."""
    up = module.parent(read)
    while isinstance(up, (ast.BinOp, ast.List, ast.Tuple, ast.Call)):
        if isinstance(up, ast.Call) and (dotted(up.func) not in _NUMBERS or not any(a is read for a in up.args)):
            break
        if isinstance(up, (ast.List, ast.Tuple)) and isinstance(up.ctx, ast.Store):
            break
        read, up = up, module.parent(up)
    return read


def _in_the_function(project: Project, module: SourceModule, call: ast.Call, read: ast.expr, depth: int) -> Place | None:
    site = called_function(project, module, call)
    sites = [site] if site is not None else [*fetched_by(project, module, call)]
    return next((p for s in sites if (p := _within(project, s, call, read, depth)) is not None), None)


def _within(project: Project, site: FunctionSite, call: ast.Call, read: ast.expr, depth: int) -> Place | None:
    if site.module.holds(b"LOCAL_RANK"):
        return None
    name = held_as(site, call, read)
    if not name:
        return None
    reads = [n for n in site.module.reads_of(name) if isinstance(n, ast.Name) and site.module.function_of(n) is site.node]
    return _first(project, site.module, reads, depth)


def _first(project: Project, module: SourceModule, reads: list[ast.expr] | list[ast.Name], depth: int) -> Place | None:
    direct = next((n for n in reads if _chooses(module, n)), None)
    if direct is not None:
        return Place(module, direct)
    followed = (_followed(project, module, n, depth - 1) for n in reads)
    return next((p for p in followed if p is not None), None)


def _reads_of(module: SourceModule, bound: ast.stmt, target: ast.expr) -> Iterator[ast.expr]:
    """Where a name, or a field by its whole text, is read behind the statement that binds it."""
    function, name = module.function_of(bound), dotted(target)
    if isinstance(target, ast.Name) and len(bindings_in(module, function, name)) != 1:
        return
    for node in module.reads_of(last(name)) if name else ():
        if type(node) is type(target) and dotted(node) == name:
            here = module.function_of(node) is function or name.startswith("self.")
            if here and (node.lineno > bound.lineno or name.startswith("self.")):
                yield node
