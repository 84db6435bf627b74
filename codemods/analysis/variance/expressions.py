"""The value of an expression: what it is put together from, and what is the same on all ranks whatever it is made of."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_of
from codemods.analysis.class_index import class_facts
from codemods.analysis.class_values import class_values
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.rank_branches import known_split
from codemods.analysis.ranks.rank_sets import Ranks
from codemods.analysis.ranks.rank_sources import rank_source
from codemods.analysis.ranks.several_processes import several_processes
from codemods.analysis.variance import calls
from codemods.analysis.variance.state import State, path_of
from codemods.analysis.variance.values import (
    SAME,
    UNKNOWN,
    Cause,
    Kind,
    Proof,
    Thing,
    Value,
    along,
    at_most,
    differing,
    join,
    made_of,
    plain,
)  # fmt: skip
from codemods.data.rank_names import MEMBER_WORD
from codemods.data.rank_variance import DESCRIPTIONS, IS_KIND, LOADER_NAMES, LOSS_NAME, PASSED_ON, SELECTS
from codemods.record import replace
from codemods.source import child_nodes, walk


def value_of(state: State, node: ast.expr | None) -> Value:
    """What is known of an expression, with the names as they stand at this point of the interpretation."""
    if node is None or isinstance(node, (ast.Constant, ast.Lambda)):
        return SAME
    found = state.values[id(node)] = _by_signal(state, node) or _evaluated(state, node)
    return found


def _by_signal(state: State, node: ast.expr) -> Value | None:
    """What a signal handler sets: each process gets the signal on its own, and at a time of its own."""
    if not isinstance(node, (ast.Name, ast.Subscript, ast.Attribute)) or not (names := state.summaries.signalled(state.module)):
        return None
    path = _entry(node) if isinstance(node, ast.Subscript) else dotted(node)
    if path not in names:
        return None
    return differing(Cause.PLACE, Proof.PROVEN, state.link(node, f"`{path}` is set by a signal, which each process gets on its own"))


def _evaluated(state: State, node: ast.expr) -> Value:
    if isinstance(node, ast.Name):
        return _name(state, node)
    if isinstance(node, ast.Attribute):
        return _attribute(state, node)
    if isinstance(node, ast.Call):
        return _call(state, node)
    if isinstance(node, ast.Compare):
        return test_value(state, node)
    if isinstance(node, ast.BoolOp):
        return made_of(*(value_of(state, v) for v in node.values))
    if isinstance(node, ast.IfExp):
        return _conditional(state, node)
    if isinstance(node, ast.Subscript):
        return _item(state, node)
    if isinstance(node, (ast.Tuple, ast.List)):
        parts = tuple(value_of(state, e) for e in node.elts)
        return replace(made_of(*parts), parts=parts) if parts else SAME
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
        return _comprehension(state, node)
    if isinstance(node, ast.NamedExpr):
        value = value_of(state, node.value)
        state.env[node.target.id] = along(value, state.link(node, f"`{state.short(node)}`"))
        return value
    if isinstance(node, ast.FormattedValue):
        value = value_of(state, node.value)
        calls.shown(state, node, value)
        return value
    if isinstance(node, (ast.Await, ast.Starred)):
        return value_of(state, node.value)
    if isinstance(node, ast.JoinedStr) and names_device(node):
        return SAME
    return made_of(*(value_of(state, child) for child in child_nodes(node) if isinstance(child, ast.expr)))


def names_device(node: ast.expr) -> bool:
    """True for `f"cuda:{rank}"` and `"cuda:{}".format(gpu)`: where a tensor is."""
    texts = [n.value for n in walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    return bool(texts) and texts[0].startswith(("cuda", "cpu", "npu", "xpu", "gpu"))


# Names and attributes


def _name(state: State, node: ast.Name) -> Value:
    known = state.env.get(node.id)
    if known is None:
        known = _outer(state, node)
    if known.cause.differs:
        return known
    if known.cause is Cause.UNKNOWN and not known.params and known.thing is None and LOSS_NAME.search(node.id):
        if state.summaries.is_parallel(state.module):
            link = state.link(node, f"`{node.id}` is this rank's own (by its name)", by_name=True)
            return differing(Cause.DATA, Proof.LIKELY, link)
    rank = _as_rank(state, node)
    return known if rank is None else replace(rank, params=known.params)


def _outer(state: State, node: ast.Name) -> Value:
    if state.is_parameter(node.id):
        return Value(Cause.UNKNOWN, Proof.UNKNOWN, params=frozenset({node.id}))
    if state.function is not None and (made := state.summaries.local_function(state.module, state.function, node.id)):
        return Value(thing=Thing(Kind.FUNCTION, function=made))
    if state.function is not None and (closed := state.summaries.enclosing_value(state.module, state.function, node.id)) is not None:
        return closed
    found = state.summaries.global_value(state.module, node.id)
    return found if found is not None else UNKNOWN


def _as_rank(state: State, node: ast.Name | ast.Attribute | ast.Call) -> Value | None:
    """The rank itself, or a flag that is made of it (`is_main = rank == 0`)."""
    end = last(dotted(node.func if isinstance(node, ast.Call) else node))
    if not MEMBER_WORD.search(end) and not _is_bound_to_rank(state, node):
        return None
    if rank_source(state.module, node, state.project) is None and known_split(state.module, node, state.project) is None:
        return None
    shown = Proof.PROVEN if isinstance(node, ast.Call) or _is_bound_to_rank(state, node) else Proof.LIKELY
    return differing(Cause.RANK, shown, state.link(node, f"`{state.short(node)}` tells the rank"))


def _is_bound_to_rank(state: State, node: ast.AST) -> bool:
    if not isinstance(node, ast.Name):
        return False
    values = [b.value for b in bindings_of(state.module, node) if b.value is not None]
    return any(MEMBER_WORD.search(last(dotted(n))) for v in values for n in walk(v) if isinstance(n, (ast.Name, ast.Attribute)))


def _attribute(state: State, node: ast.Attribute) -> Value:
    path = dotted(node)
    if path in state.env:
        return state.env[path]
    if (rank := _as_rank(state, node)) is not None:
        return rank
    if node.attr in DESCRIPTIONS:
        return SAME
    holder = value_of(state, node.value)
    if node.attr == "module" and holder.thing is None:  # what a wrapper holds
        return replace(plain(holder), thing=Thing(Kind.MODULE))
    if node.attr == "shape":
        return plain(holder) if holder.sized else replace(at_most(plain(holder), Proof.LIKELY), mean=False)
    if isinstance(node.value, ast.Name) and node.value.id == "self" and state.function is not None:
        return _own_field(state, node)
    if holder.thing is not None and holder.thing.site is not None:
        return _of_instance(state, node, holder)
    if holder.kind in (Kind.LOADER, Kind.SAMPLER, Kind.MODULE, Kind.WRAPPED, Kind.OPTIMIZER, Kind.PLATEAU):
        if node.attr == "module":
            return Value(thing=Thing(Kind.MODULE, holder.thing.site if holder.thing else None))
        return SAME
    return plain(holder)


def _own_field(state: State, node: ast.Attribute) -> Value:
    """`self.x`: what a property gives, or whatever the object holds there, asked later."""
    owner = state.module.class_of(node)
    thing = None
    if owner is not None:
        facts = class_facts(state.project, state.module, owner)
        if (method := facts.method(node.attr)) is not None:
            return calls.property_value(state, node, method, SAME)
        thing = state.summaries.field_thing(facts.lineage[0], node.attr)
    return Value(Cause.UNKNOWN, Proof.UNKNOWN, params=frozenset({f"self.{node.attr}"}), thing=thing)


def _of_instance(state: State, node: ast.Attribute, holder: Value) -> Value:
    """An attribute of an object of the project: set once, made by a property, or whatever it was told."""
    assert holder.thing is not None and holder.thing.site is not None
    facts = class_facts(state.project, holder.thing.site.module, holder.thing.site.node)
    if (method := facts.method(node.attr)) is not None:
        return calls.property_value(state, node, method, holder)
    if class_values(state.project, facts).set_once(node.attr):
        return state.summaries.field(facts.lineage[0], node.attr)
    return plain(holder)


# Operations


def _conditional(state: State, node: ast.IfExp) -> Value:
    several = several_processes(state.module, node.test)
    if several is not None:
        return value_of(state, node.body if several else node.orelse)
    test = test_value(state, node.test)
    state.tests[id(node.test)] = test
    if ast.dump(unpacked(node.body)) == ast.dump(unpacked(node.orelse)):  # a bar on rank 0, none on the others
        return value_of(state, unpacked(node.orelse))
    arms = join((value_of(state, node.body), value_of(state, node.orelse)))
    if not (test.cause.differs or test.params):
        return arms
    both = made_of(test, arms)
    missing = any(isinstance(arm, ast.Constant) and arm.value is None for arm in (node.body, node.orelse))
    return replace(both, thing=arms.thing, optional=missing or arms.optional)


def _item(state: State, node: ast.Subscript) -> Value:
    if (entry := _entry(node)) in state.env:
        return state.env[entry]
    path = path_of(node)
    holder = state.env.get(path) if path and "." not in path else None
    holder = holder if holder is not None else value_of(state, node.value)
    if isinstance(node.slice, ast.Slice):
        bounds = made_of(*(value_of(state, b) for b in (node.slice.lower, node.slice.upper, node.slice.step)))
        if bounds.cause.differs or bounds.params:
            return _share(state, node, holder, bounds)
        return plain(holder)
    if holder.parts and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int):
        if -len(holder.parts) <= node.slice.value < len(holder.parts):
            return holder.parts[node.slice.value]
    if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
        first = isinstance(node.slice, ast.Constant) and node.slice.value == 0
        size = value_of(state, node.value)
        return size if size.sized else (SAME if first else size)
    index = value_of(state, node.slice)
    if index.cause is Cause.UNKNOWN and not index.params:  # which element it is, is not known; what they all are, is
        return plain(holder)
    found = made_of(holder, index)
    masks = isinstance(node.slice, ast.Compare) or index.sized
    return replace(found, sized=True) if masks and index.cause.differs else found


def _share(state: State, node: ast.Subscript, holder: Value, bounds: Value) -> Value:
    """`rows[rank::world]`: each rank has its own part, of a length of its own unless the whole was made to divide."""
    assert isinstance(node.slice, ast.Slice)
    even = _divides(state, node.value) or (node.slice.upper is not None and _divides(state, node.slice.upper))
    link = state.link(node, f"`{state.short(node)}` is each rank's own share")
    if bounds.cause is Cause.RANK:
        return Value(Cause.DATA, bounds.proof, (link,), sized=not even)
    return along(replace(made_of(holder, bounds), sized=not even), link)


def _divides(state: State, node: ast.expr, depth: int = 0) -> bool:
    """True where `//`, `%` or padding is at work in an expression or in what its names were given: the parts come out equal."""
    if depth > 2:
        return False
    if isinstance(node, ast.BinOp):
        even = isinstance(node.op, (ast.FloorDiv, ast.Mod))
        return even or _divides(state, node.left, depth) or _divides(state, node.right, depth)
    if isinstance(node, ast.Subscript):
        bounds = [node.slice.lower, node.slice.upper] if isinstance(node.slice, ast.Slice) else []
        return any(_divides(state, b, depth) for b in (node.value, *filter(None, bounds)))
    if isinstance(node, ast.Call):
        if last(dotted(node.func)) == "min":  # the last one gets what is left
            return False
        named = last(dotted(node.func)) in ("divmod", "pad")
        return named or (dotted(node.func) in ("int", "list", "max", "range") and any(_divides(state, a, depth) for a in node.args))
    if not isinstance(node, ast.Name):
        return False
    for bound in bindings_of(state.module, node):
        if isinstance(bound.node, ast.AugAssign) and isinstance(bound.node.value, (ast.Subscript, ast.BinOp)):
            return True  # `rows += rows[:missing]`: made up to a whole
        if bound.value is not None and bound.value is not node and _divides(state, bound.value, depth + 1):
            return True
    return False


def _comprehension(state: State, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Value:
    before = dict(state.env)
    rounds: list[Value] = []
    for part in node.generators:
        source = bind_elements(state, part.target, part.iter)
        tests = [test_value(state, t) for t in part.ifs]
        kept = join(tests) if tests else SAME
        rounds.append(replace(kept, sized=True) if kept.cause.differs or kept.params else source if source.sized else SAME)
    elements = [node.value] if isinstance(node, ast.DictComp) else [node.elt]
    if isinstance(node, ast.DictComp) and value_of(state, node.key).cause.differs:
        elements.append(node.key)
    found = made_of(*(value_of(state, e) for e in elements), *rounds)
    state.env = before
    return replace(found, mean=True) if found.cause.differs and any(_is_loader(state, p.iter) for p in node.generators) else found


def _is_loader(state: State, node: ast.expr) -> bool:
    return value_of(state, unpacked(node)).kind is Kind.LOADER


# Loops


def unpacked(node: ast.expr) -> ast.expr:
    """What is gone through behind `enumerate`, `tqdm` and the like."""
    while isinstance(node, ast.Call) and last(dotted(node.func)) in PASSED_ON and node.args:
        node = node.args[-1] if last(dotted(node.func)) == "map" else node.args[0]
    return node


def bind_elements(state: State, target: ast.expr, source: ast.expr) -> Value:
    """Give the target of a loop what the source hands out; the value of what is gone through comes back."""
    value = value_of(state, source)
    elements = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
    if value.kind is Kind.ENUMERATED and value.parts:
        inner = value.parts[1]
        if len(elements) == 2:
            bind(state, elements[0], at_most(plain(inner), Proof.LIKELY) if inner.sized else SAME)
            bind(state, elements[1], _batch(state, elements[1], _element(state, source, inner)))
            return inner
        value = inner
    elif value.kind is Kind.ZIPPED:
        if len(value.parts) == len(elements):
            for element, part in zip(elements, value.parts, strict=True):
                bind(state, element, _element(state, source, part))
        else:
            bind(state, target, _element(state, source, plain(value)))
        if not all(p.sized and p.cause.differs for p in value.parts):  # the shortest one ends it
            value = replace(value, sized=False, params=frozenset())
        return value
    elif isinstance(source, ast.Call) and last(dotted(source.func)) == "items" and len(elements) == 2:
        bind(state, elements[0], plain(value) if value.sized else SAME)  # the keys are the same unless other ones are put in
        bind(state, elements[1], _element(state, source, value))
        return value
    counts = isinstance(source, ast.Call) and last(dotted(source.func)) == "range" and not value.sized
    bind(state, target, SAME if counts else _batch(state, target, _element(state, source, value)))
    return value


def _batch(state: State, target: ast.expr, value: Value) -> Value:
    """A whole batch may be missing, where the code asks for that: its collate function gave none."""
    return replace(value, optional=True) if isinstance(target, ast.Name) and value.cause is Cause.DATA else value


def _element(state: State, source: ast.expr, value: Value) -> Value:
    if value.length:  # the keys of a dict
        return SAME
    if value.cause.differs or value.kind is Kind.LOADER:
        return replace(plain(value), sized=False, mean=value.mean and value.kind is not Kind.LOADER)
    name = last(dotted(unpacked(source)))
    if LOADER_NAMES.search(name) and state.summaries.is_parallel(state.module) and value.cause is Cause.UNKNOWN:
        link = state.link(source, f"`{name}` gives each rank its own batches (by its name)", by_name=True)
        return replace(differing(Cause.DATA, Proof.LIKELY, link), params=value.params)
    return replace(plain(value), sized=False, mean=False)


def bind(state: State, target: ast.expr, value: Value, *, grows: bool = True) -> None:
    """Give a target its value; a tuple element by element. grows: `d[k] = v` may bring a new key in."""
    if isinstance(target, (ast.Tuple, ast.List)):
        parts = value.parts if len(value.parts) == len(target.elts) else (plain(value),) * len(target.elts)
        for element, part in zip(target.elts, parts, strict=True):
            bind(state, element, part)
        return
    path = path_of(target)
    if not path:
        return
    inside = isinstance(target, (ast.Subscript, ast.Starred))
    if inside:
        if value.kind is Kind.WRAPPED and value.thing is not None and path:
            state.env[path] = Value(thing=Thing(Kind.MODELS, None, value.thing.waits))
            return
        if isinstance(target, ast.Subscript) and (entry := _entry(target)):
            state.env[entry] = value  # `config["rank"] = rank` says nothing of the other entries
            if value.cause is Cause.RANK:
                return
        key = value_of(state, target.slice) if isinstance(target, ast.Subscript) and not isinstance(target.slice, ast.Slice) else SAME
        if value.decided and value.cause is Cause.RANK:
            return  # one entry that rank 0 sets; the others stay as they are
        if grows and (key.cause.differs or key.params):  # which keys there are differs
            value = replace(made_of(value, key), sized=True)
        if isinstance(target, ast.Subscript) and (dotted(target.slice), path) in state.keys:
            state.env[path] = value  # `for k in d: d[k] = reduce(d[k])`: each entry is given anew
            return
        value = join((value_of(state, target.value) if path not in state.env else state.env[path], value))
        if value.cause.differs and state.data_loops:
            value = replace(value, mean=True)
        if state.is_parameter(path):
            state.filled.add(path)
    if value.params and path in value.params and path not in state.env:
        value = replace(value, params=value.params)  # `x = f(x)`: still a matter of the parameter
    state.env[path] = value
    if path.startswith("self.") and path.count(".") == 1:
        name = path[5:]
        state.sets[name] = join((state.sets[name], value)) if name in state.sets else value


def _entry(node: ast.Subscript) -> str:
    """The path of one entry of a dict, where its key is written out."""
    path = dotted(node.value)
    return f"{path}[{node.slice.value!r}]" if path and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str) else ""


# Tests


def test_value(state: State, node: ast.expr) -> Value:
    """What an expression decides as a test: whether something is there at all is another question than what it holds."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return test_value(state, node.operand)
    if isinstance(node, ast.BoolOp):
        return join(plain(test_value(state, v)) for v in node.values)
    split = known_split(state.module, node, state.project)
    if split is not None and split.true is not Ranks.ALL:
        proof = Proof.LIKELY if Ranks.UNKNOWN in (split.true, split.false) else Proof.PROVEN
        return differing(Cause.RANK, proof, state.link(node, f"`{state.short(node)}` asks for the rank"))
    if isinstance(node, ast.Compare):
        return _compared(state, node)
    if isinstance(node, ast.Call) and last(dotted(node.func)) in IS_KIND:
        value_of(state, node)
        return SAME
    value = value_of(state, node)
    if value.thing is not None or value.parts or value.kind is Kind.LOADER:
        return _presence(value)
    if value.listed and isinstance(node, (ast.Name, ast.Attribute)):
        return _length(value)  # `if not found:`
    return plain(value)


