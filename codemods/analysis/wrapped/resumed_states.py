"""Files that `torch.load` reads without a device, and that the project has saved with states in them under the same keys."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_in
from codemods.analysis.call_graph import called_function
from codemods.analysis.distribution import is_test_file
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.uses import uses_of
from codemods.analysis.wrapped.states_by_file import is_optimizer, saved_by_file, written_name
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record, replace
from codemods.store.project import Project

_FOREIGN = lazy(r"pretrain|imagenet|url|backbone|vgg|clip|vae|encoder|teacher|init_weight|download", 0)
_COUNTS = lazy(
    r"epoch|step|iter|best|loss|acc|seed|lr$|rate|arg|config|cfg|opt$|hparam|score|metric|map|psnr|miou|version|name|previous"
)
_IN_CLASS = lazy(r"DistributedDataParallel|DDP\(|init_process_group|[Aa]ccelerat|rank\b|is_main|is_distributed|distributed")
_SHOWS = lazy(rb"DistributedDataParallel\w*\(|DDP\w*\(|init_process_group\(|Accelerator\w*\(")


@record
class Resumed:
    """load: the call of `torch.load`. key: a key of what it gives that the project saves as a state, `saved` there; the name of
    the file, where that holds the state of an optimizer alone.

    fills: the calls of `load_state_dict` that take from it. others: reads of it that are neither states nor counts. again:
    further loads of the same file in the function, of which nothing else is told; what is read of them is in `fills` and
    `others`, too. caller: the file of several processes that has it loaded, where `load` stands in a file of helpers.
    """

    load: ast.Call
    key: str
    saved: tuple[SourceModule, ast.expr]
    fills: tuple[ast.Call, ...]
    others: tuple[ast.expr, ...]
    again: tuple[ast.Call, ...] = ()
    caller: SourceModule | None = None


def resumed_states(project: Project, module: SourceModule) -> Iterator[Resumed]:
    """The loads of a file for several processes, or of one that it calls, whose states the project has saved itself."""
    own = shows_processes(module.data)
    for load in module.calls_named("load"):
        if not _names_no_device(module, load) or _is_foreign(module, load.args[0]):
            continue
        caller = None if own else _caller(project, module, load)
        if not own and caller is None:
            continue
        owner = module.class_of(load)
        if own and owner is not None and not _IN_CLASS.search(module.text_of(owner)):
            continue  # a trainer for one process beside that for several
        if _is_beside_the_wrap(module, load):
            continue
        if (found := _resumed(project, module, load)) is not None:
            yield replace(_with_the_others(project, module, found), caller=caller)


def _names_no_device(module: SourceModule, load: ast.Call) -> bool:
    if qualified(module, load.func) != "torch.load" or len(load.args) != 1:
        return False
    return not any(k.arg in (None, "map_location", "mmap") for k in load.keywords)


def _with_the_others(project: Project, module: SourceModule, found: Resumed) -> Resumed:
    """The load with those beside it that read the same file: one of them without a device puts all of it onto GPU 0 again."""
    function, path = module.function_of(found.load), ast.dump(found.load.args[0])
    fills, others, again = [*found.fills], [*found.others], []
    for load in module.calls_named("load"):
        if load is found.load or module.function_of(load) is not function or not _names_no_device(module, load):
            continue
        if ast.dump(load.args[0]) != path:
            continue
        read = _read_of(module, load)
        fills += [call for _, call in read.filled]
        others += read.others
        if _resumed(project, module, load) is None:  # else it is told for itself
            again.append(load)
    return replace(found, fills=tuple(fills), others=tuple(others), again=tuple(again))


def shows_processes(data: bytes) -> bool:
    """True for a file that wraps a model, starts the group or has an Accelerator."""
    return _SHOWS.search(data) is not None


def _caller(project: Project, module: SourceModule, load: ast.Call) -> SourceModule | None:
    """The file for several processes that calls the function which loads."""
    function = module.function_of(load)
    for site in uses_of(project, module, function).calls if function is not None else ():
        if shows_processes(site.module.data) and not is_test_file(site.module.path):
            called = called_function(project, site.module, site.call)
            if called is not None and called.node is function:
                return site.module
    return None


def _is_foreign(module: SourceModule, path: ast.expr) -> bool:
    """True for a path that speaks of weights of somebody else, itself or in what it is made from."""
    texts = [module.text_of(path)]
    for name in (n for n in walk(path) if isinstance(n, ast.Name)):
        bound = bindings_in(module, module.function_of(name), name.id)
        texts += [module.text_of(b.value) for b in bound if b.value is not None]
    return any(_FOREIGN.search(text.lower()) for text in texts)


def _is_beside_the_wrap(module: SourceModule, load: ast.Call) -> bool:
    """True in the arm for one process: the wrap stands under another answer to the same question."""
    mine = _answers(module, load)
    wraps = [c for c in module.calls_named("DistributedDataParallel", "DDP") if module.function_of(c) is module.function_of(load)]
    for wrap in wraps:
        for asked, arm in _answers(module, wrap):
            names = {dotted(n) for n in walk(asked.test) if isinstance(n, (ast.Name, ast.Attribute))} - {""}
            for other, own in mine:
                same = ast.dump(other.test) == ast.dump(asked.test) and own == arm
                if not same and any(dotted(n) in names for n in walk(other.test) if isinstance(n, ast.Attribute)):
                    return True
                if not same and other is asked:
                    return True
    return False


def _answers(module: SourceModule, node: ast.AST) -> list[tuple[ast.If, bool]]:
    """The tests over a place in its function, each with whether the place is in the arm where it holds."""
    found: list[tuple[ast.If, bool]] = []
    below = node
    for up in module.ancestors(node):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            break
        if isinstance(up, ast.If):
            found.append((up, any(below is s for s in up.body)))
        below = up
    return found


def _resumed(project: Project, module: SourceModule, load: ast.Call) -> Resumed | None:
    """What of the file is read under a key that the project saves, or as a whole by an optimizer; None where nothing is."""
    known, read = _saved(project), _read_of(module, load)
    fills = tuple(call for _, call in read.filled)
    if key := next((asked for asked, _ in read.filled if asked in known), ""):
        return Resumed(load, key, known[key], fills, read.others)
    whole = next(filter(None, (_file_of(project, module, load, call) for asked, call in read.filled if not asked)), "")
    return Resumed(load, whole, saved_by_file(project)[whole], fills, read.others) if whole else None


@record
class _Read:
    """filled: (key, call of `load_state_dict`) for each state that is taken. others: what is neither a state nor a count."""

    filled: tuple[tuple[str, ast.Call], ...]
    others: tuple[ast.expr, ...]


def _read_of(module: SourceModule, load: ast.Call) -> _Read:
    """What becomes of a file: of the name that is given it, up to where that is given something else, or of the call itself."""
    statement, function = module.parent(load), module.function_of(load)
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    if isinstance(statement, (ast.Assign, ast.AnnAssign)) and len(targets) == 1 and isinstance(targets[0], ast.Name):
        name = targets[0].id
        again = [getattr(b.node, "lineno", 0) for b in bindings_in(module, function, name)]
        until = min((line for line in again if line > load.lineno), default=1 << 30)
        mine = [r for r in module.reads_of(name) if isinstance(r, ast.Name) and module.function_of(r) is function]
        reads: list[ast.expr] = [r for r in mine if load.lineno <= r.lineno <= until]
    else:
        reads = [load]
    filled: list[tuple[str, ast.Call]] = []
    others: list[ast.expr] = []
    for read in reads:
        part, asked = _part(module, read)
        if (call := _filled(module, part)) is not None:
            filled.append((asked, call))
        elif not _is_count(module, part, asked):
            others.append(part)
    return _Read(tuple(filled), tuple(others))


def _file_of(project: Project, module: SourceModule, load: ast.Call, fill: ast.Call) -> str:
    """The name of the file that is loaded, where the project saves an optimizer's state into it and one takes it whole."""
    if not isinstance(fill.func, ast.Attribute) or not is_optimizer(dotted(fill.func.value)):
        return ""
    name = written_name(module, load.args[0])
    return name if name and name in saved_by_file(project) else ""


