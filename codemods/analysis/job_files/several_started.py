"""Does a command in the repository's texts or job files start a script on several processes?"""

from __future__ import annotations

import os
import re

from codemods.analysis.job_files.one_process import with_own_ones
from codemods.api.findings import Evidence
from codemods.files.text_file import SHELL_KINDS
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_KINDS = (*SHELL_KINDS, ".md", ".rst", ".txt", ".slurm", ".sbatch")
_LAUNCHER = lazy(
    r"(?<![A-Za-z0-9_-])(?:torchrun\b|torch\.distributed\.(?:run|launch)\b|accelerate\s+launch\b)|(?<![A-Za-z0-9_/.-])deepspeed\s"
)
# More than one, or as many as the machine or the job has.
_MANY = lazy(
    r"--nproc[_-]per[_-]node[= ]+(?!1\b)[\w$\"'{(]|--num[_-]processes[= ]+(?!1\b)[\w$\"'{(]|--multi[_-]gpu\b"
    r"|--num[_-]gpus[= ]+(?!1\b)[\w$\"'{(]|--nnodes[= ]+(?!1\b)[\w$\"'{(]|--num[_-]machines[= ]+(?!1\b)[\w$\"'{(]"
)
_CONFIGURATION = lazy(r"--config[_-]file[= ]+[\"']?([\w./-]+\.(?:ya?ml|json))")
_PROCESSES = lazy(rb"(?m)^[ \t\"']*num_processes[\"']?:[ \t]*(?!1\b)\d")
_LINES = lazy(r"\\[ \t]*\n[ \t]*#?")


def started_on_several(project: Project, path: str) -> Evidence | None:
    """The command that starts the script of this path by a launcher, with more than one process."""
    return project.keep(("started on several", path), lambda: _find(project, path))


def _find(project: Project, path: str) -> Evidence | None:
    name = path.rpartition("/")[2]
    wanted = re.compile(rf"(?<![\w-])(?:[\w.$\{{\}}-]+/)*{re.escape(name)}(?![\w-])")
    for place in project.files_containing(os.fsencode(name), kinds=_KINDS):
        text = with_own_ones((project.read(place) or b"").decode("utf-8", "replace"))
        at = 1
        for line in _LINES.sub(" \0", text).split("\n"):
            if _starts_several(project, line, wanted):
                return Evidence("static", f"a command starts {name} on several processes", place, at)
            at += 1 + line.count("\0")
    return None


def _starts_several(project: Project, line: str, script: re.Pattern[str]) -> bool:
    launcher = _LAUNCHER.search(line)
    named = script.search(line, launcher.end()) if launcher is not None else None
    if launcher is None or named is None:
        return False
    options = line[launcher.end() : named.start()]
    all_of_the_machine = launcher[0].startswith("deepspeed") and "--num_gpus" not in options and "--include" not in options
    return all_of_the_machine or _MANY.search(options) is not None or _is_configured(project, options)


def _is_configured(project: Project, options: str) -> bool:
    """True where Accelerate's configuration of the command names several processes."""
    given = _CONFIGURATION.search(options)
    name = given[1].rpartition("/")[2] if given is not None else ""
    return any(_PROCESSES.search(project.read(p) or b"") for p in project.files if name and p.rpartition("/")[2] == name)
