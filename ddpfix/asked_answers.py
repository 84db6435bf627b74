"""What a function of `codemods` gave back, in words, and which of these functions ask anything at all.

A look-up reads a file, a name or a text, and judges nothing: its answer never decides about a line.
"""

from __future__ import annotations

import ast
import dis
from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from types import CodeType

import codemods

HOME = str(Path(codemods.__file__).parent)
_TELLS = str(Path(HOME) / "files" / "left_alone.py")  # it is told, and asks nothing
# They read files, texts and names, and keep what was read.
_READERS = tuple(
    str(Path(HOME) / part) for part in ("files/", "store/", "runtime/", "api/", "analysis/names.py", "rewriting/")
)
# They say how a program is built, whatever it does: what a name is given, who calls a function, what a class holds.
_OF_STRUCTURE = frozenset(
    str(Path(HOME) / "analysis" / f"{name}.py")
    for name in ("bindings", "bound_values", "call_graph", "callers", "class_index", "class_values", "conditions", "functions",
                 "literals", "local_names", "positions", "reaching", "starred_names", "unbound_names")
)  # fmt: skip
_SIZED = (str, bytes, tuple, list, dict, set, frozenset)
GENERATOR = 0x20  # inspect.COGENERATOR: importing inspect takes longer than a check of a file


def is_of_catalogue(code: CodeType) -> bool:
    """True for a named function of `codemods` that may ask something."""
    return code.co_filename.startswith(HOME) and not code.co_name.startswith("<") and code.co_filename != _TELLS


def reads_only(code: CodeType) -> bool:
    """True for a function of the parts that read and keep."""
    return any(code.co_filename.startswith(part) or code.co_filename == part.rstrip("/") for part in _READERS)


def is_of_structure(code: CodeType) -> bool:
    """True for a function that knows how any program is built: its answer may decide, and shows no topic of a codemod."""
    return code.co_filename in _OF_STRUCTURE


def spells(given: Iterable[object], value: object) -> bool:
    """True where a text was made of nodes alone: without the module or the project it says how they are written, and no more."""
    if not isinstance(value, str):
        return False
    plain = [v for v in given if v is not None and not isinstance(v, (str, bytes, int))]
    return bool(plain) and all(isinstance(v, ast.AST) for v in plain)


def gives(value: object) -> bool:
    """True where something was given back. A tuple or a record whose parts are all empty (`("", False)`) holds nothing."""
    if not value:
        return False
    if isinstance(value, tuple):
        return not all(_is_empty(part) for part in value)
    fields = getattr(value, "__record_fields__", ())
    return not fields or not all(_is_empty(getattr(value, name, None)) for name in fields)


def is_syntax(value: object) -> bool:
    """True for a part of the tree, and for several."""
    return isinstance(value, ast.AST) or (isinstance(value, (tuple, list)) and all(isinstance(v, ast.AST) for v in value))


def _is_empty(part: object) -> bool:
    return part is None or part is False or (isinstance(part, _SIZED) and not part)


def is_by_itself(value: object) -> bool:
    """True for an answer that is no list which happens to be empty."""
    return value is None or not hasattr(value, "__len__") or (bool(value) and not gives(value))


def in_words(value: object) -> str:
    """The answer; "" for a thing that was looked up: it decides nothing by itself."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or (isinstance(value, _SIZED) and not value):
        return "nothing"
    if isinstance(value, Enum):
        return value.value if isinstance(value.value, str) and " " in value.value else ""
    is_shaped = isinstance(value, tuple) or hasattr(value, "__record_fields__")
    return "nothing" if is_shaped and not gives(value) else ""


def question(code: CodeType) -> str:
    """The docstring of a function that answers something; "" of one without, of a look-up, and of one that only acts."""
    if code.co_flags & GENERATOR or reads_only(code):
        return ""
    first = code.co_consts[0] if code.co_consts else None
    return first if isinstance(first, str) and " " in first and _answers(code) else ""


def _answers(code: CodeType) -> bool:
    """True where some `return` gives something else than None."""
    before = None
    for step in dis.get_instructions(code):
        is_none = before is not None and before.opname == "LOAD_CONST" and before.argval is None
        if step.opname == "RETURN_VALUE" and (step.is_jump_target or not is_none):
            return True
        if step.opname == "RETURN_CONST" and step.argval is not None:
            return True
        before = step
    return False
