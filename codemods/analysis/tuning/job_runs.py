"""The runs that job files start: which script, on how many processes, and what a parameter comes to on the command line.

A flag of the command wins over the file that the command hands to the parser, that one over the option's default.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from codemods.analysis.importing import imported_files
from codemods.analysis.job_files.command_lines import CommandLine, Flag, command_lines, script_of
from codemods.analysis.trainer.argument_files import PARSERS
from codemods.analysis.tuning.profiles import DEFAULTS
from codemods.analysis.tuning.training_calls import TrainingCall, training_calls
from codemods.files.text_entries import Entry, tables
from codemods.files.text_file import JSON_KINDS, TEXT_KINDS, YAML_KINDS, TextFile
from codemods.runtime.record import record
from codemods.store.project import Project

LAUNCHED_BY = frozenset({"deepspeed", "deepspeed_config", "ds_config", "config_file", "deepspeed_config_file"})
_CALLS = (b"TrainingArguments", b"Config(")


@record
class Processes:
    """How many processes a command starts, 0 where that is not shown, on how many of them each machine has, and what says so.

    flag: the launcher's flag that says it, where it could say another number. launched: by a launcher at all.
    """

    world: int
    local: int
    text: str
    flag: Flag | None = None
    launched: bool = True


@record
class Value:
    """What a parameter comes to in a run. layer: flag, file, script (its own keyword or the default of an option), unknown.

    may_be_flag: the script would take it as a flag of that name.
    """

    layer: str
    value: int | None
    text: str
    may_be_flag: bool
    flag: Flag | None = None
    why: str = ""


@record
class Run:
    """A command that starts a script which makes TrainingArguments. parses: HfArgumentParser makes them of the flags.

    fields: the flag of the command line for each parameter that the script takes from one.
    """

    project: Project
    command: CommandLine
    script: str
    parses: bool
    call: TrainingCall | None

    @property
    def place(self) -> str:
        return f"{self.command.file.path}:{self.command.span(self.command.words[0].start, self.command.words[0].end).line}"

    def flag_name(self, name: str) -> str:
        """The flag by which the script takes the parameter, "" where it takes it by none."""
        if self.parses:
            return name
        setting = self.call.setting(name) if self.call else None
        return setting.option.name if setting and setting.option else ""

    def value(self, name: str) -> Value:
        flag_name = self.flag_name(name)
        flag = self.command.flag(flag_name) if flag_name else None
        if flag is not None:
            number = _whole(flag.value)
            why = "" if number is not None else f"what {flag.name} gives is not a whole number that stands there"
            return Value("flag", number, f"{flag.name} of {self.place}", True, flag, why)
        if self.parses and (held := self._in_file(name)):
            path, entry = held
            return Value("file", _whole(entry.value), f"{path}:{entry.span.line}", True)
        if self.call is None:
            return Value("script", DEFAULTS[name], f"the default of {name}", True)
        setting = self.call.setting(name)
        if setting.layer == "unknown":
            return Value("unknown", None, self.call.place, bool(flag_name), why=setting.why)
        text = f"the default of --{setting.option.name}" if setting.option else f"{self.call.shown} in {self.call.module.path}"
        text = f"the default of {name}" if setting.layer == "absent" else text
        return Value("script", setting.value, text, bool(flag_name), why=setting.why)

    def files(self) -> tuple[TextFile, ...]:
        """The YAML and JSON files that the command hands to the parser."""
        return tuple(file for flag, file in self._named_files() if flag not in LAUNCHED_BY)

    def engine_files(self) -> tuple[TextFile, ...]:
        """Those that DeepSpeed, or Accelerate's launcher, is handed."""
        return tuple(file for flag, file in self._named_files() if flag in LAUNCHED_BY)

    def _named_files(self) -> Iterator[tuple[str, TextFile]]:
        before = ""
        for word in self.command.words:
            flag, equals, value = (word.value or "").rpartition("=")
            name = (flag if equals else before).lstrip("-").replace("-", "_")
            before = word.value or ""
            if value.endswith((*YAML_KINDS, *JSON_KINDS)) and (file := self._file(value)):
                yield name, file

    def _file(self, text: str) -> TextFile | None:
        named = [p for p in self.project.files if p == text or p.endswith("/" + text.removeprefix("./"))]
        file = self.project.module(named[0]) if len(named) == 1 else None
        return file if isinstance(file, TextFile) else None

    def configured(self, key: str) -> int | None:
        """A whole number at the root of the launcher's configuration file."""
        found = (e for f in self.engine_files() for t in tables(f) if t.path == () and (e := t.entry(key)))
        return next((_whole(e.value) for e in found), None)

    def _in_file(self, name: str) -> tuple[str, Entry] | None:
        for file in self.files():
            for table in tables(file):
                if table.path == () and (entry := table.entry(name)):
                    return file.path, entry
        return None

    def processes(self) -> Processes:
        return processes_of(self)