def _compared(state: State, node: ast.Compare) -> Value:
    ends = [node.left, *node.comparators]
    if any(isinstance(e, ast.Constant) and e.value is None for e in ends):
        return _presence(join(value_of(state, e) for e in ends))
    named = isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
    if all(isinstance(op, (ast.In, ast.NotIn)) for op in node.ops) and named:
        return SAME  # a key that a batch or a configuration has
    if all(isinstance(op, (ast.In, ast.NotIn)) for op in node.ops) and not isinstance(node.left, ast.Constant) and not value_of(state, node.left).cause.differs:
        return _length(value_of(state, ends[-1]))  # which keys there are
    found = state.values[id(node)] = made_of(*(value_of(state, e) for e in ends))
    return found


def _presence(value: Value) -> Value:
    if value.optional or value.cause is Cause.RANK:
        return plain(replace(value, optional=False))
    return SAME if not value.params else Value(Cause.UNKNOWN, Proof.UNKNOWN)


# Calls


def _call(state: State, node: ast.Call) -> Value:
    name = qualified(state.module, node.func)
    end = last(name) if name else (node.func.attr if isinstance(node.func, ast.Attribute) else "")
    holder = value_of(state, node.func.value) if isinstance(node.func, ast.Attribute) else None
    args = [value_of(state, a) for a in node.args]
    keywords = {k.arg or "**": value_of(state, k.value) for k in node.keywords}
    if end == "len" and len(args) == 1 and node.args:
        return _length(args[0])
    if name == "enumerate" and args:
        return replace(plain(args[0]), thing=Thing(Kind.ENUMERATED), parts=(SAME, args[0]))
    if name == "zip" and args:
        return replace(made_of(*args), thing=Thing(Kind.ZIPPED), parts=tuple(args))
    if name == "getattr" and len(node.args) > 1 and isinstance(node.args[1], ast.Constant) and node.args[1].value == "module":
        return Value(thing=Thing(Kind.MODULE, args[0].thing.site if args[0].thing else None))
    if end == "keys" and holder is not None and not holder.sized:
        return replace(plain(holder), length=True) if holder.params and not holder.cause.differs else SAME
    if end in ("range", "arange", "islice"):
        return _counted(state, node, end, args)
    if end in ("split", "chunk", "unfold") and holder is not None and len(node.args) > 0:
        return _pieces(state, node, holder, args)
    if end in SELECTS:
        found = made_of(*([holder] if holder else []), *args)
        return replace(found, sized=True) if found.cause.differs or found.params else found
    if end in ("size", "numel", "dim", "ndimension") and holder is not None:
        return _size(state, node, holder)
    if end == "format" and names_device(node.func):
        return SAME
    if MEMBER_WORD.search(end) and (rank := _as_rank(state, node)) is not None:
        return rank
    return calls.called(state, node, name, end, holder, args, keywords)


