"""The repository's own commands that start a changed program: from job files, Makefiles and READMEs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from posixpath import dirname, join, normpath, relpath
from shlex import quote

from codemods.analysis.job_files.command_lines import CommandLine
from codemods.analysis.job_files.unknown_options import unknown_options
from codemods.files.text_file import DOCUMENT_KINDS, PYTHON_KINDS, SHELL_KINDS, YAML_KINDS, TextFile
from codemods.runtime.record import record, replace
from codemods.store.project import Project
from ddpfix.summary.changed_places import changes_imports_alone
from ddpfix.summary.chosen_launches import Candidate, chosen
from ddpfix.summary.context import Launch
from ddpfix.summary.device_setting import device_setting, has_two_devices
from ddpfix.summary.launch_folders import folder_of, script_of
from ddpfix.summary.launch_order import is_no_training, kind_of, order
from ddpfix.summary.made_commands import import_command, made_commands
from ddpfix.summary.named_in_settings import named_in_settings
from ddpfix.summary.needed_options import Program, given_options, program_of
from ddpfix.summary.own_processes import SPAWNS, OwnProcesses, counts_devices, listing_flags, own_processes
from ddpfix.summary.prepared_shell import Prepared, prepared
from ddpfix.summary.program_files import program_files
from ddpfix.summary.program_stages import stage_of
from ddpfix.summary.quoted_commands import quoted
from ddpfix.summary.run_places import Place, Run, at, changed_places, come_to
from ddpfix.summary.shell_results import shell_results
from ddpfix.summary.short_runs import short_run
from ddpfix.summary.shown_values import shown_values
from ddpfix.summary.spellings import same_options
from ddpfix.summary.start_faults import start_faults
from ddpfix.summary.taking_ranks import needs_of_joining, needs_of_starting, starts_its_own
from ddpfix.summary.two_processes import Setting, with_two_processes
from ddpfix.summary.versions_of_launchers import launcher_here
from ddpfix.summary.ways import Way
from ddpfix.summary.written_commands import written_commands

KINDS = (*SHELL_KINDS, *YAML_KINDS, *DOCUMENT_KINDS)
LARGEST = 64 * 1024
DEEPEST = 6
MOST = 12

_OF_A_SHELL = "has words that a shell puts together"
_TWICE = "puts a launcher in front of a program that then starts its processes itself"
_MOVED = "with the script's path in this repository"
_STARTERS = (b"python", b"torchrun", b"accelerate", b"deepspeed", b"PYTHON")
# What shows that a script started with plain `python` starts further processes, and what that it joins those of a launcher.
_STARTS_OTHERS = re.compile(
    SPAWNS + rb"|Fabric\(|LightningCLI\(|lightning[\s\S]*?\bTrainer(?:\(|\.from_argparse_args|\b[\s\S]*?\binstantiate\()"
)
_JOINS = re.compile(rb"init_process_group|Accelerator\(|PartialState\(|deepspeed\.|\btransformers\b")
_OF_A_LAUNCHER = re.compile(rb"\benviron\[[\"'](?:LOCAL_)?RANK[\"']\](?![ \t]*=[^=])")
_SETTINGS = re.compile(r"(?!/)[\w./-]+\.(?:ya?ml|json|toml|cfg|ini)")
_READ = re.compile(r"conf|cfg", re.I)
_WRITTEN = re.compile(r"out|save|log|result|data|file", re.I)
_SAVED = re.compile(r"(?!/)[\w.=/-]+\.(?:pth|pt|ckpt|safetensors|bin|tar|pkl)")
_WRITTEN_WEIGHTS = re.compile(r"out|save", re.I)
_VARIABLE = re.compile(r"\$\{?(\w+)")


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
    every = [place for there in places.values() for place in there]
    found = list(_candidates(project, places))
    shown = chosen([c for c in found if c.launch.command and not c.launch.faults], every)[:MOST]
    imports = tuple(_imports(project, read, changed, _missed(places, [*found, *_made(project, places, found)])))
    told = {path for launch in (*shown, *imports) for path in launch.programs}
    untold = {path: there for path, there in places.items() if path.endswith(PYTHON_KINDS) and path not in told}
    return (*shown, *imports, *_untold(project, untold, found))


def _missed(places: Mapping[str, tuple[Place, ...]], found: Iterable[Candidate]) -> list[str]:
    """The files of which no command comes to some place, whatever it is given."""
    met = {place for candidate in found for place in (*candidate.run.reached, *candidate.run.lacking)}
    return sorted(path for path, there in places.items() if not met.issuperset(there))


def _made(project: Project, places: Mapping[str, tuple[Place, ...]], found: Iterable[Candidate]) -> Iterator[Candidate]:
    """By the paths of the programs: nothing shows that they start so."""
    for path in _missed(places, found):
        for script, command in made_commands(project, path):
            if (made := _candidate(project, script, command, places)) is not None:
                launch = replace(made.launch, path=script, line=0, faults=(), quoted="", quoted_at="")
                yield replace(made, order=(10, *made.order[1:]), launch=launch)


def _untold(project: Project, places: Mapping[str, tuple[Place, ...]], found: list[Candidate]) -> Iterator[Launch]:
    """Without a command, what the program of each place is, and what its lines need."""
    told: set[Place] = set()
    for candidate in sorted((*found, *_made(project, places, found)), key=lambda c: (len(c.run.lacking) == 0, c.order)):
        mine = {place for path in candidate.launch.programs for place in places.get(path, ()) if place not in told}
        new = {place: needs for place, needs in candidate.run.lacking.items() if place in mine}
        free = candidate.run.reached & mine
        if new or free:
            told |= new.keys() | free
            needs = Run(frozenset(), new).needs(set())
            yield replace(candidate.launch, command="", needs=needs, comes_to=at(free))


def _imports(
    project: Project, read: Callable[[str], bytes | None], changed: Mapping[str, bytes], missed: Iterable[str]
) -> Iterator[Launch]:
    for path in missed:
        if changes_imports_alone(project, path, read(path), changed[path]) and (command := import_command(path)):
            yield Launch(command, path, 0, programs=(path,), made=True)


def launched(files: Iterable[str], read: Callable[[str], bytes | None]) -> frozenset[str]:
    """The project's files that a command of its job files and documents starts."""
    project = Project(files, read)
    started = (
        script_of(project, folder, command)
        for path in _texts(project)
        for command in written_commands(project, path)
        if (folder := folder_of(project, path, command)) is not None
    )
    return frozenset(filter(None, started))


