"""DDP604: a Trainer that finds no labels in its batches."""

from __future__ import annotations

import pytest

from codemods.api.findings import Applicability
from codemods.trainer.missing_label_names import MissingLabelNames as Labels
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

HEAD = "import torch\nimport torch.nn.functional as F\nfrom transformers import Trainer, TrainingArguments\n\n\n"
MODEL = """class Own(torch.nn.Module):
    def forward({signature}):
        {body}
        return {{"loss": loss, "logits": logits}}


"""
RUN = """def train(train_set, dev_set, args, device):
    given = TrainingArguments("out", {arguments})
    {model}
    trainer = {trainer}(model=model, args=given, train_dataset=train_set, {data})
    trainer.{then}
"""


def program(
    signature: str = "self, x, targets=None",
    body: str = "logits = self.head(x); loss = F.cross_entropy(logits, targets)",
    *,
    arguments: str = 'eval_strategy="epoch"',
    model: str = "model = Own()",
    trainer: str = "Trainer",
    data: str = "eval_dataset=dev_set",
    then: str = "train()",
    more: str = "",
) -> str:
    run = RUN.format(arguments=arguments, model=model, trainer=trainer, data=data, then=then)
    return HEAD + MODEL.format(signature=signature, body=body) + more + run


def own_trainer(method: str) -> str:
    return f"class Mine(Trainer):\n    {method}\n\n\n"


@pytest.mark.parametrize(
    ("signature", "body", "name"),
    [
        ("self, x, targets=None", "logits = self.head(x); loss = F.cross_entropy(logits, targets)", "targets"),
        ("self, x, y", "logits = self.head(x); loss = self.criterion(logits, y.view(-1))", "y"),
        ("self, x, *, gold=None", "logits = self.head(x); loss = F.mse_loss(input=logits, target=gold)", "gold"),
        ("self, x, target_ids=None", "logits, loss = self.inner(x, target_ids)", "target_ids"),
        ("self, **kwargs", "logits, loss = self.inner(kwargs['x'], kwargs.get('labels'))", "labels"),
        ("self, **batch", "logits, loss = self.inner(batch['x'], batch.pop('label_ids'))", "label_ids"),
    ],
)
def test_the_input_of_the_loss_is_named(signature: str, body: str, name: str) -> None:
    before = program(signature, body)
    after = before.replace('eval_strategy="epoch")', f'eval_strategy="epoch", label_names=["{name}"])')
    (found,) = check_transformed(Labels, before, after, unsafe=True)
    assert found.reason == f"assumes that the batches of the evaluation hold {name!r}, which the loss is made with"


@pytest.mark.parametrize(
    ("changes", "lost"),
    [
        ({}, "for one without targets: it gives no eval_loss"),
        ({"data": "eval_dataset=dev_set, compute_metrics=score"}, "it gives no eval_loss, and compute_metrics is never called"),
        (
            {"arguments": 'eval_strategy="steps", load_best_model_at_end=True'},
            "it gives no eval_loss, and the choice of the best checkpoint ends the run with a KeyError",
        ),
        (
            {"arguments": 'eval_strategy="steps", metric_for_best_model="f1"', "data": "eval_dataset=dev_set, compute_metrics=f"},
            "no eval_loss, compute_metrics is never called, and the choice of the best checkpoint ends the run with a KeyError",
        ),
        ({"arguments": "seed=1", "then": "evaluate()"}, "it gives no eval_loss"),
        ({"arguments": 'evaluation_strategy="steps" if dev_set else "no"'}, "it gives no eval_loss"),
    ],
)
def test_what_the_evaluation_lacks(changes: dict[str, str], lost: str) -> None:
    (found,) = findings_of(Labels, program(**changes))
    assert found.applicability is Applicability.UNSAFE
    assert "no parameter of Own.forward is called a label" in found.message and found.message.endswith(lost)


@pytest.mark.parametrize("model", ["model = Own().to(device)", "model = Own()\n    model = model.to(device)", "model = Own()"])
def test_a_model_that_goes_to_a_device_is_the_same(model: str) -> None:
    assert bool(findings_of(Labels, program(model=model))) is ("Own().to" not in model)


def test_a_model_that_a_test_may_wrap_is_told_so() -> None:
    source = program(model="model = Own()\n    if args.lora:\n        model = adapted(model, args)")
    (found,) = findings_of(Labels, source)
    assert found.reason.endswith("which the loss is made with; line 16 may put another model in its place")


