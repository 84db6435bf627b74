"""DDP119: what a torchmetrics object keeps in plain attributes."""

from __future__ import annotations

import pytest

from codemods.metrics.metric_without_state import MetricWithoutState
from ddpfix.testing import check_nothing, check_told, findings_of

HEAD = "import torch\nimport torchmetrics\nfrom torchmetrics import Metric\n\n\n"


def metric(init: str, update: str, compute: str, *, base: str = "Metric", more: str = "") -> str:
    return (
        f"{HEAD}class Share({base}):\n"
        f"    def __init__(self, **options):\n        super().__init__(**options)\n        {init}\n\n"
        f"    def update(self, rows):\n        {update}\n\n    def compute(self):\n        return {compute}\n{more}"
    )


@pytest.mark.parametrize(
    ("init", "update", "compute"),
    [
        ("self.texts = []", "self.texts.extend(str(r) for r in rows)", "torch.tensor(len(set(self.texts)))"),
        ("self.texts = set()", "self.texts.add(rows)", "torch.tensor(len(self.texts))"),
        ("self.hits = 0", "self.hits += rows.sum().item()", "torch.tensor(self.hits)"),
        ("self.hits = torch.zeros(3)", "self.hits[rows] += 1", "self.hits / 3"),
        ("self.hits = 0.0", "self.hits = self.hits + rows.sum()", "self.hits"),
        ("self.rows: list = []", "self.rows.append(rows)", "torch.cat(self.rows).mean()"),
    ],
)
def test_what_no_rank_shares(init: str, update: str, compute: str) -> None:
    (found,) = findings_of(MetricWithoutState, metric(init, update, compute))
    assert found.span.line == 9 and found.severity == "data" and "no state of the metric `Share`" in found.message


def test_a_metric_of_two_numbers_is_told_once_with_both_places() -> None:
    source = metric("self.hits = self.rows = 0", "self.hits += 1; self.rows += 2", "self.hits / self.rows")
    check_told(MetricWithoutState, source, reason='add_state("hits"')
    (found,) = findings_of(MetricWithoutState, source)
    assert "`hits` and `rows` are no states" in found.message and len(found.evidence) == 2


def test_a_number_beside_a_state() -> None:
    init = 'self.rows = 0; self.add_state("hits", default=torch.tensor(0), dist_reduce_fx="sum")'
    (found,) = findings_of(MetricWithoutState, metric(init, "self.hits += 1; self.rows += 2", "self.hits / self.rows"))
    assert "`rows` is no state" in found.message


def test_a_base_of_the_project_between() -> None:
    source = metric("self.texts = []", "self.texts.append(rows)", "torch.tensor(len(self.texts))", base="Texts")
    (found,) = findings_of(MetricWithoutState, source.replace("class Share", "class Texts(Metric):\n    pass\n\n\nclass Share"))
    assert "`texts`" in found.message


@pytest.mark.parametrize(
    ("init", "update", "compute"),
    [
        ('self.add_state("texts", default=[])', "self.texts.append(rows)", "torch.cat(self.texts)"),
        ('self.texts = []; self.add_state("texts", default=[])', "self.texts.append(rows)", "torch.cat(self.texts)"),
        ('[self.add_state(n, default=[]) for n in ("a", "b")]', "self.a.append(rows)", "torch.cat(self.a)"),
        ("self.inner = torchmetrics.MeanMetric()", "self.inner.update(rows)", "self.inner.compute()"),
        ("self.inner = make()", "self.inner.add(rows)", "self.inner.value"),
        ("self.seen = 0", "self.seen += 1", "torch.tensor(1)"),  # nothing reads it
        ("self.bins = 4", "rows = rows + self.bins", "torch.tensor(self.bins)"),  # a setting
        ("self.rows = []", "self.rows.append(rows)", "torch.cat(torch.distributed.nn.all_gather(self.rows[0]))"),
    ],
)
def test_nothing_is_said(init: str, update: str, compute: str) -> None:
    check_nothing(MetricWithoutState, metric(init, update, compute))


PLAIN = ("self.texts = []", "self.texts.append(rows)", "torch.tensor(len(self.texts))")


@pytest.mark.parametrize("base", ["object", "torch.nn.Module", "torchmetrics.MeanMetric", "Unknown", "Metric, Unknown"])
def test_nothing_of_a_class_that_is_no_plain_metric(base: str) -> None:
    check_nothing(MetricWithoutState, metric(*PLAIN, base=base))


