"""Where in the user's own code a call comes from."""

from __future__ import annotations

import os
import sys
from typing import Any

from _ddpfix_tracer import recorder

_kinds: dict[str, str] = {}
OURS = [os.path.dirname(os.path.abspath(__file__))]  # folders whose frames are passed over, as those of libraries are


def is_users(name: str) -> bool:
    """True for a file that is neither installed, nor Python's own, nor ours."""
    return bool(shown(name))


def shown(name: str) -> str:
    """The file of the user's as it is told, relative to the folder that the program runs in; "" for any other."""
    if name not in _kinds:
        _kinds[name] = _look(name)
    return _kinds[name]


def _look(name: str) -> str:
    if name.startswith("<"):
        return ""
    full = os.path.abspath(name)
    if "site-packages" in full or "dist-packages" in full or full.startswith((*OURS, *(p + os.sep for p in recorder.library()))):
        return ""
    here = os.getcwd() + os.sep
    return full[len(here) :] if full.startswith(here) else full


def asked(depth: int, *, by: str = "") -> bool:
    """True where the function whose caller stands `depth` frames up is called by the user's code itself.

    What is compiled from a text on the way (a dataclass's `__init__`) asks in the name of who has called it. by: a name that
    the code must hold.
    """
    frame: Any = sys._getframe(depth)
    while frame is not None and frame.f_code.co_filename == "<string>":
        frame = frame.f_back
    return frame is not None and is_users(frame.f_code.co_filename) and (not by or by in frame.f_code.co_names)


def user_frame() -> tuple[list[Any] | None, str]:
    """([file, line, function] of the innermost frame of the user, the library's function that it called or "")."""
    frame: Any = sys._getframe(1)
    via = ""
    while frame is not None:
        code = frame.f_code
        name = shown(code.co_filename)
        if name:
            return [name, frame.f_lineno, code.co_name], via
        module = frame.f_globals.get("__name__", "")
        if not module.startswith(("_ddpfix_", "torch.", "importlib", "contextlib", "functools")):
            via = via or "%s.%s" % (module, code.co_name)
        frame = frame.f_back
    return None, via
