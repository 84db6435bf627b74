"""The formats by name: a module of this package with a function `document` is one; `json_lines` is called json-lines."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from types import ModuleType

PACKAGE = __name__.rpartition(".")[0]


class UnknownFormat(Exception):
    """A format that no module here writes: what, why and what to do."""

    def __init__(self, name: str) -> None:
        self.what, self.why = f"no output format is called {name!r}", f"there are {', '.join(names())}"
        self.todo = "choose one of them"
        super().__init__(f"{self.what}; {self.why}")


def names() -> tuple[str, ...]:
    """Every format there is."""
    from pkgutil import iter_modules

    found = (info.name for info in iter_modules([str(Path(__file__).parent)]))
    return tuple(sorted(n.replace("_", "-") for n in found if hasattr(import_module(f"{PACKAGE}.{n}"), "document")))


def find(name: str) -> ModuleType:
    """The module whose `document(answer)` is the text in that format. Raises UnknownFormat."""
    plain = name.strip().lower().replace("-", "_")
    if plain.isidentifier() and (Path(__file__).parent / f"{plain}.py").is_file():
        module = import_module(f"{PACKAGE}.{plain}")
        if hasattr(module, "document"):
            return module
    raise UnknownFormat(name)


def needs(formats: Iterable[ModuleType]) -> frozenset[str]:
    """What has to be read for these formats, beside the reports."""
    return frozenset(word for module in formats for word in getattr(module, "NEEDS", ()))