def _whole(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch(r"\d+", text) else None


def runs_in(project: Project, file: TextFile) -> tuple[Run, ...]:
    """The runs that the file starts, in order."""
    return project.memo(("training runs", file.path), lambda: tuple(_runs_in(project, file)))


def _runs_in(project: Project, file: TextFile) -> Iterator[Run]:
    for command in command_lines(file):
        script = script_of(project, command)
        module = project.module(script) if script else None
        if script is None or module is None:
            continue
        paths = sorted(imported_files(project, module))
        calls = [c for p in paths for c in _calls_in(project, p)]
        parses = any(word in (project.read(p) or b"") for p in paths for word in PARSERS)
        if parses and not calls:
            yield Run(project, command, script, True, None)
        elif len(calls) == 1:
            yield Run(project, command, script, False, calls[0])


def _calls_in(project: Project, path: str) -> Iterator[TrainingCall]:
    if any(word in (project.read(path) or b"") for word in _CALLS) and (module := project.module(path)):
        yield from training_calls(project, module)


def runs_of(project: Project, path: str) -> tuple[Run, ...]:
    """The runs of the whole project whose script makes its TrainingArguments in the file `path`, or fills them by a parser."""

    def build() -> tuple[Run, ...]:
        files = (project.module(p) for p in sorted(project.files) if p.endswith(TEXT_KINDS))
        return tuple(r for f in files if isinstance(f, TextFile) for r in runs_in(project, f))

    every = project.memo("every training run", build)
    return tuple(r for r in every if r.call is not None and r.call.module.path == path)


def runs_with_file(project: Project, file: TextFile) -> tuple[Run, ...]:
    """The runs that hand the file to the parser of their script."""
    runs_of(project, "")
    every: tuple[Run, ...] = project.memo("every training run", tuple)
    return tuple(r for r in every if r.parses and any(f.path == file.path for f in r.files()))


# Processes

_PER_NODE = ("nproc_per_node", "nproc-per-node")
_NODES = ("nnodes", "num_machines", "num_nodes")


def processes_of(run: Run) -> Processes:
    """What the launcher of a run is told; for Accelerate also what its configuration file says."""
    command = run.command
    if not command.launcher:
        return Processes(1, 1, "the command starts one process", launched=False)
    given = {f.field: f for f in command.launcher_flags}
    nodes = next((_whole(given[n].value) for n in _NODES if n in given), 1)
    if command.launcher == "accelerate":
        flag = given.get("num_processes")
        total = _whole(flag.value) if flag else run.configured("num_processes")
        nodes = nodes if any(n in given for n in _NODES) else (run.configured("num_machines") or 1)
        if not total or not nodes:
            return Processes(0, 0, "how many processes accelerate starts is not shown")
        text = f"{flag.name} {total}" if flag else f"num_processes: {total} in its configuration file"
        return Processes(total, max(total // nodes, 1), text, flag if nodes == 1 else None)
    flag = given.get("nproc_per_node") or given.get("num_gpus")
    local = _whole(flag.value) if flag else None
    if flag is None or not local or not nodes:
        return Processes(0, 0, f"how many processes {command.launcher} starts is not shown")
    return Processes(local * nodes, local, f"{flag.name} {local}", flag if nodes == 1 else None)
