"""May `from x import *` give a file a name that the file binds itself as well?"""

from __future__ import annotations

import sys

from codemods.analysis.names import family
from codemods.analysis.unbound_names import given_otherwise, names_outside
from codemods.files.source import SourceModule
from codemods.store.project import Project

_DEPTH = 4
# Packages that give functions and classes alone, under names of their own; NumPy's `mean` and torch's `log` are names of anybody.
_PLAIN = frozenset({"tqdm", "apex", "tensorboardX", "torchvision", "transformers", "einops", "PIL", "albumentations", "thop"})
_OF_ANYBODY = frozenset({"math", "cmath", "os", "random", "time", "statistics", "operator", "turtle", "tkinter", "pylab"})


def star_may_bring(project: Project, module: SourceModule, name: str, depth: int = _DEPTH) -> bool:
    """True unless no star import of the file brings the name: files of the project are read, others known by their package."""
    if name.startswith("_") and depth == _DEPTH:
        return False
    for star in module.imports.get("*", ()):
        resolved = project.resolve(star.module, module.path)
        if resolved is None or resolved.rest:
            root = family(star.module)
            plain = root in _PLAIN or (root in sys.stdlib_module_names and root not in _OF_ANYBODY)
            if resolved is not None or not plain:
                return True
            continue
        inner = project.module(resolved.path)
        if inner is None or depth == 0 or given_otherwise(inner) or _gives_any_name(inner):
            return True
        if resolved.path == module.path:
            continue
        if name in names_outside(inner, tuple(inner.tree.body)) or star_may_bring(project, inner, name, depth - 1):
            return True
    return False


def _gives_any_name(module: SourceModule) -> bool:
    """True for a file with a `__getattr__` of its own: that of a class in it brings no name."""
    own = (f for f in module.functions if f.name == "__getattr__") if module.holds(b"__getattr__") else ()
    return any(module.parent(f) is module.tree for f in own)
