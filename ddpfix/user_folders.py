"""The folders of the user for what ddpfix keeps: the XDG variables and the folders of Linux, elsewhere those of platformdirs.

Linux goes its own way for speed alone: an answer that is given again takes 60 ms, and the import of platformdirs 30 of its own.
"""

from __future__ import annotations

import os
import sys

_BELOW_HOME = {"CACHE": ".cache", "CONFIG": ".config", "STATE": ".local/state"}


def cache() -> str:
    return _folder("CACHE")


def config() -> str:
    return _folder("CONFIG")


def state() -> str:
    return _folder("STATE")


def _folder(kind: str) -> str:
    given = os.environ.get(f"XDG_{kind}_HOME", "")
    if os.path.isabs(given):  # the specification: a relative path is invalid, and ignored
        return os.path.join(given, "ddpfix")
    platform: str = sys.platform
    if platform == "linux":
        return os.path.join(os.path.expanduser("~"), _BELOW_HOME[kind], "ddpfix")
    import platformdirs

    dirs = platformdirs.PlatformDirs("ddpfix", appauthor=False)
    return {"CACHE": dirs.user_cache_dir, "CONFIG": dirs.user_config_dir, "STATE": dirs.user_state_dir}[kind]
