"""Which files there are: what git lists, or a walk that follows .gitignore; vendored folders and what a build copied left out."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from codemods.api.evidence import Observed
from codemods.files.text_file import JSON_KINDS, PYTHON_KINDS, READ_KINDS
from codemods.runtime.record import record
from ddpfix import ignore_rules
from ddpfix.built_copies import built_copies
from ddpfix.package_copies import copy_of, is_inside, package_copies, programs_of_copies
from ddpfix.results import Failure
from ddpfix.unlisted import unlisted

# Never entered: not the project's own code.
SKIPPED = frozenset(
    {".git", ".hg", ".svn", ".venv", "venv", ".tox", ".nox", ".eggs", "node_modules", "site-packages", "__pycache__",
     "__pypackages__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".ipynb_checkpoints"}
)  # fmt: skip
SUMMARY = "DDPFIX_SUMMARY.md"  # what apply commits: its commands are no word of the repository's on how programs are started
# Other people's code kept in the repository: read for facts, never reported on or changed.
VENDORED = frozenset({"third_party", "third-party", "thirdparty", "vendor", "vendored", "_vendor"})
SUBMODULE = "a submodule, left alone: run ddpfix in it"
COPY = "a copy of the package {}, by its own metadata: read for facts, and left alone without `check-copies = true`"
PATIENCE = 5.0  # seconds until it is looked at what git waits for; with many files it takes as long
LARGEST_JSON = 256 * 1024  # bytes; a larger one is data, not settings
ROOT_MARKS = ("pyproject.toml", "setup.py", "setup.cfg", "ddpfix.toml")


class NoSuchPath(Exception):
    """A path given on the command line that is not there."""


@record
class Tree:
    """One project: its root, every file in it (relative, posix), and those the user asked about: Python, YAML, shell, JSON,
    Markdown, Dockerfiles.

    skipped: what was asked for and is left alone, with the reason. observed: what was seen of the project's runs.
    copies: folder -> the published package that it is a copy of.
    """

    root: Path
    files: tuple[str, ...]
    chosen: tuple[str, ...]
    skipped: tuple[Failure, ...] = ()
    is_git: bool = False
    observed: tuple[Observed, ...] = ()
    copies: Mapping[str, str] | None = None

    def copy_round(self, path: str) -> str:
        """Why a file is left alone that lies in a copy of a package, "" for others."""
        folder = copy_of(path, self.copies or ())
        return f"{folder} is {COPY.format((self.copies or {})[folder])}" if folder else ""


def discover(
    paths: Sequence[Path], exclude: Sequence[str] = (), *, force_exclude: bool = False, copies: bool = False
) -> list[Tree]:
    """The projects that the paths lie in, one for each root. Raises NoSuchPath.

    A file that is named itself is looked at, whatever is excluded, vendored or ignored by git; not so with `force_exclude`.
    copies: what is vendored and copied is looked at as well.
    """
    by_root: dict[Path, list[Path]] = {}
    for path in paths:
        if not path.exists():
            raise NoSuchPath(f"{path} does not exist")
        by_root.setdefault(find_root(path), []).append(path.resolve())
    return [_tree(root, wanted, exclude, force_exclude, copies) for root, wanted in by_root.items()]


def with_file(path: Path, exclude: Sequence[str] = (), *, force_exclude: bool = False, copies: bool = False) -> Tree:
    """The project of one file, which need not be there yet: what an editor holds under that name. Raises NoSuchPath."""
    folder = path.resolve().parent
    if not folder.is_dir():
        raise NoSuchPath(f"{path.parent} does not exist")
    (tree,) = discover([path if path.is_file() else folder], exclude, force_exclude=force_exclude, copies=copies)
    name = _relative(tree.root, path.resolve())
    if path.is_file():
        return tree
    return Tree(tree.root, tuple(sorted({*tree.files, name})), (name,), (), tree.is_git, copies=tree.copies)


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


def is_of_a_project(path: Path) -> bool:
    """True where a folder round `path` is a repository, or holds a project file."""
    root = find_root(path)
    return (root / ".git").exists() or any((root / mark).is_file() for mark in ROOT_MARKS)


def _tree(root: Path, wanted: Sequence[Path], exclude: Sequence[str], force: bool, checked: bool) -> Tree:
    is_git = (root / ".git").exists()
    listed = git_files(root) if is_git else None
    files = list(listed) if listed is not None else list(walk_files(root, ""))
    prefixes = [_relative(root, path) for path in wanted]
    known = set(files)
    for prefix, path in zip(prefixes, wanted, strict=True):
        # what the user names is looked at even where git ignores it
        if force:
            extra = []
        elif path.is_file():
            extra = [prefix]
        elif prefix and not any(f.startswith(prefix + "/") for f in known):
            extra = [f for f in walk_files(root, prefix) if f not in known]
        else:
            extra = []
        files += [f for f in extra if f not in known]
        known.update(extra)
    known -= _summaries(known)
    known -= {n for n in built_copies(known) if not any(_is_asked_inside(n, p) for p in prefixes)}
    copied = None if checked else package_copies(known, lambda name: _whole(root / name))
    asked = [f for f in copied or () if any(is_inside(p, f) for p in prefixes)]
    known -= {n for n in programs_of_copies(known, copied or ()) if not copy_of(n, asked)}
    chosen = _chosen(known, prefixes, exclude, force=force, is_data=lambda name: _is_data(root, name), copies=copied)
    submodules = [Failure(p, SUBMODULE, left_alone=True) for p in _submodules(root, known)]
    patterns = [re.compile(fnmatch.translate(p)) for p in exclude]
    odd = unlisted(root, known, prefixes, SKIPPED, ROOT_MARKS, lambda name: any(_excluded(p, name) for p in patterns))
    told = (*submodules, *_left(copied), *odd)
    skipped = tuple(f for f in sorted(told, key=lambda f: f.path) if any(_meet(f.path, q) for q in prefixes))
    return Tree(root, tuple(sorted(known)), chosen, skipped, is_git, copies=copied)


def _summaries(names: Iterable[str]) -> set[str]:
    return {n for n in names if n.rpartition("/")[2] == SUMMARY}


def _left(copies: Mapping[str, str] | None) -> Iterator[Failure]:
    """What is told of copies: nothing of those in a folder whose name says so."""
    for folder, name in (copies or {}).items():
        if VENDORED.isdisjoint(folder.split("/")):
            yield Failure(folder, COPY.format(name), left_alone=True)


def _chosen(
    known: Iterable[str],
    prefixes: Sequence[str],
    exclude: Sequence[str],
    *,
    force: bool,
    is_data: Callable[[str], bool],
    copies: Mapping[str, str] | None,
) -> tuple[str, ...]:
    """copies: the folders that are left alone beside those of VENDORED; None where neither is."""
    patterns = [re.compile(fnmatch.translate(p)) for p in exclude]
    chosen = []
    for name in sorted(known):
        below = [p for p in prefixes if not p or name == p or name.startswith(p + "/")]
        if name.endswith((*PYTHON_KINDS, *READ_KINDS)) and below and not is_data(name):
            named = name in below and not force
            if named or not (_is_of_others(name, [""] if force else below, copies) or any(_excluded(p, name) for p in patterns)):
                chosen.append(name)
    return tuple(chosen)


def _is_asked_inside(name: str, asked: str) -> bool:
    """True where the user asks for a folder `build/lib`, or for something in it."""
    return "/build/lib" in f"/{asked}" and _meet(name, asked)


def would_choose(name: str, exclude: Sequence[str], copies: Mapping[str, str] | None) -> bool:
    """True for a path that would be among those that are asked about, if there were such a file."""
    return bool(_chosen((name,), ("",), exclude, force=False, is_data=lambda _: False, copies=copies))


def committed_tree(
    root: Path,
    names: Iterable[str],
    read: Callable[[str], bytes | None],
    size: Callable[[str], int],
    exclude: Sequence[str] = (),
    *,
    copies: bool = False,
) -> Tree:
    """The project that a commit holds, out of the list of its files: for a clone of which nothing is checked out.

    size: bytes of a JSON file.
    """
    listed = {n for n in names if SKIPPED.isdisjoint(n.split("/"))}
    listed -= _summaries(listed)
    listed -= built_copies(listed)
    copied = None if copies else package_copies(listed, lambda name: read(name) or b"")
    files = tuple(sorted(listed - programs_of_copies(listed, copied or ())))
    is_data = lambda name: name.endswith(JSON_KINDS) and size(name) > LARGEST_JSON  # noqa: E731
    chosen = _chosen(files, ("",), exclude, force=False, is_data=is_data, copies=copied)
    return Tree(root, files, chosen, is_git=True, copies=copied)


def _is_data(root: Path, name: str) -> bool:
    if not name.endswith(JSON_KINDS):
        return False
    try:
        return os.lstat(root / name).st_size > LARGEST_JSON
    except OSError:
        return True


def _submodules(root: Path, files: set[str]) -> list[str]:
    data = _whole(root / ".gitmodules") if ".gitmodules" in files else b""
    text = data.decode("utf-8", "surrogateescape")
    return [p.strip() for p in re.findall(r"^\s*path\s*=\s*(.+)$", text, re.M) if p.strip() in files]


def _whole(path: Path) -> bytes:
    try:
        return path.read_bytes() if path.is_file() else b""
    except OSError:
        return b""


def _meet(one: str, other: str) -> bool:
    return not other or one == other or one.startswith(other + "/")


def _relative(root: Path, path: Path) -> str:
    relative = path.relative_to(root).as_posix()
    return "" if relative == "." else relative


def _is_of_others(name: str, asked: Sequence[str], copies: Mapping[str, str] | None) -> bool:
    """True if a vendored folder or a copy of a package lies between every path that was asked for and the file."""
    if copies is None:
        return False
    if (folder := copy_of(name, copies)) and not any(is_inside(prefix, folder) for prefix in asked):
        return True
    return all(not VENDORED.isdisjoint(name[len(prefix) :].split("/")[:-1]) for prefix in asked)


def _excluded(pattern: re.Pattern[str], name: str) -> bool:
    parts = name.split("/")
    return any(pattern.match("/".join(parts[: i + 1])) for i in range(len(parts)))


def git_files(root: Path) -> tuple[str, ...] | None:
    """Tracked and untracked, not ignored files, as git lists them; None where git is missing, refuses, or waits for a pipe."""
    import subprocess

    command = ["git", "-c", "core.fsmonitor=false", "-C", str(root), "ls-files", "-z", "-co", "--exclude-standard"]
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    try:
        git = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env)
    except OSError:
        return None
    with git:
        try:
            out, _ = git.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            if _waits_for_a_pipe(root):
                git.kill()
            out, _ = git.communicate()
    if git.returncode:
        return None
    names = os.fsdecode(out).split("\0")
    # an untracked repository inside this one is listed as a folder
    return tuple(n for n in names if n and not n.endswith("/") and SKIPPED.isdisjoint(n.split("/")))


def _waits_for_a_pipe(root: Path) -> bool:
    """Whether something that git opens to see what is ignored has no end: git would wait for it for ever."""
    opened = [root / ".git/info/exclude", *(Path(folder) / ".gitignore" for folder, _, _ in os.walk(root))]
    return any(path.exists() and not path.is_file() for path in opened)


# Without git


def walk_files(root: Path, below: str) -> Iterator[str]:
    """Files under `root/below`, with every .gitignore on the way applied; links to folders are not followed."""
    stack: list[tuple[str, tuple[ignore_rules.Rules, ...]]] = [(below, ())]
    while stack:
        folder, rules = stack.pop()
        here = root / folder if folder else root
        rules = (*rules, *ignore_rules.rules_of(here, folder))
        try:
            entries = sorted(os.scandir(here), key=lambda e: e.name)
        except OSError:
            continue
        for entry in entries:
            name = f"{folder}/{entry.name}" if folder else entry.name
            is_dir = entry.is_dir(follow_symlinks=False)
            if entry.name in SKIPPED or ignore_rules.is_ignored(name, is_dir, rules):
                continue
            if is_dir:
                if not (here / entry.name / "pyvenv.cfg").exists():
                    stack.append((name, rules))
            elif entry.is_file(follow_symlinks=False):
                yield name
