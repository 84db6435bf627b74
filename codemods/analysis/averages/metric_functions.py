"""Metrics of which a mean over parts of the data is not the metric of the whole: by the function that gives them."""

from __future__ import annotations

import ast

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
_NAMES = {"COCOeval": "the average precisions of COCOeval"}


def metric_of_parts(module: SourceModule, call: ast.Call) -> str:
    """What a call of such a function gives, in words; "" for any other call."""
    name = qualified(module, call.func)
    root, end = name.partition(".")[0], last(name)
    if root in _FUNCTIONS and _FUNCTIONS[root].search(end):
        return _NAMES.get(end, f"`{end}`")
    if family(name) in ("torchmetrics", "lightning") and ".functional" in name and _FUNCTIONAL.search(end):
        return f"`{end}`"
    return ""


def gathers(node: ast.AST) -> bool:
    """True where a part of the code brings together what all ranks have."""
    calls = (n for n in walk(node) if isinstance(n, ast.Call))
    ends = (called_name(c) for c in calls)
    return any("gather" in end or "synchronize_between" in end for end in ends)
