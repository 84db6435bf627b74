"""DDP601: what is dead, what goes with it, and everything that speaks against touching it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from codemods.api.findings import Applicability
from codemods.engine.fix_source import fix_project, safe
from codemods.files.left_alone import Left, hearing
from codemods.store.project import Project
from codemods.trainer.dead_compute_metrics import DeadComputeMetrics
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

HEAD = """\
import numpy as np
from transformers import Trainer, TrainingArguments


def compute_metrics(prediction):
    return {"acc": float(np.mean(prediction.predictions.argmax(-1) == prediction.label_ids))}


"""
GIVEN = "compute_metrics=compute_metrics"
CLEAN = "from transformers import Trainer, TrainingArguments\n\n\n"


def script(
    arguments: str = "prediction_loss_only=True", trainer: str = "compute_metrics=compute_metrics", then: str = ""
) -> str:
    """A training script: the training arguments, the Trainer's, and what is done with it besides train()."""
    return HEAD + body(arguments, trainer, then)


def body(arguments: str, trainer: str, then: str = "") -> str:
    given = f"model=model, args=args{', ' if trainer else ''}{trainer}"
    more = f"    {then}\n" if then else ""
    return (
        f'def main(model):\n    args = TrainingArguments(output_dir="out", {arguments})\n'
        f"    trainer = Trainer({given})\n    trainer.train()\n{more}"
    )


def with_class(middle: str, name: str, arguments: str = "prediction_loss_only=True", given: str = GIVEN) -> str:
    """A script whose Trainer is the class `name` of `middle`; without the function where it is not given."""
    return (HEAD if given else CLEAN) + middle + body(arguments, given).replace(" Trainer(", f" {name}(")


def check_argument_and_function_go(arguments: str, *, then: str = "", trainer: str = "") -> None:
    kept = f", {trainer}" if trainer else ""
    before = script(arguments, f"compute_metrics=compute_metrics{kept}", then)
    check_transformed(DeadComputeMetrics, before, CLEAN + body(arguments, trainer, then))


# The documentation


def blocks(section: str) -> str:
    match = re.search(r"```python\n(.*?)```", DeadComputeMetrics.sections()[section], re.S)
    assert match
    return match[1]


def test_the_example_of_the_documentation() -> None:
    check_transformed(DeadComputeMetrics, blocks("Example"), blocks("Use instead"))


# Dead: predictions are kept from it


def test_loss_only_with_evaluation_every_epoch() -> None:
    check_argument_and_function_go('eval_strategy="epoch", prediction_loss_only=True', then="trainer.evaluate()")


def test_loss_only_with_predict() -> None:
    check_argument_and_function_go("prediction_loss_only=True", then="trainer.predict(model)")


def test_loss_only_with_the_loss_as_best_metric() -> None:
    check_argument_and_function_go(
        'prediction_loss_only=True, metric_for_best_model="eval_loss", load_best_model_at_end=True'
    )


def test_a_trainer_that_leaves_the_function_is_no_obstacle_with_loss_only() -> None:
    check_argument_and_function_go("prediction_loss_only=True", then="return trainer")


def test_training_arguments_made_inside_the_call() -> None:
    call = 'Trainer(model, TrainingArguments("out", prediction_loss_only=True), {})\n'
    check_transformed(
        DeadComputeMetrics,
        HEAD + "Trainer(model, TrainingArguments('out', prediction_loss_only=True), compute_metrics=compute_metrics)\n",
        CLEAN + call.replace('"', "'").replace(", {}", ""),
    )


OVERRIDE = """
class MyTrainer(Trainer):
    def evaluation_loop(self, dataloader, description, prediction_loss_only=None, ignore_keys=None, metric_key_prefix="eval"):
        output = super().evaluation_loop(
            dataloader, description, prediction_loss_only=prediction_loss_only, ignore_keys=ignore_keys,
            metric_key_prefix=metric_key_prefix,
        )
        output.metrics.setdefault("eval_loss", 0.0)
        return output


"""


def test_an_evaluation_loop_that_calls_super_stays_as_it_is() -> None:
    middle = OVERRIDE.lstrip("\n")
    before, after = with_class(middle, "MyTrainer"), with_class(middle, "MyTrainer", given="")
    found = check_transformed(DeadComputeMetrics, before, after)
    assert any("evaluation_loop calls super" in e.text for e in found[0].evidence)


def test_a_trainer_class_from_another_file() -> None:
    files = {"mine.py": "from transformers import Trainer\n" + OVERRIDE}
    imports = "from transformers import TrainingArguments\n\nfrom mine import MyTrainer\n\n\n"
    function = HEAD.partition("Arguments\n\n\n")[2].replace("np.mean", "numpy.mean")
    before = (
        "import numpy\n" + imports + function + body("prediction_loss_only=True", "compute_metrics=compute_metrics")
    )
    after = imports + body("prediction_loss_only=True", "")
    replaced = [text.replace(" Trainer(", " MyTrainer(") for text in (before, after)]
    check_transformed(DeadComputeMetrics, replaced[0], replaced[1], files=files)


