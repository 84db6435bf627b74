"""git as a child process: GitPython is the runner only, its own index drops clean filters, signing and newer formats."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from ddpfix.git.refusal import GitRefusal

if TYPE_CHECKING:
    from git import Repo

# What `git rev-parse --local-env-vars` lists, but for configuration: a hook or an alias that starts ddpfix sets these
# for a repository, an index and an object store that are not ours to write.
INHERITED = (
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX"),
    *("GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_IMPLICIT_WORK_TREE", "GIT_GRAFT_FILE", "GIT_SHALLOW_FILE"),
    *("GIT_NO_REPLACE_OBJECTS", "GIT_REPLACE_REF_BASE", "GIT_INTERNAL_SUPER_PREFIX", "GIT_NAMESPACE"),
    *("GIT_QUARANTINE_PATH", "GIT_LITERAL_PATHSPECS", "GIT_GLOB_PATHSPECS", "GIT_ICASE_PATHSPECS"),
)
ENVIRONMENT = {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
CONFIG = (
    *("core.fsmonitor=false", "core.quotePath=false", "core.splitIndex=false", "gc.auto=0", "maintenance.auto=false"),
    *("protocol.ext.allow=never", "log.showSignature=false", "color.ui=false", "advice.detachedHead=false"),
    *("i18n.commitEncoding=utf-8", "i18n.logOutputEncoding=utf-8"),
)


@dataclass(frozen=True)
class Result:
    """What one run of git came to."""

    status: int
    stdout: bytes
    stderr: str

    @property
    def text(self) -> str:
        return os.fsdecode(self.stdout.removesuffix(b"\n"))


class Git:
    """git in one repository: bytes in, bytes out."""

    def __init__(self, repo: Repo, root: Path) -> None:
        self._repo = repo
        self.root = root
        self.folder = Path(repo.git_dir)
        self.journal = Path(repo.common_dir).resolve() / "ddpfix"
        self.held: tuple[int, ...] = ()  # the lock that git goes on holding where this process is killed

    def at(self, root: Path) -> Git:
        return Git(self._repo, root)

    def run(
        self,
        *arguments: str,
        data: bytes = b"",
        env: Mapping[str, str] | None = None,
        hooks: bool = False,
        check: bool = True,
    ) -> Result:
        config = CONFIG if hooks else (*CONFIG, "core.hooksPath=/dev/null")
        options = [part for setting in config for part in ("-c", setting)]
        with _as_file(data) if data else nullcontext() as stream:
            status, stdout, stderr = self._repo.git.execute(
                [str(self._repo.git.GIT_PYTHON_GIT_EXECUTABLE), *options, "-C", str(self.root), *arguments],
                istream=stream,
                with_extended_output=True,
                with_exceptions=False,
                stdout_as_string=False,
                strip_newline_in_stdout=False,
                env={**ENVIRONMENT, **(env or {})},
                # a hook may leave a process behind, which would hold the lock for ever
                pass_fds=() if hooks else self.held,
            )
        result = Result(status, stdout, stderr)
        if check and status:
            raise failed(arguments, result)
        return result

    def text(self, *arguments: str, data: bytes = b"", env: Mapping[str, str] | None = None) -> str:
        return self.run(*arguments, data=data, env=env).text

    def commit_of(self, name: str) -> str:
        """The id that a name stands for, "" where there is no such name. Raises GitRefusal where git could not say."""
        return self._answer("rev-parse", "--verify", "--quiet", name)

    def head_ref(self) -> str:
        """The ref of the branch that is checked out, "" where HEAD is detached. Raises GitRefusal."""
        return self._answer("symbolic-ref", "--quiet", "HEAD")

    def _answer(self, *arguments: str) -> str:
        done = self.run(*arguments, check=False)
        if done.status not in (0, 1):  # 1 is a "no"; what else goes wrong must not be taken for one
            raise failed(arguments, done)
        return done.text

    def flag(self, setting: str) -> bool:
        return self.run("config", "--type=bool", "--get", setting, check=False).text == "true"


def _as_file(data: bytes) -> BinaryIO:
    """What git reads, as an open file: in memory where that can be, since the disk may be full."""
    if sys.platform == "linux":
        stream = cast(BinaryIO, os.fdopen(os.memfd_create("ddpfix"), "w+b"))
    else:
        stream = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115 - the caller closes it
    stream.write(data)
    stream.seek(0)
    return stream


_environment_lock = threading.RLock()


@contextmanager
def clean_environment() -> Iterator[None]:
    """The process without inherited git variables: GitPython can only add variables for the git it starts."""
    with _environment_lock:
        inherited = {name: os.environ.pop(name) for name in INHERITED if name in os.environ}
        try:
            yield
        finally:
            os.environ.update(inherited)


def open_repo(path: Path, *, search: bool = False) -> Repo | None:
    """The repository at `path` (with `search`, round it), None where there is none. Raises GitRefusal without git."""
    try:
        # 0.13 s, so only where git is really needed.
        from git import InvalidGitRepositoryError, NoSuchPathError, Repo
    except ImportError as error:
        raise GitRefusal("git cannot be run", str(error), "install git, or use --in-place") from error
    try:
        return Repo(path, search_parent_directories=search, expand_vars=False)
    except (InvalidGitRepositoryError, NoSuchPathError):
        return None


@contextmanager
def repository(root: Path) -> Iterator[Git]:
    """git for the repository at `root`, with its processes ended afterwards. Raises GitRefusal."""
    with clean_environment():
        repo = open_repo(root)
        if repo is None:
            raise GitRefusal(
                f"{root} is not a git repository", "there is no .git in it", "run `git init`, or --in-place"
            )
        with repo:
            yield Git(repo, root)


def failed(arguments: Sequence[str], result: Result) -> GitRefusal:
    """The refusal that says in git's own words why a command failed."""
    command = f"git {arguments[0]}"
    lines = [line for line in result.stderr.splitlines() if line.strip()] or [f"exit status {result.status}"]
    why = next((line for line in lines if line.startswith(("fatal: ", "error: "))), lines[0])
    if "dubious ownership" in why:
        todo = next(
            (line.strip() for line in lines if "safe.directory" in line), "see `git help config`, safe.directory"
        )
        return GitRefusal("git does not trust this repository", why.removeprefix("fatal: "), todo)
    return GitRefusal(
        f"{command} failed", why.removeprefix("fatal: ").removeprefix("error: "), "repair this and run again"
    )


def journal_folder(root: Path) -> Path:
    """Where the runs of a repository are written down: one folder for all its work trees. Raises GitRefusal."""
    with repository(root) as git:
        return git.journal
