"""What the repository's own job files give to a training script whose arguments are filled from the command line."""

from __future__ import annotations

from codemods.analysis.importing import imported_files
from codemods.analysis.job_files.command_lines import CommandLine, Flag, command_lines, script_of
from codemods.analysis.trainer.trainer_calls import TrainerCall
from codemods.api.findings import Evidence
from codemods.files.text_file import SHELL_KINDS, YAML_KINDS, TextFile
from codemods.runtime.record import record
from codemods.store.project import Project

_YES = ("true", "1", "yes", "on")
_NO = ("no", "none", "false")


@record
class Jobs:
    """The commands that start a script. unknown: what of one of them the file does not show, "" where all is there."""

    commands: tuple[CommandLine, ...]
    unknown: str

    @property
    def places(self) -> tuple[Evidence, ...]:
        return tuple(
            Evidence("static", "starts the script", c.file.path, c.span(c.words[0].start, c.words[0].end).line)
            for c in self.commands
        )

    def every(self, field: str) -> bool:
        """True where every command switches the flag on."""
        return all(_is_on(c.flag(field)) for c in self.commands)

    def some(self, *fields: str) -> str:
        """The place of a command that gives one of the flags another value than "no"; "" without one."""
        for command in self.commands:
            for field in fields:
                flag = command.flag(field)
                if flag is not None and (flag.value is None or flag.value.lower() not in _NO):
                    return f"{command.file.path}:{command.span_of(flag).line}"
        return ""


def jobs_of(trainer: TrainerCall) -> Jobs | None:
    """The commands in the repository that run the Trainer's file, None without one."""

    def build() -> Jobs | None:
        project = trainer.project
        found: list[CommandLine] = []
        for path in project.files_containing(b".py", kinds=(*YAML_KINDS, *SHELL_KINDS)):
            file = project.module(path)
            if isinstance(file, TextFile):
                found += (c for c in command_lines(file) if _starts(project, c, trainer.module.path))
        return Jobs(tuple(found), next(filter(None, map(_unknown, found)), "")) if found else None

    return trainer.project.memo(("jobs", trainer.module.path), build)


def _starts(project: Project, command: CommandLine, path: str) -> bool:
    script = script_of(project, command)
    module = project.module(script) if script else None
    return module is not None and (script == path or path in imported_files(project, module))


def _unknown(command: CommandLine) -> str:
    """A word that may hold more flags, or a file of them: any that the shell decides, but for the one value of a flag."""
    single = {id(f.values[0]) for f in command.flags if len(f.values) == 1}
    flags = {id(f.word) for f in command.flags}
    target = next(i for i, w in enumerate(command.words) if w.text == command.target)
    for word in command.words[target + 1 :]:
        spread = word.value is None and id(word) not in flags and (id(word) not in single or "@" in word.raw or "*" in word.raw)
        if spread or (word.value or "").endswith((".json", ".yaml", ".yml")):
            return f"{command.file.path}:{command.span(word.start, word.end).line} hands {word.raw} on as well"
    return ""


def _is_on(flag: Flag | None) -> bool:
    if flag is None:
        return False
    bare = not flag.joined and not flag.values
    return bare or (flag.value is not None and flag.value.lower() in _YES)
