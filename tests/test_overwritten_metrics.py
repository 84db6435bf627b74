"""DDP601: a function that returns nothing but eval_loss, which the evaluation writes its own over."""

from __future__ import annotations

import pytest

from codemods.trainer.dead_compute_metrics import DeadComputeMetrics
from ddpfix.testing import check_nothing, check_told, check_transformed

HEAD = "import torch\nfrom transformers import Trainer, TrainingArguments\n\n\n"
FUNCTION = """\
    def compute_metrics(prediction):
        found = prediction.predictions[0]
        if torch.is_tensor(found):
            return {"eval_loss": found.mean().item()}
        return {"eval_loss": 0.0}

"""
LOOP = """\
class LossTrainer(Trainer):
    def evaluation_loop(self, dataloader, description, prediction_loss_only=None, ignore_keys=None, metric_key_prefix="eval"):
        if prediction_loss_only is None:
            prediction_loss_only = False
        output = super().evaluation_loop(dataloader, description, prediction_loss_only, ignore_keys, metric_key_prefix)
        output.metrics.setdefault("eval_loss", 0.0)
        return output


"""
GIVEN = "compute_metrics=compute_metrics if evaluates else None"
BEST = 'metric_for_best_model="eval_loss" if evaluates else None'


def script(
    function: str = FUNCTION, given: str = GIVEN, *, arguments: str = BEST, data: str = "Sentences()", trainer: str = "Trainer",
    then: str = "trainer.evaluate()", head: str = HEAD,
) -> str:  # fmt: skip
    gives = f"        {given},\n" if given else ""
    return (
        f"{head}def main(model, evaluates):\n    dev_set = {data}\n"
        f'    args = TrainingArguments("out", eval_strategy="steps" if evaluates else "no", {arguments})\n\n'
        f"{function}"
        f"    trainer = {trainer}(\n        model=model,\n        args=args,\n        eval_dataset=dev_set,\n{gives}    )\n"
        f"    trainer.train()\n    {then}\n    torch.save(model, 'm.pt')\n"
    )


@pytest.mark.parametrize(
    "given", [GIVEN, "compute_metrics=compute_metrics", "compute_metrics=None if not evaluates else compute_metrics"]
)
def test_argument_and_function_go_and_the_condition_with_them(given: str) -> None:
    check_transformed(DeadComputeMetrics, script(given=given), script("", ""))


def test_an_evaluation_loop_that_asks_for_predictions_stays_as_it_is() -> None:
    head = HEAD + LOOP
    check_transformed(
        DeadComputeMetrics, script(head=head, trainer="LossTrainer"), script("", "", head=head, trainer="LossTrainer")
    )


@pytest.mark.parametrize("data", ["Sentences() if evaluates else None", "random_split(everything, [8, 2])"])
def test_what_is_surely_one_data_set(data: str) -> None:
    check_transformed(DeadComputeMetrics, script(data=data), script("", "", data=data))


def test_data_that_may_be_several_sets_is_an_assumption() -> None:
    after = script("", "", data="load_sets()")
    (found,) = check_transformed(DeadComputeMetrics, script(data="load_sets()"), after, unsafe=True)
    assert found.reason == "assumes that dev_set is one data set, not a dictionary of several"


@pytest.mark.parametrize("data", ['{"a": Sentences(), "b": Sentences()}', "DatasetDict(a=Sentences())"])
def test_of_several_sets_each_has_a_key_of_its_own(data: str) -> None:
    check_nothing(DeadComputeMetrics, script(data=data))


@pytest.mark.parametrize(
    "function",
    [
        FUNCTION.replace('{"eval_loss": 0.0}', '{"loss": 0.0}'),  # renamed to eval_loss behind that of the loop: it wins
        FUNCTION.replace('{"eval_loss": 0.0}', '{"eval_loss": 0.0, "acc": 1.0}'),
        FUNCTION.replace("found = pre", "log.append(1)\n        found = pre"),
        FUNCTION.replace("found = pre", "torch.manual_seed(1)\n        found = pre"),
        FUNCTION.replace("found = pre", "main.seen = 1\n        found = pre"),
        FUNCTION.replace("(prediction)", "(prediction, compute_result=True)"),
        FUNCTION.replace("    def", "    @registered\n    def"),
    ],
)
def test_a_function_that_does_or_reports_more_counts(function: str) -> None:
    check_nothing(DeadComputeMetrics, script(function))


@pytest.mark.parametrize(
    "then",
    ["trainer.predict(dev_set)", 'trainer.evaluate(metric_key_prefix="test")', "trainer.evaluate(**more)", "run(trainer)"],
)
def test_under_another_name_its_number_is_reported(then: str) -> None:
    check_nothing(DeadComputeMetrics, script(then=then))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("def prediction_step(self, *a, **k):\n        return None, self.x, self.y", "overrides prediction_step, which may"),
        ("def evaluation_loop(self, *a, **k):\n        return run(self)", "evaluation_loop"),
        (
            "def evaluation_loop(self, *a, **k):\n        output = super().evaluation_loop(*a, **k)\n        "
            "print(output.predictions)\n        return output",
            "reads the predictions, which are gathered for this function only",
        ),
    ],
)  # fmt: skip
def test_a_trainer_that_does_it_otherwise(body: str, reason: str) -> None:
    head = f"{HEAD}class T(Trainer):\n    {body}\n\n\n"
    check_told(DeadComputeMetrics, script(head=head, trainer="T"), reason=reason)


def test_a_best_metric_that_it_does_not_give() -> None:
    source = script(arguments='metric_for_best_model="acc" if evaluates else None')
    check_told(DeadComputeMetrics, source, reason="metric_for_best_model='acc' wants a metric")


def test_a_condition_with_an_effect() -> None:
    check_nothing(DeadComputeMetrics, script(given="compute_metrics=compute_metrics if ask() else None"))
