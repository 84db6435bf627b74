"""Does a program run as several processes under a command's options: does it join those of its launcher, or start its own?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.names import dotted, last, qualified
from codemods.files.source import SourceModule
from ddpfix.summary.needed_options import NOWHERE, NeededOption
from ddpfix.summary.ways import Way

Site = tuple[SourceModule, ast.Call]

_JOINS = (
    *("init_process_group", "init_distributed", "initialize", "init_dist", "Accelerator", "PartialState", "Fabric", "Trainer"),
    *("HfArgumentParser", "LightningCLI", "from_argparse_args", "instantiate"),
)
_STARTS = ("spawn", "start_processes", "Process")
_STARTS_BY_A_FRAMEWORK = ("Trainer", "Fabric", "LightningCLI", "from_argparse_args", "instantiate")
_FOREIGN_NAMES = ("initialize", "init_dist", "init_distributed", "Process")  # other packages have them as well
_PACKAGES = frozenset({"torch", "deepspeed", "mmcv", "mmengine", "multiprocessing", "colossalai"})
_ARGUMENTS = "TrainingArguments"
_MOST = 16
_UNSEEN = NeededOption("several processes, which it is not seen to start or to join", shown=False)


def needs_of_joining(way: Way) -> tuple[NeededOption, ...]:
    """What the options lack for the program to join the processes of its launcher."""
    joins = [way.lacks(*site) for site in _sites(way, _JOINS)]
    joins += [way.lacks(*site) for site in _argument_classes(way)]
    return _least(joins)


def needs_of_starting(way: Way, start: Site | None) -> tuple[NeededOption, ...]:
    """What they lack for it to start processes itself. start: the call that does, where it is known."""
    sites = [start] if start is not None else list(_sites(way, (*_STARTS, *_STARTS_BY_A_FRAMEWORK, "launch")))
    return _least([way.lacks(*site) for site in sites])


def starts_its_own(way: Way, given: tuple[NeededOption, ...]) -> bool:
    """True where it starts processes by torch with these options and those to be added: under a launcher twice too many."""
    return any(set(way.lacks(*site)) <= set(given) for site in _sites(way, _STARTS[:2]))


def _least(found: list[tuple[NeededOption, ...]]) -> tuple[NeededOption, ...]:
    return min(found, key=lambda needs: (any(not n.shown for n in needs), len(needs)), default=(_UNSEEN,))


def _sites(way: Way, names: tuple[str, ...]) -> Iterator[Site]:
    """The calls of such a name that are no function of the project, those of the script first."""
    project, count = way.program.project, 0
    words = [f"{name}(".encode() for name in names]
    for path in sorted(way.program.files, key=lambda p: (p != way.script, p)):
        data = project.read(path) or b""
        module = project.module(path) if any(word in data for word in words) else None
        for call in module.calls_named(*names) if isinstance(module, SourceModule) else ():
            assert isinstance(module, SourceModule)
            if count < _MOST and _is_meant(way, module, call):
                count += 1
                yield module, call


def _is_meant(way: Way, module: SourceModule, call: ast.Call) -> bool:
    name = dotted(call.func)
    full = qualified(module, call.func)
    if last(name) == "instantiate":
        return bool(call.args) and "trainer" in ast.unparse(call.args[0]).lower()
    if last(name) in _FOREIGN_NAMES:
        return full.partition(".")[0] in _PACKAGES
    resolved = way.program.project.resolve(full, module.path) if full else None
    return resolved is None or last(name) in ("Trainer", "launch")


def _argument_classes(way: Way) -> Iterator[Site]:
    """`TrainingArguments(…)` of transformers joins the group where it is made."""
    project = way.program.project
    for path in sorted(way.program.files, key=lambda p: (p != way.script, p)):
        if f"{_ARGUMENTS}(".encode() in (project.read(path) or b"") and isinstance(module := project.module(path), SourceModule):
            yield from ((module, c) for c in module.nodes(ast.Call) if last(dotted(c.func)).endswith(_ARGUMENTS))


def is_shown(needs: tuple[NeededOption, ...]) -> bool:
    return NOWHERE not in needs and all(need.shown for need in needs)
