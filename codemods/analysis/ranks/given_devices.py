"""Is a Trainer or Fabric of Lightning given several devices where it is made, or by a command that starts its program?

A number that is left to settings, or to the machine, may be one: of the fixes in such programs on unseen repositories readers
would have merged half, of those in programs that a command starts on several processes four in five.
"""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_of
from codemods.analysis.job_files.documented_starts import starts
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.trainer_options import options_of
from codemods.analysis.tuning.options import Option, option_behind, option_named
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_COUNTS = ("devices", "gpus", "num_nodes", "num_processes")
_HOW = ("strategy", "accelerator", "distributed_backend", "plugins")
_SEVERAL = lazy(r"-1|[2-9]|\d\d+|\d+(?:\s*,\s*\d+)+")
_SPREADS = lazy(r"(?i)ddp|fsdp|deepspeed|distributeddata|fullysharded|bagua|horovod")
_NUMBER = r"(?:devices|gpus|num_gpus|ngpus?|n_gpus?|num_devices|num_nodes)"
_COMMAND = lazy(
    rf"(?<!\S)(?:--(?:\w+\.)?{_NUMBER}[= ]|\+{{0,2}}(?:\w+\.)?{_NUMBER}=)[\"'\[]*(?:-1|[2-9]|\d\d|\d+[ ]*,[ ]*\d)|"
    r"(?<!\S)\+?(?:--)?(?:\w+[.@/])?(?:trainer|strategy)[= ][\"']?ddp"
)
_HOW_IT_RUNS = r"(?:strategy|accelerator|distributed_backend)"
_IN_ONE_PROCESS = lazy(
    rf"(?<!\S)(?:--(?:\w+\.)?{_HOW_IT_RUNS}[= ]|\+{{0,2}}(?:\w+[.@/])?{_HOW_IT_RUNS}=)[ \t]*[\"']?dp(?![\w-])"
)


def command_gives_several(given: str) -> bool:
    """True for the rest of a command, `--devices 4 --epochs 3`, that says how many devices there are, and more than one.

    Each of them is a process: not with `--strategy dp`.
    """
    return _COMMAND.search(given) is not None and not command_keeps_to_one(given)


def command_keeps_to_one(given: str) -> bool:
    """True for the rest of a command that asks Lightning for DataParallel: one process drives all devices."""
    return _IN_ONE_PROCESS.search(given) is not None


def call_gives_several(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True where the call itself names several devices or nodes, or a strategy of several processes.

    Or takes the number of an option whose default is several, where no command gives another.
    """
    written = {k.arg: k.value for k in call.keywords if k.arg}
    packed = [k.value for k in call.keywords if k.arg is None]
    handed = [(module, written), *options_of(project, module, packed)]
    if any(_names_several(home, name, value) for home, options in handed for name, value in options.items()):
        return True
    read = [v for _, options in handed for name, v in options.items() if name in _COUNTS and isinstance(v, ast.Attribute)]
    asked = [option_behind(project, module, value) for value in read]
    if last(dotted(call.func)) == "from_argparse_args" and not set(_COUNTS) & set(written):
        asked += [option_named(project, module, name) for name in _COUNTS]
    return any(option is not None and _is_left_at_several(project, option) for option in asked)


def _is_left_at_several(project: Project, option: Option) -> bool:
    """True for an option whose default is more than one (or all, -1), and that no command of the project gives."""
    default = option.default
    several = default is not None and _is_several(default)
    if isinstance(default, ast.Constant) and isinstance(default.value, str):
        several = several and ("," in default.value or default.value == "-1")  # "3" is the fourth GPU in an older Lightning
    return several and not any(option.name in s.flags for s in starts(project))


def _names_several(module: SourceModule, name: str, value: ast.expr) -> bool:
    if name in _HOW:
        return _is_a_strategy(module, value)
    return name in _COUNTS and _is_several(value)


def _is_several(value: ast.expr) -> bool:
    if isinstance(value, (ast.List, ast.Tuple)):
        return len(value.elts) > 1
    if isinstance(value, ast.Call):
        return last(dotted(value.func)) == "device_count"
    try:
        number = ast.literal_eval(value)
    except ValueError:
        return False
    return _SEVERAL.fullmatch(str(number)) is not None


def _is_a_strategy(module: SourceModule, value: ast.expr) -> bool:
    """A text, an object or a list of objects; a name, or a choice, counts where each value that it has is one."""
    if isinstance(value, ast.IfExp):
        return _is_a_strategy(module, value.body) and _is_a_strategy(module, value.orelse)
    if isinstance(value, (ast.List, ast.Tuple)):
        return any(_is_a_strategy(module, inner) for inner in value.elts)
    if isinstance(value, ast.Constant):
        return isinstance(value.value, str) and _SPREADS.search(value.value) is not None
    if isinstance(value, ast.Call):
        return _SPREADS.search(last(dotted(value.func))) is not None
    bound = bindings_of(module, value) if isinstance(value, ast.Name) else []
    return bool(bound) and all(isinstance(b.value, (ast.Constant, ast.Call)) and _is_a_strategy(module, b.value) for b in bound)
