"""What reads like a loss or a metric, and the statement that makes a mean of many batches."""

from __future__ import annotations

import ast
import re
from itertools import pairwise

from codemods.analysis.bindings import bindings_of
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.variance.values import Value
from codemods.data.rank_variance import METRIC_NAME
from codemods.files.source import SourceModule, called_name, walk

_MEANS = frozenset({"mean", "average", "fmean", "nanmean"})
_FIELDS = frozenset({"avg", "global_avg", "average", "val", "mean", "value"})  # of meters
_TITLES = frozenset({"name", "metric", "metric_name", "title"})
_ASKED = re.compile(r"^(get_|mean_|compute_)?(acc(uracy)?|precision|recall|f1(_score)?|m?iou|dice|auc|auroc|error)$", re.I)
_MESSAGE = re.compile(r"(^|_)(msg|message|str|string|text|line|log)(_|$)", re.I)
_TEXTS = 8  # pieces of a text that are looked at
# An entry of the statistics of an epoch that is a setting of the optimizer or a counter: `stats["lr"]`.
_SETTING = re.compile(
    r"(^|[_/ .-])(lrs?|lr_?\d+|lr_\w+|learning_?rate|weight_?decay|momentum|epochs?|global_?steps?|iterations?)$", re.I
)
RESULTS = re.compile(r"(^|_)(results?|scores|averages)(_|$)", re.I)
_COMPREHENSIONS = (ast.DictComp, ast.ListComp, ast.GeneratorExp)
_PICTURES = frozenset({"Image", "Video", "Html", "Audio", "Table", "Histogram"})


def is_number(node: ast.expr) -> bool:
    """True for what reads like a loss or a metric: by its name, the key it is found under, or `.item()`."""
    if isinstance(node, ast.Call):
        operands = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        if isinstance(node.func, ast.Attribute) and _ASKED.search(node.func.attr):
            return True  # `tally.recall(name)`
        return any(is_number(n) for n in (*operands, *node.args))
    if isinstance(node, ast.BinOp):
        return is_number(node.left) or is_number(node.right)
    if isinstance(node, ast.Subscript):
        key = node.slice.value if isinstance(node.slice, ast.Constant) else ""
        if isinstance(key, str) and _SETTING.search(key):
            return False
        return is_number(node.value) or bool(isinstance(key, str) and METRIC_NAME.search(key))
    name = last(dotted(node))
    if name in _FIELDS and isinstance(node, ast.Attribute):
        return True
    return bool(METRIC_NAME.search(name))


def is_mean(node: ast.AST) -> bool:
    """True for the mean of a collection, as it is written: `np.mean(errors)`, `errors.mean()`, `sum(errors) / len(errors)`."""
    if isinstance(node, ast.BinOp):
        whole = isinstance(node.op, ast.Div) and _counts(node.right)
        return whole and isinstance(node.left, ast.Call) and called_name(node.left) in ("sum", "nansum")
    if not isinstance(node, ast.Call):
        return False
    held = node.func.value if isinstance(node.func, ast.Attribute) else None
    if called_name(node) == "item" and held is not None:
        return is_mean(held)
    return called_name(node) in _MEANS and bool(node.args or held is not None)