def test_the_model_may_stand_in_another_file() -> None:
    files = {"own.py": HEAD + MODEL.format(signature="self, x, y", body="logits = self.head(x); loss = F.nll_loss(logits, y)")}
    source = HEAD + "from own import Own\n\n\n" + program().split("\n\n\n")[-1]
    (found,) = findings_of(Labels, source, files)
    assert "'y'" in found.reason and found.evidence[0].path == "own.py"


DATA = """class Points(torch.utils.data.Dataset):
    def __getitem__(self, i):
        return {held}


"""


@pytest.mark.parametrize(
    ("held", "data", "told"),
    [
        ('{"x": self.x[i], "labels": self.y[i]}', "eval_dataset=Points()", True),
        ('{"x": self.x[i], "label": self.y[i]}', "eval_dataset=Points()", True),  # the default collator calls it labels
        ('{"x": self.x[i], "labels": self.y[i], "label_weights": self.w[i]}', "eval_dataset=Points()", False),
        ('{"x": self.x[i]}', "eval_dataset=Points()", False),
        ('{"x": self.x[i], "labels": self.y[i]}', "eval_dataset=Points(), data_collator=batch", False),
        ('{"x": self.x[i], "labels": self.y[i], **self.more[i]}', "eval_dataset=Points()", False),
        ("self.items[i]", "eval_dataset=Points()", False),
        ('{"x": self.x[i], "labels": self.y[i]}', "eval_dataset=dev_set", False),
    ],
)
def test_a_label_that_no_batch_holds_hides_the_others(held: str, data: str, told: bool) -> None:
    loss = "logits = self.head(x); loss = F.cross_entropy(logits, labels)"
    source = program("self, x, labels=None, label_weights=None", loss, data=data, more=DATA.format(held=held))
    if not told:
        check_nothing(Labels, source)
        return
    after = source.replace('eval_strategy="epoch")', 'eval_strategy="epoch", label_names=["labels"])')
    (found,) = check_transformed(Labels, source, after, unsafe=True)
    assert found.message.startswith("Own.forward has label_weights among its labels, which no batch of the evaluation holds, so")


# Refusals


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (program("self, x, y, z", "logits = self.head(x); loss = F.mse_loss(logits, y) + F.mse_loss(logits, z)"), "not shown"),
        (program("self, x", "logits = self.head(x); loss = logits.pow(2).mean()"), "label_names=[…]"),
        (program("self, **kwargs", "logits, loss = self.inner(**kwargs)"), "which input holds the targets is not shown"),
        (
            program(trainer="Mine", more=own_trainer("def compute_loss(self, model, inputs): return model(**inputs)['loss']")),
            "which input holds the targets is not shown",
        ),
    ],
)
def test_an_input_that_is_not_shown_is_told(source: str, reason: str) -> None:
    check_told(Labels, source, reason=reason)


@pytest.mark.parametrize(
    "source",
    [
        program("self, x, labels=None", "logits = self.head(x); loss = F.cross_entropy(logits, labels)"),
        program("self, x, label_ids", "logits = self.head(x); loss = F.cross_entropy(logits, label_ids)"),
        program("self, x, return_loss=True", "logits = self.head(x); loss = logits.mean()"),
        program(arguments='eval_strategy="epoch", label_names=["targets"]'),
        program(arguments='eval_strategy="no"'),
        program(arguments="seed=1"),
        program(arguments="eval_strategy=args.when"),
        program(arguments="**args"),
        program(data="eval_dataset=None"),
        program(data="data_collator=None"),
        program(model="model = adapted(Own())"),
        program(model="model = Own()\n    model = adapted(model)"),
        program(model="if args.own:\n        model = Own()\n    else:\n        model = other()"),
        program(model="from transformers import BertModel\n    model = BertModel.from_pretrained('b')"),
        program(trainer="Mine", more=own_trainer("def prediction_step(self, *a, **k): return loss_of(*a)")),
        program(trainer="Mine", more=own_trainer("def evaluate(self, *a, **k): return {}")),
        program(trainer="Unknown", more="from elsewhere import Unknown\n\n\n"),
        program().replace("    trainer.train()", "    trainer.label_names = ['targets']\n    trainer.train()"),
        program().replace("Own", "OwnQuestionAnswering").replace("targets", "start_positions"),
    ],
)
def test_labels_that_are_found_or_not_shown_to_be_missing(source: str) -> None:
    check_nothing(Labels, source)


def test_an_old_version_has_other_defaults() -> None:
    check_nothing(Labels, program(), files={"requirements.txt": "transformers==4.12\n"})


def test_the_tests_of_a_repository_are_left_alone() -> None:
    check_nothing(Labels, program(), path="tests/test_train.py")