STEP = """\
class LossTrainer(Trainer):
    def prediction_step(self, model, inputs, prediction_loss_only, ignore_keys=None):
        loss = self.compute_loss(model, inputs)
        return (loss, None, None)


"""


def test_a_prediction_step_that_returns_only_the_loss() -> None:
    before = with_class(STEP, "LossTrainer", 'eval_strategy="epoch"')
    after = CLEAN + STEP + body('eval_strategy="epoch"', "").replace(" Trainer(", " LossTrainer(")
    check_transformed(DeadComputeMetrics, before, after)


# Dead: nothing evaluates


@pytest.mark.parametrize("arguments", ['eval_strategy="no"', "evaluation_strategy='no'", "num_train_epochs=3"])
def test_nothing_evaluates(arguments: str) -> None:
    check_argument_and_function_go(arguments, then="trainer.save_model()")


def test_the_strategy_no_with_an_eval_set_is_a_decision() -> None:
    check_argument_and_function_go('eval_strategy="no"', trainer="eval_dataset=dev")


def test_an_eval_set_without_a_strategy_may_be_an_omission() -> None:
    before = script("num_train_epochs=3", "eval_dataset=dev, compute_metrics=compute_metrics")
    after = CLEAN + body("num_train_epochs=3", "eval_dataset=dev")
    found = check_transformed(DeadComputeMetrics, before, after, unsafe=True)
    assert "eval_strategy is missing" in found[0].reason


def test_an_unknown_callback_may_ask_for_evaluations() -> None:
    before = "from zoo import Probe\n" + script(
        "num_train_epochs=3", "callbacks=[Probe()], compute_metrics=compute_metrics"
    )
    after = "from zoo import Probe\n" + CLEAN + body("num_train_epochs=3", "callbacks=[Probe()]")
    found = check_transformed(DeadComputeMetrics, before, after, unsafe=True)
    assert "Probe does not ask for evaluations" in found[0].reason


@pytest.mark.parametrize(
    "told",
    [
        'eval_strategy="no",  # "epoch" to score the dev set',
        "do_eval=False,  # for eval on the dev set",
        '# eval_strategy="steps",',
        'num_train_epochs=3,\n        # turn on for the last run\n        eval_strategy="no",',
    ],
)
def test_a_comment_keeps_the_evaluation_for_another_day(told: str) -> None:
    check_told(DeadComputeMetrics, script(f"\n        {told}\n    "), reason="for whoever turns it on")


@pytest.mark.parametrize("told", ['eval_strategy="no",  # no evaluation here', 'num_train_epochs=3,  # "epoch" is a pass'])
def test_a_comment_that_tells_of_no_switch(told: str) -> None:
    found = findings_of(DeadComputeMetrics, script(f"\n        {told}\n    "))
    assert [f.applicability for f in found] == [Applicability.SAFE]


# Layout


def test_tabs_comments_decorated_neighbours_and_aliases() -> None:
    before = """
        import numpy as np
        import transformers as hf


        # The accuracy
        # of the run.
        def accuracy(p):
        \t'''doc'''
        \treturn {"acc": np.mean(p.predictions)}
        \t# done


        @np_free
        def keep():
        \targs = hf.TrainingArguments(output_dir="o", prediction_loss_only=True)
        \ttrainer = hf.Trainer(
        \t\tmodel=m,  # the model
        \t\targs=args,
        \t\t# scores
        \t\tcompute_metrics=accuracy,  # never seen
        \t\ttrain_dataset=d,
        \t)
        \ttrainer.train()
    """
    after = """
        import transformers as hf


        @np_free
        def keep():
        \targs = hf.TrainingArguments(output_dir="o", prediction_loss_only=True)
        \ttrainer = hf.Trainer(
        \t\tmodel=m,  # the model
        \t\targs=args,
        \t\ttrain_dataset=d,
        \t)
        \ttrainer.train()
    """
    check_transformed(DeadComputeMetrics, before, after)


def test_two_blanks_and_a_nested_function_with_its_metric() -> None:
    before = """
        import evaluate
        from transformers import Trainer, TrainingArguments

        def main(model):
          model.train()
          metric = evaluate.load("wer")

          def compute_metrics(p):
            return {"wer": metric.compute(predictions=p.predictions, references=p.label_ids)}

          args = TrainingArguments("out", prediction_loss_only=True)
          Trainer(model=model, args=args, compute_metrics=compute_metrics).train()
    """
    after = """
        from transformers import Trainer, TrainingArguments

        def main(model):
          model.train()

          args = TrainingArguments("out", prediction_loss_only=True)
          Trainer(model=model, args=args).train()
    """
    check_transformed(DeadComputeMetrics, before, after)


def test_a_lambda() -> None:
    before = script("prediction_loss_only=True", "compute_metrics=lambda p: {'acc': 0.0}").replace(HEAD, CLEAN)
    check_transformed(DeadComputeMetrics, before, CLEAN + body("prediction_loss_only=True", ""))


# What goes with it, and what stays


