"""The repository's own commands that start training: from shell scripts, job files, Makefiles and READMEs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from posixpath import basename
from textwrap import shorten

from ddpfix.summary.context import Launch

KINDS = (".sh", ".slurm", ".sbatch", ".yaml", ".yml", ".md", "Makefile")
LARGEST = 64 * 1024
DEEPEST = 3
MOST = 4
LONGEST = 600

_STARTER = re.compile(
    r"(?<![\w./-])(?:torchrun\b"
    r"|(?:python[\d.]*|\$\{?PYTHON\}?)(?:\s+-[uOB])*\s+-m\s+(?:torch\.distributed\.(?:run|launch)|accelerate\.commands\.launch)\b"
    r"|accelerate\s+launch\b|python[\d.]*\s+(?:-u\s+)?(?P<script>[\w./-]+\.py)\b)(?=\s|$)"
)
# What shows that a script started with plain `python` can start further processes.
_STARTS_OTHERS = (b"Trainer(", b"mp.spawn", b"multiprocessing.spawn", b"Fabric(", b"LightningCLI(")
_COUNT = re.compile(r"(--nproc[-_]per[-_]node|--num[-_]processes)(=|\s+)(\"[^\"]*\"|'[^']*'|\S+)")
_DEVICES = re.compile(r"(--(?:trainer\.)?devices)(=|\s+)(\"[^\"]*\"|'[^']*'|\S+)")


def launches(files: Iterable[str], read: Callable[[str], bytes | None]) -> tuple[Launch, ...]:
    """At most a few commands, the shallowest files first; `python script.py` only where no launcher of processes is named."""
    known = frozenset(files)
    paths = [p for p in known if p.endswith(KINDS) and p.count("/") <= DEEPEST]
    found: dict[str, tuple[tuple[bool, bool, int, str, int], Launch]] = {}
    for path in sorted(paths):
        data = read(path) or b""
        if len(data) > LARGEST:
            continue
        for line, text, script in _commands(path, data.decode("utf-8", "replace")):
            if script and not _starts_others(script, path, known, read):
                continue
            launch = Launch(text, path, line, with_two_processes(text))
            rank = (bool(script), path.endswith(".md"), path.count("/"), path, line)
            if text not in found:
                found[text] = (rank, launch)
    ordered = sorted(found.values(), key=lambda row: row[0])
    # plain `python`, and what a README says, is told only where nothing better is
    best = [row for row in ordered if row[0][:2] == ordered[0][0][:2]]
    return tuple(launch for _, launch in best[:MOST])


def with_two_processes(command: str) -> str:
    """The command with its number of processes on one machine set to two, where it has a place for one."""
    if _COUNT.search(command):
        return _COUNT.sub(lambda m: f"{m[1]}{'=' if m[2] == '=' else ' '}2", command)
    if _DEVICES.search(command):
        return _DEVICES.sub(lambda m: f"{m[1]}{'=' if m[2] == '=' else ' '}2", command)
    if command.startswith("torchrun"):
        return command.replace("torchrun", "torchrun --nproc_per_node=2", 1)
    if re.match(r"accelerate\s+launch", command):
        return re.sub(r"^accelerate\s+launch", "accelerate launch --num_processes 2", command)
    if match := re.match(r".*?-m\s+torch\.distributed\.(?:run|launch)", command):
        return f"{match.group()} --nproc_per_node=2{command[match.end() :]}"
    return command


def _commands(path: str, text: str) -> Iterator[tuple[int, str, str]]:
    """(line, command on one line, the script if it is started by plain `python`)."""
    for number, line in _logical_lines(path, text):
        if line.lstrip().startswith(("#", "//", "echo ")):
            continue
        if match := _STARTER.search(line):
            command = re.split(r"\s(?:#|2?>|\||&&|;)(?:\s|&|$)|`|\s*2>&1", line[match.start() :])[0].strip().rstrip("\\`;&")
            if " " in command.strip():
                yield number, shorten(command, LONGEST, placeholder=" ..."), match.group("script") or ""


def _logical_lines(path: str, text: str) -> Iterator[tuple[int, str]]:
    """Lines joined at a backslash, and in YAML those of a folded text."""
    folded = -1
    parts: list[str] = []
    start = 1
    for number, line in enumerate(text.split("\n"), 1):
        indent = len(line) - len(line.lstrip())
        if folded >= 0 and (not line.strip() or indent <= folded):
            yield start, " ".join(parts)
            parts, folded = [], -1
        if not parts:
            start = number
        parts.append(line.rstrip().removesuffix("\\") if line.rstrip().endswith("\\") else line)
        if path.endswith((".yaml", ".yml")) and re.search(r":\s*>[-+]?\s*$", line):
            folded, parts = indent, []
            continue
        if folded < 0 and not line.rstrip().endswith("\\"):
            yield start, " ".join(parts)
            parts = []
    if parts:
        yield start, " ".join(parts)


def _starts_others(script: str, path: str, known: frozenset[str], read: Callable[[str], bytes | None]) -> bool:
    folder = path.rpartition("/")[0]
    for candidate in (script.removeprefix("./"), f"{folder}/{basename(script)}".lstrip("/")):
        if candidate in known:
            data = read(candidate) or b""
            return any(word in data for word in _STARTS_OTHERS)
    return False