def _counted(state: State, node: ast.Call, end: str, args: list[Value]) -> Value:
    """`range(rank, n, world)` and the like: how many there are is a matter of what they are counted by."""
    bounds = args[1:] if end == "islice" else args
    found = made_of(*bounds)
    if not (found.cause.differs or found.params):
        return plain(args[0]) if end == "islice" and args else SAME
    if len(bounds) == 2 and all(b.cause.differs or b.params for b in bounds):  # `range(first, first + n)`
        even = not any(isinstance(n, ast.Call) and last(dotted(n.func)) == "min" for n in walk(node.args[-1]))
    else:
        even = any(_divides(state, a) for a in node.args[-2:-1] if len(bounds) == 3)
    own = len(bounds) == 3 and (bounds[0].cause is Cause.RANK or bounds[0].params)
    link = state.link(node, f"`{state.short(node)}` is each rank's own share")
    if own and bounds[0].cause is Cause.RANK:
        return Value(Cause.DATA, bounds[0].proof, (link,), params=found.params, sized=not even)
    return replace(along(found, link) if own else found, sized=not even)


def _pieces(state: State, node: ast.Call, holder: Value, args: list[Value]) -> Value:
    """`x.split(16, dim=1)`: as many pieces as the batch is long, unless it was padded."""
    assert isinstance(node.func, ast.Attribute)
    found = made_of(holder, *args)
    dim = next((k.value for k in node.keywords if k.arg == "dim"), node.args[1] if len(node.args) > 1 else None)
    first = dim is None or (isinstance(dim, ast.Constant) and dim.value == 0)
    if node.func.attr == "chunk" or (first and not holder.sized) or _divides(state, node.func.value):
        return replace(found, sized=False)
    return replace(at_most(found, Proof.LIKELY), sized=True) if found.cause.differs or found.params else found


def _length(value: Value) -> Value:
    """How long something is: as long as on the others, unless its elements were picked by what they hold."""
    if value.sized and (value.cause.differs or value.params):
        return plain(value)
    if value.params and not value.cause.differs:
        return replace(plain(value), length=True)
    return SAME if value.cause is not Cause.UNKNOWN else UNKNOWN


def _size(state: State, node: ast.Call, holder: Value) -> Value:
    if holder.sized:
        return plain(holder)
    whole = isinstance(node.func, ast.Attribute) and node.func.attr == "numel"
    first = not whole and (not node.args or (isinstance(node.args[0], ast.Constant) and node.args[0].value == 0))
    return SAME if first else at_most(plain(holder), Proof.LIKELY)
