"""Real repositories for tests: made in a folder of the test, free of the tester's own git settings."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest


def own_settings(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """None of the tester's git: no configuration, no variables, Ada as the author."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    for name, value in {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home),
        "GIT_AUTHOR_NAME": "Ada",
        "GIT_AUTHOR_EMAIL": "ada@example.test",
        "GIT_COMMITTER_NAME": "Ada",
        "GIT_COMMITTER_EMAIL": "ada@example.test",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("EMAIL", raising=False)


def sh(repo: Path, *arguments: str, ok: bool = True) -> str:
    done = subprocess.run(["git", "-C", str(repo), *arguments], capture_output=True, check=False)
    assert not ok or done.returncode == 0, done.stderr.decode()
    return os.fsdecode(done.stdout).rstrip("\n")


def blob(repo: Path, name: str) -> bytes:
    return subprocess.run(["git", "-C", str(repo), "cat-file", "blob", name], capture_output=True, check=True).stdout


def make(
    folder: Path, files: dict[str, bytes] | None = None, config: dict[str, str] | None = None, *, name: str = "repo"
) -> Path:
    repo = folder / name
    repo.mkdir()
    sh(repo, "init", "-q", "-b", "main")
    for key, value in (config or {}).items():
        sh(repo, "config", key, value)
    put(repo, files or {"a.py": b"x = 1\n", "pkg/b.py": b"y = 1\n", "README.md": b"hi\n"})
    sh(repo, "add", "-A")
    sh(repo, "commit", "-qm", "first")
    return repo


def put(repo: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_bytes(content)


def everything(repo: Path, *, ours: tuple[str, ...] = ("ddpfix",)) -> dict[str, object]:
    """Every byte, mode and time of the work tree and of .git, but for new objects and what belongs to ddpfix."""
    seen: dict[str, object] = {}
    for path in sorted(repo.rglob("*")):
        name = path.relative_to(repo).as_posix()
        if name.startswith(".git/objects") or (name.startswith(".git/") and any(f"/{own}" in name for own in ours)):
            continue
        if path.is_symlink():
            seen[name] = os.readlink(path)
        elif path.is_file():
            # Reading a split index already renews the time of its shared part: git's own way of keeping it.
            time = None if name.startswith(".git/sharedindex") else path.stat().st_mtime_ns
            seen[name] = (path.read_bytes(), path.stat().st_mode, time)
    return seen


def visible(repo: Path) -> dict[str, object]:
    """What a user would call the state: where HEAD is, the branches, the files, what is staged, the stash."""
    files = {
        path.relative_to(repo).as_posix(): (path.read_bytes(), path.stat().st_mode)
        for path in sorted(repo.rglob("*"))
        if path.is_file() and not path.is_symlink() and ".git" not in path.relative_to(repo).parts
    }
    return {
        "head": (repo / ".git/HEAD").read_text() if (repo / ".git").is_dir() else sh(repo, "rev-parse", "HEAD"),
        "refs": sh(repo, "for-each-ref"),
        "files": files,
        "status": sh(repo, "status", "--porcelain"),
        "staged": sh(repo, "diff", "--cached"),
        "stash": sh(repo, "stash", "list"),
    }


def start_merge(repo: Path) -> None:
    sh(repo, "switch", "-qc", "other")
    put(repo, {"README.md": b"other\n"})
    sh(repo, "commit", "-qam", "other")
    sh(repo, "switch", "-q", "main")
    put(repo, {"README.md": b"main\n"})
    sh(repo, "commit", "-qam", "main")
    sh(repo, "merge", "-q", "other", ok=False)
