"""Methods of a network that wrap a part of it, which is what the optimizer trains: a wrap round the whole would be a second."""

from __future__ import annotations

import ast

from codemods.analysis.class_index import ClassFacts, class_facts, find_class
from codemods.analysis.names import dotted
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_WRAPPERS = lazy(r"DataParallel|DDP\b|FSDP|fully_shard")
_DEPTH = 3  # methods that hand the function on to each other


def may_wrap_inside(project: Project, home: SourceModule, made: ast.Call, module: SourceModule, call: ast.Call) -> bool:
    """True where a call of a method of the network that `made` makes may put a wrapper round a part of it.

    The method, or what it is handed, wraps itself, or it puts into a field what a function that it is handed gives back.
    """
    if any(_WRAPPERS.search(module.text_of(given)) for given in (*call.args, *(k.value for k in call.keywords))):
        return True
    site = find_class(project, home, dotted(made.func)) if dotted(made.func) else None
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    return site is not None and _wraps(class_facts(project, site.module, site.node), name, _DEPTH)


def _wraps(facts: ClassFacts, name: str, depth: int) -> bool:
    found = facts.method(name)
    if found is None or depth <= 0:
        return False
    module, method = found[0].module, found[1]
    if _WRAPPERS.search(module.text_of(method)) or _keeps_what_it_is_given(method):
        return True
    below = (dotted(n.func) for n in walk(method) if isinstance(n, ast.Call))
    own = {full.removeprefix("self.") for full in below if full.startswith("self.") and full.count(".") == 1}
    return any(_wraps(facts, other, depth - 1) for other in sorted(own - {name}))


def _keeps_what_it_is_given(method: FunctionNode) -> bool:
    """True for `self.net = change(self.net)` and `setattr(self, name, change(part))` of a parameter `change`."""
    arguments = method.args
    names = {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)} - {"self"}
    for node in walk(method):
        if isinstance(node, ast.Assign):
            kept = node.value if any(isinstance(t, (ast.Attribute, ast.Subscript)) for t in node.targets) else None
        else:
            sets = isinstance(node, ast.Call) and dotted(node.func) == "setattr" and len(node.args) == 3
            kept = node.args[2] if isinstance(node, ast.Call) and sets else None
        calls = (n for n in walk(kept) if isinstance(n, ast.Call)) if kept is not None else ()
        if any(isinstance(c.func, ast.Name) and c.func.id in names for c in calls):
            return True
    return False