def test_module_level_metric_constants_helpers_and_the_logits_function_go() -> None:
    before = """
        import evaluate
        import json
        from sklearn.metrics import accuracy_score, f1_score
        from transformers import EvalPrediction, Trainer, TrainingArguments

        metric = evaluate.load("accuracy")
        LABELS = ["a", "b"]
        SEED = 3


        def clean(rows):
            return [row for row in rows if row in LABELS]


        def first(logits, labels):
            return logits[0]


        def compute_metrics(p: EvalPrediction):
            rows = clean(p.predictions)
            return {"acc": metric.compute(rows), "f1": f1_score(rows, p.label_ids)}


        args = TrainingArguments("out", prediction_loss_only=True, seed=SEED)
        trainer = Trainer(
            args=args,
            compute_metrics=compute_metrics,
            preprocess_logits_for_metrics=first,
        )
        print(json.dumps({"acc": accuracy_score(trainer.train())}))
    """
    after = """
        import json
        from sklearn.metrics import accuracy_score
        from transformers import Trainer, TrainingArguments

        SEED = 3


        args = TrainingArguments("out", prediction_loss_only=True, seed=SEED)
        trainer = Trainer(
            args=args,
        )
        print(json.dumps({"acc": accuracy_score(trainer.train())}))
    """
    check_transformed(DeadComputeMetrics, before, after)


def test_a_function_that_a_test_imports_stays() -> None:
    files = {"tests/test_train.py": "from module import compute_metrics\n"}
    after = HEAD + body("prediction_loss_only=True", "")
    check_transformed(DeadComputeMetrics, script(), after, files=files)


def test_a_function_in_another_file_goes_with_its_import() -> None:
    other = "\n\n\ndef other(p):\n    return math.pi\n"
    accuracy = "\n\n\ndef accuracy(p):\n    return {'acc': np.mean(p)}"
    files = {"scores.py": "import math\nimport numpy as np" + accuracy + other}
    imports = "from scores import accuracy\n"
    before = imports + script(trainer="compute_metrics=accuracy").replace(HEAD, CLEAN)
    check_transformed(
        DeadComputeMetrics,
        before,
        CLEAN + body("prediction_loss_only=True", ""),
        files=files,
        changed={"scores.py": "import math" + other},
    )


def test_a_function_in_another_file_that_is_used_there_stays() -> None:
    files = {"scores.py": "def accuracy(p):\n    return p\n\n\ndef other(p):\n    return accuracy(p)\n"}
    before = "from scores import accuracy\n" + script(trainer="compute_metrics=accuracy").replace(HEAD, CLEAN)
    check_transformed(DeadComputeMetrics, before, CLEAN + body("prediction_loss_only=True", ""), files=files)


PACKED = HEAD + (
    "def main(model):\n"
    '    args = TrainingArguments("out", eval_strategy="epoch", prediction_loss_only=True)\n'
    '    given = {\n        "model": model,\n        "args": args,\n        "compute_metrics": compute_metrics,  # both\n    }\n'
    "    trainer = Trainer(**given)\n    trainer.train()\n"
)


@pytest.mark.parametrize("call", ["Trainer(**given)", "Trainer(**given, callbacks=[])"])
def test_an_entry_of_the_dictionary_behind_two_stars_goes(call: str) -> None:
    before = PACKED.replace("Trainer(**given)", call)
    after = before.replace(HEAD, CLEAN).replace('        "compute_metrics": compute_metrics,  # both\n', "")
    check_transformed(DeadComputeMetrics, before, after)


@pytest.mark.parametrize(
    "change",
    [
        ("    trainer = ", "    log(given)\n    trainer = "),
        ("    trainer = ", '    given["compute_metrics"] = None\n    trainer = '),
        ('"model": model', "**more"),
    ],
)
def test_a_dictionary_that_serves_others_or_is_not_all_seen_stays(change: tuple[str, str]) -> None:
    check_nothing(DeadComputeMetrics, PACKED.replace(*change))


def test_a_dictionary_with_a_live_function_stays() -> None:
    check_nothing(DeadComputeMetrics, PACKED.replace(", prediction_loss_only=True", ""))


def test_two_dead_trainers_share_one_function() -> None:
    call = "Trainer(args=TrainingArguments('o', prediction_loss_only=True){}).train()\n"
    check_transformed(
        DeadComputeMetrics,
        HEAD + call.format(", compute_metrics=compute_metrics") * 2,
        CLEAN + call.format("") * 2,
    )


def test_a_second_live_trainer_keeps_the_function() -> None:
    dead = "Trainer(args=TrainingArguments('o', prediction_loss_only=True){}).train()\n"
    live = "Trainer(args=TrainingArguments('o', eval_strategy='epoch'), compute_metrics=compute_metrics).train()\n"
    check_transformed(
        DeadComputeMetrics,
        HEAD + dead.format(", compute_metrics=compute_metrics") + live,
        HEAD + dead.format("") + live,
    )


@pytest.mark.parametrize(
    ("files", "word"),
    [
        ({"README.md": "Metrics: see `compute_metrics`.\n"}, "README.md:1"),
        ({"conf/run.yaml": "x: 1\n_target_: module.compute_metrics\n"}, "conf/run.yaml:2"),
        ({"show.ipynb": '"module.compute_metrics(x)"\n'}, "show.ipynb:1"),
        ({"other.py": "getattr(m, 'compute_metrics')\n"}, "other.py:1"),
    ],
)
def test_a_function_that_is_named_elsewhere_stays_and_only_on_request(files: dict[str, str], word: str) -> None:
    found = check_transformed(
        DeadComputeMetrics, script(), HEAD + body("prediction_loss_only=True", ""), files=files, unsafe=True
    )
    assert word in found[0].reason


