"""What `ddpfix check` answered, given again while nothing it rests on has changed, without loading the program.

The report cache (`cache.py`) saves the work; this saves the start: the command line, the codemods and the renderers are 0.1 s
of imports. It imports next to nothing itself, and it answers only what it can hold against the disk as it is now: git's own
list of files, each file's size, times and inode, this installation's code. Anything else is left to the program.
"""

from __future__ import annotations

import marshal
import os
import sys
import time
from zlib import crc32

from ddpfix import user_folders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ddpfix.discovery import Tree

RACY = 2_000_000_000  # nanoseconds; as git: a file that changed so shortly before is not trusted
SETTINGS = ("ddpfix.toml", "pyproject.toml")
LISTING = ("ls-files", "-z", "-co", "--exclude-standard")
_ENVIRONMENT = ("CI", "COLUMNS", "FORCE_COLOR", "LANG", "LC_ALL", "NO_COLOR", "TERM")


def folder() -> str:
    """Where caches live: DDPFIX_CACHE_DIR, else the user's cache folder."""
    if own := os.environ.get("DDPFIX_CACHE_DIR"):
        return own
    return user_folders.cache()


def trust_folder() -> str:
    """Where `ddpfix trust` records (`trust.py`)."""
    return os.path.join(user_folders.config(), "trust")


def recall(arguments: Sequence[str]) -> tuple[str, str, int] | None:
    """(stdout, stderr, exit status) of the same command here before; None where it has to be worked out."""
    if not arguments or arguments[0] != "check" or "--no-cache" in arguments or not hasattr(os, "posix_spawnp"):
        return None
    try:
        asked = _asked(arguments)
        with open(_place(asked), "rb") as stored:
            known, written, code, trees, answer = marshal.loads(opened(stored.read()))
        if known != asked or code != code_state():
            return None
        if not all(_holds(root, absent, listing, names, state, written) for root, absent, listing, names, state in trees):
            return None
        stdout, stderr, status = answer
        return str(stdout), str(stderr), int(status)
    except Exception:  # whatever is wrong with the file, the program itself knows the answer
        return None


def remember(arguments: Sequence[str], paths: Iterable[str], trees: Sequence[Tree], answer: tuple[str, str, int]) -> None:
    """Keep an answer for `recall`; nothing where a tree is not as git lists it, or changed a moment ago.

    paths: the files and folders asked about. The state of the files is taken now: to be called only with an answer that was
    worked out from the same state (`cache.py` sees to that).
    """
    asked = _asked(arguments)
    written = time.time_ns()
    rows = []
    for tree in trees:
        root = os.fspath(tree.root)
        listing = _listing(root) if tree.is_git else None
        if listing is None or not set(tree.files) <= set(os.fsdecode(listing).split("\0")):
            return
        names = [*tree.files, *(s for s in SETTINGS if s not in tree.files)]
        state, newest = _state(root, names)
        if newest > written - RACY:
            return
        rows.append((root, _between(root, paths), listing, names, state))
    fresh = f"{_place(asked)}.tmp"  # of two writers at once the checksum lets neither spoil the other's
    try:
        data = marshal.dumps((asked, written, code_state(), tuple(rows), answer))
        os.makedirs(folder(), exist_ok=True)
        with open(fresh, "wb") as out:
            out.write(sealed(data))
        os.replace(fresh, _place(asked))
    except (OSError, ValueError):
        try:
            os.unlink(fresh)
        except OSError:
            return


def sealed(data: bytes) -> bytes:
    """What goes into a cache file: the bytes behind their checksum."""
    return crc32(data).to_bytes(4, "big") + data


def opened(stored: bytes) -> bytes:
    """The bytes that `sealed` was given. Raises ValueError where they are not the same any more.

    A disk that loses a page, or a copy that broke off, leaves a file that still loads: a spoiled length takes memory without
    end, and a spoiled letter stands in the code that a fix would write.
    """
    check, data = stored[:4], stored[4:]
    if check != crc32(data).to_bytes(4, "big"):
        raise ValueError("the checksum of a cache file does not fit its contents")
    return data


