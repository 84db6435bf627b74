"""The repository's own commands that start a changed program: from job files, Makefiles and READMEs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from posixpath import dirname, join, normpath, relpath
from shlex import quote

from codemods.analysis.job_files.command_lines import CommandLine, command_lines
from codemods.analysis.job_files.local_rank_option import PASSED, SPELLINGS
from codemods.analysis.job_files.unknown_options import unknown_options
from codemods.files.text_file import DOCUMENT_KINDS, SHELL_KINDS, YAML_KINDS, TextFile
from codemods.runtime.record import record, replace
from codemods.store.project import Project
from ddpfix.summary.context import Launch
from ddpfix.summary.device_setting import device_setting
from ddpfix.summary.launch_folders import folder_of, script_of
from ddpfix.summary.launch_order import is_no_training, order
from ddpfix.summary.needed_options import Program, Way, given_options, program_of
from ddpfix.summary.own_processes import OwnProcesses, counts_devices, own_processes
from ddpfix.summary.prepared_shell import Prepared, prepared
from ddpfix.summary.program_files import program_files
from ddpfix.summary.run_places import Place, Run, changed_places, come_to
from ddpfix.summary.shown_values import shown_values
from ddpfix.summary.two_processes import Setting, with_two_processes

KINDS = (*SHELL_KINDS, *YAML_KINDS, *DOCUMENT_KINDS)
LARGEST = 64 * 1024
DEEPEST = 6
MOST = 12

_MOVED = "with the script's path in this repository"
_STARTERS = (b"python", b"torchrun", b"accelerate", b"deepspeed", b"PYTHON")
SPAWNS = rb"mp\.spawn|multiprocessing\.spawn|start_processes"  # what a script starts its ranks by itself
# What shows that a script started with plain `python` starts further processes, and what that it joins those of a launcher.
_STARTS_OTHERS = re.compile(
    SPAWNS + rb"|Fabric\(|LightningCLI\(|lightning[\s\S]*?\bTrainer(?:\(|\.from_argparse_args|\b[\s\S]*?\binstantiate\()"
)
_JOINS = re.compile(rb"init_process_group|Accelerator\(|PartialState\(|deepspeed\.|\btransformers\b")
_BLOCK = re.compile(r"^(?:(?: {4}|\t)[^\n]*\n?)+", re.M)  # of a Markdown file, indented
_CUT_OFF = re.compile(r"\\[ \t]+(?:#[^\r\n]*)?(?=\r?\n)")  # a line that goes on, for a reader, and not for a shell
_OF_PYTHON = re.compile(
    r"^([ \t]*```[ \t]*)(?:python|py)[ \t]*(?=\r?\n[ \t]*(?:[A-Z_]+=\S+ )*(?:python3?|torchrun|accelerate|deepspeed) )", re.M
)
_OF_A_NOTEBOOK = re.compile(r"^([ \t]*)!(?=[\w./])", re.M)  # `!accelerate launch …`
# Options on lines of their own behind a command, without the backslashes that a shell asks for.
_GOES_ON = re.compile(r"(?<=[^\\\s])[ \t]*(?=\r?\n[ \t]*--\w)")
_STARTS_ONE = re.compile(r"(?:python3?|torchrun|accelerate|deepspeed)[ \t][^\n`]*(?:\r?\n[ \t]*--\w[^\n]*)+")
# `--data <path to data>`, which a shell would take for redirections; `--model {folder of the model}/last`
_SETTINGS = re.compile(r"(?!/)[\w./-]+\.(?:ya?ml|json|toml|cfg|ini)")
_WRITTEN = re.compile(r"out|save|log|result|data|file", re.I)
_BY_ENVIRONMENT = frozenset({"--use_env", "--use-env"})
_VARIABLE = re.compile(r"\$\{?(\w+)")
_PLACEHOLDER = re.compile(r"(?<=[ =])(?:<([A-Za-z][\w .-]*)>|\{([A-Za-z][\w .-]*)\})")


@record
class _Candidate:
    """order: the best first. run: the changed places that it comes to, and what it lacks for the others."""

    order: tuple[object, ...]
    run: Run
    launch: Launch


@record
class _Started:
    """A command whose script is known. program: what it comes to. joins: plain Python that needs a launcher."""

    path: str
    line: int
    command: CommandLine
    folder: str
    script: str
    program: Program
    joins: bool
    own: OwnProcesses
    shell: Prepared


def launches(files: Iterable[str], read: Callable[[str], bytes | None], changed: Mapping[str, bytes]) -> tuple[Launch, ...]:
    """Commands that start programs with a changed file, the best first; each comes to a changed place that none before does.

    changed: path -> the new bytes, in which a command stands that was fixed itself; `read` has the old ones.
    """
    project = Project(files, read).with_overlay(changed)
    places = changed_places(project, read, changed)
    found = sorted(_candidates(project, places), key=lambda c: c.order)
    out: list[Launch] = []
    seen: set[Place] = set()
    for candidate in found:
        if not candidate.run.reached <= seen:
            out.append(candidate.launch)
            seen |= candidate.run.reached
    for candidate in found:
        if not frozenset(candidate.run.lacking) <= seen:  # no command comes there as it is
            needed = replace(candidate.launch, needs=candidate.run.needs(seen))
            out = [launch for launch in out if launch != candidate.launch] + [needed]
            seen |= frozenset(candidate.run.lacking)
    return tuple(out[:MOST])


def launched(files: Iterable[str], read: Callable[[str], bytes | None]) -> frozenset[str]:
    """The project's files that a command of its job files and documents starts."""
    project = Project(files, read)
    started = (
        script_of(project, folder, command)
        for path in _texts(project)
        for command in _commands(project, path)
        if (folder := folder_of(project, path, command)) is not None
    )
    return frozenset(filter(None, started))


