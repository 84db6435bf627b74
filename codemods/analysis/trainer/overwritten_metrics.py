"""A `compute_metrics` that is called for nothing: `eval_loss` is all that it returns, and the loop writes its own over it.

transformers calls the function only where the batches have labels, and there `prediction_step` has worked out the loss; behind
the call the loop sets `metrics["eval_loss"]` to the mean of these losses (`trainer.py` 4.5 to 5.23, `evaluation_loop`). A
bare key `loss` is another matter: it is renamed to `eval_loss` behind that, and wins.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.trainer.dead_metrics import Dead
from codemods.analysis.trainer.metric_obstacles import obstacles, returned_keys
from codemods.analysis.trainer.references import binding_scope, bindings
from codemods.analysis.trainer.trainer_calls import TrainerCall, other_uses
from codemods.api.findings import Evidence
from codemods.files.source import FunctionNode, SourceModule, walk

# Calls that only look at numbers.
_LOOKS = frozenset(
    {"abs", "all", "any", "bool", "dict", "float", "getattr", "hasattr", "int", "isinstance", "len", "list", "max", "min",
     "range", "round", "str", "sum", "tuple", "type", "zip"}
)  # fmt: skip
_METHODS = frozenset(
    {"argmax", "astype", "contiguous", "cpu", "detach", "double", "exp", "flatten", "float", "get", "item", "items", "keys",
     "log", "long", "max", "mean", "min", "numel", "numpy", "ravel", "reshape", "size", "squeeze", "std", "sum", "to", "tolist",
     "transpose", "unsqueeze", "values", "view"}
)  # fmt: skip
_NUMERIC = frozenset(
    {"abs", "argmax", "array", "asarray", "as_tensor", "concatenate", "cross_entropy", "exp", "from_numpy", "isnan", "is_tensor",
     "log", "log_softmax", "mean", "mse_loss", "nanmean", "nll_loss", "no_grad", "softmax", "sqrt", "stack", "sum", "tensor",
     "where", "CrossEntropyLoss", "MSELoss"}
)  # fmt: skip
_READ_OF_THE_RESULT = frozenset({"predictions", "label_ids"})  # what is None once nothing asks for predictions


def why_overwritten(trainer: TrainerCall, function: FunctionNode | None) -> Dead | None:
    """Why nothing of what the function returns is ever reported, or None where something may be."""
    if function is None or function.decorator_list or set(returned_keys(function)) != {"eval_loss"}:
        return None
    if len(function.args.args) != 1 or function.args.kwarg or _does_more(trainer.module, function):
        return None
    if other_uses(trainer, quiet_too=frozenset({"evaluate"})) != "" or _evaluates_under_another_name(trainer):
        return None
    one_set = _one_set(trainer)
    if one_set is None:
        return None
    why = "eval_loss is all that it returns, and the evaluation writes its own eval_loss over it"
    here = Evidence("static", "every return is {'eval_loss': …}", trainer.module.path, function.lineno)
    against = next(_against(trainer, function), "")
    return Dead(why, (here,), against, "" if against else one_set, counts_for="nothing")


def _against(trainer: TrainerCall, function: FunctionNode) -> Iterator[str]:
    if not trainer.is_plain or last(trainer.kind) != "Trainer":
        if not trainer.opaque:
            yield f"{last(trainer.kind)} evaluates in its own way"
    if override := trainer.method("prediction_step"):
        yield f"{override[0].name} overrides prediction_step, which may work out no loss"
    if override := trainer.method("evaluation_loop"):
        for node in walk(override[1]):
            if isinstance(node, ast.Attribute) and node.attr in _READ_OF_THE_RESULT:
                yield f"{override[0].name}.evaluation_loop reads the {node.attr}, which are gathered for this function only"
    yield from obstacles(trainer, function, loop_may_decide=True)


def _does_more(module: SourceModule, function: FunctionNode) -> bool:
    """True where the function may do anything besides working out a number."""
    for node in walk(function):
        if isinstance(node, (ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom, ast.Await, ast.Delete, ast.Raise, ast.Assert)):
            return True
        if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
            return True
        if isinstance(node, ast.Call) and not _only_looks(module, node):
            return True
    return False


def _only_looks(module: SourceModule, call: ast.Call) -> bool:
    name = qualified(module, call.func)
    if isinstance(call.func, ast.Name) and call.func.id in _LOOKS and name in ("", call.func.id, f"builtins.{call.func.id}"):
        return True
    if name.partition(".")[0] in ("numpy", "torch"):
        return last(name) in _NUMERIC
    if isinstance(call.func, ast.Attribute):
        return call.func.attr in _METHODS
    return False


def _evaluates_under_another_name(trainer: TrainerCall) -> bool:
    """True where an evaluation is given a prefix, under which the key is kept: `test_eval_loss`."""
    for call in trainer.module.nodes(ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "evaluate":
            if len(call.args) > 2 or any(k.arg in (None, "metric_key_prefix") for k in call.keywords):
                return True
    for site in trainer.lineage:
        for node in walk(site.node):
            loop = isinstance(node, ast.Attribute) and node.attr in ("predict", "evaluate", "_evaluate", "hyperparameter_search")
            if loop and dotted(node).startswith("self."):
                return True
    return False


def _one_set(trainer: TrainerCall) -> str | None:
    """What is assumed of the data set, None where it is a dictionary of several: each has its name in the key then,
    `eval_<name>_eval_loss`."""
    value = trainer.argument("eval_dataset")
    module = trainer.module
    if value is None or _is_no_dict(value):
        return ""
    made: list[ast.expr | None] = [value]
    if isinstance(value, ast.Name):
        made = [_made_of(b) for b in bindings(module, value.id, binding_scope(module, value))]
    if made and all(v is not None and _is_no_dict(v) for v in made):
        return ""
    if any(isinstance(v, ast.Dict) or (isinstance(v, ast.Call) and "dict" in last(dotted(v.func)).lower()) for v in made):
        return None
    return f"assumes that {module.text_of(value)} is one data set, not a dictionary of several"


def _made_of(binding: ast.AST) -> ast.expr | None:
    return binding.value if isinstance(binding, (ast.Assign, ast.AnnAssign)) else None


def _is_no_dict(value: ast.expr) -> bool:
    if isinstance(value, ast.IfExp):
        return _is_no_dict(value.body) and _is_no_dict(value.orelse)
    if isinstance(value, ast.Constant):
        return True
    name = last(dotted(value.func)) if isinstance(value, ast.Call) else ""
    return name == "random_split" or (name[:1].isupper() and "Dict" not in name)