def test_a_call_that_is_commented_out_keeps_the_function() -> None:
    note = "# Trainer(compute_metrics=compute_metrics)\n"
    found = check_transformed(
        DeadComputeMetrics, script() + note, HEAD + body("prediction_loss_only=True", "") + note, unsafe=True
    )
    assert "is named at module.py" in found[0].reason


def test_inputs_gathered_for_it_are_left_over() -> None:
    arguments = 'prediction_loss_only=True, include_for_metrics=["inputs"]'
    found = check_transformed(DeadComputeMetrics, script(arguments), CLEAN + body(arguments, ""), unsafe=True)
    assert "include_for_metrics" in found[0].reason


# Refused, with the reason


@pytest.mark.parametrize("key", ["acc", "eval_acc"])
def test_metric_for_best_model_wants_it(key: str) -> None:
    source = script(f'prediction_loss_only=True, metric_for_best_model="{key}"')
    check_told(DeadComputeMetrics, source, reason="metric_for_best_model=")


def test_metric_for_best_model_from_elsewhere() -> None:
    check_told(
        DeadComputeMetrics, script("prediction_loss_only=True, metric_for_best_model=best"), reason="is no literal"
    )


def test_early_stopping_on_its_metric() -> None:
    arguments = (
        'prediction_loss_only=True, eval_strategy="epoch", metric_for_best_model="acc", load_best_model_at_end=True'
    )
    source = script(arguments, "compute_metrics=compute_metrics, callbacks=[EarlyStoppingCallback()]")
    source = source.replace("import Trainer", "import EarlyStoppingCallback, Trainer")
    check_told(DeadComputeMetrics, source, reason="metric_for_best_model=")


def test_a_callback_reads_its_key() -> None:
    callback = """
class Log(TrainerCallback):
    def on_evaluate(self, args, state, control, metrics=None, **kwargs):
        print(metrics["eval_acc"])
"""
    check_told(DeadComputeMetrics, script() + callback, reason="names 'eval_acc'")


def test_a_callback_in_another_file_reads_a_key_that_is_not_built_in() -> None:
    files = {
        "cb.py": "from transformers import TrainerCallback\n\ndef f(metrics):\n    return metrics.get('eval_wer')\n"
    }
    source = script().replace('return {"acc": ', "return dict(acc=").replace("label_ids))}", "label_ids)))")
    check_told(DeadComputeMetrics, source, files=files, reason="cb.py:4 reads 'eval_wer'")


def test_a_callback_that_reads_the_loss_is_no_obstacle() -> None:
    files = {"cb.py": "from transformers import TrainerCallback\n\ndef f(metrics):\n    return metrics['eval_loss']\n"}
    check_transformed(DeadComputeMetrics, script(), CLEAN + body("prediction_loss_only=True", ""), files=files)


def test_a_reader_that_the_script_imports_counts_and_one_of_another_example_does_not() -> None:
    reader = "def f(metrics):\n    return metrics['eval_acc']\n"
    used = "from tools.report import f\n" + script()
    check_told(DeadComputeMetrics, used, files={"tools/report.py": reader}, reason="tools/report.py:2")
    after = CLEAN + body("prediction_loss_only=True", "")
    check_transformed(DeadComputeMetrics, script(), after, files={"other/example.py": reader})


def test_a_sweep_configuration_wants_its_key() -> None:
    check_told(DeadComputeMetrics, script(), files={"sweep.yaml": "metric:\n  name: eval/acc\n"}, reason="sweep.yaml:2")


def test_a_longer_word_or_a_setting_is_not_its_key() -> None:
    files = {
        "cb.py": "import transformers\n\ndef f(metrics, config):\n    return metrics['eval_accumulated'], config['eval_split']\n",
        "conf.yaml": "eval_accumulation_steps: 2\n",
    }
    check_transformed(DeadComputeMetrics, script(), CLEAN + body("prediction_loss_only=True", ""), files=files)


def subclass(init: str) -> str:
    """A script whose Trainer has an `__init__` of its own."""
    return with_class(f"class T(Trainer):\n    {init}\n\n\n", "T")


def test_a_subclass_that_keeps_the_function_under_another_name() -> None:
    init = "def __init__(self, compute_metrics=None, **kw):\n        super().__init__(**kw)\n        self.score = compute_metrics"
    check_told(DeadComputeMetrics, subclass(init), reason="T handles compute_metrics itself")


def test_a_subclass_that_makes_its_own_arguments() -> None:
    init = "def __init__(self, model, args, **kw):\n        super().__init__(model, args=replace(args), **{})"
    check_told(DeadComputeMetrics, subclass(init), reason="hand the training arguments on")


