"""Whose name stands in the commits."""

from __future__ import annotations

import os

from ddpfix.git.runner import Git

FALLBACK_IDENTITY = ("ddpfix", "ddpfix@users.noreply.invalid")


def author(git: Git) -> tuple[dict[str, str], str | None]:
    """Variables that name an author where git would have to guess one, and the note that says so."""
    name, email = FALLBACK_IDENTITY
    # `user.useConfigOnly` keeps git from guessing out of the host and login names, but also from reading $EMAIL.
    given = os.environ.get("EMAIL", "")
    missing = [
        role
        for role in ("AUTHOR", "COMMITTER")
        if git.run(
            *("-c", "user.useConfigOnly=true", "var", f"GIT_{role}_IDENT"),
            env={f"GIT_{role}_EMAIL": given} if given else None,
            check=False,
        ).status
    ]
    env = {f"GIT_{role}_{key}": value for role in missing for key, value in (("NAME", name), ("EMAIL", email))}
    note = f"git has no user.name and user.email here, so the commits are by {name} <{email}>" if missing else None
    return env, note


def as_author(name: str, email: str) -> dict[str, str]:
    """Variables that put a name and an address into a commit, whatever git is configured to."""
    return {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in (("NAME", name), ("EMAIL", email))}