def _part(module: SourceModule, read: ast.expr) -> tuple[ast.expr, str]:
    """`state["model"]` or `state.get("model")` round a read of `state`, with the key; the read itself where it is neither."""
    up = module.parent(read)
    if isinstance(up, ast.Subscript) and up.value is read and isinstance(up.slice, ast.Constant):
        return up, str(up.slice.value)
    if isinstance(up, ast.Attribute) and up.attr == "get" and isinstance(call := module.parent(up), ast.Call) and call.args:
        asked = call.args[0]
        return call, str(asked.value) if isinstance(asked, ast.Constant) else ""
    return read, ""


def _filled(module: SourceModule, part: ast.expr) -> ast.Call | None:
    """The call of `load_state_dict` that takes a part as it is."""
    up = module.parent(part)
    if isinstance(up, ast.Call) and last(dotted(up.func)) == "load_state_dict" and up.args and up.args[0] is part:
        return up
    return None


def _is_count(module: SourceModule, part: ast.expr, asked: str) -> bool:
    """True for a number or a setting by its key, for a question about the keys, and for what is deleted."""
    if asked:
        return _COUNTS.search(asked.lower()) is not None
    up = module.parent(part)
    return isinstance(up, (ast.Compare, ast.Delete)) or (isinstance(up, ast.Attribute) and up.attr == "keys")


