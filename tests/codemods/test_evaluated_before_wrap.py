from __future__ import annotations

import pytest

from codemods.checkpoints.evaluated_before_wrap import EvaluatedBeforeWrap
from ddpfix.testing import check_nothing, check_told, findings_of

HEAD = """from transformers import Trainer, TrainingArguments


def main(model, arguments, rows, tests):
    trainer = Trainer(model=model, args=arguments, train_dataset=rows, eval_dataset=tests)
"""
OWN = """from transformers import Trainer


class Scored(Trainer):
    {more}


def main(model, arguments, rows):
    trainer = Scored(model, arguments, train_dataset=rows)
    trainer.evaluate()
    trainer.train()


if __name__ == "__main__":
    main(*load())
"""


def program(*lines: str) -> str:
    return HEAD + "".join(f"    {line}\n" for line in lines) + '\n\nif __name__ == "__main__":\n    main(*load())\n'


def test_example_of_the_page() -> None:
    sections = EvaluatedBeforeWrap.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_told(EvaluatedBeforeWrap, before, reason="`eval_on_start=True`")
    check_nothing(EvaluatedBeforeWrap, after)


@pytest.mark.parametrize(
    "lines",
    [
        ("print(trainer.evaluate())", "trainer.train()"),
        ("scores = trainer.predict(tests)", "result = trainer.train(resume_from_checkpoint=True)"),
        ("if arguments.score_first:", "    trainer.evaluate()", "trainer.train()", "trainer.evaluate()"),
        ("if arguments.do_eval: trainer.evaluate()", "if arguments.do_train: trainer.train()"),
        ("try:", "    trainer.evaluate()", "except KeyError:", "    pass", "trainer.train()"),
        ("for fold in range(3):", "    trainer = Trainer(model)", "    trainer.evaluate()", "    trainer.train()"),
    ],
)
def test_an_evaluation_in_front_of_the_training(lines: tuple[str, ...]) -> None:
    source = program(*lines)
    if "fold" in source:
        source = source.replace(HEAD.splitlines()[4] + "\n", "")
    told = check_told(EvaluatedBeforeWrap, source, reason="`eval_on_start=True`")
    assert "without DDP" in told.message


def test_another_trainer_of_the_same_model() -> None:
    lines = ("judge = Trainer(model=model, args=arguments)", "judge.evaluate(tests)", "trainer.train()")
    check_told(EvaluatedBeforeWrap, program(*lines), reason="`eval_on_start=True`")
    check_nothing(EvaluatedBeforeWrap, program(*lines).replace("model=model, args=arguments)", "model=other, args=arguments)"))


def test_a_field_of_an_object_and_a_class_of_the_project() -> None:
    source = HEAD.replace("trainer =", "self.trainer =") + "    self.trainer.evaluate()\n    self.trainer.train()\n"
    check_told(EvaluatedBeforeWrap, source + "\n\nmain(*load())\n", reason="`eval_on_start=True`")
    check_told(EvaluatedBeforeWrap, OWN.format(more="size = 3"), reason="`eval_on_start=True`")


@pytest.mark.parametrize(
    "lines",
    [
        ("trainer.train()", "trainer.evaluate()"),
        ("trainer.train()", "trainer.evaluate()", "trainer.train()"),
        ("if arguments.only_score:", "    print(trainer.evaluate())", "    return", "trainer.train()"),
        ("if arguments.only_score:", "    print(trainer.evaluate())", "    exit()", "trainer.train()"),
        ("if arguments.score:", "    trainer.evaluate()", "else:", "    trainer.train()"),
        ("if arguments.mode == 'score': trainer.evaluate()", "if arguments.mode == 'fit': trainer.train()"),
        ("trainer.evaluate()", "trainer.model = load(model)", "trainer.train()"),
        ("trainer.evaluate()", "trainer = Trainer(load(model), arguments)", "trainer.train()"),
        ("trainer.evaluate()", "model._is_accelerate_prepared = False", "trainer.train()"),
        ("other.evaluate()", "trainer.train()"),
        ("trainer.evaluate()", "model.train()"),
    ],
)
def test_right_programs(lines: tuple[str, ...]) -> None:
    check_nothing(EvaluatedBeforeWrap, program(*lines))


@pytest.mark.parametrize(
    "more",
    [
        "def evaluate(self):\n        return score(self.model)",
        "def evaluation_loop(self, *args):\n        return None",
        "def _wrap_model(self, model, training=True):\n        return DDP(model)",
        "def __init__(self, teacher, *args):\n        self.teacher = self.accelerator.prepare_model(teacher)",
    ],
)
def test_trainers_that_go_their_own_way(more: str) -> None:
    check_nothing(EvaluatedBeforeWrap, OWN.format(more=more))


def test_versions() -> None:
    source = program("trainer.evaluate()", "trainer.train()")
    for pins in ("accelerate==1.13.0\n", "transformers==4.24.0\n", "accelerate<1.14\ntransformers\n"):
        check_nothing(EvaluatedBeforeWrap, source, files={"requirements.txt": pins})
    for pins in ("accelerate>=0.26\n", "transformers==5.2.0\n", "accelerate==1.15.0\n"):
        assert findings_of(EvaluatedBeforeWrap, source, {"requirements.txt": pins})


def test_other_wrappers_and_other_trainers() -> None:
    source = program("trainer.evaluate()", "trainer.train()")
    check_nothing(EvaluatedBeforeWrap, source, files={"run.sh": "torchrun --nproc_per_node 4 main.py --deepspeed zero3.json\n"})
    check_nothing(EvaluatedBeforeWrap, source.replace("model=model", "model_init=model"))
    check_nothing(EvaluatedBeforeWrap, source.replace("trainer = ", "model = load(model, device_map='auto')\n    trainer = "))
    check_nothing(EvaluatedBeforeWrap, source.replace("from transformers", "from lightning.pytorch"))
    check_nothing(EvaluatedBeforeWrap, source, path="tests/test_main.py")