def _texts(project: Project) -> Iterator[str]:
    for path in sorted(p for p in project.files if p.endswith(KINDS) and p.count("/") <= DEEPEST and not p.startswith(".")):
        data = project.read(path) or b""
        if len(data) <= LARGEST and any(word in data for word in _STARTERS):
            yield path


def _candidates(project: Project, places: Mapping[str, tuple[Place, ...]]) -> Iterator[Candidate]:
    for path in _texts(project):
        for command in written_commands(project, path):
            if (candidate := _candidate(project, path, command, places)) is not None:
                yield candidate


def _candidate(project: Project, path: str, command: CommandLine, places: Mapping[str, tuple[Place, ...]]) -> Candidate | None:
    started = _started(project, path, command, frozenset(places))
    if started is None:
        return None
    programs = (started.program.files | {path}) & frozenset(places)
    stage = stage_of(project, started.program.files, command)
    given = given_options(started.program, command, shown_values(command.source, command.words[0].start))
    way = Way(started.program, started.script, given, stage)
    launched = bool(command.launcher) or started.joins
    first = needs_of_joining(way) if launched else needs_of_starting(way, started.own.start)
    run = come_to(way, [p for name in sorted(programs) for p in places[name]], first)
    short = short_run(way, command, run.reached or run.lacking)
    pasted = with_two_processes(command, replace(_setting(project, started), short=short.given, added=short.added))
    where = (path, started.line)
    typed = quoted(project, path, command, started.folder)
    said = Launch("", path, started.line, programs=tuple(sorted(programs)), script=started.script)
    said = replace(said, quoted=typed.text, quoted_at=typed.place)
    if pasted is None:
        kind = kind_of(started.script, path, command, _above(project, *where))
        return Candidate((9, kind, *where), run, replace(said, faults=(_OF_A_SHELL,)), started.script)
    counted = pasted.counted or has_two_devices(project, started.script)
    devices = "" if pasted.counted else device_setting(project, started.script)
    moved = [_MOVED] if _target(started) else []
    edits = (*pasted.edits, *moved)
    absent = [*_missing(project, started.folder, command), *_absent(project, started)]
    results = dict(shell_results(path, command, pasted.to_fill))
    pasted = replace(pasted, to_fill=tuple(word for word in pasted.to_fill if word not in results))
    weights = tuple(w for w in _weights(project, started.folder, command) if w not in pasted.to_fill)
    faults = [*start_faults(started.program, started.script, command, pasted.to_fill, absent)]
    faults += [_TWICE] if launched and starts_its_own(way, first) else []
    found = replace(
        said, command=_typed(started, pasted.text, results.values()), counted=counted, to_fill=(*pasted.to_fill, *weights),
        edits=edits, devices=devices, short=short.text, faults=tuple(faults),
    )  # fmt: skip
    above = _above(project, *where)
    rank = (0, *order(started.script, *where, command, pasted, programs, above, run))
    spelled = same_options((flag.name for flag in command.flags), _fields(started.program))
    return Candidate(rank, run, found, started.script, spelled, stage)


