"""What a logged value is, by what is seen of it."""

from __future__ import annotations

import ast
from collections.abc import Mapping

import pytest

from codemods.analysis.logged.log_calls import as_log_call, values
from codemods.analysis.logged.value_kinds import Kind, Value
from ddpfix.testing import project_of
from tests.lightning_sources import METRICS, module, step


def values_in(source: str, files: Mapping[str, str] | None = None) -> list[tuple[str, Value]]:
    """The values of the last log call."""
    project = project_of(source, files)
    found = project.module("module.py")
    assert found is not None
    calls = sorted(found.calls_named("log", "log_dict"), key=lambda c: c.lineno)
    log = as_log_call(found, project, calls[-1])
    assert log is not None
    return values(log)


def kind_of(*lines: str, value: str, more: str = "", files: Mapping[str, str] | None = None) -> Kind:
    return values_in(step(*lines, f'self.log("a", {value})', more=more), files)[0][1].kind


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("1.0", Kind.EQUAL),
        ("-1.0 * 3", Kind.EQUAL),
        ("self.current_epoch", Kind.EQUAL),
        ("torch.tensor(list(grad_norm(self.net, norm_type=2).values())).max()", Kind.EQUAL),
        ("torch.nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)", Kind.EQUAL),
        ("nn.utils.clip_grad.clip_grad_norm_(self.net.parameters(), self.most) * 2", Kind.EQUAL),
        ("self.net(batch).norm()", Kind.LOCAL),
        ("self.trainer.global_step", Kind.EQUAL),
        ("self.hparams.weight", Kind.EQUAL),
        ("self.global_rank", Kind.EQUAL),
        ("batch_idx", Kind.EQUAL),
        ("torch.tensor(self.current_epoch)", Kind.EQUAL),
        ("self.optimizers().param_groups[0]['lr']", Kind.EQUAL),
        ("loss.item()", Kind.NUMBER),
        ("float(loss.cpu())", Kind.NUMBER),
        ("np.mean([1.0])", Kind.NUMBER),
        ("torch.cuda.max_memory_allocated()", Kind.GAUGE),
        ("loss", Kind.LOCAL),
        ("loss.float()", Kind.LOCAL),
        ("x.gather(1, y)", Kind.LOCAL),
        ("loss * unheard_of()", Kind.LOCAL),
        ("batch['loss']", Kind.LOCAL),
        ("loss if x.any() else 0.0", Kind.LOCAL),
        ("self.model.score(x)", Kind.LOCAL),
        ("torch.nn.MSELoss()(x, y)", Kind.LOCAL),
        ("loss.cpu().to(self.device)", Kind.LOCAL),
        ("loss.cpu().cuda()", Kind.LOCAL),
        ("torch.tensor(loss.item(), device=self.device)", Kind.LOCAL),
        ("torch.Tensor([loss])", Kind.CPU),
        ("torch.tensor(loss.item())", Kind.CPU),
        ("loss.cpu().float()", Kind.CPU),
        ("loss.to('cpu')", Kind.CPU),
        ("loss.item() * torch.tensor([loss.item()])", Kind.CPU),
        ("unheard_of(loss)", Kind.UNKNOWN),
        ("self.unseen.score(x)", Kind.UNKNOWN),
        ("self.trainer.callback_metrics['a']", Kind.UNKNOWN),
        ("super().validation_step(batch, batch_idx)", Kind.UNKNOWN),
        ("self.all_gather(loss)", Kind.REDUCED),
        ("self.trainer.strategy.reduce(loss)", Kind.REDUCED),
        ("torch.distributed.nn.all_reduce(loss)", Kind.REDUCED),
        ("self.fabric.all_reduce(loss) / 2", Kind.REDUCED),
        ("self.model(self.all_gather(x))", Kind.REDUCED),
        ("self.criterion.compute(x, y)", Kind.UNKNOWN),
    ],
)
def test_expressions(value: str, kind: Kind) -> None:
    more = "def __init__(self):\n    super().__init__()\n    self.model = torch.nn.Linear(1, 1)\n"
    assert kind_of(value=value, more=more) is kind


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("self.acc", Kind.METRIC_OBJECT),
        ("self.by_name['a']", Kind.METRIC_OBJECT),
        ("getattr(self, f'{self.stage}acc')", Kind.METRIC_OBJECT),
        ("self.acc(x, y)", Kind.METRIC_RESULT),
        ("self.acc.forward(x, y)", Kind.METRIC_RESULT),
        ("self.val_metrics(x, y)['a']", Kind.METRIC_RESULT),
        ("self.acc.compute()", Kind.REDUCED),
        ("self.weight", Kind.EQUAL),
        ("self.weight * loss", Kind.LOCAL),
    ],
)
def test_attributes(value: str, kind: Kind) -> None:
    assert kind_of(value=value, more=METRICS) is kind


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        (("value = loss", "value = self.acc(x, y)"), Kind.METRIC_RESULT),
        (("value = 0", "value += loss"), Kind.LOCAL),
        (("value = loss", "value = value + value"), Kind.LOCAL),
        (("value = loss", "torch.distributed.all_reduce(value)"), Kind.REDUCED),
        (("parts = []", "parts.append(loss)", "value = torch.stack(parts).mean()"), Kind.LOCAL),
        (("parts = {'a': loss}", "parts['b'] = loss.cpu()", "value = parts['b']"), Kind.CPU),
        (("parts = {'a': loss}", "parts['b'] = loss.cpu()", "value = parts['a']"), Kind.LOCAL),
        (("a, value = loss, loss.cpu()",), Kind.CPU),
        (("value = sum(s * p for s, p in zip(self.scales, [loss, loss]))",), Kind.LOCAL),
        (("for i, part in enumerate([loss]):", "    value = part"), Kind.LOCAL),
        (("with unheard_of() as value:", "    pass"), Kind.UNKNOWN),
        (("other = value", "value = other"), Kind.EQUAL),
    ],
)
def test_local_names(lines: tuple[str, ...], kind: Kind) -> None:
    assert kind_of(*lines, value="value", more=METRICS) is kind


