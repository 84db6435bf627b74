"""Where two paths meet: what only one of them carries is lost, and the test that chose is written down."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from codemods.analysis.literals import is_none
from codemods.analysis.model.flow_frame import Branch, Env, Frame, asks_for_none
from codemods.analysis.model.flow_tests import cause_of, is_random_call, optional_names, varies
from codemods.analysis.model.flow_truth import truth
from codemods.analysis.model.flow_values import NONE, NOTHING, Cause, Decision, Names, Value, merged
from codemods.analysis.model.member_kinds import canonical
from codemods.analysis.model.model_members import members_of
from codemods.analysis.names import qualified
from codemods.files.source import walk

if TYPE_CHECKING:
    from codemods.analysis.model.model_flow import Flow


def undecided(flow: Flow, frame: Frame, env: Env, test: ast.expr) -> ast.expr:
    """The part of a test that the source leaves open: `flow.training and x` comes to `x`."""
    if isinstance(test, ast.BoolOp):
        open_parts = [v for v in test.values if truth(flow, frame, env, v) is None]
        if len(open_parts) == 1:
            return undecided(flow, frame, env, open_parts[0])
    return test


def meet_all(flow: Flow, frame: Frame, a: Env, b: Env, test: ast.expr | None) -> Env:
    out: Env = {}
    for name in {**a, **b}:
        if name in a and name in b:
            out[name] = meet(flow, frame, a[name], b[name], test if _is_read_behind(frame, name, test) else None)
        else:
            out[name] = a.get(name) or b.get(name) or NOTHING
    return out


def _is_read_behind(frame: Frame, name: str, test: ast.expr | None) -> bool:
    """False for a name that nothing in the function reads behind the branch: it was bound again for a line of the log."""
    if test is None or "." in name or not name.isidentifier():
        return True
    branch = frame.module.parent(test)
    while isinstance(branch, (ast.BoolOp, ast.UnaryOp)):
        branch = frame.module.parent(branch)
    ups = [branch, *frame.module.ancestors(branch)] if isinstance(branch, ast.If) else []
    if not ups or any(isinstance(up, (ast.For, ast.AsyncFor, ast.While)) for up in ups):
        return True
    end, last = getattr(branch, "end_lineno", 0), frame.function.end_lineno or 0
    return any(end < n.lineno <= last for n in frame.module.reads_of(name))


def meet(flow: Flow, frame: Frame, a: Value, b: Value, test: ast.expr | None) -> Value:
    """What is left where two paths meet; parameters that only one side carries are written down with the test."""
    if a == b:
        return a
    keep = conditional(flow, frame, test) if test is not None else NONE
    # what the other side may carry as well is lost for another reason than this test
    lost = ((a.must - b.must - b.may) | (b.must - a.must - a.may)) - keep
    if lost and test is not None:
        decide(flow, frame, test, lost, random=is_random(flow, frame, test))
    return merged(a, b, keep)


def decide(flow: Flow, frame: Frame, test: ast.expr, lost: Names, *, random: bool) -> None:
    module = frame.module
    optional = optional_names(frame, test)
    cause = cause_of(module, test, random=random, parameters=frame.parameters, optional=optional)
    if cause is Cause.OTHER and not varies(frame, {}, test):
        cause = Cause.CONFIG
    text = " ".join(module.text_of(test).split())
    flow.decisions.append(Decision(cause, text, module.path, test.lineno, frozenset(lost), random))
    key = (module.path, test.lineno)
    before = flow.branches[key].lost if key in flow.branches else NONE
    flow.branches[key] = Branch(text, module.path, test.lineno, before | lost, asks_for_none(test))


def is_random(flow: Flow, frame: Frame, test: ast.expr) -> bool:
    if _is_none_by_settings(flow, frame, test):
        return False
    calls = (n for n in walk(test) if isinstance(n, ast.Call))
    return id(test) in flow.random_tests or any(is_random_call(frame.module, c) for c in calls)


def _is_none_by_settings(flow: Flow, frame: Frame, test: ast.expr) -> bool:
    """True for `mask is not None` of a name that is None, or else a tensor of random numbers, and no chance decides which."""
    name = test.left if isinstance(test, ast.Compare) and asks_for_none(test) else None
    if not isinstance(name, ast.Name) or name.id in frame.parameters:
        return False
    given = _given(frame, name.id)
    if not given or not all(is_none(a.value) or _is_tensor(frame, a.value) for a in given):
        return False
    over = (up.test for a in given for up in frame.module.ancestors(a) if isinstance(up, (ast.If, ast.While)))
    return not any(id(t) in flow.random_tests or _draws(frame, t) for t in over)


def _given(frame: Frame, name: str) -> list[ast.Assign]:
    assigns = (n for n in walk(frame.function) if isinstance(n, ast.Assign))
    return [a for a in assigns if any(isinstance(t, ast.Name) and t.id == name for t in a.targets)]


def _is_tensor(frame: Frame, value: ast.expr, depth: int = 2) -> bool:
    """True for what is never None: a comparison, arithmetic, what a function of torch gives, and a name of one of these."""
    if isinstance(value, ast.Name) and depth and value.id not in frame.parameters:
        given = _given(frame, value.id)
        return bool(given) and all(_is_tensor(frame, a.value, depth - 1) for a in given)
    if isinstance(value, ast.Call):
        return qualified(frame.module, value.func).startswith(("torch.", "numpy."))
    return isinstance(value, (ast.Compare, ast.BinOp))


def _draws(frame: Frame, test: ast.expr) -> bool:
    return any(isinstance(n, ast.Call) and is_random_call(frame.module, n) for n in walk(test))


def note_random(flow: Flow, frame: Frame, env: Env, test: ast.expr) -> None:
    if flow.eval(frame, env, test).random:
        flow.random_tests.add(id(test))


def conditional(flow: Flow, frame: Frame, test: ast.expr) -> Names:
    """Parameters that exist only where the test holds (or only where it does not): the branch cannot leave them out."""
    if frame.facts is None or any(isinstance(n, ast.Name) and n.id in frame.parameters for n in walk(test)):
        return NONE  # an argument of forward may have the name of one that the constructor tests
    text = canonical(frame.module, test, frame.function)  # type: ignore[arg-type]
    bare = text[4:] if text.startswith("not ") else text
    members = members_of(flow.project, frame.facts)
    names = {n for n, m in members.by_name.items() if _decided_by(bare, m.condition)}
    heads = tuple(f"{frame.owner}.{name}".lstrip(".") + end for name in names for end in (".", "[", "("))
    return frozenset(path for path in flow.all_paths if heads and f"{path}.".startswith(heads))


def _decided_by(test: str, made_under: str) -> bool:
    """True where a module that is made under these tests exists for one answer of `test` alone."""
    return bool({test, f"not {test}"} & {made_under, *made_under.split(" and ")})
