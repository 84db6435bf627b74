"""Programs, and modes of programs, that the repository's own texts start as one process, while they launch others on several.

`python evaluate.py`, `python main.py --submission`, beside `torchrun train.py`: no second process ever comes there.
A mode may be a value, too: `python main.py --task fill` beside `torchrun main.py --task forecast`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from codemods.analysis.importing import imported_files
from codemods.analysis.job_files.documented_starts import Start, other_starts, starts, starts_of
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.uses import uses_of
from codemods.analysis.ranks.valued_modes import (
    Wanted,
    is_given_to_one,
    is_parsed,
    is_shown_otherwise,
    names_of_class,
    wanted_over,
)
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_MOST_CALLS, _DEEPEST = 12, 5
# What starts processes by itself: Python alone is no sign of one process then.
_STARTS_PROCESSES = lazy(
    rb"\b(?:spawn|start_processes|launch\w*|\w+_launch\w*|Popen|notebook_launcher|run_distributed)\(|[lL]ightning|"
    rb"submitit|horovod|mpi4py|\bray\b|torchelastic|\bTrainer\("
)
# A program that trains or joins its processes on purpose may be launched on several though the texts do not say so.
_SHARES = lazy(
    rb"init_process_group|DistributedDataParallel|\.backward\(|optimizer|DistributedSampler|Accelerator\(|gather\(|reduce\(|"
    rb"barrier\(|init_dist|setup_dist|[tT]rainer|\.fit\("
)


def is_started_alone(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True where the texts launch programs on several processes, and start all that come to `node` as one."""
    if not any(s.several for s in starts(project)) or all(s.several for s in starts(project)):
        return False
    return _comes_alone(project, module, node, 0, _is_in_mode)


