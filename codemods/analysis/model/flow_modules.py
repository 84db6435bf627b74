"""What calling a sub-module does: its own parameters join those of what it is given."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from codemods.analysis.class_index import ClassFacts, class_facts
from codemods.analysis.model.flow_frame import Frame
from codemods.analysis.model.flow_values import NONE, Cause, Decision, Ref, Value, doubtful, flat, parts_of, union
from codemods.analysis.model.member_kinds import Kind
from codemods.analysis.model.model_members import BASE, members_of
from codemods.data import torch_modules as table
from codemods.runtime.record import replace

if TYPE_CHECKING:
    from codemods.analysis.model.model_flow import Flow


def call_refs(
    flow: Flow, frame: Frame, refs: tuple[Ref, ...], args: list[Value], keywords: dict[str, Value], node: ast.Call
) -> Value:
    results = [_call_ref(flow, frame, ref, args, keywords, node) for ref in refs]
    if len(results) == 1:
        return results[0]
    if any(r.parts or r.many for r in results):
        return doubtful(results, f"the outputs of several modules ({frame.module.path}:{node.lineno})")
    if all(ref.each for ref in refs):
        return union(results)
    common = frozenset.intersection(*(r.must for r in results))
    joined = union(results)
    lost = joined.must - common
    if lost and not refs[0].partial:
        text = " ".join(frame.module.text_of(node.func).split())
        flow.decisions.append(Decision(Cause.OTHER, f"which module {text} is", frame.module.path, node.lineno, lost))
    return replace(joined, must=common, may=joined.may | joined.must)


def _call_ref(
    flow: Flow, frame: Frame, ref: Ref, args: list[Value], keywords: dict[str, Value], node: ast.Call
) -> Value:
    if ref.partial:
        return _partial_call(flow, frame, ref, args, keywords, node)
    member = ref.member
    inputs = union(map(flat, [*args, *keywords.values()]))
    names = frozenset({ref.path})
    if member.kind is Kind.LEAF:
        note_use(flow, frame, ref.path, node)
        out = union([inputs, Value(names, names)])
        if member.note in table.FIRST_OUTPUT_ONLY:
            other = Value(inputs.must, out.may, out.doubts | {f"the second output of {ref.path}"})
            return replace(out, parts=((0, out), (1, other)))
        return out
    if member.kind is Kind.UNKNOWN:
        note_use(flow, frame, ref.path, node)
        return Value(names, names | inputs.may | inputs.must, inputs.doubts | ({member.note} if inputs.carries else NONE))
    if member.kind is Kind.FREE:
        return inputs
    if member.kind is Kind.MODULE and member.site is not None:
        return _call_module(flow, frame, ref, args, keywords, node)
    if member.kind is Kind.SEQUENCE:
        note_use(flow, frame, ref.path, node)
        current = args
        value = inputs
        for part in parts_of(ref):
            value = _call_ref(flow, frame, part, current, {}, node)
            current = [value]
        return value
    if member.kind is Kind.CHOICE:
        return _call_choice(flow, frame, ref, args, keywords, node)
    if member.kind is Kind.PLAIN and member.note != "argument":
        return doubtful([inputs], f"what {frame.module.text_of(node.func)[:50]}(…) is, is not known")
    return doubtful([inputs], f"{frame.module.text_of(node.func)[:50]} is handed to the constructor")


def _call_module(
    flow: Flow, frame: Frame, ref: Ref, args: list[Value], keywords: dict[str, Value], node: ast.Call
) -> Value:
    site = ref.member.site
    assert site is not None
    facts = class_facts(flow.project, site.module, site.node)
    found = facts.method("forward")
    if found is None and (base := torch_base(flow, ref, facts)) is not None:
        note_use(flow, frame, ref.path, node)
        return union([*map(flat, args), *map(flat, keywords.values()), base])
    if found is None:
        below = frozenset(flow.parameters_below(ref))
        text = f"the forward of {site.name} is not part of the project"
        return doubtful([*args, *keywords.values(), Value(NONE, below)], text)
    if ref.path:
        note_use(flow, frame, ref.path, node)
    if site.node in flow.within:
        return doubtful([*args, *keywords.values(), Value(NONE, frozenset({ref.path}))], f"{site.name} holds one of its kind")
    inner = flow.arguments(found[1], args, dict(keywords), bound=True)
    flow.within.append(site.node)
    try:
        return flow.run(Frame(found[0].module, found[1], facts), {**inner, "self": Value(refs=(ref,))})
    finally:
        flow.within.pop()


def torch_base(flow: Flow, ref: Ref, facts: ClassFacts) -> Value | None:
    """What the forward of a torch base adds: its parameters; None where there is no such base."""
    base = members_of(flow.project, facts).by_name.get(BASE)
    if base is None or base.note in table.FIRST_OUTPUT_ONLY:
        return None
    names = frozenset({f"{ref.path}.{BASE}".lstrip(".")})
    return Value(names, names)


def _call_choice(
    flow: Flow, frame: Frame, ref: Ref, args: list[Value], keywords: dict[str, Value], node: ast.Call
) -> Value:
    """One of several modules, chosen when the model is built: each uses its own parameters, all of what they are given."""
    results: list[tuple[Value, frozenset[str]]] = []
    for part in parts_of(ref):
        result = _call_ref(flow, frame, part, args, keywords, node)
        results.append((result, frozenset(flow.parameters_below(part))))
    joined = union(r for r, _ in results)
    if any(r.parts or r.many for r, _ in results):
        return doubtful([joined], f"the outputs of {ref.path} differ by what it is")
    shared = frozenset.intersection(*(r.must for r, _ in results))
    own = frozenset(p for r, mine in results for p in r.must & mine)
    return replace(joined, must=shared | own, may=joined.may | joined.must)


def _partial_call(
    flow: Flow, frame: Frame, ref: Ref, args: list[Value], keywords: dict[str, Value], node: ast.Call
) -> Value:
    """A call of `container[index]`: the parameters of the element take part in this step, or not."""
    below = frozenset(flow.parameters_below(replace(ref, partial="")))
    whole = _call_ref(flow, frame, replace(ref, partial=""), args, keywords, node)
    if whole.parts or whole.many:
        whole = doubtful([whole], f"the outputs of {ref.partial}")
    lost = (whole.must | whole.may) & below
    flow.decisions.append(Decision(ref.cause, ref.partial, frame.module.path, node.lineno, lost))
    return replace(flat(whole), must=whole.must - below, may=whole.may | whole.must)


def note_use(flow: Flow, frame: Frame, path: str, node: ast.AST) -> None:
    line = getattr(node, "lineno", 0)
    text = " ".join(frame.module.text_of(node).split())
    flow.used_at.setdefault(path, (frame.module.path, line, text))
