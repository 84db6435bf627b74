"""The answers of tests that the source decides: `self.training`, a module that is there, a literal, a class."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from codemods.analysis.class_index import class_facts
from codemods.analysis.model.flow_frame import Env, Frame
from codemods.analysis.model.flow_values import UNSET
from codemods.analysis.model.member_kinds import Kind, canonical
from codemods.analysis.model.model_members import members_of, set_from_outside
from codemods.analysis.model.setting_values import configured_values, values_of
from codemods.analysis.names import dotted, last, qualified

if TYPE_CHECKING:
    from codemods.analysis.model.model_flow import Flow


_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.Is: operator.eq, ast.NotEq: operator.ne, ast.IsNot: operator.ne,
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip


def truth(flow: Flow, frame: Frame, env: Env, test: ast.expr) -> bool | None:
    """The answer of a test during training, where the source decides it."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = truth(flow, frame, env, test.operand)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp):
        answers = [truth(flow, frame, env, v) for v in test.values]
        decisive = isinstance(test.op, ast.Or)
        if decisive in answers:
            return decisive
        return None if None in answers else not decisive
    if isinstance(test, ast.Attribute) and test.attr == "training":
        return True
    if isinstance(test, ast.Constant):
        return bool(test.value)
    if isinstance(test, ast.Call):
        answer = _truth_of_call(flow, frame, env, test)
        return _by_setting(flow, frame, env, test, test, bool) if answer is None else answer
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _comparison(flow, frame, env, test)
    if isinstance(test, (ast.Name, ast.Attribute, ast.Subscript)):
        value = flow.eval(frame, env, test)
        if value.refs:
            return True
        if value.constant is UNSET:
            return _by_setting(flow, frame, env, test, test, bool)
        return bool(value.constant)
    return None


def _by_setting(
    flow: Flow, frame: Frame, env: Env, test: ast.expr, node: ast.expr, ask: Callable[[Any], bool]
) -> bool | None:
    """The answer for `self.use_aux` or `self.config.use_aux` where all values that the project gives come to the same one.

    A module that the constructor makes only under the other answer is not there, and needs no gradient.
    """
    owner = env.get("self")
    if not flow.settings or frame.facts is None or owner is None:
        return None
    members = members_of(flow.project, frame.facts)
    if isinstance(node, ast.Attribute) and dotted(node.value) == "self":
        if node.attr in members.state or set_from_outside(flow.project, node.attr):
            return None
        values = values_of(flow.project, frame.facts, node.attr)
    else:
        values = configured_values(flow.project, frame.facts, node)
    if values is None or not values.found:
        return None
    try:
        answers = {ask(value) for value in values.found}
    except TypeError:
        return None
    if len(answers) != 1:
        return None
    shown = " or ".join(repr(v) for v in values.found[:3])
    answer = answers.pop()
    text = canonical(frame.module, test, frame.function)  # type: ignore[arg-type]
    other = f"not {text}" if answer else text
    gone = {n for n, m in members.by_name.items() if other in m.condition.split(" and ")}
    for ref in owner.refs:
        heads = tuple(f"{ref.path}.{name}".lstrip(".") + end for name in gone for end in (".", "[", "("))
        flow.absent |= {path for path in flow.all_paths if f"{path}.".startswith(heads)}
    everywhere = f"as in all of the project's code, configurations and job files ({values.where})"
    flow.assumptions.setdefault(f"{values.name} is {shown}, {everywhere}")
    return answer


def _truth_of_call(flow: Flow, frame: Frame, env: Env, test: ast.Call) -> bool | None:
    name = qualified(frame.module, test.func)
    if name == "hasattr" and len(test.args) == 2 and isinstance(test.args[1], ast.Constant):
        owner = flow.eval(frame, env, test.args[0])
        for ref in owner.refs:
            if ref.member.site is not None:
                facts = class_facts(flow.project, ref.member.site.module, ref.member.site.node)
                if str(test.args[1].value) in members_of(flow.project, facts).by_name:
                    return True
        return None
    if name == "isinstance" and len(test.args) == 2:
        return _isinstance(flow, frame, env, test)
    if last(name) in ("is_scripting", "is_tracing", "is_in_onnx_export", "is_compiling", "is_exporting"):
        return False
    return True if name == "torch.is_grad_enabled" else None


def _isinstance(flow: Flow, frame: Frame, env: Env, test: ast.Call) -> bool | None:
    """`isinstance(block, Attention)` where both are known."""
    wanted = test.args[1].elts if isinstance(test.args[1], ast.Tuple) else [test.args[1]]
    names = {last(qualified(frame.module, w)) for w in wanted}
    answers = set()
    for ref in flow.eval(frame, env, test.args[0]).refs:
        member = ref.member
        if member.kind is Kind.MODULE and member.site is not None:
            facts = class_facts(flow.project, member.site.module, member.site.node)
            lineage = {s.name for s in facts.lineage} | {last(n) for n in facts.external}
            answers.add(True if names & lineage else None if facts.opaque else False)
        elif member.kind in (Kind.LEAF, Kind.FREE):
            answers.add(member.note in names or "Module" in names)
        else:
            answers.add(None)
    return answers.pop() if len(answers) == 1 else None


def _comparison(flow: Flow, frame: Frame, env: Env, test: ast.Compare) -> bool | None:
    left, op = test.left, test.ops[0]
    a, b = flow.eval(frame, env, left), flow.eval(frame, env, test.comparators[0])
    if isinstance(op, (ast.Is, ast.IsNot)) and b.is_none:
        same: bool | None = None
        if a.constant is not UNSET:
            same = a.constant is None
        elif a.refs or (a.must and not a.may - a.must) or _is_given(flow, frame, left):
            same = False
        return same if same is None or isinstance(op, ast.Is) else not same
    compare = _COMPARISONS.get(type(op))
    if compare is None or b.constant is UNSET:
        return None
    if a.constant is UNSET:
        return _by_setting(flow, frame, env, test, left, lambda value: bool(compare(value, b.constant)))
    try:
        return bool(compare(a.constant, b.constant))
    except TypeError:
        return None


def _is_given(flow: Flow, frame: Frame, node: ast.expr) -> bool:
    return frame.root and isinstance(node, ast.Name) and node.id in flow.given
