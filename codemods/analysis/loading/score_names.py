"""Which names speak of a score of the evaluation, and not of a loss?"""

from __future__ import annotations

from codemods.runtime.lazy_pattern import lazy

_SCORES = lazy(
    r"(^|[^a-z])(acc|prec|top_?\d|m?iou|pesq|stoi|recall|m?ap|auc|f1|dice|psnr|ssim|bleu|rouge|score|metric|correct|confusion)"
)


def names_score(text: str) -> bool:
    """True for `val_acc1`; a mean of losses moves by less than the batches do where a sample counts twice."""
    lowered = text.lower()
    return _SCORES.search(lowered) is not None and "loss" not in lowered
