"""Metrics of which a mean over parts of the data is not the metric of the whole: by the function that gives them."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_of
from codemods.analysis.names import family, last, qualified
from codemods.files.source import SourceModule, called_name, walk
from codemods.runtime.lazy_pattern import lazy

# Package -> its functions and classes. An accuracy, an error and a loss are means of samples, and stay out.
_FUNCTIONS = {
    "sklearn": lazy(
        r"^(f1_score|fbeta_score|matthews_corrcoef|roc_auc_score|average_precision_score|precision_score|recall_score|auc|r2_score"
        r"|cohen_kappa_score|jaccard_score|precision_recall_fscore_support|balanced_accuracy_score|explained_variance_score)$"
    ),
    "scipy": lazy(r"^(pearsonr|spearmanr|kendalltau)$"),
    "pycocotools": lazy(r"^COCOeval$"),
    "seqeval": lazy(r"^(f1_score|precision_score|recall_score|classification_report)$"),
    "sacrebleu": lazy(r"^(corpus_bleu|corpus_chrf|corpus_ter)$"),
    "nltk": lazy(r"^corpus_bleu$"),
}
_FUNCTIONAL = lazy(
    r"^(binary_|multiclass_|multilabel_)?(f1_score|f1|fbeta_score|auroc|average_precision|matthews_corrcoef|cohen_kappa"
    r"|jaccard_index)$|^(pearson|spearman|concordance)_corrcoef$|^r2_score$"
)
_CORPUS = frozenset({"corpus_score"})  # of sacrebleu's BLEU, CHRF and TER
_ROOTS = frozenset({"torch.sqrt", "numpy.sqrt", "math.sqrt"})
_MEANS = frozenset({"mean", "average", "mse_loss", "mean_squared_error"})
_NAMES = {"COCOeval": "the average precisions of COCOeval"}


def metric_of_parts(module: SourceModule, call: ast.Call) -> str:
    """What a call of such a function gives, in words; "" for any other call."""
    name = qualified(module, call.func)
    root, end = name.partition(".")[0], last(name)
    if root in _FUNCTIONS and _FUNCTIONS[root].search(end):
        return _NAMES.get(end, f"`{end}`")
    if family(name) in ("torchmetrics", "lightning") and ".functional" in name and _FUNCTIONAL.search(end):
        return f"`{end}`"
    if _is_of_a_corpus(module, call):
        return "a score of a corpus"
    return "the root of a mean" if _is_root_of_mean(module, call) else ""


def _is_of_a_corpus(module: SourceModule, call: ast.Call) -> bool:
    """`bleu.corpus_score(texts, references)`, where `bleu` is an object of sacrebleu."""
    if called_name(call) not in _CORPUS or not isinstance(call.func, ast.Attribute):
        return False
    held = call.func.value
    made = [b.value for b in bindings_of(module, held)] if isinstance(held, ast.Name) else [held]
    return bool(made) and all(isinstance(m, ast.Call) and qualified(module, m.func).startswith("sacrebleu.") for m in made)


def _is_root_of_mean(module: SourceModule, call: ast.Call) -> bool:
    """`torch.sqrt(((a - b) ** 2).mean())`, of all that was collected: that of a batch is taken so on one process, too."""
    if len(call.args) != 1 or qualified(module, call.func) not in _ROOTS:
        return False
    if any(isinstance(up, (ast.For, ast.AsyncFor, ast.While)) for up in module.ancestors(call)):
        return False
    given = call.args[0]
    made = [b.value for b in bindings_of(module, given) if b.value is not None] if isinstance(given, ast.Name) else [given]
    return len(made) == 1 and any(isinstance(n, ast.Call) and called_name(n) in _MEANS for n in (made[0], *walk(made[0])))


def gathers(node: ast.AST, *, but: str = "") -> bool:
    """True where a part of the code brings together what all ranks have. but: a call that does not count."""
    calls = (n for n in walk(node) if isinstance(n, ast.Call))
    ends = (called_name(c) for c in calls)
    return any(("gather" in end or "synchronize_between" in end) and end != but for end in ends)
