"""Numbers that are given to the elements of a set of texts, whose order each process has for itself: classes, ids of tokens."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.loading.number_lists import holds_numbers, is_number
from codemods.analysis.loading.unordered import Unordered, unordered
from codemods.analysis.names import dotted
from codemods.files.source import SourceModule, walk

_TOKENS = frozenset({"add_tokens", "add_special_tokens"})


def numbered_sets(module: SourceModule) -> Iterator[tuple[Unordered, ast.AST]]:
    """Each set, and what gives its elements their numbers."""
    for source, where in (*_comprehended(module), *_looped(module), *_zipped(module), *_added(module), *_indexed(module)):
        found = unordered(module, source)
        if found is not None and not found.files and not of_numbers(module, found):
            yield found, where


def _comprehended(module: SourceModule) -> Iterator[tuple[ast.expr, ast.AST]]:
    """`{name: i for i, name in enumerate(names)}`."""
    for comp in module.nodes(ast.DictComp):
        part = comp.generators[0]
        if len(comp.generators) == 1 and (source := _enumerated(part.iter)) is not None:
            if isinstance(part.target, ast.Tuple) and len(part.target.elts) == 2:
                yield source, comp


def _looped(module: SourceModule) -> Iterator[tuple[ast.expr, ast.AST]]:
    """`for i, name in enumerate(names): ids[name] = i`, `for name in names: ids[name] = len(ids)`, and by a counter."""
    for loop in module.nodes(ast.For):
        source, number, name = _enumerated(loop.iter), "", dotted(loop.target)
        if source is not None:
            pair = loop.target.elts if isinstance(loop.target, ast.Tuple) and len(loop.target.elts) == 2 else []
            number, name = (dotted(pair[0]), dotted(pair[1])) if pair else ("", "")
        for node in (n for s in loop.body for n in walk(s)) if name else ():
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
                held, key, value = node.targets[0].value, node.targets[0].slice, node.value
                counts = isinstance(value, ast.Call) and dotted(value.func) == "len" and value.args
                grows = isinstance(value, ast.Call) and bool(counts) and dotted(value.args[0]) == dotted(held)
                if dotted(key) == name and ((number and dotted(value) == number) or (not number and grows)):
                    yield source if source is not None else loop.iter, node
                elif source is None and _is_made_of(loop, key, name) and _is_counted_up(loop, dotted(value)):
                    yield loop.iter, node


def _is_counted_up(loop: ast.For, number: str) -> bool:
    """True for `ids[name] = n` where the loop itself goes on with `n += 1`."""
    steps = (s for s in loop.body if isinstance(s, ast.AugAssign) and isinstance(s.op, ast.Add))
    return bool(number) and any(dotted(s.target) == number and isinstance(s.value, ast.Constant) for s in steps)


def _is_made_of(loop: ast.For, key: ast.expr, name: str) -> bool:
    """True for the element, for a text with it, and for the name that the loop gives such a text."""
    if dotted(key) == name:
        return True
    given = [s.value for s in loop.body if isinstance(s, ast.Assign) and dotted(s.targets[0]) == dotted(key)]
    text = key if isinstance(key, ast.JoinedStr) else given[0] if dotted(key) and len(given) == 1 else None
    return isinstance(text, ast.JoinedStr) and any(isinstance(n, ast.Name) and n.id == name for n in walk(text))


def _zipped(module: SourceModule) -> Iterator[tuple[ast.expr, ast.AST]]:
    """`dict(zip(names, range(len(names))))`."""
    for call in module.calls_named("zip"):
        up = module.parent(call)
        made = isinstance(up, ast.Call) and dotted(up.func) == "dict"
        if made and len(call.args) == 2 and isinstance(call.args[1], ast.Call) and dotted(call.args[1].func) == "range":
            yield call.args[0], call


def _added(module: SourceModule) -> Iterator[tuple[ast.expr, ast.AST]]:
    """`tokenizer.add_tokens(names)`: the tokens get their ids in this order."""
    for call in module.calls_named(*_TOKENS):
        if not isinstance(call.func, ast.Attribute) or not call.args:
            continue
        given = call.args[0]
        yield from ((v, call) for v in (given.values if isinstance(given, ast.Dict) else [given]))


def _indexed(module: SourceModule) -> Iterator[tuple[ast.expr, ast.AST]]:
    """`classes.index(row["label"])`: the place in the list is the number of the class."""
    for call in module.calls_named("index"):
        if isinstance(call.func, ast.Attribute) and len(call.args) == 1 and dotted(call.func.value):
            yield call.func.value, call


def _enumerated(node: ast.expr) -> ast.expr | None:
    return node.args[0] if isinstance(node, ast.Call) and dotted(node.func) == "enumerate" and node.args else None


def of_numbers(module: SourceModule, found: Unordered) -> bool:
    """True for a set of numbers, or of what nothing shows to be texts but a cast to a number."""
    node = found.node
    element = node.elt if isinstance(node, ast.SetComp) else None
    if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], (ast.GeneratorExp, ast.ListComp)):
        element = node.args[0].elt
    if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Call) and dotted(node.args[0].func) == "range":
        return True
    if isinstance(node, ast.Set):
        return all(isinstance(e, ast.Constant) and not isinstance(e.value, (str, bytes)) for e in node.elts)
    if isinstance(node, ast.Call) and len(node.args) == 1 and isinstance(node.args[0], ast.Name):
        return holds_numbers(module, node.args[0])
    return element is not None and is_number(element)