@pytest.mark.parametrize(
    "init",
    [
        "def __init__(self, *a, weight=None, **kw):\n        super().__init__(*a, **kw)\n        self.weight = weight",
        "def __init__(self, model, args, **kw):\n        super().__init__(model, args, **kw)",
    ],
)
def test_a_subclass_that_hands_everything_on(init: str) -> None:
    middle = f"class T(Trainer):\n    {init}\n\n\n"
    after = with_class(middle, "T", given="")
    check_transformed(DeadComputeMetrics, subclass(init), after)


def test_callbacks_among_the_star_arguments() -> None:
    before = script("num_train_epochs=3", "compute_metrics=compute_metrics, **more")
    found = check_transformed(DeadComputeMetrics, before, CLEAN + body("num_train_epochs=3", "**more"), unsafe=True)
    assert "no callback among the ** arguments" in found[0].reason


def test_an_overridden_prediction_step() -> None:
    step = STEP.replace("(loss, None, None)", "(loss, logits, labels)")
    source = with_class(step, "LossTrainer")
    check_told(DeadComputeMetrics, source, reason="overrides prediction_step")


@pytest.mark.parametrize("name", ["evaluate", "predict"])
def test_an_overridden_loop(name: str) -> None:
    middle = f"class T(Trainer):\n    def {name}(self, *args, **kwargs):\n        return {{}}\n\n\n"
    source = with_class(middle, "T")
    check_told(DeadComputeMetrics, source, reason=f"T overrides {name}")


@pytest.mark.parametrize("given", ["prediction_loss_only=False", "prediction_loss_only=not prediction_loss_only"])
def test_an_evaluation_loop_that_says_otherwise(given: str) -> None:
    middle = OVERRIDE.replace("prediction_loss_only=prediction_loss_only", given)
    source = with_class(middle, "MyTrainer")
    check_told(DeadComputeMetrics, source, reason="evaluation_loop without handing prediction_loss_only on")


def test_an_evaluation_loop_without_super() -> None:
    middle = "class T(Trainer):\n    def evaluation_loop(self, *args, **kwargs):\n        return run(self)\n\n\n"
    source = with_class(middle, "T")
    check_told(DeadComputeMetrics, source, reason="evaluation_loop")


@pytest.mark.parametrize("use", ["self.compute_metrics(x)", "trainer.compute_metrics = f"])
def test_the_attribute_is_used(use: str) -> None:
    files = {"other.py": f"def f(self, trainer, x):\n    {use}\n"}
    check_told(DeadComputeMetrics, script(), files=files, reason="other.py:2 uses the attribute")


def test_generation_in_a_seq2seq_trainer() -> None:
    source = script("prediction_loss_only=True, predict_with_generate=True").replace("Trainer", "Seq2SeqTrainer")
    check_told(DeadComputeMetrics, source.replace("TrainingArg", "Seq2SeqTrainingArg"), reason="predict_with_generate")


def test_an_unresolved_base() -> None:
    middle = "class T(Mixin, Trainer):\n    pass\n\n\n"
    source = with_class(middle, "T")
    check_told(DeadComputeMetrics, source, reason="base Mixin")


def test_a_trainer_of_another_package() -> None:
    source = "from trl import DPOTrainer as Trainer\n" + script().replace("import Trainer, ", "import ")
    check_told(DeadComputeMetrics, source, reason="DPOTrainer of trl")


@pytest.mark.parametrize(
    "change", ["args.prediction_loss_only = False", "args.set_evaluate(loss_only=False)", "adjust(args)"]
)
def test_arguments_that_are_changed_on_the_way_prove_nothing(change: str) -> None:
    source = script('prediction_loss_only=True, eval_strategy="epoch"').replace(
        "    trainer = ", f"    {change}\n    trainer = "
    )
    check_nothing(DeadComputeMetrics, source)


def test_arguments_that_are_changed_behind_the_trainer() -> None:
    check_told(
        DeadComputeMetrics, script(then="trainer.args.prediction_loss_only = False"), reason="sets prediction_loss_only"
    )


@pytest.mark.parametrize(
    ("main", "files"),
    [
        ("from tools import adjust\n", {"tools.py": "def adjust(t):\n    t.args.prediction_loss_only = False\n"}),
        ("", {"run.py": "from module import main\nmain(0).args.prediction_loss_only = False\n"}),
        ("", {"run.py": "import module, act\nact.f(module.main(0))\n", "act.py": "def f(t):\n    t.args.do_eval = True\n"}),
    ],
)
def test_arguments_that_are_changed_where_the_trainer_can_come_to(main: str, files: dict[str, str]) -> None:
    check_told(DeadComputeMetrics, main + script(then="return trainer"), files=files, reason=" sets ")


def test_another_script_that_changes_its_own_arguments_is_no_obstacle() -> None:
    files = {"twin.py": "def f(args):\n    args.prediction_loss_only = False\n"}
    check_transformed(DeadComputeMetrics, script(), CLEAN + body("prediction_loss_only=True", ""), files=files)


def test_a_loop_that_is_called_with_another_argument() -> None:
    source = script(then="trainer.evaluation_loop(d, 'x', prediction_loss_only=False)")
    check_told(DeadComputeMetrics, source, reason="passes prediction_loss_only=False")


