"""The repositories of a campaign, as a list names them: a path, an address for git, or OWNER/NAME on a forge."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from ddpfix.git import Access

_SLUG = re.compile(r"[\w.][\w.-]*(?:/[\w.][\w.-]*)+\Z")
_TOKEN = "DDPFIX_READ_TOKEN_"


class BadList(Exception):
    """A list of repositories that cannot be used: which line, and why."""


@dataclass(frozen=True, slots=True)
class Target:
    """name: as it is shown and as its pull requests are addressed. url: where git finds it."""

    name: str
    url: str


def read(text: str, folder: Path, *, base: str) -> tuple[Target, ...]:
    """The repositories of a list, each once, in its order. `#` begins a comment.

    folder: paths are relative to it. base: the address of the server on which OWNER/NAME lies. Raises BadList.
    """
    found: dict[str, Target] = {}
    for number, line in enumerate(text.splitlines(), 1):
        word = line.partition("#")[0].strip()
        if word:
            try:
                target = _target(word, folder, base.rstrip("/"))
            except ValueError as error:
                raise BadList(f"line {number}: {word!r} {error}") from None
            found.setdefault(target.url, target)
    return tuple(found.values())


def _target(word: str, folder: Path, base: str) -> Target:
    if "://" in word:
        parts = urlsplit(word)
        if parts.username or parts.password:
            raise ValueError(f"holds a password: set {_TOKEN}… instead")
        if parts.scheme not in ("https", "http", "ssh", "file"):
            raise ValueError(f"is no address: {parts.scheme} is not supported")
        name = parts.path.strip("/").removesuffix(".git")
        return Target(name if parts.scheme != "file" else word, word)
    place = Path(os.path.normpath(folder / word))
    if word.startswith((".", "/", "~")) or place.is_dir():
        place = Path(os.path.normpath(folder / Path(word).expanduser()))
        return Target(str(place), place.as_uri())
    if not _SLUG.match(word):
        raise ValueError("is no path, no address and no OWNER/NAME")
    return Target(word, f"{base}/{word}.git")


def access(url: str, environment: Mapping[str, str] = os.environ) -> Access:
    """How git gets at a repository: with the token that the environment holds for its host, else without one.

    The name of the variable is `DDPFIX_READ_TOKEN_` and the host in capitals, each other character than a letter or a number
    as `_`: DDPFIX_READ_TOKEN_GITHUB_COM. A worker needs to read contents and nothing else.
    """
    parts = urlsplit(url)
    token = read_token(parts.hostname or "", environment)
    is_private = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in ("127.0.0.1", "::1", "localhost"))
    if not (token and is_private):
        return Access(url)
    from base64 import b64encode

    # both forges take a token as the password of any user (docs.github.com "Cloning with HTTPS URLs"; docs.gitlab.com "oauth2")
    return Access(url, "Authorization: Basic " + b64encode(f"oauth2:{token}".encode()).decode())


def read_token(host: str, environment: Mapping[str, str] = os.environ) -> str:
    """The token that the environment holds for reading from a host, "" without one."""
    return environment.get(_TOKEN + re.sub(r"\W", "_", host).upper(), "")