def is_started_otherwise(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True where each run that comes to `node` needs a value of an option, and of many commands each launch shows another."""
    return _comes_alone(project, module, node, 0, _is_in_unshown_mode)


_Mode = Callable[[Project, SourceModule, ast.AST], bool]


def _comes_alone(project: Project, module: SourceModule, node: ast.AST, depth: int, in_mode: _Mode) -> bool:
    """True where all ways to `node` lead through such a mode, or start in a program of one process."""
    if in_mode(project, module, node):
        return True
    function = module.function_of(node)
    if function is None:
        return _is_program_of_one(project, module)
    if depth > _DEEPEST:
        return False
    outer = module.function_of(function)
    if outer is not None:
        return _comes_alone(project, module, outer, depth + 1, in_mode)
    owner = module.parent(function)
    if isinstance(owner, ast.ClassDef):  # an heir or a framework may call a method of it, but of no object that nobody makes
        return _is_named_in_modes(project, module, owner, depth + 1, in_mode)
    used = uses_of(project, module, function).outside_tests()
    if used.more or used.handed_on or len(used.calls) > _MOST_CALLS or _may_be_called_by_others(function):
        return False
    if not used.calls:
        return function.name == "main" and _is_program_of_one(project, module)
    return all(_comes_alone(project, s.module, s.call, depth + 1, in_mode) for s in used.calls)


def _may_be_called_by_others(function: FunctionNode) -> bool:
    kept = (last(dotted(d.func if isinstance(d, ast.Call) else d)) for d in function.decorator_list)
    return any(name not in ("no_grad", "inference_mode", "main") for name in kept)


def _is_program_of_one(project: Project, module: SourceModule) -> bool:
    """True for a script that only Python itself is said to start, and that neither trains nor starts processes."""
    return project.keep(("started alone", module.path), lambda: _find_program(project, module))


def _find_program(project: Project, module: SourceModule) -> bool:
    if not module.holds(b"__main__") or _SHARES.search(module.data):
        return False
    of_it = _starts_of(project, module)
    return bool(of_it) and not any(s.several for s in of_it) and starts_nothing(project, module)


def _starts_of(project: Project, module: SourceModule) -> list[Start]:
    """The commands for a script; none where some launched script is not named, or another file may launch this one."""
    if any(s.several and not s.script for s in starts(project)):
        return []
    if other_starts(project, module.path):
        return []
    return starts_of(project, module.path) or []


def starts_nothing(project: Project, module: SourceModule) -> bool:
    return not any(_STARTS_PROCESSES.search(project.read(p) or b"") for p in imported_files(project, module))


# One mode of a program that is launched


def _is_in_mode(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True under a test of an option that every launch on several processes leaves out, and commands for one process give.

    Also of a value that only these give it: `args.task == "fill"`.
    """
    if any(_is_mode(project, module, option) for option in _options_over(module, node)):
        return True
    return any(_is_valued_mode(project, module, wanted) for wanted in wanted_over(module, node))


def _is_valued_mode(project: Project, module: SourceModule, wanted: Wanted) -> bool:
    key = ("valued mode of one process", module.path, wanted)
    return project.keep(key, lambda: _find_valued_mode(project, module, wanted))


def _find_valued_mode(project: Project, module: SourceModule, wanted: Wanted) -> bool:
    commands = _starts_of(project, module)
    return is_given_to_one(project, module, wanted, commands) and starts_nothing(project, module)


def _is_in_unshown_mode(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True under a test of an option's value that no launch gives, where many commands show values, and in a mode of one."""
    return _is_in_mode(project, module, node) or any(_is_unshown(project, module, wanted) for wanted in wanted_over(module, node))


def _is_unshown(project: Project, module: SourceModule, wanted: Wanted) -> bool:
    key = ("value that no launch shows", module.path, wanted)
    return project.keep(key, lambda: is_shown_otherwise(project, module, wanted, _starts_of(project, module)))


def _is_named_in_modes(project: Project, module: SourceModule, owner: ast.ClassDef, depth: int, in_mode: _Mode) -> bool:
    """True for a class that is named in such modes alone, or by what is called in them: no other run makes an object of it."""

    def find() -> bool:
        places = names_of_class(project, module, owner)
        return bool(places) and all(_comes_alone(project, m, node, depth, in_mode) for m, node in places)

    return project.keep(("named in modes of one", module.path, owner.lineno, depth, in_mode.__name__), find)


def _options_over(module: SourceModule, node: ast.AST) -> Iterator[str]:
    """The options whose being given is asked for above a place: `if args.submission`, `if args.folder is not None`."""
    below = node
    for up in module.ancestors(node):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return
        if isinstance(up, ast.If) and any(s is below for s in up.body):
            parts = up.test.values if isinstance(up.test, ast.BoolOp) and isinstance(up.test.op, ast.And) else [up.test]
            for part in parts:
                if isinstance(part, ast.Compare) and ast.unparse(part).endswith(" is not None"):
                    part = part.left
                if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
                    yield part.attr
        below = up


def _is_mode(project: Project, module: SourceModule, option: str) -> bool:
    return project.keep(("mode of one process", module.path, option), lambda: _find_mode(project, module, option))


def _find_mode(project: Project, module: SourceModule, option: str) -> bool:
    imported = [project.read(p) or b"" for p in imported_files(project, module) if p != module.path]
    if not any(option.encode() in text for text in imported) and not is_parsed([module.data, *imported], option):
        return False
    of_it = _starts_of(project, module)
    launched = [s for s in of_it if s.several]
    alone = [s for s in of_it if not s.several and option in s.flags]
    if not launched or not alone or any(option in s.flags or s.more for s in launched):
        return False
    return starts_nothing(project, module)


def is_in_mode_of_one(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True under a test of an option that commands give for one process, and no launch of several of any script does.

    The place may stand in any file: which of the scripts comes there is not asked.
    """
    return any(_is_given_to_one(project, option) for option in _options_over(module, node))


def _is_given_to_one(project: Project, option: str) -> bool:
    given = [s for s in starts(project) if option in s.flags]
    if not given or any(s.several for s in given):
        return False
    return not any(s.more for s in starts(project) if s.several)