def test_arguments_from_the_command_line_that_nobody_gives_a_strategy() -> None:
    source = HEAD + (
        "from transformers import HfArgumentParser\n"
        "args, = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()\n"
        "trainer = Trainer(args=args, compute_metrics=compute_metrics)\ntrainer.train()\n"
    )
    check_told(DeadComputeMetrics, source, reason="filled from the command line")
    check_nothing(DeadComputeMetrics, source, files={"run.sh": "torchrun module.py --eval_strategy epoch\n"})


def test_arguments_from_a_dictionary() -> None:
    check_told(DeadComputeMetrics, script("**config"), reason="takes arguments from elsewhere")


def test_an_argument_made_by_a_call() -> None:
    check_told(DeadComputeMetrics, script(trainer="compute_metrics=build(compute_metrics)"), reason="is no plain name")


def test_a_partial_is_no_plain_name() -> None:
    check_told(
        DeadComputeMetrics, script(trainer="compute_metrics=partial(compute_metrics, k=1)"), reason="is no plain name"
    )


def test_a_name_with_two_definitions() -> None:
    source = script().replace("def main", "compute_metrics = wrap(compute_metrics)\n\n\ndef main")
    check_told(DeadComputeMetrics, source, reason="one definition")


def test_a_callback_that_asks_for_evaluations() -> None:
    files = {"cb.py": "def f(control):\n    control.should_evaluate = True\n"}
    check_told(
        DeadComputeMetrics, script("num_train_epochs=3"), files=files, reason="cb.py sets control.should_evaluate"
    )


# Alive: nothing to say


@pytest.mark.parametrize(
    ("arguments", "then"),
    [
        ('eval_strategy="epoch"', ""),
        ("evaluation_strategy='steps'", ""),
        ("eval_strategy='steps' if dev else 'no'", ""),
        ("eval_strategy=strategy", ""),
        ("eval_on_start=True", ""),
        ("num_train_epochs=3", "trainer.evaluate()"),
        ("num_train_epochs=3", "trainer.predict(test)"),
        ("num_train_epochs=3", "trainer.hyperparameter_search()"),
        ("num_train_epochs=3", "finish(trainer)"),
        ("num_train_epochs=3", "return trainer"),
        ("num_train_epochs=3", "self.trainer = trainer"),
        ('prediction_loss_only=False, eval_strategy="epoch"', ""),
        ('prediction_loss_only=flag, eval_strategy="epoch"', ""),
    ],
)
def test_a_live_function(arguments: str, then: str) -> None:
    check_nothing(DeadComputeMetrics, script(arguments, then=then))


def test_a_live_function_behind_a_condition() -> None:
    given = "compute_metrics=compute_metrics if args.do_eval and not on_tpu() else None"
    source = script("num_train_epochs=3", given, "trainer.evaluate()")
    check_nothing(DeadComputeMetrics, source)


def test_a_trainer_that_evaluates_in_its_own_method() -> None:
    middle = "class T(Trainer):\n    def training_step(self, model, inputs):\n        self.evaluate()\n\n\n"
    source = HEAD + middle + body("num_train_epochs=3", "compute_metrics=compute_metrics").replace(" Trainer(", " T(")
    check_nothing(DeadComputeMetrics, source)


def test_a_trainer_used_by_another_file() -> None:
    source = HEAD + 'trainer = Trainer(args=TrainingArguments("o"), compute_metrics=compute_metrics)\n'
    check_nothing(DeadComputeMetrics, source, files={"run.py": "from module import trainer\ntrainer.evaluate()\n"})


def test_none_is_no_function() -> None:
    check_nothing(DeadComputeMetrics, script(trainer="compute_metrics=None").replace(HEAD, CLEAN))


def test_a_class_that_is_no_trainer() -> None:
    check_nothing(DeadComputeMetrics, script().replace("from transformers", "from mylib"))


# Nobody refers to it


def test_a_function_that_nobody_refers_to_in_a_script() -> None:
    before = HEAD + body('eval_strategy="epoch"', "")
    check_transformed(DeadComputeMetrics, before, CLEAN + body('eval_strategy="epoch"', ""))


def test_in_a_library_it_goes_only_on_request() -> None:
    before = HEAD.replace("Trainer, ", "") + "def other():\n    return TrainingArguments\n"
    after = "from transformers import TrainingArguments\n\n\ndef other():\n    return TrainingArguments\n"
    found = check_transformed(DeadComputeMetrics, before, after, unsafe=True)
    assert "nobody outside this repository" in found[0].reason


@pytest.mark.parametrize(
    "files",
    [
        {"a.py": "from module import compute_metrics\n"},
        {"a.py": "import module\nmodule.compute_metrics(x)\n"},
        {"a.py": "from module import *\ncompute_metrics(x)\n"},
        {"a.py": "kwargs['compute_metrics'] = 1\n"},
        {"a.py": "trainer.compute_metrics(x)\n"},
        {"a.py": "old = 'see compute_metrics'\n"},
        {"a.py": "def run(model):\n    fit(model, metrics=compute_metrics)\n"},
        {"jobs/a.py": "class Job:\n    metrics = staticmethod(compute_metrics)\n"},
        {"a.py": "from settings import *\nfit(compute_metrics)\n", "settings.py": "rate = 1\n"},
    ],
)
def test_a_function_that_somebody_may_refer_to(files: dict[str, str]) -> None:
    check_nothing(DeadComputeMetrics, HEAD + body('eval_strategy="epoch"', ""), files=files)


