"""What attributes, subscripts and comprehensions do to the values in a model; which modules a loop goes over."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from codemods.analysis.bindings import bindings_of
from codemods.analysis.class_index import ClassFacts, class_facts
from codemods.analysis.model.flow_frame import Bound, Env, Frame
from codemods.analysis.model.flow_modules import note_use
from codemods.analysis.model.flow_tests import cause_of, varies
from codemods.analysis.model.flow_values import NONE, NOTHING, UNSET, Cause, Ref, Value, doubtful, flat, parts_of, union
from codemods.analysis.model.member_kinds import Kind
from codemods.analysis.model.model_members import BASE, members_of, set_from_outside
from codemods.analysis.names import dotted, last
from codemods.data import torch_modules as table
from codemods.files.source import called_name
from codemods.runtime.record import replace

if TYPE_CHECKING:
    from codemods.analysis.model.model_flow import Flow


def attribute(flow: Flow, frame: Frame, env: Env, node: ast.Attribute) -> Value:
    name = dotted(node)
    if name in env:
        return env[name]
    owner = flow.eval(frame, env, node.value)
    if owner.refs:
        return member_value(flow, owner, node.attr, frame, node)
    if node.attr in table.STOPPING_ATTRIBUTES:
        return NOTHING
    if (part := owner.part(node.attr)) is not None:
        return part
    return flow.element(owner, node.attr) if owner.wrapped or owner.parts else flat(owner)


def member_value(flow: Flow, owner: Value, attr: str, frame: Frame, node: ast.AST) -> Value:
    """`module.attr`: a sub-module, a parameter, a literal, or something the run has stored there."""
    found: list[Value] = []
    for ref in owner.refs:
        member = ref.member
        path = f"{ref.path}.{attr}" if ref.path else attr
        if (stored := flow.heap.get(f"{ref.path}|{attr}")) is not None:
            found.append(stored)
        elif member.kind is Kind.MODULE and member.site is not None:
            facts = class_facts(flow.project, member.site.module, member.site.node)
            members = members_of(flow.project, facts)
            inner = members.by_name.get(attr)
            if inner is None and (made := _method(flow, facts, ref, attr)) is not None:
                found.append(made)
                continue
            if inner is not None and inner.kind is Kind.ALIAS and inner.note in members.by_name:
                path, inner = (f"{ref.path}.{inner.note}" if ref.path else inner.note), members.by_name[inner.note]
            if inner is None and attr in ("weight", "bias") and (base := members.by_name.get(BASE)) is not None:
                found.append(_leaf_attribute(flow, frame, Ref(f"{ref.path}.{BASE}".lstrip("."), base), attr, node))
                continue
            if inner is None or inner.kind is Kind.PLAIN:
                if attr in members.state:
                    below = frozenset(flow.parameters_below(ref))
                    found.append(Value(NONE, below, frozenset({f"what self.{attr} holds is not followed"})))
                    continue
                known = members.constants.get(attr, UNSET)
                if known is not UNSET and set_from_outside(flow.project, attr):
                    known = UNSET
                found.append(Value(constant=known) if known is not UNSET else NOTHING)
            elif inner.kind is Kind.PARAMETER:
                note_use(flow, frame, path, node)
                found.append(Value(frozenset({path}), frozenset({path})))
            else:
                found.append(Value(refs=(Ref(path, inner, ref.partial),)))
        elif member.kind is Kind.LEAF:
            found.append(_leaf_attribute(flow, frame, ref, attr, node))
        elif member.kind is Kind.UNKNOWN:
            part = Ref(ref.path, member, path, cause=Cause.OTHER)
            found.append(Value(NONE, frozenset({ref.path}), frozenset({member.note}), refs=(part,)))
    return found[0] if len(found) == 1 else replace(union(found), refs=tuple(r for v in found for r in v.refs))


def _method(flow: Flow, facts: ClassFacts, ref: Ref, attr: str) -> Value | None:
    """What a property of the class gives; a method as a value, to be called later."""
    found = facts.method(attr)
    if found is None:
        return None
    if any(last(dotted(d)) in ("property", "cached_property") for d in found[1].decorator_list):
        return flow.call_method(ref, facts, attr, {})
    return Value(closure=(found[1], Bound(ref, facts, found[0].module)))


def _leaf_attribute(flow: Flow, frame: Frame, ref: Ref, attr: str, node: ast.AST) -> Value:
    """`self.fc.weight`: all of an Embedding, a part of a Linear."""
    if attr not in ("weight", "bias", "in_proj_weight"):
        return NOTHING
    note_use(flow, frame, ref.path, node)
    names = frozenset({ref.path})
    if ref.member.note in table.ONE_PARAMETER:
        return Value(names, names)
    return Value(NONE, names, frozenset({f"only {ref.path}.{attr} is read"}))


def subscript(flow: Flow, frame: Frame, env: Env, node: ast.Subscript) -> Value:
    owner = flow.eval(frame, env, node.value)
    index = flow.eval(frame, env, node.slice) if not isinstance(node.slice, ast.Slice) else NOTHING
    if owner.refs:
        chosen = [r for ref in owner.refs for r in _chosen(flow, frame, env, ref, node, index)]
        return Value(refs=tuple(chosen))
    key = _constant_index(node.slice)
    if key is UNSET:
        key = index.constant
    if isinstance(key, int) and key < 0 and owner.parts and all(isinstance(k, int) for k, _ in owner.parts):
        key += len(owner.parts)
    if key is not UNSET:
        return flow.element(owner, key)
    if owner.parts and isinstance(node.slice, ast.Slice):
        return _sliced(owner, node.slice)
    return flow.element(owner, object()) if owner.parts or owner.many else flat(owner)


def _cut(written: ast.Slice) -> slice | None:
    """A slice whose ends are written out."""
    ends = [_constant_index(e) if e is not None else None for e in (written.lower, written.upper, written.step)]
    numbers = [e for e in ends if e is None or isinstance(e, int)]
    return slice(*numbers) if len(numbers) == 3 else None


def _counts_along(frame: Frame, node: ast.Subscript) -> bool:
    """`for i in range(x.shape[1]): ... self.heads[i]`: a head for each layer, or scale, of what was made before."""
    if not isinstance(node.slice, ast.Name):
        return False
    for up in frame.module.ancestors(node):
        rounds: list[ast.For | ast.comprehension] = [up] if isinstance(up, ast.For) else getattr(up, "generators", [])
        for one in rounds:
            first = one.target.elts[0] if isinstance(one.target, ast.Tuple) and one.target.elts else one.target
            if not isinstance(first, ast.Name) or first.id != node.slice.id or not isinstance(one.iter, ast.Call):
                continue
            name, size = last(dotted(one.iter.func)), _size(frame, one.iter)
            return name == "enumerate" or (name == "range" and (".shape[" in size or ".size(" in size or "len(" in size))
    return False


def _size(frame: Frame, rounds: ast.Call) -> str:
    """What a loop counts to, as it is written; a name stands for the one value that it has: `n = len(maps)`."""
    end = rounds.args[-1] if len(rounds.args) == 1 else None
    bound = bindings_of(frame.module, end) if isinstance(end, ast.Name) else []
    value = bound[0].value if len(bound) == 1 and not bound[0].part else None
    return ast.unparse(rounds if value is None else value)


def _sliced(owner: Value, written: ast.Slice) -> Value:
    """`pair[1:]` of a tuple whose elements are known."""
    cut = _cut(written)
    if cut is None:
        return Value(NONE, owner.may | owner.must, owner.doubts | {"a slice of a tuple"})
    kept = [v for _, v in owner.parts][cut]
    return replace(union(kept), parts=tuple(enumerate(kept)))


def _constant_index(node: ast.expr) -> object:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        return -node.operand.value  # type: ignore[operator]
    return UNSET


def _chosen(flow: Flow, frame: Frame, env: Env, ref: Ref, node: ast.Subscript, index: Value) -> list[Ref]:
    """The elements of a container that `container[index]` may be; partial where the index is not constant."""
    member = ref.member
    if member.kind not in (Kind.LIST, Kind.DICT, Kind.SEQUENCE):
        if member.kind is Kind.LEAF:
            return []
        if _counts_along(frame, node) or index.index_of:  # the counter of a loop: the same elements in each step
            return [ref]
        return [replace(ref, partial=frame.module.text_of(node))]
    parts = parts_of(ref)
    key = _constant_index(node.slice)
    if key is UNSET:
        key = index.constant
    exact = not any(p.member.repeated for p in parts)
    if index.index_of and not (exact and isinstance(key, int)):
        if index.index_of != ref.path:
            place = f"{frame.module.path}:{node.lineno}"
            flow.assumptions.setdefault(f"the loop round {place} goes over every element of {ref.path}")
        return [replace(p, each=True) for p in parts]
    if isinstance(key, int) and exact and -len(parts) <= key < len(parts):
        return [parts[key]]
    looped = isinstance(frame.module.parent(node), (ast.For, ast.comprehension))
    if looped and isinstance(node.slice, ast.Slice) and exact and (cut := _cut(node.slice)) is not None:
        return parts[cut]
    if _counts_along(frame, node):
        flow.assumptions.setdefault(f"the loop round {frame.module.path}:{node.lineno} goes over every element of {ref.path}")
        return [replace(p, each=True) for p in parts]
    if isinstance(key, str) and any(p.member.name == key for p in parts):
        return [p for p in parts if p.member.name == key]
    text = " ".join(frame.module.text_of(node).split())
    return [replace(p, partial=text, cause=_index_cause(flow, frame, env, node.slice)) for p in parts]


def _index_cause(flow: Flow, frame: Frame, env: Env, index: ast.expr) -> Cause:
    """What picks the element: a random number, something of this step, or the structure of the model alone."""
    random = flow.eval(frame, env, index).random if not isinstance(index, ast.Slice) else False
    cause = cause_of(frame.module, index, random=random, parameters=frame.parameters)
    if cause in (Cause.RANDOM, Cause.SCHEDULE, Cause.RANK):
        return cause
    return Cause.INDEX if varies(frame, env, index) else Cause.CONFIG


def iterate(flow: Flow, frame: Frame, env: Env, node: ast.expr) -> list[Value] | None:
    """The values a loop variable takes when the loop goes over modules; None for any other loop."""
    if isinstance(node, ast.Call):
        name = called_name(node)
        if name == "range":
            return _index_rounds(flow, frame, env, node)
        inner = [iterate(flow, frame, env, a) for a in node.args if not isinstance(a, ast.Starred)]
        if name == "enumerate" and inner and inner[0] is not None:
            return [_pair(Value(constant=i if len(inner[0]) > 1 else UNSET), v) for i, v in enumerate(inner[0])]
        if name in ("reversed", "list", "tuple") and inner and inner[0] is not None:
            return list(reversed(inner[0])) if name == "reversed" else inner[0]
        if name == "zip" and any(i is not None for i in inner):
            return _zipped(flow, frame, env, node, inner)
        if isinstance(node.func, ast.Attribute) and name in ("values", "items", "children", "named_children"):
            owner = flow.eval(frame, env, node.func.value)
            if owner.parts and not owner.refs and any(v.closure is not None for _, v in owner.parts):
                inside = [v for _, v in owner.parts]  # a dict of functions, each called in its turn
                return inside if name == "values" else [_pair(Value(constant=k), v) for k, v in owner.parts]
            parts = [Value(refs=(p,)) for r in owner.refs for p in parts_of(r)]
            if not parts or any(r.member.kind is Kind.MODULE for r in owner.refs):
                return None
            return parts if name in ("values", "children") else [_pair(NOTHING, p) for p in parts]
        return None
    if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
        value = flow.eval(frame, env, node)
        if value.refs and all(r.member.kind in (Kind.LIST, Kind.SEQUENCE) for r in value.refs):
            return [Value(refs=(p,)) for r in value.refs for p in parts_of(r)]
        if value.refs and isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            return [Value(refs=(r,)) for r in value.refs]
    if isinstance(node, (ast.List, ast.Tuple)):
        values = [flow.eval(frame, env, e) for e in node.elts]
        return values if any(v.refs for v in values) else None
    return None


def _pair(*values: Value) -> Value:
    return replace(union(values), parts=tuple(enumerate(values)))


def _index_rounds(flow: Flow, frame: Frame, env: Env, node: ast.Call) -> list[Value] | None:
    """`range(len(self.blocks))`: an index that goes over all of them."""
    size = node.args[0] if len(node.args) == 1 else None
    if isinstance(size, ast.Call) and dotted(size.func) == "len" and size.args:
        owner = flow.eval(frame, env, size.args[0])
        if len(owner.refs) == 1 and owner.refs[0].member.kind in (Kind.LIST, Kind.SEQUENCE):
            count = len(owner.refs[0].member.parts)
            path = owner.refs[0].path
            return [Value(constant=i if count > 1 else UNSET, index_of=path) for i in range(count)]
    return None


def _zipped(flow: Flow, frame: Frame, env: Env, node: ast.Call, inner: list[list[Value] | None]) -> list[Value] | None:
    lengths = {len(i) for i in inner if i is not None}
    if len(lengths) != 1:
        return None
    count = lengths.pop()
    columns: list[list[Value]] = []
    for argument, found in zip(node.args, inner, strict=False):
        plain = flow.element(flow.eval(frame, env, argument), object()) if found is None else NOTHING
        columns.append(found if found is not None else [plain] * count)
    return [_pair(*row) for row in zip(*columns, strict=True)]


def comprehension(
    flow: Flow, frame: Frame, env: Env, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
) -> Value:
    inner = dict(env)
    element = node.value if isinstance(node, ast.DictComp) else node.elt
    generator = node.generators[0]
    rounds = iterate(flow, frame, inner, generator.iter) if len(node.generators) == 1 else None
    if rounds is None:
        for g in node.generators:
            flow.assign(frame, inner, g.target, flow.element(flow.eval(frame, inner, g.iter), object()))
        source = union(flow.eval(frame, env, g.iter) for g in node.generators[:1])
        made = flow.eval(frame, inner, element)
        whole = Value(made.must | (source.must if made.may >= source.must else NONE), made.may | source.may, made.doubts)
        found = [whole]
    else:
        found = []
        for value in rounds:
            flow.assign(frame, inner, generator.target, value)
            found.append(flow.eval(frame, inner, element))
    joined = union(found)
    if any(g.ifs for g in node.generators):
        return doubtful([joined], "a comprehension with a condition")
    parts = tuple(enumerate(found)) if rounds is not None and len(found) > 1 else ()
    return replace(joined, many=not parts, parts=parts)
