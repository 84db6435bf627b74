"""Results that an evaluation keeps under a key of the sample and merges over the ranks by it: a repeated one overwrites itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.call_graph import called_function
from codemods.analysis.names import dotted, last
from codemods.files.source import FunctionNode, SourceModule, walk, walk_scope
from codemods.store.project import Project

_GATHERS = {"all_gather_object": (0, "object_list"), "gather_object": (1, "object_gather_list")}  # where the list stands
_PLAIN = frozenset({"dict", "OrderedDict"})  # a Counter adds up
_JOIN_WORDS = ("gather", "reduce", "broadcast", "all_to_all")
_KEEP_THE_KEY = frozenset(
    {"item", "tolist", "cpu", "numpy", "to", "long", "int", "detach", "squeeze", "flatten", "view", "strip"}
)  # fmt: skip
_AS_KEY = frozenset({"int", "str", "tuple", "list"})


def merges_by_key(project: Project, module: SourceModule, loop: ast.For, call: ast.Call) -> bool:
    """True for a gather of nothing but a mapping that the loop fills at keys of its batches, where the mappings merge by key."""
    scope = module.function_of(call) or module.tree
    given = [a for a in (*call.args, *(k.value for k in call.keywords)) if not isinstance(a, ast.Constant)]
    kept = [a for a in given if isinstance(a, (ast.Name, ast.Attribute)) and _is_kept_by_key(loop, dotted(a))]
    if len(kept) != 1:
        return False
    if last(dotted(call.func)) in _GATHERS:
        return _is_merged(module, scope, call, kept[0])
    inner = called_function(project, module, call)
    return len(given) == 1 and inner is not None and _merges_its_parameter(inner.module, inner.node)


def _merges_its_parameter(module: SourceModule, function: FunctionNode) -> bool:
    """True for a function of one value that gathers it, joins nothing else, and merges the mappings of the ranks by key."""
    parameters = {a.arg for a in function.args.args}
    calls = [n for n in walk_scope(function) if isinstance(n, ast.Call)]
    joins = [c for c in calls if any(word in last(dotted(c.func)) for word in _JOIN_WORDS)]
    if len(joins) != 1 or last(dotted(joins[0].func)) not in _GATHERS:
        return False
    given = (*joins[0].args, *(k.value for k in joins[0].keywords))
    handed = [a for a in given if isinstance(a, ast.Name) and a.id in parameters]
    return len(handed) == 1 and _is_merged(module, function, joins[0], handed[0])


# What the loop keeps


def _is_kept_by_key(loop: ast.For, name: str) -> bool:
    """True where the loop does nothing with `name` but `name[key] = value`, with a key that the batch carries."""
    if not name:
        return False
    stored: set[ast.AST] = set()
    carried = _carried(loop)
    for node in walk_scope(loop):
        target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
        if isinstance(target, ast.Subscript) and dotted(target.value) == name and _is_carried(target.slice, carried):
            stored.add(target.value)
    mentioned = {n for s in (*loop.body, *loop.orelse) for n in walk(s) if _spells(n, name)}
    return bool(stored) and mentioned == stored


def _spells(node: ast.AST, name: str) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute)) and dotted(node) == name


def _carried(loop: ast.For) -> frozenset[str]:
    """The names of a round that hold nothing but parts of its batch, as they came."""
    given: dict[str, list[ast.expr | None]] = {}
    for target, value in _bound_in(loop):
        for node in walk(target):
            if isinstance(node, ast.Name):
                given.setdefault(node.id, []).append(value)
    batch = {n.id for t, v in _elements(loop.target, loop.iter) if v is not None for n in walk(t) if isinstance(n, ast.Name)}
    carried = frozenset(name for name, values in given.items() if name in batch or not all(_reads(v, name) for v in values))
    while True:
        less = frozenset(n for n in carried if all(v is loop.iter or _is_carried(v, carried) for v in given[n]))
        if less == carried:
            return carried
        carried = less


def _reads(value: ast.expr | None, name: str) -> bool:
    return value is not None and any(isinstance(n, ast.Name) and n.id == name for n in walk(value))


def _bound_in(loop: ast.For) -> Iterator[tuple[ast.AST, ast.expr | None]]:
    """What the loop binds, each with what it is a part of; None for what is no part of a batch."""
    for target, value in _elements(loop.target, loop.iter):
        yield target, None if value is None else loop.iter
    for statement in loop.body:
        for node in (statement, *walk_scope(statement)):
            if isinstance(node, ast.For):
                yield from _elements(node.target, node.iter)
            elif isinstance(node, ast.Assign):
                yield from ((t, node.value) for t in node.targets if not isinstance(t, (ast.Subscript, ast.Attribute)))
            elif isinstance(node, ast.withitem) and node.optional_vars is not None:
                yield node.optional_vars, None
            elif isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.NamedExpr)):
                yield node.target, None


def _elements(target: ast.expr, over: ast.expr) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """The targets of a loop, each with what its elements come from: those of `zip` one by one, none for a counter."""
    name = last(dotted(over.func)) if isinstance(over, ast.Call) else ""
    arguments = over.args if isinstance(over, ast.Call) else []
    parts = target.elts if isinstance(target, ast.Tuple) else []
    if name == "enumerate" and len(parts) == 2 and arguments:
        yield parts[0], None
        yield from _elements(parts[1], arguments[0])
    elif name == "zip" and len(parts) == len(arguments):
        yield from zip(parts, arguments, strict=True)
    else:
        yield target, None if name in ("range", "enumerate") else over


def _is_carried(node: ast.expr | None, carried: frozenset[str]) -> bool:
    """True for a part of the batch in any of the forms that keep what it says."""
    if isinstance(node, ast.Name):
        return node.id in carried
    if isinstance(node, (ast.Attribute, ast.Subscript)):
        return _is_carried(node.value, carried)
    if isinstance(node, ast.Tuple):
        return bool(node.elts) and all(_is_carried(e, carried) for e in node.elts)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in _KEEP_THE_KEY and _is_carried(node.func.value, carried)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _AS_KEY and len(node.args) == 1:
        return _is_carried(node.args[0], carried)
    return False


# How the ranks' mappings merge


def _is_plain_mapping(module: SourceModule, name: ast.Name) -> bool:
    values = [b.value for b in bindings_of(module, name)]
    made = [isinstance(v, ast.Dict) or (isinstance(v, ast.Call) and last(dotted(v.func)) in _PLAIN) for v in values]
    return bool(made) and all(made)


def _is_merged(module: SourceModule, scope: ast.AST, call: ast.Call, kept: ast.expr) -> bool:
    """True where all that is done with the gathered list goes through it, and puts each mapping into one by its keys."""
    lists = {dotted(a) for a in _list_of(call)} - {"", dotted(kept)}
    reads = [n for n in walk_scope(scope) if isinstance(n, ast.Name) and n.id in lists and isinstance(n.ctx, ast.Load)]
    below = [n for n in reads if n.lineno > (call.end_lineno or call.lineno)]
    loops = [_loop_over(module, n) for n in below if not isinstance(module.parent(n), ast.Compare)]
    return bool(loops) and all(loop is not None and _puts_by_key(module, loop) for loop in loops)


def _list_of(call: ast.Call) -> tuple[ast.expr, ...]:
    """What a gather fills: `rows`, also of `rows if rank == 0 else None`."""
    at, name = _GATHERS[last(dotted(call.func))]
    given = call.args[at] if len(call.args) > at else next((k.value for k in call.keywords if k.arg == name), None)
    if isinstance(given, ast.IfExp):
        return given.body, given.orelse
    return (given,) if given is not None else ()


def _loop_over(module: SourceModule, read: ast.Name) -> ast.For | None:
    up = module.parent(read)
    return up if isinstance(up, ast.For) and up.iter is read and isinstance(up.target, ast.Name) else None


def _puts_by_key(module: SourceModule, loop: ast.For) -> bool:
    assert isinstance(loop.target, ast.Name)
    part = loop.target.id
    reads = [n for s in loop.body for n in walk(s) if isinstance(n, ast.Name) and n.id == part]
    return bool(reads) and all(_is_put_by_key(module, n) for n in reads)


def _is_put_by_key(module: SourceModule, part: ast.Name) -> bool:
    """True for `merged.update(part)`, and for a loop over `part.items()` that does nothing but `merged[key] = …`."""
    up = module.parent(part)
    if isinstance(up, ast.Call) and up.args == [part]:
        holder = up.func.value if isinstance(up.func, ast.Attribute) and up.func.attr == "update" else None
        return isinstance(module.parent(up), ast.Expr) and isinstance(holder, ast.Name) and _is_plain_mapping(module, holder)
    call = module.parent(up) if isinstance(up, ast.Attribute) and up.attr == "items" else None
    loop = module.parent(call) if isinstance(call, ast.Call) else None
    if not isinstance(loop, ast.For) or loop.iter is not call or not isinstance(loop.target, ast.Tuple):
        return False
    key = dotted(loop.target.elts[0])
    return all(_stores_at(s, key) for s in loop.body)


def _stores_at(statement: ast.stmt, key: str) -> bool:
    """True for `merged[key] = value`, where the value does not read what stands there already."""
    if not isinstance(statement, ast.Assign):
        return False
    read = {dotted(n) for n in walk(statement.value)} - {""}
    return all(
        isinstance(t, ast.Subscript) and isinstance(t.slice, ast.Name) and t.slice.id == key and dotted(t.value) not in read
        for t in statement.targets
    )
