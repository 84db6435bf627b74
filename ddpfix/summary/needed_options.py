"""The options of a program, what a command gives them, and what a changed line asks of them: `--mode test`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from codemods.analysis.job_files.command_lines import CommandLine, Flag
from codemods.analysis.job_files.command_runs import ProgramOption, program_options
from codemods.analysis.job_files.local_rank_option import SPELLINGS
from codemods.analysis.job_files.shown_run import UNKNOWN
from codemods.analysis.names import dotted, last
from codemods.files.source import SourceModule
from codemods.runtime.record import field, record
from codemods.store.project import Project
from ddpfix.summary.dataclass_options import dataclass_options
from ddpfix.summary.shown_values import with_shown_values

_DOUBTFUL = frozenset({"0", "False", "false", "no", "none", "None", ""})  # on a command line, the parser decides
# `given = vars(args)`, then `given.update(file)`: what a file of settings has counts, whatever the command gives.
_FILLED_BY_A_FILE = re.compile(
    rb"\b(\w+)[ \t]*=[ \t]*(?:vars\([\w.]+\)|[\w.]+\.__dict__)[\s\S]*?\b\1(?:\.update\(|\[[^\]\n]+\][ \t]*=[^=])"
)
_PARSES = ("parse_args", "parse_known_args", "parse_intermixed_args")


@record
class NeededOption:
    """text: what to give: `--mode test`, `another --mode`, `no --quick`; "" where nothing that is given leads there.

    words: the same, to be put behind a command that does not have the option; nothing where its value is not known.
    shown: False for what no option answers: a test of data, a call that is not seen.
    """

    text: str
    words: tuple[str, ...] = ()
    shown: bool = True


NOWHERE = NeededOption("", shown=False)


@record(frozen=False)
class Program:
    """A program with its options. held: names that hold what the parser read."""

    project: Project
    files: frozenset[str]
    options: Mapping[str, ProgramOption]
    held: frozenset[str]
    _aliases: dict[str, dict[str, str]] = field(default_factory=dict)

    def option(self, module: SourceModule, node: ast.expr) -> str:
        """The option whose value the expression is, "" where it is none: `args.mode`, `self.args.mode`, a name for it."""
        if isinstance(node, ast.Attribute) and node.attr in self.options and last(dotted(node.value)) in self.held:
            return node.attr
        if module.path not in self._aliases:
            self._aliases[module.path] = dict(self._named(module))
        return self._aliases[module.path].get(ast.unparse(node), "")

    def _named(self, module: SourceModule) -> Iterator[tuple[str, str]]:
        """What is given the value of an option once, and no other: `settings["resume"] = args.resume`."""
        given: dict[str, list[ast.expr | None]] = {}
        for assign in module.nodes(ast.Assign):
            for target in assign.targets:
                given.setdefault(ast.unparse(target), []).append(assign.value)
        for name, values in given.items():
            (value, *more) = values
            if more or not isinstance(value, ast.Attribute) or value.attr not in self.options:
                continue
            if last(dotted(value.value)) in self.held:
                yield name, value.attr


def program_of(project: Project, script: str, files: frozenset[str]) -> Program:
    """The program that a script starts. files: what it comes to."""
    return project.keep(("program to test", script, files), lambda: _read(project, script, files))


def _read(project: Project, script: str, files: frozenset[str]) -> Program:
    options = program_options(project, script) if script else {}
    made = dataclass_options(project, files)
    if any(_FILLED_BY_A_FILE.search(project.read(path) or b"") for path in files):
        options = {name: ProgramOption(option.flags, UNKNOWN, UNKNOWN) for name, option in options.items()}
    held = _held(project, files) if options else frozenset()
    if made is None:
        return Program(project, files, options, held)
    both = {name: ProgramOption(o.flags, UNKNOWN, UNKNOWN) for name, o in made.options.items() if name in options}
    return Program(project, files, {**options, **made.options, **both}, held | made.held)


def _held(project: Project, files: frozenset[str]) -> frozenset[str]:
    """The names that a parser's answer is given: directly, by `vars`, or by a function that reads the command line."""
    found: set[str] = set()
    makers: set[str] = set()
    for path in sorted(files):
        if b"parse_args" not in (data := project.read(path) or b"") and b"parse_known_args" not in data:
            continue
        module = project.module(path)
        for call in module.calls_named(*_PARSES) if isinstance(module, SourceModule) else ():
            assert isinstance(module, SourceModule)
            found |= _targets(module, call)
            function = module.function_of(call)
            makers |= {function.name} if function is not None else set()
    for path in sorted(files) if makers else ():
        if not any(name.encode() in (project.read(path) or b"") for name in makers):
            continue
        module = project.module(path)
        if isinstance(module, SourceModule):
            found |= {name for call in module.calls_named(*makers) for name in _targets(module, call)}
    return frozenset(found)


def _targets(module: SourceModule, call: ast.Call) -> set[str]:
    statement = module.statement_of(call)
    if not isinstance(statement, ast.Assign):
        return set()
    firsts = [t.elts[0] if isinstance(t, ast.Tuple) and t.elts else t for t in statement.targets]
    value = statement.value
    value = value.args[0] if isinstance(value, ast.Call) and dotted(value.func) == "vars" and value.args else value
    return {last(dotted(t)) for t in firsts if dotted(t)} if value is call else set()


def given_options(program: Program, command: CommandLine, known: Mapping[str, str]) -> dict[str, str | None]:
    """What each option has under the command. known: the values of the shell's variables there."""
    by_flag = {flag: name for name, option in program.options.items() for flag in option.flags}
    out = {name: option.default for name, option in program.options.items()}
    out |= {name: UNKNOWN for flag, name in by_flag.items() if flag in SPELLINGS}  # a launcher gives it
    for flag in command.flags:
        name = by_flag.get(flag.name) or _shortened(flag.name, by_flag)
        if name and flag.name not in SPELLINGS:
            out[name] = _value(program.options[name], flag, known)
    return out


def _shortened(flag: str, by_flag: Mapping[str, str]) -> str:
    found = {name for full, name in by_flag.items() if flag.startswith("--") and full.startswith(flag)}
    return found.pop() if len(found) == 1 else ""


def _value(option: ProgramOption, flag: Flag, known: Mapping[str, str]) -> str | None:
    if option.given_alone is not None:
        said = (flag.settled or "").capitalize()
        return said if said in ("True", "False") and option.given_alone == "True" else option.given_alone
    if flag.settled is not None:
        written = flag.settled
    elif flag.values:
        written = with_shown_values(flag.values[0].raw, known).strip("\"'")
    else:
        return UNKNOWN
    return UNKNOWN if "$" in written or written in _DOUBTFUL else written
