"""The loss of a training epoch that stands, unreduced, by the side of one that the same function reduces over the ranks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_in
from codemods.analysis.names import dotted
from codemods.analysis.variance.analysis import Analysis
from codemods.analysis.variance.guessed_shares import goes_through_share
from codemods.analysis.variance.number_roles import state_of
from codemods.analysis.variance.number_words import is_number
from codemods.analysis.variance.numbers import Beside, Number
from codemods.analysis.variance.outlets import shows
from codemods.analysis.variance.state import State
from codemods.analysis.variance.values import SAME, Value
from codemods.files.source import FunctionNode, SourceModule, called_name, walk, walk_scope

_KIND = re.compile(r"loss|acc|iou|dice|psnr|ssim|f1|auc|error|mse|mae|perplexity|ppl", re.I)
_IN_PLACE = frozenset({"all_reduce", "reduce", "allreduce"})
_STEPS = 4  # assignments from the reduction to the name that is shown


def reduced_beside(analysis: Analysis, module: SourceModule, number: Number) -> Beside | None:
    """What is reduced and shown by calls of the same name as the mean of an epoch of training, which is not.

    So the reader holds the two against each other: `log({"val_loss": reduced})`, `log({"train_loss": own})`.
    """
    shown, function = number.shown, module.function_of(number.shown)
    state = state_of(analysis, module, shown)
    if not isinstance(shown, ast.Call) or function is None or state is None:
        return None
    if not (number.value.mean and number.behind) or not goes_through_share(analysis, number.source):
        return None
    kinds = _kinds(number.text) or _kinds(" ".join(_keys_of(module, shown, number.text)))
    for part in _shown_alike(analysis, module, function, shown):
        if not kinds & _kinds(part.id):
            continue
        if analysis.resolved(state.site, _read_there(state, module, part)).differs:
            continue
        if (call := _reduction_of(state, module, function, part, _STEPS)) is not None:
            return Beside(" ".join(module.text_of(part).split()), call)
    return None


def _read_there(state: State, module: SourceModule, name: ast.Name) -> Value:
    """What a name holds: of `losses[0]` the entry alone is read."""
    for node in (name, *module.ancestors(name)):
        if not isinstance(node, ast.expr):
            break
        if (found := state.values.get(id(node))) is not None:
            return found
    return SAME


def _kinds(text: str) -> set[str]:
    return {m.lower() for m in _KIND.findall(text)}


def _keys_of(module: SourceModule, shown: ast.Call, text: str) -> Iterator[str]:
    """Under which words a call shows a number: its key in a dict, its keyword, the first argument beside it."""
    for node in walk(shown):
        if isinstance(node, ast.Dict):
            pairs = [(k.value, v) for k, v in zip(node.keys, node.values, strict=True) if isinstance(k, ast.Constant)]
            yield from (str(key) for key, value in pairs if text in " ".join(module.text_of(value).split()))
    yield from (k.arg for k in shown.keywords if k.arg and text in " ".join(module.text_of(k.value).split()))
    if len(shown.args) > 1 and isinstance(shown.args[0], ast.Constant):
        yield str(shown.args[0].value)


def _shown_alike(analysis: Analysis, module: SourceModule, function: FunctionNode, shown: ast.Call) -> Iterator[ast.Name]:
    """The names of losses and metrics that calls of the same name show on rank 0, in the function."""
    name = dotted(shown.func)
    for call in (n for n in walk_scope(function) if isinstance(n, ast.Call) and dotted(n.func) == name):
        if call is shown or shows(analysis.project, module, call):
            for given in (*call.args, *(k.value for k in call.keywords)):
                yield from (n for n in (given, *walk(given)) if isinstance(n, ast.Name) and is_number(n))


def _reduction_of(state: State, module: SourceModule, function: FunctionNode, name: ast.Name, steps: int) -> ast.Call | None:
    """The call that reduced what a name holds: it gave the value, or changed it where it stands."""
    if steps < 0:
        return None
    for call in (n for n in walk_scope(function) if isinstance(n, ast.Call) and n.args and called_name(n) in _IN_PLACE):
        if isinstance(call.args[0], ast.Name) and call.args[0].id == name.id and _carries(state, call):
            return call
    for bound in bindings_in(module, function, name.id):
        for node in (bound.value, *walk(bound.value)) if bound.value is not None else ():
            if isinstance(node, ast.Call) and _carries(state, node):
                return node
            if isinstance(node, ast.Name) and node.id != name.id and is_number(node):
                if (found := _reduction_of(state, module, function, node, steps - 1)) is not None:
                    return found
    return None


def _carries(state: State, call: ast.Call) -> bool:
    return any(m.carries for m in state.met.get(id(call), ()))
