"""A bare clone of its own for a repository on a forge: nothing is checked out, so no filter and no hook of it can run.

The password travels in git's environment (git-config(1), GIT_CONFIG_COUNT): it is in no argument, no URL and no file.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from ddpfix.git import bounded
from ddpfix.git.branches import TRAILER
from ddpfix.git.identity import as_author
from ddpfix.git.reading import Reader
from ddpfix.git.refusal import GitRefusal, OverLimit
from ddpfix.git.runner import CONFIG, ENVIRONMENT, failed, repository
from ddpfix.git.snapshots import Blob

DEEPEST = 40  # commits of a branch of ours that are looked at
LARGEST_CHANGE = 40 * 1024 * 1024  # bytes of a file that goes through a forge's interface
PER_FETCH = 20_000  # objects that one request names: 1 MB of names


@dataclass(frozen=True)
class Access:
    """Where a repository is, and the header that lets us in."""

    url: str
    header: str = field(default="", repr=False)

    def environment(self) -> dict[str, str]:
        """Variables for git: the header for this host only, no helper that would keep it, no redirect that would take it away."""
        parts = urlsplit(self.url)
        settings = [("credential.helper", ""), ("http.followRedirects", "false"), ("fetch.recurseSubmodules", "false")]
        settings += [("filter.lfs.smudge", ""), ("filter.lfs.process", ""), ("filter.lfs.required", "false")]
        if self.header:
            settings.append((f"http.{parts.scheme}://{parts.netloc}/.extraHeader", self.header))
        first = int(os.environ.get("GIT_CONFIG_COUNT") or 0)
        env = {"GIT_CONFIG_COUNT": str(first + len(settings)), "GIT_TERMINAL_PROMPT": "0", "GIT_LFS_SKIP_SMUDGE": "1"}
        for number, (key, value) in enumerate(settings, first):
            env |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
        return env


@dataclass(frozen=True)
class RemoteCommit:
    """A commit as it stands on the forge. ours: it carries the trailer of a run, `run`, and the bot itself committed it, or
    let the forge commit it.

    updates: the forge merged the base into the branch, and nobody's change is in it.
    """

    sha: str
    parents: tuple[str, ...]
    tree: str
    author: str
    committer: str
    subject: str
    ours: bool
    run: str = ""
    updates: bool = False


@dataclass(frozen=True)
class MadeCommit:
    """A commit of the clone's own. files: (path, the id of what was there before, of what is there now), "" for nothing."""

    message: str
    files: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class Pushed:
    """What a push came to. stale: somebody else moved the branch meanwhile. unsure: the server gave no verdict (the answer was
    lost, or the token has ended), so it may have been done. why: the server's own words where it refused.
    """

    done: bool
    stale: bool = False
    unsure: bool = False
    why: str = ""


def tips(access: Access, patterns: Sequence[str]) -> dict[str, str]:
    """Branch -> tip, of the branches that match. Raises GitRefusal where the repository cannot be reached."""
    refs = [f"refs/heads/{pattern}" for pattern in patterns]
    out = _plain(access, "ls-remote", "--", access.url, *refs)
    rows = (line.partition("\t") for line in out.splitlines())
    return {ref.removeprefix("refs/heads/"): sha for sha, _, ref in rows if ref.startswith("refs/heads/")}


def head_of(access: Access, *, seconds: float = 0.0, memory: int = 0) -> tuple[str, str] | None:
    """(branch, tip) that HEAD names, None for a repository without one. Raises GitRefusal where it cannot be reached.

    seconds, memory: the most it takes, as for `bounded.call`.
    """
    asked = ("ls-remote", "--symref", "--", access.url, "HEAD")
    rows = [line.partition("\t") for line in _plain(access, *asked, seconds=seconds, memory=memory).splitlines()]
    said = [what for what, _, name in rows if name == "HEAD"]
    branch = next((what.removeprefix("ref: refs/heads/") for what in said if what.startswith("ref: ")), "")
    tip = next((what for what in said if not what.startswith("ref: ")), "")
    return (branch, tip) if branch and tip else None


def _plain(access: Access, *arguments: str, own_group: bool = True, seconds: float = 0.0, memory: int = 0) -> str:
    """git outside of any repository. Raises GitRefusal."""
    command = ["git", "-c", "core.hooksPath=/dev/null", "-c", "protocol.ext.allow=never", *arguments]
    env = {**access.environment(), "LC_ALL": "C"}
    done = bounded.call(command, env, own_group=own_group, seconds=seconds, memory=memory)
    if done.status:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        why = next((line for line in said if line.startswith(("fatal: ", "error: "))), said[0] if said else "no reason given")
        todo = "check the address, the token and the network"
        raise GitRefusal(f"git {arguments[0]} failed", why.removeprefix("fatal: "), todo)
    return os.fsdecode(done.stdout)


