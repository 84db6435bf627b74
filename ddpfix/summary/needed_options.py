"""Which options of its program a command must give for a changed line to be run: `--mode test` for what `test()` alone does.

A test decides where it compares an option with a constant, round the line or round the calls that lead to its function. What is
not known leads nowhere past: a command is said to miss a line only where its options show it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from codemods.analysis.branches import leading_tests
from codemods.analysis.job_files.command_lines import CommandLine, Flag
from codemods.analysis.job_files.command_runs import ProgramOption, program_options
from codemods.analysis.job_files.local_rank_option import SPELLINGS
from codemods.analysis.job_files.shown_run import UNKNOWN
from codemods.analysis.literals import held_against, is_none
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.closed_branches import open_uses
from codemods.analysis.ranks.uses import uses_of
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.record import field, record
from codemods.store.project import Project
from ddpfix.summary.program_stages import calls_of_stages, is_called_by_the_project_alone, stages_of, starts_a_stage
from ddpfix.summary.shown_values import with_shown_values

_OFF = frozenset({"False", "None", "", "0", "0.0"})
_DOUBTFUL = frozenset({"0", "False", "false", "no", "none", "None", ""})  # on a command line, the parser decides
_PARSES = ("parse_args", "parse_known_args", "parse_intermixed_args")


@record
class NeededOption:
    """text: what to give: `--mode test`, `another --mode`, `no --quick`; "" where nothing that is given leads there.

    words: the same, to be put behind a command that does not have the option; nothing where its value is not known.
    """

    text: str
    words: tuple[str, ...] = ()


NOWHERE = NeededOption("")


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
    return Program(project, files, options, _held(project, files) if options else frozenset())


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
        return option.given_alone
    if flag.settled is not None:
        written = flag.settled
    elif flag.values:
        written = with_shown_values(flag.values[0].raw, known).strip("\"'")
    else:
        return UNKNOWN
    return UNKNOWN if "$" in written or written in _DOUBTFUL else written


@record(frozen=False)
class Way:
    """Where a program goes with the options of one command. given: what each option has. stage: `fit` of `main.py fit`, where
    Lightning reads the command.
    """

    program: Program
    given: Mapping[str, str | None]
    stage: str = ""
    _to: dict[tuple[str, int], tuple[NeededOption, ...]] = field(default_factory=dict)

    def lacks(self, module: SourceModule, node: ast.AST) -> tuple[NeededOption, ...]:
        """What the options lack for the place to be run; nothing where they let it run, or do not decide."""
        tests = leading_tests(module, node)
        here = [need for test, holds in tests for need in _lacking(self.program, module, test, self.given, holds=holds)]
        function = module.function_of(node)
        return tuple(dict.fromkeys((*here, *(self._before(module, function, node) if function is not None else ()))))

    def _before(self, module: SourceModule, function: FunctionNode, node: ast.AST) -> tuple[NeededOption, ...]:
        """What they lack for the function to be called, by its calls that come to the place."""
        key = (module.path, function.lineno)
        if key not in self._to:
            self._to[key] = ()  # of a function that calls itself
            self._to[key] = self._of_a_hook(module, function) or self._called(module, function, node)
        return self._to[key]

    def _called(self, module: SourceModule, function: FunctionNode, node: ast.AST) -> tuple[NeededOption, ...]:
        project = self.program.project
        uses = open_uses(project, module, function, node, uses_of(project, module, function))
        named = [*((s.module, s.call) for s in uses.calls), *((h.module, h.node) for h in uses.handed_on)]  # `spawn(test, …)`
        others = [(m, n) for m, n in named if m.function_of(n) is not function]
        ways = [self.lacks(m, n) for m, n in others if m.path in self.program.files]
        if others and not ways and not uses.more and is_called_by_the_project_alone(project, module, function):
            return (NOWHERE,)
        return () if uses.more or not ways else sorted(ways, key=_hardness)[0]

    def _of_a_hook(self, module: SourceModule, function: FunctionNode) -> tuple[NeededOption, ...]:
        """Of a method that Lightning calls in a stage of its own: `on_test_epoch_end`."""
        stages = stages_of(module, function)
        if not stages or self.stage:
            wanted = stages and self.stage not in stages
            return (NeededOption(f"the sub-command {stages[0]}", ("", stages[0])),) if wanted else ()
        calls = list(calls_of_stages(self.program.project, self.program.files, stages))
        if calls:
            return min((self.lacks(m, call) for m, call in calls), key=_hardness)
        return (NOWHERE,) if starts_a_stage(self.program.project, self.program.files) else ()


def _hardness(needs: tuple[NeededOption, ...]) -> tuple[bool, int]:
    return NOWHERE in needs, len(needs)


def _lacking(
    program: Program, module: SourceModule, test: ast.expr, given: Mapping[str, str | None], *, holds: bool
) -> list[NeededOption]:
    """What has to be given for the test to come out so."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _lacking(program, module, test.operand, given, holds=not holds)
    if isinstance(test, ast.BoolOp):
        parts = [_lacking(program, module, part, given, holds=holds) for part in test.values]
        if isinstance(test.op, ast.And) == holds:  # all of them have to come out so
            return [need for part in parts for need in part]
        return min(parts, key=len)
    asked = _asked(program, module, test, given)
    if asked is None or asked.answer is None or asked.answer == holds:
        return []
    option = program.options[asked.option]
    flag = max(option.flags, key=len)
    switch = option.given_alone is not None and option.given_alone != UNKNOWN
    if asked.is_given == holds:
        words = (flag,) if switch else (flag, asked.value) if asked.value else ()
        return [NeededOption(" ".join(words) or f"{flag} {flag.lstrip('-').upper()}", words)]
    return [NeededOption(f"another {flag}" if asked.value else f"no {flag}")]


@record
class _Asked:
    """answer: of the test, None where it is not known. is_given: it holds where the option is given, or has the value."""

    option: str
    answer: bool | None
    is_given: bool = True
    value: str = ""


def _asked(program: Program, module: SourceModule, test: ast.expr, given: Mapping[str, str | None]) -> _Asked | None:
    if name := program.option(module, test):
        value = given[name]
        return _Asked(name, None if value == UNKNOWN else value is not None and value not in _OFF)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    operator, against = test.ops[0], test.comparators[0]
    if is_none(against) and isinstance(operator, (ast.Is, ast.IsNot)) and (name := program.option(module, test.left)):
        is_other = isinstance(operator, ast.IsNot)
        return _Asked(name, None if given[name] == UNKNOWN else (given[name] is not None) == is_other, is_other)
    if isinstance(test.left, ast.Constant) and isinstance(operator, (ast.In, ast.NotIn)):
        name, is_part, part = program.option(module, against), isinstance(operator, ast.In), str(test.left.value)
        held = given.get(name)
        return None if not name or held is None or held == UNKNOWN else _Asked(name, (part in held) == is_part, is_part, part)
    compared = held_against(test)
    name = program.option(module, compared[0]) if compared is not None else ""
    if compared is None or not name or not compared[1]:
        return None
    _, values, is_one = compared
    wanted = [str(v) for v in values]
    answer = None if given[name] == UNKNOWN else (str(given[name]) in wanted) == is_one
    empty = wanted == [""]  # `opt.model != ""`
    return _Asked(name, answer, is_one != empty, "" if empty else wanted[0])
