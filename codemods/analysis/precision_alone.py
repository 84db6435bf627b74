"""Accelerators that a program of one process has for half precision alone: it puts what it trains on a device of its own."""

from __future__ import annotations

import os
import re
from itertools import islice

from codemods.analysis.importing import users_by_step
from codemods.files.import_statements import stem_of
from codemods.files.source import SourceModule
from codemods.files.text_file import SHELL_KINDS
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

# What a program of several processes asks an accelerator for, or what else starts several.
_SHARES = lazy(
    rb"is_(?:local_)?main_process|process_index|num_processes|wait_for_everyone|gather|main_process_first|on_main_process"
    rb"|ccelerator\.device|ccelerator\.(?:print|reduce|save|log|init_trackers|unwrap|split_between|register|skip_first)"
    rb"|PartialState|deepspeed|DeepSpeed|[dD]istributed|lightning|Trainer\(|\b(?:local_)?rank\b|RANK|WORLD_SIZE|world_size"
)
_CHOSEN = lazy(rb"\b(?:config|cfg|args|opt|hparams|self)\.device\b|[\"']cuda(?::0)?[\"']")  # a device that is not the rank's own
_LAUNCHED = (b"accelerate launch", b"torchrun", b"torch.distributed", b"accelerate.commands", b"notebook_launcher", b"srun ")
_KINDS = (*SHELL_KINDS, ".md", ".rst", ".txt")
_HOPS, _FILES = 3, 40


def is_for_precision_alone(project: Project, module: SourceModule) -> bool:
    """True for a file that makes an Accelerator, asks it for nothing of several processes, and names a device itself.

    Several processes would all put their batches on that one device. What a launcher is written for counts as launched.
    """
    if not module.holds(b"Accelerator(") or _SHARES.search(module.data) or not _CHOSEN.search(module.data):
        return False
    return project.keep(("precision alone", module.path), lambda: not _is_launched(project, module.path))


def _is_launched(project: Project, path: str) -> bool:
    """True where a script or a text that speaks of a launcher names a file that brings this one in."""
    speaking = {p for word in _LAUNCHED for p in project.files_containing(word, kinds=_KINDS)}
    said = b"\n".join(project.read(p) or b"" for p in sorted(speaking))
    users = _brought_in_by(project, path) if said else ()
    return any(re.search(rb"(?<![\w-])%b(?![\w-])" % re.escape(os.fsencode(stem_of(user))), said) for user in users)


def _brought_in_by(project: Project, path: str) -> set[str]:
    """The files that import this one, or one that does, by the names of their import statements.

    A script that starts the process group itself shares its work out by itself: it has no need of this Accelerator.
    """
    known: set[str] = set()
    for found in islice(users_by_step(project, path, lambda _: False), _HOPS + 1):
        known.update(found)
        if len(known) > _FILES:
            break
    return {p for p in known if b"init_process_group(" not in (project.read(p) or b"")}
