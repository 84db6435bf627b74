"""The command that trains, whoever starts its ranks: torchrun and accelerate are taken off, each rank is started directly."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from codemods.data.launcher_options import SWITCHES

_LAUNCH = "torch.distributed.launch"
_MODULES = {"torch.distributed.run": "torchrun", _LAUNCH: _LAUNCH, "accelerate.commands.launch": "accelerate launch"}
_LOCAL_RANK = "${local_rank}"  # torchrun puts the number there in each word of a rank's command
_SETTING = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")


@dataclass(frozen=True, slots=True)
class Training:
    """A command that runs one rank, what the user set in front of it, and what was left out of theirs.

    python: the words of the command that run Python, () for a program of another kind.
    """

    command: tuple[str, ...]
    settings: tuple[tuple[str, str], ...] = ()
    launcher: str = ""
    dropped: tuple[str, ...] = ()
    python: tuple[str, ...] = ()


def understood(command: Sequence[str]) -> Training:
    """The training command in the user's. Raises ValueError where there is none after the launcher's options."""
    words = list(command)
    settings = []
    while words and _SETTING.match(words[0]):
        name, _, value = words.pop(0).partition("=")
        settings.append((name, value))
    found = _launcher(words)
    if found is None:
        if not words:
            raise ValueError("there is no command")
        return Training(tuple(words), tuple(settings))
    launcher, python, rest = found
    flags = SWITCHES["accelerate" if launcher.startswith("accelerate") else "torchrun"]
    dropped, script, given = _split(rest, flags)
    if not script:
        raise ValueError(f"{launcher} is given no program")
    if launcher == _LAUNCH and "use_env" not in given:
        script.insert(1, f"--local-rank={_LOCAL_RANK}")
    if given & {"no_python"}:
        return Training(tuple(script), tuple(settings), launcher, tuple(dropped))
    own = [*python, "-m"] if given & {"m", "module"} else python
    return Training((*own, *script), tuple(settings), launcher, tuple(dropped), tuple(python))


def as_installed(training: Training, env: Mapping[str, str]) -> Training:
    """The training as the torch of its Python starts it: torch.distributed.launch gave `--local_rank` before torch 2.0."""
    option = f"--local-rank={_LOCAL_RANK}"
    if option not in training.command or not training.python:
        return training
    ask = [*training.python, "-c", "from importlib.metadata import version; print(version('torch'))"]
    try:
        said = subprocess.run(ask, env=dict(env), capture_output=True, text=True, timeout=60, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return training
    if not said.startswith(("0.", "1.")):
        return training
    older = option.replace("-rank", "_rank")
    return replace(training, command=tuple(older if w == option else w for w in training.command))


def of_rank(command: Sequence[str], local_rank: int | str) -> tuple[str, ...]:
    """The command of one rank, or as it is shown for any."""
    return tuple(word.replace(_LOCAL_RANK, str(local_rank)) for word in command)


def _launcher(words: list[str]) -> tuple[str, list[str], list[str]] | None:
    """(launcher, the python that it runs, the words after it); it may stand behind a runner such as `uv run`."""
    for i, word in enumerate(words[:4]):
        name = Path(word).name
        if name == "torchrun":
            return "torchrun", [*words[:i], _python_beside(word)], words[i + 1 :]
        if name == "accelerate" and words[i + 1 : i + 2] == ["launch"]:
            return "accelerate launch", [*words[:i], _python_beside(word)], words[i + 2 :]
        if name.startswith("python") and words[i + 1 : i + 2] == ["-m"] and len(words) > i + 2:
            if launcher := _MODULES.get(words[i + 2]):
                return launcher, words[: i + 1], words[i + 3 :]
    return None


def _python_beside(program: str) -> str:
    """The Python of the environment that a launcher is installed in."""
    found = shutil.which(program)
    beside = Path(found).with_name("python") if found else None
    return str(beside) if beside and beside.exists() and os.sep in program else "python"


def _split(words: Sequence[str], flags: frozenset[str]) -> tuple[list[str], list[str], set[str]]:
    """(the launcher's own words, the program and its arguments, the names of the options that were given)."""
    given = set()
    i = 0
    while i < len(words) and words[i].startswith("-") and words[i] != "--":
        name, equals, _ = words[i].lstrip("-").replace("-", "_").partition("=")
        given.add(name)
        i += 1 if equals or name in flags or (words[i][1] != "-" and len(words[i]) > 2) else 2
    return list(words[:i]), [w for w in words[i : i + 1] if w != "--"] + list(words[i + 1 :]), given