def _counts(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and called_name(node) == "len"


def reads_like_one(entries: ast.Dict, value: ast.expr) -> bool:
    """True for an entry of a dict whose key names a loss or a metric."""
    keys = [k.value for k, v in zip(entries.keys, entries.values, strict=True) if v is value and isinstance(k, ast.Constant)]
    return any(map(is_key, keys))


def is_key(key: object) -> bool:
    """True for a key that names a loss or a metric: `train/loss`, `Dev accuracy`."""
    return isinstance(key, str) and METRIC_NAME.search(re.sub(r"\W", "_", key)) is not None


def names_metric(key: ast.expr) -> bool:
    """True for a key that names a loss or a metric, and for one that is put together from names alone (`f"{split}/{title}"`)."""
    texts = [n.value for n in walk(key) if isinstance(n, ast.Constant)]
    named = isinstance(key, ast.JoinedStr) and not any(re.search(r"\w", str(t)) for t in texts)
    return named or any(map(is_key, texts))


def named_by_texts(call: ast.Call) -> list[ast.expr]:
    """`evaluate(model)` of `print("accuracy", evaluate(model))`, and of `f"accuracy {evaluate(model):.2f}"`."""
    rows = [call.args, *(n.values for n in walk(call) if isinstance(n, ast.JoinedStr))]
    found = []
    for before, own in (pair for row in rows for pair in pairwise(row)):
        words = re.findall(r"\w+", str(before.value)) if isinstance(before, ast.Constant) else []
        if words and is_key(words[-1]):  # what is said last is what it is
            found.append(own.value if isinstance(own, ast.FormattedValue) else own)
    return found


def is_made_by_a_metric(module: SourceModule, part: ast.expr) -> bool:
    """True for a name that a function of scikit-learn's metrics gives its value, and for the mean of it."""
    inner = part.args[0] if isinstance(part, ast.Call) and last(dotted(part.func)) in _MEANS and len(part.args) == 1 else part
    bound = bindings_of(module, inner) if isinstance(inner, ast.Name) else ()
    made = (b.value for b in bound if not b.part)
    return any(isinstance(v, ast.Call) and qualified(module, v.func).startswith("sklearn.metrics.") for v in made)


def numbers_gone_through(module: SourceModule, node: ast.expr) -> ast.expr | None:
    """`results` for the `value` of `for name, value in results.items():`, where its name says that it holds losses or metrics.

    So it is for `row["value"]` of `for row in results:` where `row["name"]` is shown beside it.
    """
    if isinstance(node, ast.Subscript):
        return _rows_gone_through(module, node)
    if not isinstance(node, ast.Name):
        return None
    for up in module.ancestors(node):
        loops = up.generators if isinstance(up, _COMPREHENSIONS) else [up] if isinstance(up, ast.For) else []
        for loop in loops:
            pair = loop.target.elts if isinstance(loop.target, ast.Tuple) else []
            if len(pair) == 2 and isinstance(pair[1], ast.Name) and pair[1].id == node.id:
                return _holds_numbers(loop.iter)
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return None
    return None


def _rows_gone_through(module: SourceModule, node: ast.Subscript) -> ast.expr | None:
    if not isinstance(node.value, ast.Name) or not _is_entry(node, _FIELDS):
        return None
    loop = next((up for up in module.ancestors(node) if isinstance(up, ast.For)), None)
    call = next((up for up in module.ancestors(node) if isinstance(up, ast.Call)), None)
    if loop is None or call is None or dotted(loop.target) != node.value.id or not isinstance(loop.iter, ast.Name):
        return None
    named = (n for n in walk(call) if isinstance(n, ast.Subscript) and dotted(n.value) == node.value.id)
    return loop.iter if any(_is_entry(n, _TITLES) for n in named) else None


def _is_entry(node: ast.Subscript, keys: frozenset[str]) -> bool:
    return isinstance(node.slice, ast.Constant) and node.slice.value in keys


def _holds_numbers(source: ast.expr) -> ast.expr | None:
    """The dict of `results.items()` and `sorted(metrics.items())`."""
    if isinstance(source, ast.Call) and dotted(source.func) == "sorted" and source.args:
        source = source.args[0]
    if not isinstance(source, ast.Call) or not isinstance(source.func, ast.Attribute) or source.func.attr != "items":
        return None
    held = source.func.value
    return held if RESULTS.search(last(dotted(held))) is not None or is_number(held) else None


def is_text(node: ast.expr) -> bool:
    """True for a text that is put together: of parts, by a format, or by a call that a name says it of."""
    if isinstance(node, ast.BinOp):
        return is_text(node.left) or is_text(node.right)
    if isinstance(node, ast.Call):
        name = called_name(node)
        return name in ("format", "join") or _MESSAGE.search(name) is not None
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def texts_of(module: SourceModule, name: ast.Name) -> list[ast.expr]:
    """The texts that a name holds, where it holds nothing else and they are put together."""
    function = module.function_of(name)
    found = [b.value for b in bindings_of(module, name) if module.function_of(b.node) is function]
    texts = [v for v in found if v is not None and is_text(v)]
    whole = len(texts) == len(found) < _TEXTS and not all(isinstance(t, ast.Constant) for t in texts)
    return texts if whole and not is_number(name) else []


def holds_pictures(module: SourceModule, part: ast.expr) -> bool:
    """True for a dict of images and the like."""
    bound = bindings_of(module, part) if isinstance(part, ast.Name) else []
    values = [part, *(b.value for b in bound if b.value is not None)]
    calls = (n for value in values for n in walk(value) if isinstance(n, ast.Call))
    return any(last(dotted(call.func)) in _PICTURES for call in calls)


def where_made(module: SourceModule, value: Value) -> ast.stmt | None:
    """The statement that divides the sum, or takes the mean of the list: behind the one that adds a batch to it."""
    for link in value.chain:
        for statement in _statements(module, link.line) if link.path == module.path else ():
            if _puts_together(statement):
                return statement
        if "+=" in link.text or ".append(" in link.text or "keeps it" in link.text:
            return None
    return None


def _statements(module: SourceModule, line: int) -> list[ast.stmt]:
    kinds: tuple[type[ast.stmt], ...] = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return)
    return [s for kind in kinds for s in module.nodes(kind) if s.lineno == line]


def _puts_together(node: ast.stmt) -> bool:
    """True where a statement makes a mean: it divides, or takes the mean of a list."""
    if isinstance(node, ast.AugAssign):
        return isinstance(node.op, ast.Div)
    for inner in walk(node):
        if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Div):
            return True
        if isinstance(inner, ast.Call) and last(dotted(inner.func)) in _MEANS:
            return True
    return False
