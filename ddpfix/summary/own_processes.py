"""What decides how many processes a program starts by itself: an option of its own, or the GPUs that it sees."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.names import dotted, last
from codemods.files.source import SourceModule
from codemods.runtime.record import record
from ddpfix.summary.needed_options import Program

# What a script starts its ranks by itself.
SPAWNS = (
    rb"mp\.spawn|multiprocessing\.spawn|start_processes|multiprocessing[ \t]+import[^\n]*\bspawn\b"
    rb"|(?<![.\w])launch\(\s*\w*main\w*,|\bProcess\([^\n]*\btarget=[^\n]*\brank\b"
)
_STARTS = ("spawn", "start_processes", "Trainer", "launch")
_WORDS = re.compile(rb"\bspawn\(|start_processes\(|Trainer\(|\blaunch\(")
_NUMBERS = ("nprocs", "devices", "gpus", "num_gpus_per_machine", "n_gpu_per_machine")
_ALL = frozenset({"-1", "auto"})
_OF_TEXTS = frozenset({"int", "str", "len", "max", "min", "abs", "join", "split", "strip", "map"})
_DEEPEST = 4
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_PARSED = re.compile(rb"Trainer\.from_argparse_args\(")
_BY_DEVICES = re.compile(rb"\b(?:world_size|num_replicas|nprocs)\s*=\s*[^\n#]*device_count\(")


@record
class OwnProcesses:
    """flags: of the option that says how many; listed: it names them one by one, with commas. devices: as many as GPUs are to be
    seen. start: the call, if it is one.
    """

    flags: frozenset[str] = frozenset()
    devices: bool = False
    start: tuple[SourceModule, ast.Call] | None = None
    listed: bool = False


def counts_devices(program: Program) -> bool:
    """True where it takes the number of GPUs that it sees for the number of processes, whoever starts them."""
    return any(_BY_DEVICES.search(program.project.read(path) or b"") for path in program.files)


def listing_flags(program: Program) -> frozenset[str]:
    """Of the options that say which GPUs are seen: `os.environ["CUDA_VISIBLE_DEVICES"] = args.gpu`."""
    found: set[str] = set()
    for path in sorted(program.files):
        module = program.project.module(path) if _VISIBLE.encode() in (program.project.read(path) or b"") else None
        for assign in module.nodes(ast.Assign) if isinstance(module, SourceModule) else ():
            assert isinstance(module, SourceModule)
            if any(isinstance(t, ast.Subscript) and ast.unparse(t.slice) == repr(_VISIBLE) for t in assign.targets):
                found.update(_asked(program, module, assign.value))
    return frozenset(flag for name in found - {"*"} for flag in _flags(program, name))


def own_processes(program: Program, script: str) -> OwnProcesses:
    """Of a script that starts further processes; the first file that starts any decides, the script before all others."""
    if _PARSED.search(program.project.read(script) or b""):  # Lightning 1 has the options of its Trainer itself
        return OwnProcesses(frozenset({"--gpus", "--devices"}))
    for path in sorted(program.files, key=lambda p: (p != script, p)):
        if not _WORDS.search(program.project.read(path) or b""):
            continue
        module = program.project.module(path)
        calls = _with_a_number(module) if isinstance(module, SourceModule) else []
        if isinstance(module, SourceModule) and calls:
            return _of(program, module, calls)
    return OwnProcesses()


def _with_a_number(module: SourceModule) -> list[ast.Call]:
    """The calls that are told how many; those that make what a Trainer takes: `Trainer(**settings)`."""
    found = [c for c in module.calls_named(*_STARTS) if _number(c) is not None]
    held = any(k.arg is None for c in module.calls_named("Trainer") for k in c.keywords)
    return found or [c for c in module.nodes(ast.Call) if held and any(k.arg in _NUMBERS for k in c.keywords)]


def _of(program: Program, module: SourceModule, calls: list[ast.Call]) -> OwnProcesses:
    found = {asked for call in calls if (number := _number(call)) for asked in _asked(program, module, number)}
    start = (module, calls[0]) if len(calls) == 1 else None
    options = found - {"*"}
    if "*" in found:
        return OwnProcesses(devices=True, start=start)
    listed = any(_is_split(module, number) for call in calls if (number := _number(call)))
    return OwnProcesses(_flags(program, options.pop()) if len(options) == 1 else frozenset(), start=start, listed=listed)


def _is_split(module: SourceModule, number: ast.expr, depth: int = 0) -> bool:
    """True for `[int(one) for one in args.gpus.split(",")]`, also by a name: what is handed over is a list of devices."""
    if any(isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "split" for n in ast.walk(number)):
        return not (isinstance(number, ast.Call) and dotted(number.func) == "len")
    named = isinstance(number, (ast.Name, ast.Attribute)) and depth < _DEEPEST
    written = ast.unparse(number) if named else ""
    given = [a.value for a in module.nodes(ast.Assign) if named and any(ast.unparse(t) == written for t in a.targets)]
    return any(_is_split(module, value, depth + 1) for value in given)


def _unread(program: Program, number: ast.expr) -> str:
    """The option of `args.devices` in a program whose options are not all to be read."""
    named = isinstance(number, ast.Attribute) and not program.options and dotted(number.value) not in ("self", "cls")
    return number.attr if named and isinstance(number, ast.Attribute) and _flags(program, number.attr) else ""


def _flags(program: Program, name: str) -> frozenset[str]:
    if name in program.options:
        return frozenset(program.options[name].flags)
    spelled = re.compile(rb"add_argument\(\s*(?:[\"']-\w[\"'],\s*)?[\"'](--%b)[\"']" % name.replace("_", "[-_]").encode())
    found = (spelled.search(program.project.read(path) or b"") for path in program.files)
    return frozenset(match[1].decode() for match in found if match)


def _number(call: ast.Call) -> ast.expr | None:
    given = {k.arg: k.value for k in call.keywords}
    named = next((given[name] for name in _NUMBERS if name in given), None)
    if named is not None:
        return named
    name = dotted(call.func)
    at = 1 if name == "launch" else 2 if last(name) in ("spawn", "start_processes") else len(call.args)
    return call.args[at] if len(call.args) > at else None


def _asked(program: Program, module: SourceModule, number: ast.expr, depth: int = 0) -> Iterator[str]:
    """The options behind a number, and `*` for the GPUs to be seen."""
    written = ast.unparse(number)
    named = isinstance(number, (ast.Name, ast.Attribute)) and depth < _DEEPEST
    given = [a.value for a in module.nodes(ast.Assign) if named and any(ast.unparse(t) == written for t in a.targets)]
    if isinstance(number, ast.Call) and last(dotted(number.func)) == "device_count":
        yield "*"
    elif given:
        for value in given:
            yield from _asked(program, module, value, depth + 1)
    elif name := program.option(module, number) or _unread(program, number):
        yield name
    elif isinstance(number, (ast.Constant, ast.UnaryOp)) and ast.unparse(number).strip("'\"") in _ALL:
        yield "*"
    elif _is_made_of_its_parts(number):
        for part in ast.iter_child_nodes(number):
            part = part.iter if isinstance(part, ast.comprehension) else part
            if isinstance(part, ast.expr):
                yield from _asked(program, module, part, depth)


def _is_made_of_its_parts(number: ast.expr) -> bool:
    """False for `config["gpus"]` and `load(args.config)`: what a file has is none of the options beside it."""
    if isinstance(number, ast.Call):
        return (number.func.attr if isinstance(number.func, ast.Attribute) else dotted(number.func)) in _OF_TEXTS
    return not isinstance(number, ast.Subscript)
