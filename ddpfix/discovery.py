"""Which files there are: what git lists, or a walk that heeds .gitignore; vendored folders left out of what is checked."""

from __future__ import annotations

import fnmatch
import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ddpfix.results import Failure

# Never entered: not the project's own code.
SKIPPED = frozenset(
    {".git", ".hg", ".svn", ".venv", "venv", ".tox", ".nox", ".eggs", "node_modules", "site-packages", "__pycache__",
     "__pypackages__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".ipynb_checkpoints"}
)  # fmt: skip
# Other people's code kept in the repository: read for facts, never reported on or changed.
VENDORED = frozenset({"third_party", "third-party", "thirdparty", "vendor", "vendored", "_vendor"})
ROOT_MARKS = ("pyproject.toml", "setup.py", "setup.cfg", "ddpfix.toml")


class NoSuchPath(Exception):
    """A path given on the command line that is not there."""


@dataclass(frozen=True, slots=True)
class Tree:
    """One project: its root, every file in it (relative, posix), and those Python files the user asked about."""

    root: Path
    files: tuple[str, ...]
    chosen: tuple[str, ...]
    skipped: tuple[Failure, ...] = ()
    is_git: bool = False


def discover(paths: Sequence[Path], exclude: Sequence[str] = ()) -> list[Tree]:
    """The projects that the paths lie in, one for each root. Raises NoSuchPath."""
    by_root: dict[Path, list[Path]] = {}
    for path in paths:
        if not path.exists():
            raise NoSuchPath(f"{path} does not exist")
        by_root.setdefault(find_root(path), []).append(path.resolve())
    return [_tree(root, wanted, exclude) for root, wanted in by_root.items()]


def find_root(path: Path) -> Path:
    """The repository that holds `path`; else the nearest folder with a project file; else the folder itself."""
    start = path.resolve()
    folder = start if start.is_dir() else start.parent
    above = [folder, *folder.parents]
    for candidate in above:
        if (candidate / ".git").exists():
            return candidate
    for candidate in above:
        if any((candidate / mark).is_file() for mark in ROOT_MARKS):
            return candidate
    return folder


def _tree(root: Path, wanted: Sequence[Path], exclude: Sequence[str]) -> Tree:
    is_git = (root / ".git").exists()
    listed = git_files(root) if is_git else None
    files = list(listed) if listed is not None else list(walk_files(root, ""))
    prefixes = [_relative(root, path) for path in wanted]
    known = set(files)
    for prefix, path in zip(prefixes, wanted, strict=True):
        # what the user names is looked at even where git ignores it
        if path.is_file():
            extra = [prefix]
        elif prefix and not any(f.startswith(prefix + "/") for f in known):
            extra = [f for f in walk_files(root, prefix) if f not in known]
        else:
            extra = []
        files += [f for f in extra if f not in known]
        known.update(extra)
    named = {p for p, path in zip(prefixes, wanted, strict=True) if path.is_file()}
    patterns = [re.compile(fnmatch.translate(p)) for p in exclude]
    chosen = []
    for name in sorted(known):
        if not name.endswith(".py") or not any(not p or name == p or name.startswith(p + "/") for p in prefixes):
            continue
        if name in named or not (_is_vendored(name) or any(_excluded(p, name) for p in patterns)):
            chosen.append(name)
    return Tree(root, tuple(sorted(known)), tuple(chosen), is_git=is_git)


def _relative(root: Path, path: Path) -> str:
    relative = path.relative_to(root).as_posix()
    return "" if relative == "." else relative


def _is_vendored(name: str) -> bool:
    return not VENDORED.isdisjoint(name.split("/")[:-1])


def _excluded(pattern: re.Pattern[str], name: str) -> bool:
    parts = name.split("/")
    return any(pattern.match("/".join(parts[: i + 1])) for i in range(len(parts)))


def git_files(root: Path) -> tuple[str, ...] | None:
    """Tracked and untracked, not ignored files, as git lists them; None where git is missing or refuses."""
    command = ["git", "-c", "core.fsmonitor=false", "-C", str(root), "ls-files", "-z", "-co", "--exclude-standard"]
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    try:
        done = subprocess.run(command, capture_output=True, check=False, env=env)
    except OSError:
        return None
    if done.returncode:
        return None
    names = os.fsdecode(done.stdout).split("\0")
    return tuple(n for n in names if n and SKIPPED.isdisjoint(n.split("/")))


# Without git


def walk_files(root: Path, below: str) -> Iterator[str]:
    """Files under `root/below`, heeding every .gitignore on the way; links to folders are not followed."""
    stack: list[tuple[str, tuple[Rule, ...]]] = [(below, ())]
    while stack:
        folder, rules = stack.pop()
        here = root / folder if folder else root
        rules = (*rules, *ignore_rules(here, folder))
        try:
            entries = sorted(os.scandir(here), key=lambda e: e.name)
        except OSError:
            continue
        for entry in entries:
            name = f"{folder}/{entry.name}" if folder else entry.name
            is_dir = entry.is_dir(follow_symlinks=False)
            if entry.name in SKIPPED or is_ignored(name, is_dir, rules):
                continue
            if is_dir:
                if not (here / entry.name / "pyvenv.cfg").exists():
                    stack.append((name, rules))
            elif entry.is_file(follow_symlinks=False):
                yield name


@dataclass(frozen=True, slots=True)
class Rule:
    """A line of a .gitignore: the folder it holds for, its pattern, `!`, and whether it is for folders only."""

    base: str
    pattern: re.Pattern[str]
    negated: bool
    folders_only: bool


def ignore_rules(folder: Path, base: str) -> tuple[Rule, ...]:
    try:
        text = (folder / ".gitignore").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ()
    return tuple(rule for line in text.splitlines() if (rule := parse_rule(line, base)))


def parse_rule(line: str, base: str) -> Rule | None:
    """One line as gitignore(5) reads it; None for a blank line or a comment."""
    line = line.rstrip()
    if not line or line.startswith("#"):
        return None
    negated = line.startswith("!")
    body = line[1:] if negated else line
    folders_only = body.endswith("/")
    body = body.rstrip("/")
    anchored = "/" in body
    body = body.lstrip("/")
    parts = []
    for part in body.split("/"):
        parts.append(".*" if part == "**" else fnmatch.translate(part)[4:-3].replace(".*", "[^/]*"))
    joined = "/".join(parts).replace(".*/", "(?:.*/)?")
    return Rule(base, re.compile(joined if anchored else f"(?:.*/)?{joined}"), negated, folders_only)


def is_ignored(name: str, is_dir: bool, rules: Iterable[Rule]) -> bool:
    ignored = False
    for rule in rules:
        if rule.folders_only and not is_dir:
            continue
        relative = name[len(rule.base) + 1 :] if rule.base else name
        if rule.pattern.fullmatch(relative):
            ignored = not rule.negated
    return ignored
