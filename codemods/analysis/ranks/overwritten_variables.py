"""Programs that put constants over what the launcher has told each process: its rank, how many there are, where all meet.

Run with torch 2.13 over gloo, two processes of torchrun: with another MASTER_PORT every rank waits for a store that nobody opens;
with `RANK=0` and `WORLD_SIZE=1` each is a group of its own, and no line says so; with `RANK=0` alone both wait for a rank 1; with
`WORLD_SIZE=1` alone rank 1 ends ("rank < size").
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from codemods.analysis.distribution import is_test_file
from codemods.analysis.guards.entry_points import starts_group
from codemods.analysis.job_files.said_torch import said_torch
from codemods.analysis.job_files.torch_commands import TorchCommand, torch_commands
from codemods.analysis.loading.same_program import whole_program
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.counted_among import environment
from codemods.analysis.ranks.launcher_variables import VariableSet, is_sure_to_come, variables_set
from codemods.analysis.ranks.uses import constructions, uses_of
from codemods.analysis.version_pins import padded
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

# torch: the launchers hand over a store, with each backend; below, rank 0 opens the port that all have. Pull request 192113 of
# pytorch, behind 2.13, lets it do so again.
_OWN_STORE = (1, 9)
_OWN_STORE_OF_EACH = (2, 5)
_NOT_RUN = (2, 14)
_STARTS_RANKS = lazy(rb"\bspawn\(|start_processes\(|\bProcess\(|_launcher\(|TORCHELASTIC|submitit|horovod|mpi4py|\bray\b")
_OTHERS = frozenset({"Popen", "run", "call", "check_call", "check_output", "system", "execv", "execve", "execvp"})
_DEPTH = 6
_FIRST = "0"


@record
class Overwritten:
    """sets: what one function overwrites, in order. values: variable -> what it comes to. reader: what reads it behind that.

    chosen: the options whose defaults the values are.
    """

    command: TorchCommand
    sets: tuple[VariableSet, ...]
    values: dict[str, str]
    reader: tuple[SourceModule, ast.expr]
    chosen: tuple[str, ...]


Way = tuple[tuple[SourceModule, ast.AST], ...]


def overwritten(project: Project, module: SourceModule) -> Iterator[Overwritten]:
    """The places of a file that do so in a program that a command starts by a launcher of torch."""
    homes: dict[ast.AST, list[VariableSet]] = {}
    for found in variables_set(module):
        if found.variable != "MASTER_ADDR" and is_sure_to_come(module, found.statement):
            homes.setdefault(module.function_of(found.statement) or module.tree, []).append(found)
    for sets in homes.values() if homes and torch_commands(project) else ():
        if not any(_starts_another(module, found) for found in sets):
            yield from _judged(project, module, sets)


def _starts_another(module: SourceModule, found: VariableSet) -> bool:
    """True where the same function starts a program, which the variables may be for."""
    home = module.function_of(found.statement)
    calls = (c for c in module.calls_named(*_OTHERS) if module.function_of(c) is home)
    return any(qualified(module, c.func).startswith(("subprocess.", "os.")) for c in calls)


def _judged(project: Project, module: SourceModule, sets: list[VariableSet]) -> Iterator[Overwritten]:
    ways = [w for w in _ways(project, module, sets[0].statement, _DEPTH) if w]
    for command in torch_commands(project):
        way = next((w for w in ways if w[-1][0].path == command.script), None)
        if way is None or _is_left_alone(project, command):
            continue
        values: dict[str, str] = {}
        chosen: list[str] = []
        counted: list[VariableSet] = []
        for found in sets:
            value, option = _value(module, found.value, command)
            if value is not None and _does_harm(command, found.variable, value):
                values[found.variable] = value
                counted.append(found)
                chosen += [option] if option else []
        reader = _reader(project, command, way, counted, values)
        if reader is not None:
            yield Overwritten(command, tuple(counted), values, reader, tuple(dict.fromkeys(chosen)))
            return


def _is_left_alone(project: Project, command: TorchCommand) -> bool:
    """True for a program that starts its ranks itself, or for a torch whose launcher opens no store."""
    program = sorted(whole_program(project, command.script))
    if any(_STARTS_RANKS.search(project.read(p) or b"") for p in program if not is_test_file(p)):
        return True
    script = project.module(command.script)
    if script is None:
        return True
    said = said_torch(project, script)
    newer = [s.range[0] is not None and s.range[0] >= padded(_NOT_RUN) for s in said.ranges]
    older = said.allows_below(_OWN_STORE_OF_EACH) if command.dynamic else said.names_below(_OWN_STORE)
    return bool(older) or (bool(newer) and all(newer))


def _does_harm(command: TorchCommand, variable: str, value: str) -> bool:
    if variable == "MASTER_PORT":
        return value.isdigit() and command.ports is not None and value not in command.ports
    return command.several and value == ("1" if variable == "WORLD_SIZE" else _FIRST)


# What it is given


def _value(module: SourceModule, node: ast.expr, command: TorchCommand) -> tuple[str | None, str]:
    """(the constant, the option whose default it is) of what a variable is given; (None, "") where that is not shown."""
    if isinstance(node, ast.Call) and dotted(node.func) == "str" and len(node.args) == 1:
        return _value(module, node.args[0], command)
    if isinstance(node, ast.JoinedStr) and len(node.values) == 1 and isinstance(node.values[0], ast.FormattedValue):
        return _value(module, node.values[0].value, command)
    if isinstance(node, ast.Constant):
        return (str(node.value), "") if isinstance(node.value, (str, int)) and not isinstance(node.value, bool) else (None, "")
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return _default(module, node.attr, command)
    return None, ""


def _default(module: SourceModule, field: str, command: TorchCommand) -> tuple[str | None, str]:
    """The default of an option that the command leaves out, where nothing else gives the field a value."""
    if command.more or field in command.flags or module.holds(b"set_defaults"):
        return None, ""
    if any(n.attr == field and isinstance(n.ctx, ast.Store) for n in module.nodes(ast.Attribute)):
        return None, ""
    options = [(c, o) for c in module.calls_named("add_argument") for o in _names(c) if o.lstrip("-").replace("-", "_") == field]
    if len(options) != 1 or any(k.arg in ("dest", "required", "action") for k in options[0][0].keywords):
        return None, ""
    call, name = options[0]
    given = next((k.value for k in call.keywords if k.arg == "default"), None)
    if isinstance(given, ast.Constant) and isinstance(given.value, (str, int)) and not isinstance(given.value, bool):
        return str(given.value), name
    return None, ""


def _names(call: ast.Call) -> Iterator[str]:
    return (a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str) and a.value.startswith("-"))


# Who reads it


def _reader(
    project: Project, command: TorchCommand, way: Way, counted: Sequence[VariableSet], values: dict[str, str]
) -> tuple[SourceModule, ast.expr] | None:
    """What reads the variables behind that in every run of the program: `init_process_group`, or what takes the local rank.

    Takes out of `values` what is not read.
    """
    if not counted:
        return None
    program = [m for p in sorted(whole_program(project, command.script)) if (m := _read_module(project, p)) is not None]
    groups = [(m, c) for m in program for c in m.calls_named("init_process_group") if starts_group(m, c)]
    if any(not _meets_by_environment(c) for _, c in groups):
        return None
    found: tuple[SourceModule, ast.expr] | None = None
    for module, call in groups:
        asked = ("is_initialized", "is_available")
        if is_sure_to_come(module, call, asked=asked) and _is_behind(project, way, module, call):
            found = (module, call)
    for variable, keyword in (("RANK", "rank"), ("WORLD_SIZE", "world_size")):
        if variable in values and (found is None or any(_gives(c, keyword) for _, c in groups)):
            del values[variable]
    if found is None:
        values.pop("MASTER_PORT", None)
    if "LOCAL_RANK" in values:
        device = _device(project, program, way)
        if device is None:
            del values["LOCAL_RANK"]
        found = found or device
    return found if values else None


def _read_module(project: Project, path: str) -> SourceModule | None:
    data = project.read(path) or b""
    return project.module(path) if b"init_process_group" in data or b"LOCAL_RANK" in data else None


def _meets_by_environment(call: ast.Call) -> bool:
    """True where no address, no store, and nothing that is not seen is handed over."""
    given = {k.arg: k.value for k in call.keywords}
    method = given.get("init_method", call.args[1] if len(call.args) > 1 else None)
    by_environment = method is None or (isinstance(method, ast.Constant) and method.value in (None, "env://"))
    return by_environment and None not in given and "store" not in given and len(call.args) < 3


def _gives(call: ast.Call, keyword: str) -> bool:
    return any(k.arg == keyword for k in call.keywords)


def _device(project: Project, program: list[SourceModule], way: Way) -> tuple[SourceModule, ast.expr] | None:
    """The first read of the local rank behind the place, where no file leaves each process one GPU."""
    if any(m.holds(b"CUDA_VISIBLE_DEVICES") for m in program):
        return None
    for module in program:
        for node in (*module.nodes(ast.Subscript), *module.calls_named("get", "getenv")):
            stored = isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load)
            if not stored and environment(module, node) == "LOCAL_RANK" and is_sure_to_come(module, node):
                if _is_behind(project, way, module, node):
                    return module, node
    return None


def _is_behind(project: Project, way: Way, module: SourceModule, node: ast.AST) -> bool:
    """True where the program comes to `node` behind the place that `way` leads to."""
    for other in _ways(project, module, node, _DEPTH):
        if other and other[-1][0] is way[-1][0]:
            for home, first in way:
                for there, then in other:
                    if home is there and home.function_of(first) is there.function_of(then):
                        return _line(first) < _line(then) and not any(n is first for n in walk(then))
    return False


def _line(node: ast.AST) -> int:
    return getattr(node, "lineno", 0)


def _ways(project: Project, module: SourceModule, node: ast.AST, depth: int) -> Iterator[Way]:
    """The calls by which a script comes to a place whatever any test says, innermost first; its last one stands in the script."""
    function = module.function_of(node)
    if function is None:
        if module.class_of(node) is None:
            yield ((module, node),)
        return
    owner = module.parent(function)
    if depth == 0 or not _is_plain(function) or (isinstance(owner, ast.ClassDef) and function.name != "__init__"):
        return
    made = constructions(project, module, owner) if isinstance(owner, ast.ClassDef) else uses_of(project, module, function)
    used = made.outside_tests() if made is not None else None
    for site in () if used is None or used.more else used.calls:
        if is_sure_to_come(site.module, site.call) and site.module.function_of(site.call) is not function:
            for way in _ways(project, site.module, site.call, depth - 1):
                yield ((module, node), *way)


def _is_plain(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """False where a decorator may call it otherwise, or give another environment back."""
    return all(last(dotted(d.func if isinstance(d, ast.Call) else d)) in ("main", "record") for d in function.decorator_list)