def clone_into(root: Path, access: Callable[[], Access], branch: str, *, most: Most | None = None) -> Clone:
    """A clone without history and without files, in a folder that is not there yet.

    access: asked again before each call, since a token may be renewed on the way. Raises GitRefusal.
    """
    sparing = ("--bare", "--depth=1", "--filter=blob:none", "--single-branch", "--no-tags", "--no-recurse-submodules")
    given = access()
    command = ("clone", "--quiet", *sparing, f"--branch={branch}", "--", given.url, str(root))
    _plain(given, *command, own_group=most is None)
    return Clone(root, access, most=most)


def clone_at(root: Path, access: Callable[[], Access], branch: str, *, most: Most | None = None) -> Clone:
    """The clone that is kept at `root`, brought to where the branch stands now, or a new one. Raises GitRefusal."""
    clone = Clone(root, access, most=most)
    try:
        if root.exists():
            clone.bring(branch)
            return clone
    except GitRefusal:  # it was cut off, or is damaged: a new one takes its place
        shutil.rmtree(root, ignore_errors=True)
    return clone_into(root, access, branch, most=most)


@dataclass(frozen=True, slots=True)
class Most:
    """How much of a repository is looked at: paths, folders inside each other, bytes of the names, bytes of the files."""

    paths: int
    depth: int
    names: int
    bytes: int