def code_state() -> str:
    """The newest change of this installation's own files, and the folders that packages are installed into with their times:
    an answer of other code, or without a plug-in that has come since, is no answer."""
    newest = 0
    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for package in ("ddpfix", "codemods"):
        stack = [os.path.join(own, package)]
        while stack:
            for entry in os.scandir(stack.pop()):
                if entry.name.endswith(".py"):
                    newest = max(newest, entry.stat().st_mtime_ns)
                elif "." not in entry.name and entry.name != "__pycache__":
                    stack.append(entry.path)
    installed = [f"{p}:{os.stat(p).st_mtime_ns}" for p in sys.path if "-packages" in p and os.path.isdir(p)]
    return "\0".join((str(newest), *installed))


def _asked(arguments: Sequence[str]) -> tuple[str, ...]:
    environment = [f"{name}={os.environ.get(name)}" for name in _ENVIRONMENT]
    trusted = (f"trust={_trust_state()}",)
    ends = [str(stream.isatty()) for stream in (sys.stdout, sys.stderr)]
    return (sys.version, __file__, os.getcwd(), *environment, *trusted, *ends, *arguments)


def _trust_state() -> str:
    """Changes with every trust that is recorded or forgotten: which plug-ins run rests on it."""
    try:
        return f"{trust_folder()} {os.stat(trust_folder()).st_mtime_ns}"
    except OSError:
        return ""


def _place(asked: tuple[str, ...]) -> str:
    name = crc32("\0".join(asked).encode("utf-8", "surrogateescape"))
    return os.path.join(folder(), f"{name:08x}.answer")


def _holds(root: str, absent: tuple[str, ...], listing: bytes, names: list[str], state: str, written: int) -> bool:
    if any(os.path.lexists(path) for path in absent) or _listing(root) != listing:
        return False
    now, newest = _state(root, names)
    return now == state and newest <= written - RACY


def _state(root: str, names: Iterable[str]) -> tuple[str, int]:
    """(size, times and inode of each file, the newest time)."""
    rows, newest = [], 0
    for name in names:
        try:
            about = os.lstat(f"{root}/{name}")
        except OSError:
            rows.append("-")
            continue
        changed, set_inode = about.st_mtime_ns, about.st_ctime_ns
        newest = max(newest, changed, set_inode)
        rows.append(f"{about.st_size} {changed} {set_inode} {about.st_ino}")
    return "\n".join(rows), newest


def _between(root: str, paths: Iterable[str]) -> tuple[str, ...]:
    """What must not be there: a repository between the root and what was asked about would be the root itself."""
    out = []
    for path in paths:
        here = os.path.realpath(path)
        while len(here) > len(root) and here.startswith(root):
            out.append(os.path.join(here, ".git"))
            here = os.path.dirname(here)
    return tuple(out)


def _listing(root: str) -> bytes | None:
    """What git lists in `root`, as it comes; None where it refuses. Without `subprocess`, which is 17 ms of imports."""
    command = ["git", "-c", "core.fsmonitor=false", "-C", root, *LISTING]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    reading, writing = os.pipe()
    try:
        quiet = (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)
        child = os.posix_spawnp(
            "git", command, environment, file_actions=[(os.POSIX_SPAWN_DUP2, writing, 1), quiet, (os.POSIX_SPAWN_CLOSE, reading)]
        )
        os.close(writing)
        writing = -1
        parts = []
        while part := os.read(reading, 1 << 20):
            parts.append(part)
        _, status = os.waitpid(child, 0)
        return b"".join(parts) if status == 0 else None
    except OSError:
        return None
    finally:
        os.close(reading)
        if writing >= 0:
            os.close(writing)
