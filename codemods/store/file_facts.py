"""Facts that the bytes of one file tell, by name: where the file changes and the fact does not, nothing that rests on it changes.

A fact is a function at the top of a module, of a path, bytes (b"" where there are none) and perhaps more texts. Its value can be
stored and compared: a truth, a text, tuples and frozensets of them. It is asked for by `Project.fact`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., object])
_FACTS: dict[str, Callable[..., Any]] = {}


def file_fact(function: F) -> F:
    _FACTS[name_of(function)] = function
    return function


def name_of(function: Callable[..., object]) -> str:
    return f"{function.__module__}.{function.__qualname__}"


def fact_named(name: str) -> Callable[..., Any]:
    """Raises KeyError where there is none of that name."""
    if name not in _FACTS and name.startswith("codemods."):
        try:
            import_module(name.rpartition(".")[0])
        except ImportError:
            raise KeyError(name) from None
    return _FACTS[name]
