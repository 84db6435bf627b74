"""Why nothing shows that a command starts: a file that the repository does not have, a word that a page left to its reader."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from codemods.analysis.job_files.command_lines import CommandLine, Flag
from codemods.files.shell_words import Word
from codemods.files.source import SourceModule
from codemods.store.project import Project
from ddpfix.summary.markdown import code
from ddpfix.summary.shown_values import shown_values, with_shown_values

_OF_THE_USER = re.compile(
    r"data|dir|root|path|folder|image|img|video|audio|wav|corpus|file|list|csv|h5|train|val|test|ckpt|checkpoint|model|weight|pretrain"
    r"|init|resume|load|out|log|save|exp|name|cache|token|key|project|entity|wandb|run|seed|port|url",
    re.I,
)
_OF_THE_PROGRAM = re.compile(r"conf|cfg|ya?ml|setting|hparam|recipe|option|opt$", re.I)


def start_faults(
    project: Project, script: str, command: CommandLine, to_fill: tuple[str, ...], absent: list[str]
) -> Iterator[str]:
    """Each as the end of a sentence that begins with the place of the command. absent: settings that it names."""
    known = shown_values(command.source, command.words[0].start)
    for name in absent:
        yield f"names {code(name)}, which is not in the repository"
    for word in to_fill:
        if word not in absent and not _is_of_the_user(command, word, known):
            yield f"leaves {code(word)} to its reader"
    given = {flag.name for flag in command.flags}
    for flags in _demanded(project, script):
        if not any(flag == f or f.startswith(flag) for flag in given for f in flags):
            yield f"does not give {code(max(flags, key=len))}, which the parser demands"


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


def _demanded(project: Project, script: str) -> Iterator[tuple[str, ...]]:
    module = project.module(script)
    if not isinstance(module, SourceModule) or module.holds(b"add_subparsers"):
        return
    for call in module.calls_named("add_argument"):
        flags = tuple(a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str))
        if (
            flags
            and flags[0].startswith("-")
            and any(k.arg == "required" and ast.unparse(k.value) == "True" for k in call.keywords)
        ):
            yield flags