def _texts(project: Project) -> Iterator[str]:
    for path in sorted(p for p in project.files if p.endswith(KINDS) and p.count("/") <= DEEPEST and not p.startswith(".")):
        data = project.read(path) or b""
        if len(data) <= LARGEST and any(word in data for word in _STARTERS):
            yield path


def _candidates(project: Project, places: Mapping[str, tuple[Place, ...]]) -> Iterator[_Candidate]:
    for path in _texts(project):
        for command in _commands(project, path):
            if (candidate := _candidate(project, path, command, places)) is not None:
                yield candidate


def _commands(project: Project, path: str) -> Iterator[CommandLine]:
    file = project.module(path)
    if not isinstance(file, TextFile):
        return
    if not path.endswith(YAML_KINDS):
        text = _as_a_script(file.text) if path.endswith(DOCUMENT_KINDS) else file.text
        file = TextFile(path, _CUT_OFF.sub("\\\\", text).rstrip(" \t\r\n\\").encode() + b"\n")
    yield from command_lines(file)
    if path.endswith(DOCUMENT_KINDS):
        for block in _BLOCK.finditer(file.text):  # as a script of its own, whose lines stand where they do in the file
            before = "\n" * file.text.count("\n", 0, block.start())
            yield from command_lines(TextFile(f"{path}.sh", (before + block.group()).encode()))


def _as_a_script(text: str) -> str:
    """The commands of a text for people as a shell takes them; each stands in the line in which it stood."""
    text = _OF_PYTHON.sub(r"\1sh", text)  # a command in a block that is said to be Python
    text = _PLACEHOLDER.sub(lambda m: _named(m[1] or m[2]), _OF_A_NOTEBOOK.sub(r"\1 ", text))
    return _STARTS_ONE.sub(lambda m: _GOES_ON.sub(r" \\", m.group()), text)


def _named(what: str) -> str:
    """`your-path-to-data`."""
    words = re.sub(r"[ _]+", "-", what)
    return words if words.lower().startswith("your") else f"your-{words}"


