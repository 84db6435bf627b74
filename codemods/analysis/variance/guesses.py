"""Values of which only a name, or a dict that holds more, says that they differ between the ranks."""

from __future__ import annotations

import ast
import re

from codemods.analysis.bindings import bindings_of
from codemods.analysis.variance.mismatches import Mismatch
from codemods.analysis.variance.values import How
from codemods.analysis.wrapped.holders import wrapper_in
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project


def is_guess(project: Project, module: SourceModule, found: Mismatch) -> bool:
    """True where only the name of a parameter says that the value is the rank's own, and the test does not speak of a loss.

    A batch of a loop that may be missing is the rank's own, whatever the loader is: nothing else can decide that. So is one
    that a wrapper is trained with: on the same batches the ranks would all come to the same gradients.
    """
    origin = found.value.origin
    if _is_under_another_key(module, found):
        return True
    if origin is not None and origin.how is How.CLOCK and any(".update(" in x.text for x in found.value.chain):
        return True  # a time among the numbers of a dict: which of them is asked for is not shown
    if origin is None or not origin.by_name:
        return False
    if isinstance(found.leaving, ast.Continue) and isinstance(found.node, ast.If) and _asks_for_none(found.node.test):
        return False
    if re.search(r"loss|isnan|isfinite|isinf", module.text_of(found.node).partition("\n")[0], re.I):
        return False
    return not (_is_summed_behind(module, found) or _trains_a_wrapper(project, module, found))


def _trains_a_wrapper(project: Project, module: SourceModule, found: Mismatch) -> bool:
    """True where the loop over the batches runs a DDP wrapper, and the backward pass of it is what some ranks leave out."""
    origin, meeting = found.value.origin, found.meeting
    if origin is None or meeting is None or meeting.name != "backward" or len(meeting.steps) != 1:
        return False
    for loop in (up for up in module.ancestors(found.node) if isinstance(up, ast.For) and up.lineno == origin.line):
        if origin.path == module.path and loop.lineno < meeting.steps[0].line <= (loop.end_lineno or 0):
            calls = (n for n in walk(loop) if isinstance(n, ast.Call) and isinstance(n.func, (ast.Name, ast.Attribute)))
            return any(wrapper_in(project, module, c.func) is not None for c in calls)
    return False


def _is_summed_behind(module: SourceModule, found: Mismatch) -> bool:
    """True where the collective that is missed puts together what is made of the tested value: each rank has its own part."""
    if found.meeting is None or not found.meeting.carries or len(found.meeting.steps) != 1 or not isinstance(found.node, ast.If):
        return False
    line = found.meeting.steps[0].line
    calls = [c for c in module.nodes(ast.Call) if c.lineno == line and module.function_of(c) is module.function_of(found.node)]
    tested = {n.id for n in ast.walk(found.node.test) if isinstance(n, ast.Name)} - {"self"}
    todo = [n for c in calls for a in c.args[:1] for n in ast.walk(a) if isinstance(n, ast.Name)]
    seen = set[str]()
    while todo:
        name = todo.pop()
        if name.id in tested:
            return True
        if name.id in seen or name.id == "self":
            continue
        seen.add(name.id)
        made = [b.value for b in bindings_of(module, name) if b.value is not None and not b.parameter]
        todo += [n for value in made for n in ast.walk(value) if isinstance(n, ast.Name)]
    return False


_TOLD = lazy(r"""\([\[(]?["'](\w+)["'][^`]*` keeps it$""")  # `store.update("loss", loss)`
_ASKED = lazy(r"""\.get\(\s*["']""")
# The same of an object whose class is not seen: `self.store.update(["loss"], loss)`. A dict takes no key there.
_FILLED = lazy(r"""^`(?P<store>[\w.]+)\.\w+\((?P<key>["']\w+["']|[\[(]\s*["']\w+["'][\s,\w"']*[\])]),""")
_KEY = lazy(r"""["'](\w+)["']""")


def _is_under_another_key(module: SourceModule, found: Mismatch) -> bool:
    """True for `store.get("step")` where the store was told a rank's own value under another key, as far as is shown."""
    keys = [told[1] for link in found.value.chain if (told := _TOLD.search(link.text))]
    asked = module.text_of(found.node).partition("\n")[0] if keys else ""
    if _ASKED.search(asked) and not any(f"{q}{key}{q}" in asked for key in keys for q in "'\""):
        return True
    return any(_is_asked_for_more(module.text_of(found.node).partition("\n")[0], told) for told in _filled(found))


def _filled(found: Mismatch) -> list[tuple[str, set[str]]]:
    """(the object, the keys) of each call on the way that gave an object a value under a key."""
    told = (_FILLED.search(link.text) for link in found.value.chain)
    return [(t["store"], set(_KEY.findall(t["key"]))) for t in told if t is not None]


def _is_asked_for_more(asked: str, told: tuple[str, set[str]]) -> bool:
    """True where the test asks that object for entries, and for none of those keys."""
    store, keys = told
    entries = re.findall(rf"(?<![\w.]){re.escape(store)}(?:\.get\(|\[)([^()\[\]]*)[)\]]", asked)
    return bool(entries) and all(_KEY.search(e) and keys.isdisjoint(_KEY.findall(e)) for e in entries)


def _asks_for_none(test: ast.expr) -> bool:
    ends = [test.left, *test.comparators] if isinstance(test, ast.Compare) else []
    return any(isinstance(e, ast.Constant) and e.value is None for e in ends)