def test_metrics_that_are_put_into_a_collection_one_by_one() -> None:
    more = """\
        def __init__(self):
            super().__init__()
            self.parts = torch.nn.ModuleDict()
            for name in ("a", "b"):
                self.parts[name] = torchmetrics.MeanMetric()
    """
    lines = ("for name, part in self.parts.items():", "    part.update(loss)", "    self.parts[name].update(loss)")
    source = step(*lines, '    self.log(name, part)', more=more)
    assert values_in(source)[0][1].kind is Kind.METRIC_OBJECT


def test_the_entry_of_a_dictionary_that_forward_returns() -> None:
    files = {
        "parts.py": """\
            import torch


            class Loss(torch.nn.Module):
                def forward(self, x, y):
                    total = (x - y).mean()
                    return {"loss": total, "weight": self.weight, "number": total.item()}

                def __init__(self, weight):
                    self.weight = weight
            """
    }
    more = "def __init__(self):\n    super().__init__()\n    self.both = Loss(2)\n"
    for key, kind in (("loss", Kind.LOCAL), ("weight", Kind.EQUAL), ("number", Kind.NUMBER)):
        source = step("found = self.both(x, y)", f'self.log("a", found["{key}"])', more=more)
        source = source.replace("import torch\n", "import torch\nfrom parts import Loss\n")
        assert values_in(source, files)[0][1].kind is kind


def test_functions_of_other_files_see_what_is_handed_in() -> None:
    files = {
        "lib/__init__.py": "from .scores import mean\n",
        "lib/scores.py": "def mean(values, scale=1):\n    return scale * values.mean()\n",
    }
    for given, kind in (("x", Kind.LOCAL), ("x.cpu()", Kind.CPU), ("values=self.all_gather(x)", Kind.REDUCED)):
        source = step(f'self.log("a", mean({given}))').replace("import torch\n", "import torch\nfrom lib import mean\n")
        assert values_in(source, files)[0][1].kind is kind


def test_a_function_that_calls_itself() -> None:
    source = step('self.log("a", deep(loss))') + "\n\ndef deep(x):\n    return deep(x / 2) if x > 1 else x\n"
    assert values_in(source)[0][1].kind in (Kind.LOCAL, Kind.UNKNOWN)


