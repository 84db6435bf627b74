"""What a number of one rank is used for, where it is shown or compared."""

from __future__ import annotations

from codemods.analysis.variance.analysis import Analysis
from codemods.analysis.variance.guessed_shares import goes_through_share
from codemods.analysis.variance.number_roles import Role, Source
from codemods.analysis.variance.values import Proof, Value
from codemods.runtime.lazy_pattern import lazy

# A loss of the own batches is an estimate of that of all; how many of the rows were met is told as a count of all of them.
_COUNTED = lazy(r"(^|[^a-z])(acc(uracy)?|accuracies|top_?-?[15]|correct|recall|precision|f1|m?iou|dice)(\d|[^a-z]|$)")


def role_of(analysis: Analysis, text: str, value: Value, source: Source, *, decides: bool, behind: bool) -> Role:
    """text: the number, as it is written where it is shown. behind: it is shown behind the loop over the batches."""
    if decides:
        return Role.DECIDES
    if not source.trains:
        return Role.RESULT
    whole = value.mean and behind and value.proof is Proof.PROVEN and source.loop is not None
    told = whole and _COUNTED.search(text.lower()) is not None and goes_through_share(analysis, source)
    return Role.EPOCH if told else Role.CURVE
