"""Parts of a whole: elements, slices and shares, and how many of them each rank has."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_of
from codemods.analysis.names import dotted, last
from codemods.analysis.variance.chunks import length_behind
from codemods.analysis.variance.lookup import from_environment
from codemods.analysis.variance.open_entries import asked_entry
from codemods.analysis.variance.paths import entry_of, path_of
from codemods.analysis.variance.refilled import is_refilled
from codemods.analysis.variance.state import State
from codemods.analysis.variance.uneven_parts import gives_rest, parted, starts_at_fraction, unequal_parts
from codemods.analysis.variance.values import (
    SAME,
    UNKNOWN,
    Cause,
    How,
    Kind,
    Link,
    Proof,
    Value,
    along,
    at_most,
    made_of,
    plain,
)
from codemods.data.rank_names import speaks_of_rank
from codemods.data.rank_variance import LOADER_NAMES
from codemods.files.source import walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import replace

_PROCESSES = lazy(r"world_?size|num_processes|num_replicas|nprocs")


def item_value(state: State, node: ast.Subscript) -> Value:
    found = _item(state, node)
    return replace(found, keyed=False) if found.keyed and not isinstance(node.slice, ast.Slice) else found


def _item(state: State, node: ast.Subscript) -> Value:
    if (entry := entry_of(node)) in state.env:
        return state.env[entry]
    if (rank := from_environment(state, node)) is not None:
        return rank
    if _is_of_many(state, node):
        return UNKNOWN
    path = path_of(node)
    nested = isinstance(node.value, ast.Subscript)  # `names[batch_index][0]`: the inner index counts, too
    holder = state.env.get(path) if path and "." not in path and not nested else None
    holder = holder if holder is not None else state.value(node.value)
    if isinstance(node.slice, ast.Slice):
        bounds = made_of(*(state.value(b) for b in (node.slice.lower, node.slice.upper, node.slice.step)))
        if bounds.cause is Cause.RANK and bounds.decided:  # a number that rank 0 alone has: `rows[:shown]`
            return plain(holder)
        if (chunk := _chunk(state, node, holder)) is not None:
            return chunk
        if not bounds.cause.differs and is_refilled(state.module, node):
            return replace(plain(holder), sized=False)
        if bounds.cause.differs or bounds.params:
            return _share(state, node, holder, bounds)
        return plain(holder)
    if holder.parts and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int):
        if -len(holder.parts) <= node.slice.value < len(holder.parts):
            return holder.parts[node.slice.value]
    if (asked := asked_entry(node, holder)) is not None:
        return asked
    if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
        first = isinstance(node.slice, ast.Constant) and node.slice.value == 0
        size = state.value(node.value)
        return size if size.sized else (SAME if first else size)
    index = state.value(node.slice)
    if index.cause is Cause.RANK and _is_slice(state, node.slice):
        return Value(Cause.DATA, index.proof, (_cut(state, node),))
    if index.cause is Cause.RANK and (_is_parted_evenly(node.value) or _deals_in_turn(state, node.slice)):
        return Value(Cause.DATA, index.proof, (_cut(state, node),))
    if (parts := unequal_parts(state, node.value)) is not None and (index.cause is Cause.RANK or index.params):
        return _part(state, node, index, even=index.decided or divides(state, parted(state, parts)))
    if holder.kind is Kind.LOADER and holder.differs and index.cause in (Cause.SAME, Cause.UNKNOWN):
        return holder  # a loader has no entries: a dict or a list of them
    if index.cause is Cause.UNKNOWN and not index.params:  # which element it is, is not known; what they all are, is
        return plain(holder)
    found = made_of(holder, index)
    masks = isinstance(node.slice, ast.Compare) or index.sized
    return replace(found, sized=True) if masks and index.cause.differs else found


def _chunk(state: State, node: ast.Subscript, holder: Value) -> Value | None:
    """One of the pieces that a loop cuts the whole into: of uneven length where the whole is, however it is cut."""
    cut = length_behind(state.module, node)
    if cut is None or state.value(cut[1]).cause.differs:
        return None
    return replace(plain(holder), sized=holder.sized or state.value(cut[0]).sized)


def _is_parted_evenly(node: ast.expr) -> bool:
    """True for `partition_dataset(rows, even_divisible=True)` of MONAI: it fills up until the parts are equal."""
    words = node.keywords if isinstance(node, ast.Call) else []
    return any(k.arg == "even_divisible" and isinstance(k.value, ast.Constant) and k.value.value is True for k in words)


def _deals_in_turn(state: State, node: ast.expr) -> bool:
    """True for `i * world_size + rank`: in each round every rank takes the next row that no other takes."""
    rank = _added_to_rounds(node)
    return rank is not None and state.value(rank).cause is Cause.RANK


def _added_to_rounds(node: ast.expr) -> ast.expr | None:
    """`rank` of `i * world_size + rank`, whatever it is called."""
    sides = (node.left, node.right) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) else ()
    for rows, rank in (sides, sides[::-1]) if sides else ():
        factors = (rows.left, rows.right) if isinstance(rows, ast.BinOp) and isinstance(rows.op, ast.Mult) else ()
        counts = [f for f in factors if _PROCESSES.search(last(dotted(f.func if isinstance(f, ast.Call) else f)))]
        if len(counts) == 1 and not any(isinstance(f, ast.Constant) for f in factors):
            return rank
    return None


def takes_in_turn(loop: ast.For | ast.AsyncFor) -> bool:
    """True for a loop whose rounds take rows by `rows[i * world_size + rank]`: they are its batches."""
    for node in (n for statement in loop.body for n in walk(statement) if isinstance(n, ast.Subscript)):
        if not isinstance(node.slice, ast.BinOp) or _added_to_rounds(node.slice) is None:
            continue
        counted = {n.id for n in walk(node.slice) if isinstance(n, ast.Name)}
        if any(isinstance(n, ast.Name) and n.id in counted for n in walk(loop.target)):
            return True
    return False


def _is_slice(state: State, node: ast.expr) -> bool:
    """True for a name that `slice(...)` is given: `mine = slice(rank * n, (rank + 1) * n)`."""
    bound = bindings_of(state.module, node) if isinstance(node, ast.Name) else []
    return bool(bound) and all(isinstance(b.value, ast.Call) and dotted(b.value.func) == "slice" for b in bound)


def _is_of_many(state: State, node: ast.Subscript) -> bool:
    """True for `options["name"]` of `**options`: what stands under the other keys, a rank say, is no matter of this one."""
    packed = state.function.args.kwarg if state.function is not None else None
    if packed is None or not isinstance(node.value, ast.Name) or node.value.id != packed.arg:
        return False
    key = node.slice.value if isinstance(node.slice, ast.Constant) else None
    return isinstance(key, str) and not speaks_of_rank(key) and not LOADER_NAMES.search(key)


def _share(state: State, node: ast.Subscript, holder: Value, bounds: Value) -> Value:
    """`rows[rank::world]`: each rank has its own part, of a length of its own unless the whole was made to divide."""
    assert isinstance(node.slice, ast.Slice)
    upper = node.slice.upper
    even = divides(state, node.value) or (upper is not None and divides(state, upper) and not gives_rest(state, upper))
    link = _cut(state, node)
    if bounds.cause is Cause.RANK:
        return Value(Cause.DATA, bounds.proof, (link,), sized=not even)
    return along(replace(made_of(holder, bounds), sized=not even), link)


def _part(state: State, node: ast.Subscript, index: Value, *, even: bool) -> Value:
    """`numpy.array_split(rows, world_size)[rank]`."""
    if index.cause is Cause.RANK:
        return Value(Cause.DATA, index.proof, (_cut(state, node),), sized=not even)
    return replace(along(plain(index), _cut(state, node)), sized=not even)


def divides(state: State, node: ast.expr, depth: int = 0) -> bool:
    """True where `//`, `%` or padding is at work in an expression or in what its names were given: the parts come out equal."""
    if depth > 2:
        return False
    if isinstance(node, ast.BinOp):
        even = isinstance(node.op, (ast.FloorDiv, ast.Mod)) and not starts_at_fraction(state, node)
        return even or divides(state, node.left, depth) or divides(state, node.right, depth)
    if isinstance(node, ast.Subscript):
        bounds = [node.slice.lower, node.slice.upper] if isinstance(node.slice, ast.Slice) else []
        return any(divides(state, b, depth) for b in (node.value, *filter(None, bounds)))
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("tensor_split", "array_split"):
            return any(divides(state, a, depth) for a in node.args[-1:])  # as many parts as are asked for
        name = dotted(node.func)  # of `min` the last rank gets what is left
        passes = name in ("int", "list", "max", "range")
        return last(name) in ("divmod", "pad") or (passes and any(divides(state, a, depth) for a in node.args))
    if not isinstance(node, ast.Name):
        return False
    if _is_checked(state, node):
        return True
    for bound in bindings_of(state.module, node):
        if isinstance(bound.node, ast.AugAssign) and isinstance(bound.node.value, (ast.Subscript, ast.BinOp)):
            return True  # `rows += rows[:missing]`: made up to a whole
        if bound.value is not None and bound.value is not node and divides(state, bound.value, depth + 1):
            return True
    return False


def _is_checked(state: State, name: ast.Name) -> bool:
    """True where the function raises unless the ranks divide what the name holds: `if len(files) % world: raise ...`."""
    function = state.module.function_of(name)
    for test in (n for n in (walk(function) if function is not None else ()) if isinstance(n, (ast.Assert, ast.If))):
        raises = isinstance(test, ast.Assert) or any(isinstance(s, ast.Raise) for s in test.body)
        rests = (n for n in (test.test, *walk(test.test)) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mod))
        if raises and any(isinstance(n, ast.Name) and n.id == name.id for rest in rests for n in walk(rest.left)):
            return True
    return False


def counted(state: State, node: ast.Call, end: str, args: list[Value]) -> Value:
    """`range(rank, n, world)` and the like: how many there are is a matter of what they are counted by."""
    bounds = args[1:] if end == "islice" else args
    by_length = len(bounds) == 3 and (bounds[1].length or bounds[1] is SAME) and not bounds[2].cause.differs
    found = made_of(*(bounds[:2] if by_length else bounds))  # `range(0, len(rows), n)`: how long a piece is, is a setting
    if end == "islice" and args and not found.cause.differs:  # how many a parameter asks for is not what the loader differs by
        return replace(plain(args[0]), sized=args[0].sized and len(node.args) != 2)  # `islice(loader, 100)` is to be as many
    if not (found.cause.differs or found.params):
        return SAME
    if len(bounds) == 2 and all(b.cause.differs or b.params for b in bounds):  # `range(first, first + n)`
        even = not _ends_at_the_whole(state, node.args[-1])
    else:
        even = len(bounds) == 3 and (divides(state, node.args[-2]) or _is_window_of_one_length(state, node))
    own = len(bounds) == 3 and (bounds[0].cause is Cause.RANK or bounds[0].params)
    link = _cut(state, node)
    if own and bounds[0].cause is Cause.RANK:
        return Value(Cause.DATA, bounds[0].proof, (link,), params=found.params, sized=not even)
    return replace(along(found, link) if own else found, sized=not even)


def _is_window_of_one_length(state: State, node: ast.Call) -> bool:
    """True for `range(begun, begun + n, step)`: wherever a rank begins, it counts as far as the others."""
    first, end = node.args[-3:-1]
    if not isinstance(end, ast.BinOp) or not isinstance(end.op, ast.Add):
        return False
    length = {ast.unparse(end.left): end.right, ast.unparse(end.right): end.left}.get(ast.unparse(first))
    return length is not None and not state.value(length).cause.differs


def _ends_at_the_whole(state: State, end: ast.expr) -> bool:
    """True for `min(first + n, total)`, also by a name: the last ranks get what is left of a whole that was rounded up."""
    if any(isinstance(n, ast.Call) and last(dotted(n.func)) == "min" for n in (end, *walk(end))):
        return True
    bound = [b.value for b in bindings_of(state.module, end)] if isinstance(end, ast.Name) else []
    cut = [v for v in bound if isinstance(v, ast.Call) and dotted(v.func) == "min"]
    others = [v for v in bound if v is None or (v not in cut and any(isinstance(n, ast.BinOp) for n in (v, *walk(v))))]
    return not others and any(_rounds_up(state, v) for v in cut)


def _rounds_up(state: State, node: ast.expr, depth: int = 2) -> bool:
    """True for `math.ceil(n / ranks)`, `(n + ranks - 1) // ranks`, `-(-n // ranks)`, in a value or what its names are given."""
    for part in (node, *walk(node)):
        if isinstance(part, ast.Call) and last(dotted(part.func)) == "ceil":
            return True
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.FloorDiv):
            left = part.left
            if isinstance(left, ast.UnaryOp) and isinstance(left.op, ast.USub):
                return True
            if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Sub) and ast.unparse(left.right) == "1":
                return True
        if depth and isinstance(part, ast.Name):
            given = [b.value for b in bindings_of(state.module, part) if b.value is not None and not b.parameter]
            if any(_rounds_up(state, v, depth - 1) for v in given):
                return True
    return False


def pieces(state: State, node: ast.Call, holder: Value, args: list[Value]) -> Value:
    """`x.split(16, dim=1)`: as many pieces as the batch is long, unless it was padded."""
    assert isinstance(node.func, ast.Attribute)
    found = made_of(holder, *args)
    dim = next((k.value for k in node.keywords if k.arg == "dim"), node.args[1] if len(node.args) > 1 else None)
    first = dim is None or (isinstance(dim, ast.Constant) and dim.value == 0)
    if node.func.attr == "chunk" or (first and not holder.sized) or divides(state, node.func.value):
        return replace(found, sized=False)
    return replace(at_most(found, Proof.LIKELY), sized=True) if found.cause.differs or found.params else found


def length_of(value: Value) -> Value:
    """How long something is: as long as on the others, unless its elements were picked by what they hold."""
    if value.sized and (value.cause.differs or value.params):
        return plain(value)
    if value.params and not value.cause.differs:
        return replace(plain(value), length=True)
    return SAME if value.cause is not Cause.UNKNOWN else UNKNOWN


def size_of(node: ast.Call, holder: Value) -> Value:
    """`x.size(0)`: a batch is as long as those of the others; the other dimensions may be padded to its own longest element."""
    if holder.sized:
        return plain(holder)
    whole = isinstance(node.func, ast.Attribute) and node.func.attr == "numel"
    first = not whole and (not node.args or (isinstance(node.args[0], ast.Constant) and node.args[0].value == 0))
    return SAME if first else at_most(plain(holder), Proof.LIKELY)


def _cut(state: State, node: ast.AST) -> Link:
    return state.link(node, f"`{state.short(node)}` is each rank's own share", how=How.SHARE)