def test_what_the_steps_gather() -> None:
    source = module("""
        def __init__(self):
            super().__init__()
            self.preds, self.count = [], 0

        def validation_step(self, batch, batch_idx):
            self.preds.append(self(batch))
            self.total = self.total + self(batch).sum()

        def on_validation_epoch_end(self):
            self.log("a", VALUE)
        """)
    for value in ("torch.cat(self.preds).max()", "self.total", "self.criterion(torch.cat(self.preds))", "np.max(self.preds)"):
        assert values_in(source.replace("VALUE", value))[0][1].kind is Kind.LIST, value


def test_what_is_not_traced_is_said_to_be_so() -> None:
    source = module('def on_validation_epoch_end(self):\n    self.log("a", VALUE)\n')
    for value in ("float(self.seen.score())", "np.mean(unheard_of())", "self.criterion(unheard_of())"):
        assert not values_in(source.replace("VALUE", value))[0][1].traced, value
    assert values_in(source.replace("VALUE", "np.mean([1.0])"))[0][1].traced


def test_entries_of_a_logged_dictionary() -> None:
    found = values_in(step('self.log_dict({"a": loss, f"{1}b": self.acc, "c": 1})', more=METRICS))
    assert [(key, value.kind) for key, value in found] == [
        ("a", Kind.LOCAL), (ast.unparse(ast.parse('f"{1}b"', mode="eval")), Kind.METRIC_OBJECT), ("c", Kind.EQUAL)
    ]  # fmt: skip
    for lines in (["found.pop('a')"], ["found |= unheard_of()"], ["unheard_of(found)"], ["del found['a']"]):
        found = values_in(step('found = {"a": loss}', *lines, "self.log_dict(found)"))
        assert found[0][1].kind is Kind.UNKNOWN, lines


def test_a_value_that_takes_too_many_steps_is_given_up() -> None:
    lines = ["v0 = loss"] + [f"v{i} = [" + ", ".join(f"v{i - 1}[{j}]" for j in range(60)) + "]" for i in range(1, 30)]
    assert kind_of(*lines, value="v29") in (Kind.UNKNOWN, Kind.LOCAL)


COUNTED = """\
    def on_validation_epoch_start(self):
        self.answers = {{"given": [], "right": []}}

    def on_validation_batch_end(self, outputs, batch, batch_idx):
        for given, right in outputs:
            self.answers["given"].append(given)
            self.answers["right"].append(right)

    def on_validation_epoch_end(self):
        share, hits = self.rated(self.answers)
        self.log("a", hits)

    def rated(self, rows):
        seen = hits = 0
        for {loop}:
            seen += 1
            if i and rows["right"][0]:
                hits += 1
        return hits / max(seen, 1), hits
"""


@pytest.mark.parametrize(
    ("loop", "kind"),
    [
        ('i, row in enumerate(rows["given"])', Kind.LIST),
        ('i in range(len(rows["given"]))', Kind.LIST),
        ('i in rows["right"]', Kind.LIST),
        ("i in range(1, 8)", Kind.EQUAL),
        ("i in ('a', 'b')", Kind.EQUAL),
    ],
)
def test_a_count_of_what_the_steps_gathered(loop: str, kind: Kind) -> None:
    found = values_in(module(COUNTED.format(loop=loop)))
    assert found[0][1].kind is kind


HEIRS = """
        def __init__(self):
            super().__init__()
            self.rows = {made}

        def on_validation_epoch_end(self):
            self.log("a", len(self.rows) + 1)


    class Heir(Model):
        def validation_step(self, batch, batch_idx):
            self.rows.append({put})
"""


@pytest.mark.parametrize(
    ("made", "put", "kind"),
    [
        ("[]", "self(batch)", Kind.LIST),
        ("list()", "batch", Kind.LIST),
        ("[]", "self.all_gather(batch)", Kind.REDUCED),
        ("[1, 2]", "batch", Kind.EQUAL),
    ],
)
def test_what_the_steps_of_an_heir_gather(made: str, put: str, kind: Kind) -> None:
    source = module(HEIRS.format(made=made, put=put)).replace("\n    class Heir", "\nclass Heir")
    assert values_in(source)[0][1].kind is kind
