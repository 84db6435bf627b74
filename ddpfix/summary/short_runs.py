"""What makes a run of a program short: its own option for epochs or steps, Lightning's, or a key of its Hydra settings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping

from codemods.analysis.branches import branches_round, exits_above
from codemods.analysis.job_files.command_lines import CommandLine
from codemods.analysis.job_files.hydra_programs import hydra_program, started_by_hydra
from codemods.analysis.job_files.hydra_runs import hydra_runs
from codemods.analysis.names import dotted
from codemods.analysis.ranks.uses import uses_of
from codemods.files.source import SourceModule
from codemods.runtime.record import field, record
from ddpfix.summary.ended_loops import ends_the_loop
from ddpfix.summary.launch_order import asks_for_another, is_no_training
from ddpfix.summary.needed_options import Program
from ddpfix.summary.run_places import Place
from ddpfix.summary.ways import Way

_STEPS_OF_A_TEST = "10"
_COUNTED = re.compile(
    r"(?:[a-z]+_)*n?epochs?(?:_num)?|(?:max|train|training|total|num_train|max_train)_(?:step|iter|iteration)s?|iterations"
)
_NOT_ALL = re.compile(
    r"warm|start|begin|resum|save|eval|val|test|log|print|sampl|vis|freq|interval|every|each|load|first|last|decay|lr|patience"
    r"|ckpt|checkpoint|freeze|swa|ema|anneal|drop|which|step_epoch|per_|init|burn|until|switch"
)
_TO_ADD = re.compile(
    r"(?:max|num|n|total|train|nb|num_train|training)_epochs?|n?epochs|epochs?_num"
    r"|(?:max|train|max_train|num_train)_(?:step|iter|iteration)s?"
)
_NUMBER = re.compile(r"-?\d+")
_MADE_BY_CLASSES = rb"HfArgumentParser"
_MADE_OF_A_CLASS = (b"draccus.wrap", b"pyrallis.wrap")
_DEEPEST = 5


@record
class ShortRun:
    """given: flag, or key of Hydra -> its value in place of the command's own. added: words behind the command.

    text: `--epochs 1`, "" where it is short as it stands.
    """

    given: Mapping[str, str] = field(default_factory=dict)
    added: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        given = (f"{name} {value}" if name.startswith("-") else f"{name}={value}" for name, value in self.given.items())
        return " ".join((*given, *self.added))


def short_run(way: Way, command: CommandLine, reached: Iterable[Place]) -> ShortRun:
    """reached: the changed places of the command. One epoch does not come to what is done in some of them only."""
    program, script, stage = way.program, way.script, way.stage
    if is_no_training(script) or (stage and stage != "fit") or asks_for_another(command):
        return ShortRun()
    if any(p.statement and _is_done_at_times(program, *p.statement) for p in reached):
        return ShortRun()
    given = {flag: values for flag, values in _given(command) if ends_the_loop(way, flag)}
    if given or any(_is_count(flag.field) for flag in command.flags):
        long = {flag: value for flag, (old, value) in given.items() if not _NUMBER.fullmatch(old) or int(old) > int(value)}
        return ShortRun(long)
    added = next((text for text in _added(program, script, stage) if ends_the_loop(way, re.split("[ =]", text)[0])), "")
    return ShortRun(added=tuple(added.split()))


def _is_count(name: str) -> bool:
    name = name.lower()
    return _COUNTED.fullmatch(name) is not None and _NOT_ALL.search(name) is None


def _value(name: str) -> str:
    return "1" if "epoch" in name.lower() else _STEPS_OF_A_TEST


def _given(command: CommandLine) -> Iterator[tuple[str, tuple[str, str]]]:
    """(the flag, what it has, what it is to have), for each that counts epochs or steps."""
    for flag in command.flags:
        name = flag.field.rpartition(".")[2]
        if _is_count(name) and (flag.joined or len(flag.values) == 1):
            yield flag.name, (flag.settled or "", _value(name))
    for word in command.words:
        key, equals, value = word.text.partition("=")
        if equals and not key.startswith("-") and "." in key and _is_count(key.lstrip("+").rpartition(".")[2]):
            yield key, (value, _value(key))


def _added(program: Program, script: str, stage: str) -> Iterator[str]:
    texts = [program.project.read(path) or b"" for path in sorted(program.files)]
    if stage:
        yield "--trainer.max_epochs 1"
    yield from _of_hydra(program, script)
    if any(_MADE_BY_CLASSES in text and b"TrainingArguments" in text for text in texts):
        yield f"--max_steps {_STEPS_OF_A_TEST}"
    if any(b"add_subparsers" in text for text in texts):
        return
    found = {f for f in _options(program, script) if _TO_ADD.fullmatch(f.lstrip("-").replace("-", "_").lower())}
    for flag in sorted(found, key=lambda f: ("epoch" not in f, f)):
        yield f"{flag} {_value(flag)}"


def _of_hydra(program: Program, script: str) -> Iterator[str]:
    """The keys that its settings have, and those that its main function asks for."""
    hydra = hydra_program(program.project, script)
    runs = hydra_runs(program.project, hydra) if hydra else ()
    keys = [keys for keys, value in runs[0].values.items() if keys and value and _NUMBER.fullmatch(value)] if runs else []
    found = [k for k in keys or _asked_for(program, script) if _TO_ADD.fullmatch(k[-1])]
    for key in sorted(found, key=lambda k: ("epoch" not in k[-1], "trainer" not in k, len(k), k)):
        yield f"{'.'.join(key)}={_value(key[-1])}"


def _asked_for(program: Program, script: str) -> list[tuple[str, ...]]:
    """`dataset.max_epochs` of `cfg.dataset.max_epochs` in the function that Hydra starts with `cfg`."""
    module = program.project.module(script)
    main = started_by_hydra(module) if isinstance(module, SourceModule) else None
    if main is None or not main.args.args:
        return []
    names = (dotted(node).split(".") for node in ast.walk(main) if isinstance(node, ast.Attribute))
    return sorted({tuple(parts[1:]) for parts in names if parts[0] == main.args.args[0].arg and len(parts) > 1})


def _options(program: Program, script: str) -> Iterator[str]:
    """The options that take a value, by their longest flags."""
    for option in program.options.values():
        flag = max(option.flags, key=len)
        if option.given_alone is None and _is_asked_by_it(program, script, flag):
            yield flag
    module = program.project.module(script)
    if program.options or not isinstance(module, SourceModule):
        return
    for call in module.calls_named("add_argument"):
        if not any(k.arg in ("action", "nargs") for k in call.keywords):
            texts = (a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str))
            yield from (text for text in texts if text.startswith("--"))
    if any(module.holds(word) for word in _MADE_OF_A_CLASS):
        for assign in module.nodes(ast.AnnAssign):
            if isinstance(assign.target, ast.Name) and isinstance(module.parent(assign), ast.ClassDef):
                yield f"--{assign.target.id}"


def _is_asked_by_it(program: Program, script: str, flag: str) -> bool:
    """True where the script asks for it, or a file that is no program of its own."""
    quoted = re.compile(rb"[\"']%b[\"']" % flag.encode())
    texts = {path: program.project.read(path) or b"" for path in program.files}
    return any(quoted.search(text) and (path == script or b"__main__" not in text) for path, text in texts.items())


def _is_done_at_times(program: Program, module: SourceModule, node: ast.AST, depth: int = 0) -> bool:
    """True under `epoch % args.every == 0`, round it or round the calls that lead to it."""
    leaving = (n.test for n in exits_above(module, node) if not isinstance(n.body[-1], ast.Raise))
    tests = (*(branch.test for branch in branches_round(module, node)), *leaving)
    if any(isinstance(part, ast.Mod) for test in tests for part in ast.walk(test)):
        return True
    function = module.function_of(node)
    if function is None or depth > _DEEPEST:
        return False
    uses = uses_of(program.project, module, function)
    calls = [s for s in uses.calls if s.module.path in program.files and s.module.function_of(s.call) is not function]
    return bool(calls) and all(_is_done_at_times(program, s.module, s.call, depth + 1) for s in calls)