def _saved(project: Project) -> dict[str, tuple[SourceModule, ast.expr]]:
    """The keys under which the project saves states that are not brought to the CPU first."""
    return project.keep("saved keys of states", lambda: dict(_all_saved(project)))


def _all_saved(project: Project) -> Iterator[tuple[str, tuple[SourceModule, ast.expr]]]:
    words = (b".save(",)
    for path in sorted({p for word in words for p in project.files_containing(word) if not is_test_file(p)}):
        module = project.module(path)
        if module is None or module.holds(b".cpu() for") or module.holds(b".to('cpu')") or module.holds(b'.to("cpu")'):
            continue
        for call in module.calls_named("save"):
            if call.args and last(dotted(call.func)) == "save":
                yield from ((k, (module, v)) for d in _dicts(module, call.args[0]) for k, v in _states(d))
                yield from ((k, (module, v)) for k, v in _entries(module, call.args[0]))


def _dicts(module: SourceModule, node: ast.expr) -> list[ast.Dict]:
    if isinstance(node, ast.Dict):
        return [node]
    if not isinstance(node, ast.Name):
        return []
    return [b.value for b in bindings_in(module, module.function_of(node), node.id) if isinstance(b.value, ast.Dict)]


def _entries(module: SourceModule, node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """`state["model"] = model.state_dict()` for a `state` that is saved."""
    function = module.function_of(node)
    for read in module.reads_of(node.id) if isinstance(node, ast.Name) else ():
        place = module.parent(read)
        assign = module.parent(place) if isinstance(place, ast.Subscript) and module.function_of(read) is function else None
        if isinstance(assign, ast.Assign) and isinstance(place, ast.Subscript) and place in assign.targets:
            if isinstance(assign.value, ast.Call) and last(dotted(assign.value.func)) == "state_dict" and not assign.value.args:
                if isinstance(place.slice, ast.Constant) and isinstance(place.slice.value, str):
                    yield place.slice.value, assign.value


def _states(made: ast.Dict) -> Iterator[tuple[str, ast.expr]]:
    for key, value in zip(made.keys, made.values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(key.value, str) and isinstance(value, ast.Call):
            if last(dotted(value.func)) == "state_dict" and not value.args:
                yield key.value, value
