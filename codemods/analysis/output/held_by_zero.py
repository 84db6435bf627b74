"""Behind what the constructor's callers give rank 0 alone: `if self.logger is not None:` of `Trainer(logger=…)`.

`loggers = make() if is_main else []`, handed to the constructor by its keyword, also through a factory (`instantiate(cfg.trainer,
logger=loggers)`), and kept in a field; a property that reads the field alone stands for it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.class_index import ClassFacts, class_facts
from codemods.analysis.conditions import conjuncts
from codemods.analysis.distribution import is_test_file
from codemods.analysis.literals import is_none
from codemods.analysis.model.signatures import bind, defaults, parameters
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.rank_guards import Ranks, ranks_at
from codemods.analysis.ranks.uses import CallSite, constructions
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.store.project import Project

_OF_ZERO = (Ranks.ZERO, Ranks.LOCAL_ZERO)
_FACTORIES = frozenset({"instantiate", "build", "create", "make", "call"})
_MOST = 8  # calls that give a value


def is_behind_what_zero_is_given(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True where a field of the object is asked for on the way that its makers give rank 0 alone."""
    owner = module.class_of(node)
    names = _asked(module, node) if owner is not None else set()
    if owner is None or not names:
        return False
    facts = class_facts(project, module, owner)
    return any(_is_known_of_zero(project, facts, name) for name in sorted(names))


def _is_known_of_zero(project: Project, facts: ClassFacts, name: str) -> bool:
    site = facts.lineage[0]
    return project.keep(("held by zero", site.module.path, site.node.lineno, name), lambda: _is_of_zero(project, facts, name))


def _asked(module: SourceModule, node: ast.AST) -> set[str]:
    """The fields that are there where the tests round the place hold."""
    found: set[str] = set()
    below = node
    for up in module.ancestors(node):
        if isinstance(up, ast.If) and any(s is below for s in up.body):
            found |= {name for part in conjuncts(up.test) if (name := _field(_there(part)))}
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            break
        below = up
    return found


def _there(part: ast.expr) -> ast.expr:
    """`self.x` of `self.x is not None`."""
    if isinstance(part, ast.Compare) and isinstance(part.ops[0], ast.IsNot) and is_none(part.comparators[0]):
        return part.left
    return part


def _field(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) and dotted(node.value) == "self" else ""


def _is_of_zero(project: Project, facts: ClassFacts, name: str) -> bool:
    found = facts.method("__init__")
    if found is None or facts.unresolved or found[1].args.kwarg is not None or found[1].args.vararg is not None:
        return False
    init, kept = found[1], _kept_in(facts, name)
    given = {dotted(a.value) for a in walk(init) if isinstance(a, ast.Assign) and any(_field(t) == kept for t in a.targets)}
    named = given & {p.arg for p in parameters(init, bound=True)}
    if len(given) != 1 or not named or not _is_empty(defaults(init).get(parameter := named.pop())):
        return False
    if _may_be_set_later(project, facts, init, kept):
        return False
    made = [(s.module, bind(init, s.call, bound=True)) for s in _makers(project, facts, parameter)]
    values = [(home, values[parameter]) for home, values in made if values is not None and parameter in values]
    known = 0 < len(values) <= _MOST and all(values is not None for _, values in made)
    return known and all(_is_given_to_zero(project, home, value) for home, value in values)


def _kept_in(facts: ClassFacts, name: str) -> str:
    """The field behind a property that reads it alone: `_loggers` of `return self._loggers[0] if self._loggers else None`."""
    found = facts.method(name)
    if found is None:
        return name
    getters = [f for f in found[0].node.body if isinstance(f, ast.FunctionDef) and f.name == name and _is(f, "property")]
    read = {_field(n) for f in getters for n in walk(f)} - {""}
    return read.pop() if len(read) == 1 else name


def _is(function: ast.FunctionDef, decorator: str) -> bool:
    return any(last(dotted(d)) == decorator for d in function.decorator_list)


def _may_be_set_later(project: Project, facts: ClassFacts, init: FunctionNode, kept: str) -> bool:
    """True where the field is given another value: by a method, or by a setter that somebody uses."""
    first = set(walk(init))
    names = {kept}
    for function in (f for s in facts.lineage for f in walk(s.node) if isinstance(f, ast.FunctionDef)):
        fields = (n for n in walk(function) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store))
        if any(_field(n) == kept and n not in first for n in fields):
            if not _is(function, "setter"):
                return True
            names.add(function.name)
    own = {id(n) for s in facts.lineage for n in walk(s.node)}
    for path in {p for name in names for p in project.files_containing(f".{name} =".encode())}:
        module = project.module(path)
        for node in module.nodes(ast.Attribute) if module is not None else ():
            if node.attr in names and isinstance(node.ctx, ast.Store) and (dotted(node.value) != "self" or id(node) in own):
                if node.attr != kept or id(node) not in own:
                    return True
    return False


def _makers(project: Project, facts: ClassFacts, parameter: str) -> Iterator[CallSite]:
    """The calls that make such objects, and those of factories that hand on a keyword of the name."""
    site = facts.lineage[0]
    made = constructions(project, site.module, site.node)
    yield from made.outside_tests().calls if made is not None else ()
    for path in project.files_containing(f"{parameter}=".encode()):
        module = project.module(path) if not is_test_file(path) else None
        for call in module.calls_named(*_FACTORIES) if module is not None else ():
            if module is not None and any(k.arg == parameter for k in call.keywords):
                yield CallSite(module, call)


def _is_given_to_zero(project: Project, module: SourceModule, value: ast.expr) -> bool:
    """True for a name that is bound for rank 0 alone, and empty for the others."""
    bound = bindings_of(module, value) if isinstance(value, ast.Name) else []
    full = [b for b in bound if not _is_empty(b.value)]
    return 0 < len(full) < len(bound) and all(ranks_at(module, b.node, project=project) in _OF_ZERO for b in full)


def _is_empty(value: ast.expr | None) -> bool:
    return is_none(value) or (isinstance(value, (ast.List, ast.Tuple)) and not value.elts)