def _started(project: Project, path: str, command: CommandLine, changed: frozenset[str]) -> _Started | None:
    folder = folder_of(project, path, command)
    if folder is None:
        return None
    script = script_of(project, folder, command)
    program = program_of(project, script, program_files(project, script))
    named = named_in_settings(program, script, folder, command) if script else frozenset()
    program = program_of(project, script, program.files | named)
    files = program.files
    if not (files | {path}) & changed:
        return None
    joins = False
    if not command.launcher:
        texts = [project.read(p) or b"" for p in files]
        launched = _is_launched(texts, project.read(script) or b"")
        joins = launched or not any(map(_STARTS_OTHERS.search, texts))
        if joins and (not (launched or any(map(_JOINS.search, texts))) or (script not in changed and is_no_training(script))):
            return None
    own = OwnProcesses() if command.launcher or joins else own_processes(program, script)
    line = command.span(command.words[0].start, command.words[-1].end).line
    return _Started(path, line, command, folder, script, program, joins, own, prepared(project, folder, command))


def _is_launched(texts: list[bytes], script: bytes) -> bool:
    """True for a script that needs the variables of a launcher, also where its Trainer or Fabric could start others."""
    return _OF_A_LAUNCHER.search(script) is not None and not any(re.search(SPAWNS, text) for text in texts)


def _setting(project: Project, started: _Started) -> Setting:
    return Setting(
        joins=started.joins,
        launcher=launcher_here(started.program, started.script, started.command, joins=started.joins),
        listing=listing_flags(started.program),
        visible=started.own.devices or counts_devices(started.program),
        number=started.own.flags,
        listed=started.own.listed,
        refused=frozenset(option.flag.name for option in unknown_options(project, started.command) if not option.several),
        target=_target(started),
        names=started.shell.names,
        fields=_fields(started.program),
    )


def _fields(program: Program) -> dict[str, str]:
    return {flag: name for name, option in program.options.items() for flag in option.flags}


def _target(started: _Started) -> str:
    """The script as the reader types it, where it is not as it stands."""
    target, below = started.command.target, _VARIABLE.match(started.command.target)
    if target.startswith("/"):
        return started.script
    return relpath(started.script, started.folder or ".") if below and below[1] not in started.shell.names else ""


def _typed(started: _Started, text: str, results: Iterable[str]) -> str:
    """With what stands above it in its script, from the root. results: values of variables, each by a command."""
    if started.shell.path and "PYTHONPATH=" not in text:
        text = f"{started.shell.path} {text}"
    first = [f"cd {quote(started.folder)}"] if started.folder else []
    return " && ".join([*first, *started.shell.sourced, *results, text])


def _absent(project: Project, started: _Started) -> list[str]:
    """Files of settings that the command names, where the repository has their folder without them."""
    folders = {"", *(dirname(path) for path in project.files)}
    out = []
    for flag in started.command.flags:
        written = _WRITTEN.search(flag.field) and not _READ.search(flag.field)
        found = _SETTINGS.fullmatch(flag.settled or "") if not written else None
        path = normpath(join(started.folder, found.group())) if found else ""
        if path and path not in project.files and normpath(found.group() if found else "") not in project.files:
            out += [found.group()] if found and dirname(path) in folders else []
    return out


def _weights(project: Project, folder: str, command: CommandLine) -> Iterator[str]:
    """What a run before this one has saved, under a name that need not be that of the reader's."""
    for flag in command.flags:
        name = flag.settled or ""
        if (
            _SAVED.fullmatch(name)
            and not _WRITTEN_WEIGHTS.search(flag.field)
            and normpath(join(folder, name)) not in project.files
        ):
            yield name


def _missing(project: Project, folder: str, command: CommandLine) -> list[str]:
    """The file of a launcher's settings, where the repository has none at that place."""
    named = [f.settled for f in command.launcher_flags if f.field == "config_file"]
    return [name for name in named if name and normpath(join(folder, name)) not in project.files]


def _above(project: Project, path: str, line: int) -> str:
    file = project.module(path)
    return "\n".join(file.text.split("\n")[: line - 1]) if isinstance(file, TextFile) else ""