@pytest.mark.parametrize(
    "files",
    [
        {"a.py": "def compute_metrics(p):\n    return {}\n\n\nfit(compute_metrics)\n"},
        {"a.py": "def fit(compute_metrics):\n    return compute_metrics(1)\n"},
        {"a.py": "for compute_metrics in functions:\n    fit(compute_metrics)\n"},
        {"a.py": "from other import *\nfit(compute_metrics)\n", "other.py": "from far import *\n",
         "far.py": "def compute_metrics(p):\n    return {}\n\n\nfit(compute_metrics)\n"},
    ],
)  # fmt: skip
def test_a_function_of_another_file_that_has_its_name(files: dict[str, str]) -> None:
    before = HEAD + body('eval_strategy="epoch"', "")
    check_transformed(DeadComputeMetrics, before, CLEAN + body('eval_strategy="epoch"', ""), files=files)


def test_a_file_that_lacks_the_import_is_named_for_why_not() -> None:
    heard: list[Left] = []
    with hearing(heard.append):
        check_nothing(DeadComputeMetrics, HEAD + body('eval_strategy="epoch"', ""), files={"a.py": "\nfit(compute_metrics)\n"})
    assert "a.py:2 reads the name and binds it nowhere: its import may be missing" in [h.why for h in heard]


@pytest.mark.parametrize(
    "addition",
    [
        "__all__ = ['compute_metrics']\n",
        "kwargs = {'compute_metrics': compute_metrics}\n",
        "f = partial(compute_metrics, k=1)\n",
    ],
)
def test_a_function_that_its_own_file_refers_to(addition: str) -> None:
    check_nothing(DeadComputeMetrics, HEAD + body('eval_strategy="epoch"', "") + addition)


def test_a_decorated_function_may_be_registered() -> None:
    check_nothing(
        DeadComputeMetrics, (HEAD + body('eval_strategy="epoch"', "")).replace("def compute", "@register\ndef compute")
    )


def test_a_method_is_called_by_its_class() -> None:
    method = "class T(Trainer):\n    def compute_metrics(self, p):\n        return {}\n"
    check_nothing(DeadComputeMetrics, "from transformers import Trainer\n\n" + method)


def test_a_function_of_another_framework() -> None:
    check_nothing(DeadComputeMetrics, "import torch\n\ndef compute_metrics(p):\n    return {}\n")


@pytest.mark.parametrize(
    ("arguments", "then"),
    [('eval_strategy="epoch", metric_for_best_model="acc"', ""), ("seed=1", 'print(trainer.evaluate()["eval_acc"])')],
)
def test_an_unreferenced_function_whose_numbers_are_wanted_is_told(arguments: str, then: str) -> None:
    check_told(DeadComputeMetrics, HEAD + body(arguments, "", then), reason="may be what is missing")


@pytest.mark.parametrize("kind", ["comment", "text"])
def test_an_unreferenced_function_that_is_named_is_told(kind: str) -> None:
    note = "# Trainer(compute_metrics=compute_metrics)\n" if kind == "comment" else ""
    files = {} if note else {"README.md": "compute_metrics\n"}
    check_told(DeadComputeMetrics, HEAD + body('eval_strategy="epoch"', "") + note, files=files, reason="has the word")


# Arguments that job files fill

PARSED = """\
def main(model):
    args, = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
    trainer = Trainer(model=model, args=args{given})
    trainer.train()
"""
FILLED = HEAD.replace("import Trainer", "import HfArgumentParser, Trainer") + PARSED.format(given=f", {GIVEN}")
EMPTIED = CLEAN.replace("import Trainer", "import HfArgumentParser, Trainer") + PARSED.format(given="")
EVALUATES = "    trainer.evaluate()\n"


@pytest.mark.parametrize(
    ("more", "job"),
    [
        ("", "torchrun module.py --output_dir out --learning_rate 1e-4\n"),
        ("", "torchrun module.py --output_dir $OUT --eval_strategy no\n"),
        (EVALUATES, "python module.py --prediction_loss_only --eval_strategy no\npython module.py --prediction_loss_only=1\n"),
    ],
)
def test_job_files_show_that_it_is_never_called(more: str, job: str) -> None:
    files = {"run.sh": job}
    (found,) = check_transformed(DeadComputeMetrics, FILLED + more, EMPTIED + more, files=files, unsafe=True)
    assert "always started as at run.sh:1" in found.reason


def test_a_job_in_yaml_counts_as_well() -> None:
    job = {"job.yaml": "command: >-\n  accelerate launch module.py\n  --prediction_loss_only True\n"}
    check_transformed(DeadComputeMetrics, FILLED + EVALUATES, EMPTIED + EVALUATES, files=job, unsafe=True)
    live = {**job, "other.yaml": "command: accelerate launch module.py --eval_strategy epoch\n"}
    check_nothing(DeadComputeMetrics, FILLED + EVALUATES, files=live)


