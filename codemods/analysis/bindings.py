"""Where a name, or an attribute of self, gets its value: one index a module. Comprehensions have a scope of their own."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.files.source import FunctionNode, SourceModule, once_a_module, walk
from codemods.runtime.record import field, record


@record
class Binding:
    """One place where a name gets a value. value: the expression, None where it is a loop variable, a parameter and so on.

    parameter: the name is an argument of the function. part: `value` is taken apart (`a, b = value`).
    """

    node: ast.AST
    value: ast.expr | None = None
    parameter: bool = False
    part: bool = False


@record(frozen=False)
class _Index:
    names: dict[tuple[int, str], list[Binding]] = field(default_factory=dict)
    attributes: dict[tuple[int, str], list[Binding]] = field(default_factory=dict)


def bindings_of(module: SourceModule, name: ast.Name) -> list[Binding]:
    """The bindings of a name in the innermost scope that has one: its function, those round it, then the module."""
    index = _index(module)
    scope = module.function_of(name)
    while scope is not None:
        if found := index.names.get((id(scope), name.id)):
            return found
        scope = module.function_of(scope)
    return index.names.get((0, name.id), [])


def bindings_at_top(module: SourceModule, name: str) -> list[Binding]:
    """The bindings of a module-level name."""
    return _index(module).names.get((0, name), [])


def bindings_in(module: SourceModule, function: FunctionNode | None, name: str) -> list[Binding]:
    """The bindings of a name in just this function, or at module level."""
    return _index(module).names.get((id(function) if function else 0, name), [])


def attribute_bindings(module: SourceModule, node: ast.Attribute) -> list[Binding]:
    """The values that `self.x` is given in the class round `node`; none for an attribute of anything else."""
    if not isinstance(node.value, ast.Name) or node.value.id not in ("self", "cls"):
        return []
    owner = module.class_of(node)
    return _index(module).attributes.get((id(owner), node.attr), []) if owner else []


def name_or_field_bindings(module: SourceModule, node: ast.expr) -> list[Binding]:
    """What a name, or a field of `self`, is given; nothing for any other expression."""
    if isinstance(node, ast.Name):
        return bindings_of(module, node)
    return attribute_bindings(module, node) if isinstance(node, ast.Attribute) else []


def only_value(bound: list[Binding]) -> ast.expr | None:
    """What a name is given, where that is one value as a whole; None for a parameter, a part of a value, and one of several."""
    return bound[0].value if len(bound) == 1 and not bound[0].part else None


@once_a_module
def _index(module: SourceModule) -> _Index:
    index = _Index()
    for node, target, value in _assignments(module):
        _bind(module, index, node, target, value)
    for function in module.functions:
        spec = function.args
        for argument in [*spec.posonlyargs, *spec.args, *spec.kwonlyargs, *filter(None, (spec.vararg, spec.kwarg))]:
            index.names.setdefault((id(function), argument.arg), []).append(Binding(argument, parameter=True))
    return index


def _assignments(module: SourceModule) -> Iterator[tuple[ast.AST, ast.expr, ast.expr | None]]:
    for assign in module.nodes(ast.Assign):
        for target in assign.targets:
            yield assign, target, assign.value
    for annotated in module.nodes(ast.AnnAssign):
        if annotated.value is not None:
            yield annotated, annotated.target, annotated.value
    for walrus in module.nodes(ast.NamedExpr):
        yield walrus, walrus.target, walrus.value
    for augmented in module.nodes(ast.AugAssign):
        yield augmented, augmented.target, None
    for loop in module.nodes(ast.For):
        yield loop, loop.target, None
    for waiting in module.nodes(ast.AsyncFor):
        yield waiting, waiting.target, None
    for item in module.nodes(ast.withitem):
        if item.optional_vars is not None:
            yield item.context_expr, item.optional_vars, None


def _bind(module: SourceModule, index: _Index, node: ast.AST, target: ast.expr, value: ast.expr | None) -> None:
    if isinstance(target, (ast.Tuple, ast.List)):
        values = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
        matching = len(values) == len(target.elts) and not any(isinstance(e, ast.Starred) for e in [*values, *target.elts])
        for i, element in enumerate(target.elts):
            if matching:
                _bind(module, index, node, element, values[i])
            else:
                for inner in walk(element):
                    if isinstance(inner, ast.Name):
                        _add(module, index, inner, Binding(node, value, part=value is not None))
    elif isinstance(target, ast.Name):
        _add(module, index, target, Binding(node, value))
    elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id in ("self", "cls"):
        if owner := module.class_of(target):
            index.attributes.setdefault((id(owner), target.attr), []).append(Binding(node, value))


def _add(module: SourceModule, index: _Index, name: ast.Name, binding: Binding) -> None:
    scope = module.function_of(name)
    key = 0
    if scope is not None and not _is_global(scope, name.id):
        key = id(scope)
    index.names.setdefault((key, name.id), []).append(binding)


def _is_global(function: FunctionNode, name: str) -> bool:
    return any(isinstance(s, ast.Global) and name in s.names for s in function.body)