def test_nothing_where_the_class_puts_the_ranks_together_itself() -> None:
    check_nothing(MetricWithoutState, metric(*PLAIN, more="\n    def sync(self, **options):\n        share(self.texts)\n"))
    gathers = "\n    def all(self):\n        out = [None] * 2\n        torch.distributed.all_gather_object(out, self.texts)\n"
    check_nothing(MetricWithoutState, metric(*PLAIN, more=gathers))


def test_nothing_of_a_metric_of_the_own_rank() -> None:
    source = metric(*PLAIN).replace("super().__init__(**options)", "super().__init__(sync_on_compute=False)")
    check_nothing(MetricWithoutState, source)


def test_an_option_that_is_handed_on_changes_nothing() -> None:
    source = metric(*PLAIN).replace("**options):", "sync_on_compute=True):")
    source = source.replace("super().__init__(**options)", "super().__init__(sync_on_compute=sync_on_compute)")
    assert findings_of(MetricWithoutState, source)


def test_nothing_of_the_repositorys_own_tests() -> None:
    assert not findings_of(MetricWithoutState, metric(*PLAIN), path="tests/test_share.py")


def stacked(state: str, update: str, compute: str) -> str:
    return metric(f'self.add_state("seen", {state})', update, compute)


_ROWS, _NUMBER = "default=torch.tensor([]).bool()", "default=torch.tensor(0.0)"
_APPENDS, _ADDS = "self.seen = torch.cat((self.seen, rows))", "self.seen += rows.sum()"


@pytest.mark.parametrize(
    ("state", "update", "compute", "wrong"),
    [
        (_ROWS, _APPENDS, "torch.tensor([r.max() for r in self.seen]).mean()", "goes through the ranks"),
        (_ROWS, _APPENDS, "sum(a for a, b in zip(self.seen, self.seen))", "goes through the ranks"),
        (f'{_ROWS}, dist_reduce_fx="cat"', _APPENDS, "sum(r.max() for r in self.seen)", "goes through the ranks"),
        ("torch.tensor(0)", _ADDS, "torch.sqrt(self.seen / 3)", "one number for each rank"),
        (_NUMBER, _ADDS, "-self.seen", "one number for each rank"),
    ],
)
def test_a_state_that_no_function_reduces(state: str, update: str, compute: str, wrong: str) -> None:
    (found,) = findings_of(MetricWithoutState, stacked(state, update, compute))
    assert found.span.line == 9 and wrong in found.message
    assert "`seen` of the metric `Share` is a tensor that no `dist_reduce_fx` joins" in found.message


@pytest.mark.parametrize(
    ("state", "update", "compute"),
    [
        (f'{_NUMBER}, dist_reduce_fx="sum"', _ADDS, "self.seen / 3"),
        (f"{_NUMBER}, dist_reduce_fx=None", _ADDS, "self.seen / 3"),  # it says that it wants each rank's
        ("torch.tensor(0.0), None", _ADDS, "self.seen / 3"),
        (_NUMBER, _ADDS, "self.seen.sum() / 3"),
        (_NUMBER, _ADDS, "torch.mean(self.seen)"),
        (_NUMBER, _ADDS, "self.seen / 3 if self.seen.numel() == 1 else self.seen.sum() / 3"),
        (_NUMBER, "self.other = rows", "self.seen / 3"),  # nothing is counted in it
        ("default=[]", "self.seen.append(rows)", "sum(r.sum() for r in self.seen)"),  # a list of all ranks' rows
        ('default=[], dist_reduce_fx="cat"', "self.seen.append(rows)", "sum(r.sum() for r in self.seen)"),
        (_ROWS, _APPENDS, "score(self.seen)"),  # the function may flatten it
        (_ROWS, _APPENDS, "torch.stack([r for r in self.seen.flatten()])"),
    ],
)
def test_states_that_are_right_or_meant_so(state: str, update: str, compute: str) -> None:
    check_nothing(MetricWithoutState, stacked(state, update, compute))


def test_a_stacked_number_by_a_name() -> None:
    returned = "        share = self.seen / 3\n        return share"
    source = stacked(_NUMBER, _ADDS, "share").replace("        return share", returned)
    assert findings_of(MetricWithoutState, source)
    check_nothing(MetricWithoutState, source.replace("return share", "return share.mean()"))
