"""Reading a stored report back: values of this program's own classes, and nothing that could run."""

from __future__ import annotations

import pickle
from types import ModuleType
from typing import BinaryIO

from codemods.api import findings
from ddpfix import results

VALUES = (findings, results)  # the modules whose own classes a report is made of


class Restricted(pickle.Unpickler):
    """Makes nothing but the values this program writes: a cache file is not a place to run code from.

    values: the modules whose own classes may be made.
    """

    def __init__(self, file: BinaryIO, values: tuple[ModuleType, ...] = VALUES) -> None:
        super().__init__(file)
        self._values = values

    def find_class(self, module: str, name: str) -> object:
        if (module, name) == ("builtins", "getattr"):  # how some versions of Python write a member of an enumeration
            return _member
        for home in self._values:
            value = vars(home).get(name)
            if module == home.__name__ and isinstance(value, type) and value.__module__ == module:
                return value
        raise pickle.UnpicklingError(f"{module}.{name}")


def _member(enumeration: object, name: object) -> findings.Applicability:
    if enumeration is findings.Applicability and isinstance(name, str):
        return findings.Applicability[name]
    raise pickle.UnpicklingError(f"a member of {enumeration!r}")
