"""Which programs of a repository the user lets run: recorded once, by repository and exact command, in the user's own folder.

A record is a file of `$XDG_CONFIG_HOME/ddpfix/trust`, one for each repository, named after the real path of its root. Nothing
that lies inside the repository is a record of it, `.git` included: a clone, an archive or a submodule may bring any file along.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from codemods.runtime.record import field, record
from ddpfix import answers

if TYPE_CHECKING:
    from ddpfix.settings import Settings


@record
class Programs:
    """format_command: its text, "" for none. plugins: name in the settings -> SHA-256 of the file, "" where it cannot be read."""

    format_command: str = ""
    plugins: Mapping[str, str] = field(default_factory=dict)


def named(settings: Settings, root: Path) -> Programs:
    """The programs that a repository's settings name, as they are now."""
    return Programs(settings.format_command, {name: _sha256(root / name) for name in settings.plugins})


def recorded(root: Path) -> Programs:
    """What the user trusts in a repository; nothing where the record is not certainly the user's own."""
    import json

    try:
        place = _place(root)
        if place.is_relative_to(root.resolve()) or not (_only_mine(place.parent) and _only_mine(place)):
            return Programs()
        data = json.loads(place.read_bytes())
        if data["root"] != os.fspath(root.resolve()):
            return Programs()
        return Programs(str(data["format-command"]), {str(name): str(digest) for name, digest in data["plugins"].items()})
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return Programs()  # no record, or none that can be read: the user is told what does not run, and can record it anew


def allowed(settings: Settings, root: Path) -> tuple[bool, bool]:
    """(all plug-ins may run, the format command may run), by what is recorded for the repository."""
    if not (settings.plugins or settings.format_command):
        return False, False
    now, known = named(settings, root), recorded(root)
    plugins = all(digest and known.plugins.get(name) == digest for name, digest in now.plugins.items())
    return bool(now.plugins) and plugins, bool(now.format_command) and now.format_command == known.format_command


def keep(root: Path, programs: Programs) -> Path:
    """Record what the user trusts in a repository, instead of what was recorded; the file. Raises OSError."""
    import json
    import secrets

    place = _place(root)
    if place.is_relative_to(root.resolve()):
        raise OSError(f"{place.parent} lies in the repository itself: nothing in there is believed")
    os.makedirs(place.parent, mode=0o700, exist_ok=True)
    rows = {"root": os.fspath(root.resolve()), "format-command": programs.format_command, "plugins": dict(programs.plugins)}
    fresh = place.with_name(f".{secrets.token_hex(8)}")
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
        os.replace(fresh, place)
    except BaseException:
        os.unlink(fresh)
        raise
    if recorded(root) != programs:
        raise OSError(f"{place.parent} can be written by others: take their rights away")
    return place


def forget(root: Path) -> bool:
    """Take a record away; whether there was one. Raises OSError."""
    try:
        os.unlink(_place(root))
    except FileNotFoundError:
        return False
    return True


def _place(root: Path) -> Path:
    from hashlib import sha256

    return Path(answers.trust_folder()).resolve() / f"{sha256(os.fsencode(root.resolve())).hexdigest()}.json"


def _only_mine(path: Path) -> bool:
    about = os.lstat(path)
    return not hasattr(os, "geteuid") or (about.st_uid == os.geteuid() and not about.st_mode & 0o022)


def _sha256(path: Path) -> str:
    from hashlib import sha256

    try:
        return sha256(path.read_bytes()).hexdigest()
    except (OSError, ValueError):
        return ""
