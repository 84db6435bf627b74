"""Look at a module right after its own code has run, and before anybody can import a name from it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from _ddpfix_tracer import recorder


class Watcher:
    """A finder that finds nothing by itself: it lets the others find, and adds a step after the module's execution."""

    def __init__(self, patches: Mapping[str, Callable[[Any], None]]) -> None:
        self.patches = patches
        self.busy: set[str] = set()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in self.patches or name in self.busy:
            return None
        self.busy.add(name)
        try:
            for finder in sys.meta_path:
                find = getattr(finder, "find_spec", None)
                spec = find(name, path, target) if finder is not self and find else None
                if spec is not None:
                    self.add_step(name, spec)
                    return spec
        finally:
            self.busy.discard(name)
        return None

    def add_step(self, name: str, spec: Any) -> None:
        execute = getattr(spec.loader, "exec_module", None)
        if execute is None:
            return

        def exec_module(module: Any) -> None:
            execute(module)
            try:
                self.patches[name](module)
            except Exception as error:
                recorder.write("note", text="%s is not watched: %s: %s" % (name, type(error).__name__, error))

        try:
            spec.loader.exec_module = exec_module
        except AttributeError:
            pass


def watch(patches: Mapping[str, Callable[[Any], None]]) -> None:
    sys.meta_path.insert(0, Watcher(patches))
