"""Every codemod as a command for LibCST's own runner, under its class name, with the text that ddpfix gives.

    python -P -m libcst.tool codemod -x codemods.libcst_commands.UnsyncedMetric --no-format PATH

-P keeps a folder `codemods` in the working folder from standing in for this package.
"""

from __future__ import annotations

import argparse
import os
import subprocess
from abc import ABC
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import libcst as cst
from libcst.codemod import CodemodCommand, CodemodContext, SkipFile

from codemods.api.codemod import DdpCodemod, built_in
from codemods.api.findings import Finding
from codemods.engine.fix_source import fix_project, safe, with_unsafe
from codemods.store.project import Project

ROOT_MARKS = (".git", "pyproject.toml", "setup.py", "setup.cfg")
SKIPPED = frozenset({"venv", "node_modules", "site-packages", "__pycache__"})


class DdpCommand(CodemodCommand, ABC):
    """Runs one codemod over one file; bases and helpers are looked up in the repository that the file lies in."""

    CODEMOD: ClassVar[type[DdpCodemod]]

    def __init__(self, context: CodemodContext, unsafe_fixes: bool = False) -> None:
        super().__init__(context)
        self.unsafe_fixes = unsafe_fixes

    @staticmethod
    def add_args(arg_parser: argparse.ArgumentParser) -> None:
        arg_parser.add_argument("--unsafe-fixes", action="store_true", help="Make fixes too that rest on an assumption.")

    def transform_module_impl(self, tree: cst.Module) -> cst.Module:
        return self.transform_module(tree)

    def transform_module(self, tree: cst.Module) -> cst.Module:
        """The file as ddpfix leaves it; what is found and not fixed here is warned of. Raises SkipFile."""
        project, path = _project_round(self.context.filename, tree.bytes)
        if project.module(path) is None:
            raise SkipFile(project.why_unreadable(path))
        codemod = self.CODEMOD()

        def work(now: Project, paths: Iterable[str]) -> Mapping[str, Sequence[DdpCodemod]]:
            return {p: [codemod] for p in paths if codemod.concerns(now.read(p) or b"")}

        result = fix_project(project, work, [path], lambda f: self._is_wanted(f, path))
        for finding in result.left:
            reason = f" ({finding.reason})" if finding.reason else ""
            self.warn(f"{path}:{finding.where}: {finding.code} {finding.message}{reason}")
        data = result.changed.get(path)
        if data is None:
            return tree
        new = cst.parse_module(data)
        if new.bytes != data:
            raise SkipFile(f"LibCST does not give {path} back as it is: use ddpfix")
        return new

    def _is_wanted(self, finding: Finding, path: str) -> bool:
        """The runner writes one file: what changes others too is only told."""
        level = with_unsafe if self.unsafe_fixes else safe
        return level(finding) and all(edit.path == path for edit in finding.edits)


def _project_round(filename: str | None, data: bytes) -> tuple[Project, str]:
    """(the repository with the file as it is given, the file's path in it)."""
    if filename is None:
        return Project.of({"module.py": data}), "module.py"
    full = Path(filename).resolve()
    root = _root_of(full.parent)
    path = full.relative_to(root).as_posix()

    def read(name: str) -> bytes | None:
        try:
            return data if name == path else (root / name).read_bytes()
        except OSError:
            return None

    return Project({*_files_below(root), path}, read), path


def _root_of(folder: Path) -> Path:
    above = [folder, *folder.parents]
    repository = next((p for p in above if (p / ".git").exists()), None)
    return repository or next((p for p in above if any((p / mark).is_file() for mark in ROOT_MARKS)), folder)


@lru_cache
def _files_below(root: Path) -> tuple[str, ...]:
    """What git lists, or every file in folders that are not hidden and no environment."""
    command = ["git", "-c", "core.fsmonitor=false", "-C", str(root), "ls-files", "-z", "-co", "--exclude-standard"]
    if (root / ".git").exists():
        try:
            done = subprocess.run(command, capture_output=True, check=True)
            return tuple(name for name in os.fsdecode(done.stdout).split("\0") if name)
        except (OSError, subprocess.CalledProcessError):
            pass
    found = []
    for base, folders, names in os.walk(root):
        folders[:] = [f for f in folders if f not in SKIPPED and not f.startswith(".")]
        found += [Path(base, name).relative_to(root).as_posix() for name in names]
    return tuple(found)


def command_for(codemod: type[DdpCodemod], module: str = __name__) -> type[DdpCommand]:
    """The command of a codemod, to be bound in `module` under the class's name.

    A plug-in's author writes `NoGloo = command_for(NoGloo, __name__)` in a module of its own: this one imports LibCST.
    """
    told = {"__module__": module, "__doc__": codemod.__doc__, "DESCRIPTION": codemod.summary(), "CODEMOD": codemod}
    return type(codemod.__name__, (DdpCommand,), told)


COMMANDS = {codemod.__name__: command_for(codemod) for codemod in built_in()}
globals().update(COMMANDS)  # so that the runner and pickle find each by its name