@pytest.mark.parametrize("job", ["python module.py --eval_strategy epoch\n", "python module.py --evaluation_strategy=$WHEN\n"])
def test_a_job_that_evaluates_makes_it_live(job: str) -> None:
    check_nothing(DeadComputeMetrics, FILLED, files={"run.sh": job})


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        ('python module.py --output_dir out "$@"\n', "filled from the command line"),
        ("python module.py arguments.json\n", "filled from the command line"),
        ("python module.py --prediction_loss_only --metric_for_best_model acc\n", "run.sh:1 asks for a number"),
        ("python other.py --seed 1\n", "filled from the command line"),
    ],
)
def test_a_job_that_leaves_it_open_is_told(job: str, reason: str) -> None:
    check_told(DeadComputeMetrics, FILLED, files={"run.sh": job}, reason=reason)


# Alive, and every rank writes


@pytest.mark.parametrize(
    "statement",
    [
        "print(p)",
        "open('scores.txt', 'a').write('x')",
        "json.dump(p, handle)",
        "frame.to_csv('x.csv')",
        "wandb.log({})",
        "with open('a.json', 'w') as f:\n        json.dump(p, f)",
    ],
)
def test_what_every_rank_writes_goes_under_a_guard(statement: str) -> None:
    source = "import json\nimport os\nimport wandb\n" + script('eval_strategy="epoch"')
    before = source.replace("    return {", f"    {statement}\n    return {{")
    guard = 'if int(os.environ.get("RANK", 0)) == 0:\n        '
    after = source.replace("    return {", f"    {guard}{statement.replace(chr(10), chr(10) + '    ')}\n    return {{")
    (found,) = check_transformed(DeadComputeMetrics, before, after, unsafe=True)
    assert "a launcher sets RANK" in found.reason and "every rank calls compute_metrics" in found.message


def test_the_guard_takes_an_import_and_leaves_the_rest_to_every_rank() -> None:
    source = script('eval_strategy="epoch"')
    before = source.replace("    return {", "    score = work(prediction)\n    print(score)\n    return {")
    after = before.replace("    print(score)", '    if int(os.environ.get("RANK", 0)) == 0:\n        print(score)')
    after = after.replace("import Trainer, TrainingArguments\n", "import Trainer, TrainingArguments\nimport os\n")
    check_transformed(DeadComputeMetrics, before, after, unsafe=True)


@pytest.mark.parametrize(
    ("statements", "reason"),
    [
        ("with open('a.txt', 'w') as f:\n        f.write('x')\n    p = load('a.txt')", "load('a.txt') names the file again"),
        ("f = open('a.txt', 'w')\n    f.write('x')", "every rank opens that file, and empties it, in line"),
        (
            "f = open('a.txt', 'w')\n    f.writelines(p)\n    f.close()\n"
            "    f = open('b.txt', 'w')\n    f.writelines(p)\n    f.close()",
            "every rank opens that file, and empties it, in line",
        ),
        ("x = print(p) or 1", "guard this call by the global rank"),
    ],
)
def test_what_cannot_be_guarded_alone_is_told(statements: str, reason: str) -> None:
    source = script('eval_strategy="epoch"').replace("    return {", f"    {statements}\n    return {{")
    check_told(DeadComputeMetrics, source, reason=reason)


def test_what_another_codemod_guards_is_left_to_it() -> None:
    source = "import os\nfrom torch import distributed\nrank = int(os.environ['RANK'])\n" + script('eval_strategy="epoch"')
    before = source.replace("    return {", "    if rank == 0:\n        log()\n    print(p)\n    return {")
    check_nothing(DeadComputeMetrics, before)


@pytest.mark.parametrize(
    "statement",
    ["open('labels.txt').read()", "logger.info(p)", "if int(os.environ.get('RANK', 0)) == 0:\n        print(p)"],
)
def test_reading_and_guarded_writing_are_fine(statement: str) -> None:
    source = script('eval_strategy="epoch"').replace("    return {", f"    {statement}\n    return {{")
    check_nothing(DeadComputeMetrics, "import os\n" + source)


# The example project


def test_the_example_project_is_fixed_safely() -> None:
    root = Path(__file__).parents[2] / "fixtures" / "examples" / "hf-speech" / "before"
    files = {p.relative_to(root).as_posix(): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}
    project = Project.of(files)
    result = fix_project(
        project, lambda _p, paths: {p: [DeadComputeMetrics()] for p in paths}, project.python_files, safe
    )
    assert set(result.changed) == {"finetune.py"} and not result.left and not result.withdrawn
    text = result.changed["finetune.py"].decode()
    for gone in (
        "compute_metrics",
        "collapse",
        "numpy",
        "EvalPrediction",
        "character_error_rate",
        "Character error rate",
    ):
        assert gone not in text
    assert "metric_for_best_model='eval_loss'" in text and "HistoryCallback" in text


def test_findings_are_plain_data() -> None:
    found = findings_of(DeadComputeMetrics, script())
    assert json.dumps([f.message for f in found]) and found[0].symbol == "main"
    assert "so acc is never reported; np serves nothing else" in found[0].message
