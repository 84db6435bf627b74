"""Fields that hold the module inside a wrapper in a run of several processes, and the model itself in any other.

`if distributed: self.bare = self.net.module`, `else: self.bare = self.net`: whoever makes the object, `self.net` is a wrapper
where the test says so.
"""

from __future__ import annotations

import ast

from codemods.analysis.class_index import class_facts
from codemods.analysis.class_values import Given, class_values
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.wrapped.arms import are_other_arms
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_SEVERAL = lazy(r"(?i)distrib|ddp|world_?size")
_PARALLEL = lazy(rb"(?<!Distributed)DataParallel\b|DataParallel as\b")


@record
class Taken:
    """wrapper: the field that holds the wrapper, "" for another expression. name: what the wrapped model is called."""

    wrapper: str
    name: str


def taken_by_test(project: Project, module: SourceModule, node: ast.Attribute) -> tuple[Taken, bool] | None:
    """What `self.x` holds by such a test, and whether that is the module inside; else it is the wrapper."""
    owner = module.class_of(node) if isinstance(node.value, ast.Name) and node.value.id == "self" else None
    if owner is None:
        return None
    key = ("taken by test", module.path, owner.lineno)
    found: dict[str, Taken] = project.memo(key, lambda: _of_class(project, module, owner))
    if node.attr in found:
        return found[node.attr], True
    held = next((t for t in found.values() if t.wrapper == node.attr), None)
    return (held, False) if held is not None else None


def _of_class(project: Project, module: SourceModule, owner: ast.ClassDef) -> dict[str, Taken]:
    """By the name of the field that holds the module inside."""
    facts = class_facts(project, module, owner)
    if not any(site.module.holds(b".module") for site in facts.lineage):
        return {}
    if any(_PARALLEL.search(project.read(path) or b"") for path in project.files_containing(b"DataParallel")):
        return {}  # whose `module` it is
    given = class_values(project, facts).given
    found: dict[str, Taken] = {}
    for name, values in given.items():
        taken = _taken(values)
        source = dotted(taken) if taken is not None else ""
        field = source.removeprefix("self.") if source.startswith("self.") and source.count(".") == 1 else ""
        if source and field != name and len(given.get(field, [None])) == 1:
            found[name] = Taken(field, last(source))
    return found


def _taken(values: list[Given]) -> ast.expr | None:
    """The expression whose `module` one arm takes, while the other takes it as it is."""
    pair = [(v.site.module, v.value) for v in values if v.part is None]
    if len(values) == 1 and len(pair) == 1 and isinstance(value := pair[0][1], ast.IfExp):
        return _inside_of(pair[0][0], value.test, value.body, value.orelse)
    if len(values) != 2 or len(pair) != 2 or pair[0][0] is not pair[1][0]:
        return None
    module, one, other = pair[0][0], pair[0][1], pair[1][1]
    test = next((up.test for up in module.ancestors(one) if isinstance(up, ast.If)), None)
    return _inside_of(module, test, one, other) if test is not None and are_other_arms(module, one, other) else None


def _inside_of(module: SourceModule, test: ast.expr, one: ast.expr, other: ast.expr) -> ast.expr | None:
    if not _is_of_several(module, test):
        return None
    for value, bare in ((one, other), (other, one)):
        if isinstance(value, ast.Attribute) and value.attr == "module" and dotted(bare) and dotted(value.value) == dotted(bare):
            return bare
    return None


def _is_of_several(module: SourceModule, test: ast.expr) -> bool:
    """True for a test that asks for a run of several processes, or for the wrapper."""
    if _SEVERAL.search(module.text_of(test)):
        return True
    wanted = (n for n in walk(test) if isinstance(n, (ast.Name, ast.Attribute)))
    return any(last(qualified(module, n)) == "DistributedDataParallel" for n in wanted)
