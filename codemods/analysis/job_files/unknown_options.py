"""Options that a command gives to its script, and that no parser of the program has: argparse ends each rank.

Only where all options are to be seen: parsers of argparse whose options are written out, in files of the repository.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.job_files.command_lines import CommandLine, Flag, script_of
from codemods.analysis.loading.same_program import whole_program
from codemods.analysis.names import dotted, last
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_OPTION = lazy(r"--[A-Za-z][\w-]*$")
# What reads the command line in another way, takes what it does not know, or adds options of its own.
_OTHERS = lazy(
    rb"parse_intermixed|REMAINDER|HfArgumentParser|parse_args_into|sys\.argv|import fire|fire\.Fire|import click|click\."
    rb"|typer|hydra|jsonargparse|LightningCLI|from_cli|absl|gflags|tf\.app|simple_parsing|configargparse|docopt|tyro|pyrallis"
    rb"|add_argparse_args|from_argparse_args|add_config_arguments|set_defaults\(\*\*|fromfile_prefix|Tap\b|import_module|exec\("
)
_MADE = frozenset({"add_argument_group", "add_mutually_exclusive_group", "ArgumentParser", "add_subparsers", "add_parser"})


@record
class UnknownOption:
    """flag: the option, as the command has it. script: the file whose parser is asked. meant: the option that is so but for `-`
    and `_`, "" where there is none. several: the options that begin with it, where argparse asks which of them it is."""

    flag: Flag
    script: str
    meant: str
    several: tuple[str, ...] = ()


def unknown_options(project: Project, command: CommandLine) -> Iterator[UnknownOption]:
    """The options of a command that its program has nowhere; none where the program's options are not all to be seen."""
    wanted = [f for f in command.flags if _OPTION.match(f.name)]
    script = script_of(project, command) if wanted else None
    known = project.keep(("options of a script", script), lambda: _options(project, script or "")) if script else None
    if known and script and (doubtful := _doubtful(project, wanted, script, known)):
        yield doubtful  # argparse reads it first, and ends there
        return
    for flag in wanted if known else ():
        assert script is not None and known is not None
        if not any(option.startswith(flag.name) for option in known):  # argparse takes what an option begins with
            alike = (option for option in known if option.replace("_", "-") == flag.name.replace("_", "-"))
            yield UnknownOption(flag, script, next(alike, ""))


def _doubtful(project: Project, wanted: list[Flag], script: str, known: frozenset[str]) -> UnknownOption | None:
    """The first option that is the beginning of several, where one parser has all of them."""
    for flag in wanted:
        several = sorted(o for o in known if o.startswith(flag.name))
        if len(several) > 1 and flag.name not in several and _is_one_parser(project, script):
            return UnknownOption(flag, script, "", tuple(several))
    return None


def _is_one_parser(project: Project, script: str) -> bool:
    """True where the program makes one parser, which takes beginnings of options for them."""
    data = [project.read(path) or b"" for path in whole_program(project, script)]
    made = sum(text.count(b"ArgumentParser(") for text in data)
    return made == 1 and not any(b"add_subparsers" in text or b"allow_abbrev" in text for text in data)


def _options(project: Project, script: str) -> frozenset[str] | None:
    """Every option that a parser of the program may have; None where they are not all written out."""
    found: set[str] = {"--help"}
    asked = False
    for path in whole_program(project, script):
        data = project.read(path) or b""
        if _OTHERS.search(data) or (b"parse_known_args(" in data and b".parse_args(" not in data):
            return None
        if b"add_argument" not in data and b"parse_args" not in data and b"ArgumentParser" not in data:
            continue
        module = project.module(path)
        options = _of_file(project, module) if module is not None else None
        if options is None:
            return None
        found |= options
        asked = asked or b"parse_args(" in data
    return frozenset(found) if asked and len(found) > 1 else None


def _of_file(project: Project, module: SourceModule) -> set[str] | None:
    options: set[str] = set()
    for call in module.calls_named("add_argument"):
        names = [a.value if isinstance(a, ast.Constant) else None for a in call.args]
        if not names or not all(isinstance(n, str) for n in names):
            return None
        options |= {str(n) for n in names}
    parsers = _parsers(module)
    for call in module.nodes(ast.Call):
        given = {a.id for a in (*call.args, *(k.value for k in call.keywords)) if isinstance(a, ast.Name)}
        if given & parsers and not project.files_defining(last(dotted(call.func))):
            return None  # a library adds options of its own
    return options


def _parsers(module: SourceModule) -> set[str]:
    """The names that hold a parser: options are added to them, or they are made as one."""
    held = {dotted(c.func.value) for c in module.calls_named("add_argument") if isinstance(c.func, ast.Attribute)}
    for assign in module.nodes(ast.Assign):
        if isinstance(assign.value, ast.Call) and last(dotted(assign.value.func)) in _MADE:
            held |= {t.id for t in assign.targets if isinstance(t, ast.Name)}
    return held
