"""What calls mean outside of a model, where a run starts at the code that trains it: makers, wrappers, backward passes."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from codemods.analysis.class_index import Role, class_facts, find_class
from codemods.analysis.model.flow_frame import Env, Frame, Pass
from codemods.analysis.model.flow_values import NOTHING, Ref, Value
from codemods.analysis.model.member_kinds import Kind, Member
from codemods.analysis.names import dotted, last, qualified

if TYPE_CHECKING:
    from codemods.analysis.model.model_flow import Flow

_HANDS_ON = frozenset({"DistributedDataParallel", "DataParallel", "DDP", "convert_sync_batchnorm"})


def outside_call(
    flow: Flow, frame: Frame, env: Env, node: ast.Call, args: list[Value], keywords: dict[str, Value]
) -> Value | None:
    """The value of a call that makes the model, wraps it or runs backward; None for every other."""
    assert flow.loop is not None
    if frame.facts is not None:
        return None  # inside of a module
    name = qualified(frame.module, node.func)
    if last(name) in _HANDS_ON:
        return next((v for v in (*args[:1], keywords.get("module", NOTHING)) if v.refs), None)
    if isinstance(node.func, ast.Attribute) and node.func.attr == "backward":
        _note(flow, frame, env, node, node.func, args)
        return NOTHING
    written = dotted(node.func)
    site = find_class(flow.project, frame.module, written) if written and written.partition(".")[0] not in env else None
    if site is None or not class_facts(flow.project, site.module, site.node).is_a(Role.NN_MODULE):
        return None
    if site.node is flow.loop.node:
        return Value(refs=(flow.loop.root,))
    other = Member(site.name, Kind.MODULE, site.name, site.module.path, site.node.lineno, site)
    return Value(refs=(Ref(f"({site.name})", other),))


def _note(flow: Flow, frame: Frame, env: Env, node: ast.Call, func: ast.Attribute, args: list[Value]) -> None:
    """`loss.backward()`, `scaler.scale(loss).backward()`, `accelerator.backward(loss)`."""
    assert flow.loop is not None
    held = func.value
    if isinstance(held, ast.Call) and isinstance(held.func, ast.Attribute) and held.func.attr == "scale" and len(held.args) == 1:
        held = held.args[0]
    loss = flow.eval(frame, env, held)
    if not loss.carries and args:
        loss = args[0]
    flow.loop.passes.append(backward_pass(flow, frame, node, loss))


def backward_pass(flow: Flow, frame: Frame, node: ast.Call, loss: Value) -> Pass:
    """The pass that a call runs, with what is known at that point."""
    text = " ".join(frame.module.text_of(node).split())[:60]
    found = (tuple(flow.assumptions), tuple(flow.problems), len(flow.decisions))
    return Pass(loss, frame.module.path, node.lineno, text, *found)
