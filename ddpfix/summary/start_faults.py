"""Why nothing shows that a command starts: a file that the repository does not have, a word that a page left to its reader."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from codemods.analysis.job_files.command_lines import CommandLine, Flag
from codemods.analysis.job_files.shown_run import UNKNOWN
from codemods.files.shell_words import Word
from codemods.files.source import SourceModule
from ddpfix.summary.markdown import code
from ddpfix.summary.needed_options import Program
from ddpfix.summary.shown_values import shown_values, with_shown_values
from ddpfix.summary.two_processes import is_all_arguments

_OF_THE_USER = re.compile(
    r"data|dir|root|path|folder|image|img|video|audio|wav|corpus|file|list|csv|h5|train|val|test|ckpt|checkpoint|model|weight|pretrain"
    r"|init|resume|load|out|log|save|exp|name|cache|token|key|project|entity|wandb|run|seed|port|url",
    re.I,
)
_OF_THE_PROGRAM = re.compile(r"conf|cfg|ya?ml|setting|hparam|recipe|option|opt$", re.I)


def start_faults(
    program: Program, script: str, command: CommandLine, to_fill: tuple[str, ...], absent: list[str]
) -> Iterator[str]:
    """Each as the end of a sentence that begins with the place of the command. absent: settings that it names."""
    known = shown_values(command.source, command.words[0].start)
    for name in absent:
        yield f"names {code(name)}, which is not in the repository"
    for word in to_fill:
        if word not in absent and not _is_of_the_user(command, word, known):
            yield f"leaves {code(word)} to its reader"
    given = {flag.name for flag in command.flags}
    demanded = list(_demanded(program, script))
    for flags in demanded:
        if flags[0].startswith("-") and not any(_spells(flag, f) for flag in given for f in flags):
            yield f"does not give {code(max(flags, key=len))}, which the parser demands"
    positions = [flags[0] for flags in demanded if not flags[0].startswith("-")]
    if (at := _free(program, command)) < len(positions):
        yield f"does not give {code(positions[at])}, which the parser demands"


def _spells(given: str, flag: str) -> bool:
    """`--dat` and `--data`, `-g0` and `-g`."""
    return flag.startswith(given) if given.startswith("--") else given[:2] == flag


def _free(program: Program, command: CommandLine) -> int:
    """How many words of the command go to no option for sure; those behind an option that may take several do not count."""
    target = next((i for i, word in enumerate(command.words) if word.text == command.target), len(command.words))
    of_flags = {word.start for flag in command.flags for word in (flag.word, *flag.values)}
    found = sum(word.start not in of_flags and not is_all_arguments(word) for word in command.words[target + 1 :])
    takes = {name: 0 if option.given_alone is not None else 1 for option in program.options.values() for name in option.flags}
    unknown = {name for option in program.options.values() if option.given_alone == UNKNOWN for name in option.flags}
    for flag in command.flags:
        if flag.name in takes and flag.name not in unknown and not flag.joined:
            found += max(0, len(flag.values) - takes[flag.name])
    return found


def _is_of_the_user(command: CommandLine, word: str, known: Mapping[str, str]) -> bool:
    """True for data, weights and names, which nobody else can give."""
    flag = next(
        (
            f
            for f in command.flags
            if any(word in with_shown_values(w.raw, known) for w in _words(f)) or f"YOUR_{f.field}".upper() == word
        ),
        None,
    )
    asked = flag.field.rpartition(".")[2] if flag is not None else _position(command, word)
    return _OF_THE_USER.search(asked) is not None and _OF_THE_PROGRAM.search(asked) is None


def _words(flag: Flag) -> Iterator[Word]:
    yield from (flag.word, *flag.values) if flag.joined or not flag.values else flag.values


def _position(command: CommandLine, word: str) -> str:
    """The key of Hydra's `data.root=$ROOT`; else the word itself, where it is one of the program's."""
    key = next((w.raw.partition("=")[0] for w in command.words if "=" in w.raw and word in w.raw.partition("=")[2]), "")
    return key.rpartition(".")[2] or word


def _demanded(program: Program, script: str) -> Iterator[tuple[str, ...]]:
    """What the parsers of the program must be given: options that are required, and positions."""
    project = program.project
    for path in sorted(program.files | {script}):
        data = project.read(path) or b""
        if b"add_argument(" not in data or b"add_subparsers" in data or (path != script and b"__main__" in data):
            continue
        module = project.module(path)
        for call in module.calls_named("add_argument") if isinstance(module, SourceModule) else ():
            flags = tuple(a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str))
            given = {k.arg: ast.unparse(k.value) for k in call.keywords}
            if not flags or None in given:
                continue
            if given.get("required") == "True" if flags[0].startswith("-") else given.get("nargs", "1").strip("'\"") not in "?*":
                yield flags