def _candidate(project: Project, path: str, command: CommandLine, places: Mapping[str, tuple[Place, ...]]) -> _Candidate | None:
    started = _started(project, path, command, frozenset(places))
    if started is None:
        return None
    programs = (started.program.files | {path}) & frozenset(places)
    given = given_options(started.program, command, shown_values(command.source, command.words[0].start))
    run = come_to(Way(started.program, given), [p for name in sorted(programs) for p in places[name]], started.own.start)
    pasted = with_two_processes(command, _setting(project, started))
    where = (path, started.line)
    if pasted is None:
        last = (9, *where)
        return _Candidate(last, run, Launch("", path, started.line, programs=tuple(sorted(programs))))
    devices = "" if pasted.counted else device_setting(project, started.script)
    moved = [_MOVED] if _target(started) else []
    edits = (*_missing(project, started.folder, command), *_old_torch(started), *pasted.edits, *moved)
    pasted = replace(pasted, to_fill=tuple(dict.fromkeys((*pasted.to_fill, *_absent(project, started)))))
    found = Launch(
        _typed(started, pasted.text), path, started.line, pasted.counted, tuple(sorted(programs)), pasted.to_fill, edits, devices
    )
    above = _above(project, *where)
    return _Candidate((0, *order(started.script, *where, command, pasted, programs, above, run)), run, found)


def _started(project: Project, path: str, command: CommandLine, changed: frozenset[str]) -> _Started | None:
    folder = folder_of(project, path, command)
    if folder is None:
        return None
    script = script_of(project, folder, command)
    files = program_files(project, script)
    if not (files | {path}) & changed:
        return None
    joins = False
    if not command.launcher:
        texts = [project.read(p) or b"" for p in files]
        joins = not any(map(_STARTS_OTHERS.search, texts))
        if joins and (not any(map(_JOINS.search, texts)) or (script not in changed and is_no_training(script))):
            return None
    program = program_of(project, script, files)
    own = OwnProcesses() if command.launcher or joins else own_processes(program, script)
    line = command.span(command.words[0].start, command.words[-1].end).line
    return _Started(path, line, command, folder, script, program, joins, own, prepared(project, folder, command))


def _setting(project: Project, started: _Started) -> Setting:
    return Setting(
        joins=started.joins,
        visible=started.own.devices or counts_devices(started.program),
        number=started.own.flags,
        refused=frozenset(option.flag.name for option in unknown_options(project, started.command) if not option.several),
        target=_target(started),
        names=started.shell.names,
        fields={flag: name for name, option in started.program.options.items() for flag in option.flags},
    )


def _target(started: _Started) -> str:
    """The script as the reader types it, where it is not as it stands."""
    target, below = started.command.target, _VARIABLE.match(started.command.target)
    if target.startswith("/"):
        return started.script
    return relpath(started.script, started.folder or ".") if below and below[1] not in started.shell.names else ""


def _typed(started: _Started, text: str) -> str:
    """With what stands above it in its script, from the root of the repository."""
    if started.shell.path and "PYTHONPATH=" not in text:
        text = f"{started.shell.path} {text}"
    first = [f"cd {quote(started.folder)}"] if started.folder else []
    return " && ".join([*first, *started.shell.sourced, text])


def _old_torch(started: _Started) -> list[str]:
    """Since torch 2, `torch.distributed.launch` hands `--local-rank` over, which a parser with the other spelling refuses."""
    words = {word.text for word in started.command.words}
    flags = {flag for option in started.program.options.values() for flag in option.flags}
    if "torch.distributed.launch" not in words or words & _BY_ENVIRONMENT or SPELLINGS[0] not in flags or PASSED in flags:
        return []
    return ["with torch 2 its parser refuses --local-rank"]


def _absent(project: Project, started: _Started) -> list[str]:
    """Files of settings that the command names, where the repository has their folder without them."""
    folders = {"", *(dirname(path) for path in project.files)}
    out = []
    for flag in started.command.flags:
        found = _SETTINGS.fullmatch(flag.settled or "") if not _WRITTEN.search(flag.field) else None
        path = normpath(join(started.folder, found.group())) if found else ""
        if path and path not in project.files and normpath(found.group() if found else "") not in project.files:
            out += [found.group()] if found and dirname(path) in folders else []
    return out


def _missing(project: Project, folder: str, command: CommandLine) -> list[str]:
    """The file of a launcher's settings, where the repository has none at that place."""
    named = [f.settled for f in command.launcher_flags if f.field == "config_file"]
    return [f"{name} is not in the repository" for name in named if name and normpath(join(folder, name)) not in project.files]


def _above(project: Project, path: str, line: int) -> str:
    file = project.module(path)
    return "\n".join(file.text.split("\n")[: line - 1]) if isinstance(file, TextFile) else ""