class Clone:
    """The bot's own copy of a repository, and the ways to the forge and back.

    most: given in a process that is ended from outside with its whole group; without it nothing is bounded but the time.
    """

    def __init__(self, root: Path, access: Callable[[], Access], *, most: Most | None = None) -> None:
        self.root = root
        self._access = access
        self._most = most
        self._here: set[str] | None = None  # the objects of this clone, read where they matter

    def _command(self, *arguments: str) -> list[str]:
        settings = [part for setting in (*CONFIG, "core.hooksPath=/dev/null") for part in ("-c", setting)]
        return ["git", *settings, f"--git-dir={self.root}", *arguments]

    def _git(self, *arguments: str, data: bytes = b"", check: bool = True) -> tuple[int, bytes, str]:
        env = {**ENVIRONMENT, **self._access().environment(), "LC_ALL": "C"}
        done = bounded.call(self._command(*arguments), env, data=data, own_group=self._most is None)
        if check and done.status:
            raise failed(arguments, done)
        return done.status, done.stdout, done.stderr

    def bring(self, branch: str) -> None:
        """Fetch what is new of a branch, and let HEAD be that branch. Raises GitRefusal."""
        ref = f"refs/heads/{branch}"
        self._git("fetch", "--quiet", "--depth=1", "--filter=blob:none", "--no-tags", "origin", f"+{ref}:{ref}")
        self._git("symbolic-ref", "HEAD", ref)
        self._git("cat-file", "-e", "HEAD^{tree}")

    def check_size(self) -> None:
        """Raises OverLimit for a HEAD that names more than is looked at.

        A few small objects can name a billion paths, so git's list is read as it comes, and left as soon as it is too long.
        """
        most = self._most
        if most is None:
            return
        command = self._command("ls-tree", "-r", "-z", "--full-tree", "--name-only", "HEAD")
        with bounded.started(command, ENVIRONMENT, own_group=False) as git:
            assert git.stdout is not None
            paths = size = 0
            rest = b""
            while part := git.stdout.read(1 << 16):
                size += len(part)
                *names, rest = (rest + part).split(b"\0")
                paths += len(names)
                deep = any(name.count(b"/") > most.depth for name in (*names, rest))
                if paths > most.paths or size > most.names or deep:
                    bounded.end(git, own_group=False)
                    what = f"folders more than {most.depth} deep" if deep else f"more than {most.paths} files"
                    raise OverLimit("it is not looked at", f"it has {what}", "leave it out with --block")

    def at_head(self, names: Sequence[str]) -> dict[str, Blob]:
        """Those of the files that HEAD holds."""
        rows = self._git("ls-tree", "-z", "--full-tree", "HEAD", "--", *names)[1].split(b"\0")[:-1]
        found = [(*row.partition(b"\t")[0].decode().split(), os.fsdecode(row.partition(b"\t")[2])) for row in rows]
        return {path: Blob(mode, sha) for mode, kind, sha, path in found if kind == "blob" and mode != "120000"}

    def stand_on(self, ref: str) -> None:
        """Let HEAD be the commit of another ref of the forge, such as the head of a pull request."""
        self._git("fetch", "--quiet", "--depth=1", "--filter=blob:none", "--no-tags", "origin", f"+{ref}:refs/ddpfix/asked")
        sha = self._git("rev-parse", "--verify", "refs/ddpfix/asked^{commit}")[1].decode().strip()
        self._git("update-ref", "--no-deref", "HEAD", sha)
        self._here = None

    def read(
        self,
        blobs: Mapping[str, Blob],
        at_once: Iterable[str],
        *,
        largest: int,
        soon: Iterable[str] = (),
        rest: Iterable[str] = (),
    ) -> Callable[[str], bytes | None]:
        """A reader of committed files (`reading.Reader`). Those `at_once` and `soon` are fetched in one go, the first are held.

        None for a file of more than `largest` bytes: it never comes into memory.
        """
        return Reader(self, blobs, at_once, largest=largest, soon=soon, rest=rest)

    def fetch(self, shas: Iterable[str]) -> None:
        """Bring those objects that are not here yet, in one request for each `PER_FETCH` of them. Raises GitRefusal."""
        if self._here is None:
            listed = self._git("cat-file", "--batch-all-objects", "--unordered", "--batch-check=%(objectname)")[1]
            self._here = set(listed.decode().split())
        wanted = [sha for sha in dict.fromkeys(shas) if sha not in self._here]
        # the same call as git's own for the objects that a checkout lacks
        fetch = ("-c", "fetch.negotiationAlgorithm=noop", "fetch", "--quiet", "--no-tags", "--no-write-fetch-head")
        for at in range(0, len(wanted), PER_FETCH):
            data = "".join(f"{sha}\n" for sha in wanted[at : at + PER_FETCH]).encode()
            self._git(*fetch, "--filter=blob:none", "origin", "--stdin", data=data)
        self._here.update(wanted)

    def sizes(self, shas: Iterable[str]) -> dict[str, int]:
        """Bytes of blobs that are here, by id."""
        asked = "".join(f"{sha}\n" for sha in dict.fromkeys(shas)).encode()
        if not asked:
            return {}
        rows = self._git("cat-file", "--batch-check=%(objectname) %(objectsize)", data=asked)[1].decode().splitlines()
        return {sha: int(size) for sha, size in (row.split() for row in rows)}

    def blobs(self, shas: Iterable[str], largest: int) -> dict[str, bytes | None]:
        """The bytes of blobs, None for those of more than `largest`. Raises OverLimit where they are too many."""
        sizes = self.sizes(shas)
        if self._most and sum(size for size in sizes.values() if size <= largest) > self._most.bytes:
            raise OverLimit("it is not looked at", f"its files hold more than {self._most.bytes >> 20} MiB", "use --block")
        found: dict[str, bytes | None] = dict.fromkeys(sizes)
        wanted = [sha for sha, size in sizes.items() if size <= largest]
        if not wanted:
            return found
        out = self._git("cat-file", "--batch", data="".join(f"{sha}\n" for sha in wanted).encode())[1]
        at = 0
        for sha in wanted:
            end = out.index(b"\n", at)
            size = int(out[at:end].split()[2])
            found[sha] = out[end + 1 : end + 1 + size]
            at = end + size + 2
        return found

    def commits(self, branch: str, committer: str) -> tuple[RemoteCommit, ...]:
        """The first-parent commits of a branch on the forge now, newest first; none where it is gone. committer: the bot's
        address.
        """
        ref = f"refs/ddpfix/remote/{branch}"
        fetch = ("fetch", "--quiet", f"--depth={DEEPEST}", "--filter=blob:none", "--no-tags", "origin")
        status, _, said = self._git(*fetch, f"+refs/heads/{branch}:{ref}", check=False)
        if status and "find remote ref" in said:
            return ()
        if status:
            raise GitRefusal("a branch could not be read", said.strip().splitlines()[-1], "run again")
        form = f"%H%x00%P%x00%T%x00%ae%x00%ce%x00%s%x00%(trailers:key={TRAILER},valueonly,separator=%x2C)%x1e"
        out = self._git("log", "--first-parent", f"--max-count={DEEPEST}", f"--format={form}", ref, "--")[1]
        found = []
        for row in os.fsdecode(out).split("\x1e"):
            if row.strip():
                sha, parents, tree, author, by, subject, run = row.strip("\n").split("\0")
                # what the forge commits for us through its interface has us as the author and itself as the committer
                ours = bool(run.strip()) and (by == committer or (author == committer and by.lower().startswith("noreply@")))
                found.append(RemoteCommit(sha, tuple(parents.split()), tree, author, by, subject, ours, run.strip()))
        return tuple(found)

    def is_plain_merge(self, commit: RemoteCommit, base: str) -> bool:
        """Whether a commit is the merge of a branch's commit with one of the branch `base`, and holds what git makes of the two.

        False where that is not to be seen: in an old git, or where the two parted too long ago.
        """
        if len(commit.parents) != 2:
            return False
        ref = "refs/ddpfix/base"
        fetch = ("fetch", "--quiet", f"--depth={DEEPEST}", "--filter=blob:none", "--no-tags", "origin")
        if self._git(*fetch, f"+refs/heads/{base}:{ref}", check=False)[0]:
            return False
        if self._git("merge-base", "--is-ancestor", commit.parents[1], ref, check=False)[0]:
            return False
        status, out, _ = self._git("merge-tree", "--write-tree", *commit.parents, check=False)
        return status == 0 and out.decode().split("\n", 1)[0] == commit.tree

    def tree(self, commit: str) -> str:
        return self._git("rev-parse", "--verify", f"{commit}^{{tree}}")[1].decode().strip()

    def made(self, base: str, tip: str) -> list[MadeCommit]:
        """The commits of the clone's own from `base` to `tip`, oldest first."""
        ids = self._git("rev-list", "--reverse", "--first-parent", f"{base}..{tip}")[1].decode().split()
        return [MadeCommit(self._message(sha), self._files(sha)) for sha in ids]

    def _message(self, sha: str) -> str:
        return self._git("show", "--no-patch", "--format=%B", sha)[1].decode().strip("\n")

    def _files(self, sha: str) -> tuple[tuple[str, str, str], ...]:
        rows = self._git("diff-tree", "-r", "-z", "--no-renames", "--no-commit-id", "--raw", sha)[1].split(b"\0")[:-1]
        out = []
        for facts, path in zip(rows[::2], rows[1::2], strict=True):
            _, _, old, new, _ = facts.decode().split()
            out.append((os.fsdecode(path), *("" if set(part) == {"0"} else part for part in (old, new))))
        return tuple((path, old, new) for path, old, new in out)

    def push(self, branch: str, commit: str, tip: str | None, *, force: bool = True) -> Pushed:
        """Point a branch of the forge at `commit`, if it still stands where it was read (`tip`, None: it is not there)."""
        ref = f"refs/heads/{branch}"
        # never the bare form: a fetch in between would make it agree with anything (git-push(1))
        lease = (f"--force-with-lease={ref}:{tip or ''}",) if force else ()
        return self._push(*lease, "origin", f"{commit}:{ref}")

    def delete(self, branch: str, tip: str) -> Pushed:
        """Take a branch of the forge away, if it still stands at `tip`."""
        ref = f"refs/heads/{branch}"
        return self._push(f"--force-with-lease={ref}:{tip}", "origin", f":{ref}")

    def _push(self, *arguments: str) -> Pushed:
        status, out, stderr = self._git("push", "--porcelain", "--no-verify", *arguments, check=False)
        if not status:
            return Pushed(True)
        row = next((line for line in os.fsdecode(out).splitlines() if line.startswith("!")), "")
        said = re.findall(r"^(?:remote: (?:error: )?|error: |fatal: )(.+)$", stderr, re.M)
        reason = row.rpartition("\t")[2]
        if "stale info" in reason or "fetch first" in reason or "failed to update ref" in reason or "cannot lock ref" in stderr:
            return Pushed(False, stale=True, why=reason)
        unsure = not row and not re.search(r"returned error: 4\d\d|pre-receive|permission|denied|forbidden", stderr, re.I)
        return Pushed(False, unsure=unsure, why="; ".join([*([reason] if reason else []), *said[:4]]) or "no reason given")

    def on_top(self, tree: str, parents: Sequence[str], message: str, identity: tuple[str, str], run_id: str) -> str:
        """A commit that brings a branch to `tree` without moving it backwards; its id."""
        text = f"{message.strip()}\n\n{TRAILER}: {run_id}\n".encode()
        with repository(self.root) as git:
            command = ("commit-tree", tree, *(part for p in parents for part in ("-p", p)), "--no-gpg-sign", "-F", "-")
            return git.text(*command, data=text, env=as_author(*identity))
