"""Log handlers that rename their own file from time to time: each rank would do it by itself."""

from __future__ import annotations

import ast

from codemods.analysis.names import qualified
from codemods.files.source import SourceModule

_BY_SIZE = "logging.handlers.RotatingFileHandler"
_BY_TIME = "logging.handlers.TimedRotatingFileHandler"
HANDLERS = (_BY_SIZE, _BY_TIME)
_BYTES_AT = 2  # `RotatingFileHandler(filename, mode, maxBytes, backupCount)`
_COPIES_AT = 3


def rotates(module: SourceModule, call: ast.Call) -> bool:
    """True for a handler that moves or empties its file while it is in use.

    By the clock always; by the size where a limit is given, which is none (0) where nobody gives one.
    """
    name = qualified(module, call.func)
    if name == _BY_TIME:
        return True
    return name == _BY_SIZE and _is_number(_given(call, "maxBytes", _BYTES_AT))


def keeps_copies(module: SourceModule, call: ast.Call) -> bool:
    """True where the full file is renamed; by size without `backupCount` it is emptied."""
    return qualified(module, call.func) == _BY_TIME or _is_number(_given(call, "backupCount", _COPIES_AT))


def _given(call: ast.Call, name: str, index: int) -> ast.expr | None:
    if any(isinstance(a, ast.Starred) for a in call.args):
        return None
    by_name = next((k.value for k in call.keywords if k.arg == name), None)
    return by_name if by_name is not None or len(call.args) <= index else call.args[index]


def _is_number(value: ast.expr | None) -> bool:
    """True for what is not seen to be 0."""
    return value is not None and not (isinstance(value, ast.Constant) and not value.value)
