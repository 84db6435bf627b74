from __future__ import annotations

import pytest

from codemods.checkpoints.attribute_of_wrapper import AttributeOfWrapper
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

HEAD = """import torch
from transformers import Trainer


class Tagger(Trainer):
"""
STEP = """    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        outputs = model(**inputs)
        {use}
        return outputs["loss"]
"""


def step(*use: str) -> str:
    return HEAD + STEP.format(use="\n        ".join(use))


@pytest.mark.parametrize(
    ("use", "instead"),
    [
        ("flat = outputs['logits'].view(-1, model.config.num_labels)", "self.model.config"),
        ("kind = model.get_input_embeddings().weight.dtype", "self.model.get_input_embeddings()"),
        ("kind = next(model.head.parameters()).dtype", "self.model.head"),
        ("with torch.no_grad(): texts = model.generate(inputs['input_ids'])", "self.model.generate"),
    ],
)
def test_settings_are_asked_of_the_model_inside(use: str, instead: str) -> None:
    after = use.replace("model." + instead.removeprefix("self.model."), instead)
    found = check_transformed(AttributeOfWrapper, step(use), step(after))
    assert "the Trainer hands it to `compute_loss`" in found[0].message


def test_training_step_and_a_method_that_is_handed_the_model() -> None:
    before = HEAD + (
        "    def training_step(self, model, inputs, *more):\n"
        "        self.note(inputs, net=model)\n"
        "        return super().training_step(model, inputs, *more)\n\n"
        "    def note(self, inputs, net):\n"
        "        print(net.config.name_or_path)\n"
    )
    check_transformed(AttributeOfWrapper, before, before.replace("net.config", "self.model.config"))


def test_an_attribute_that_may_be_a_weight_is_unsafe() -> None:
    before = step("outputs['loss'] = outputs['loss'] * model.temperature")
    check_transformed(AttributeOfWrapper, before, before.replace("model.temp", "self.model.temp"), unsafe=True)


def test_a_forward_past_the_wrapper_is_told_and_nothing_else_is_safe() -> None:
    source = step("hidden = model.encoder(inputs['input_ids'])", "size = model.config.hidden_size")
    check_told(AttributeOfWrapper, source, reason="let `forward` of the model make it")
    assert [f.applicability.value for f in findings_of(AttributeOfWrapper, source)] == ["display", "unsafe"]


def test_a_method_that_is_handed_two_models_is_told() -> None:
    source = HEAD + (
        "    def compute_loss(self, model, inputs, **kwargs):\n"
        "        return self.scores(model, inputs) - self.scores(self.teacher, inputs)\n\n"
        "    def scores(self, net, inputs):\n"
        "        return net(**inputs).logits[..., : net.config.vocab_size]\n"
    )
    check_told(AttributeOfWrapper, source, reason="self.accelerator.unwrap_model(net)")


@pytest.mark.parametrize(
    "use",
    [
        "model = self.accelerator.unwrap_model(model); print(model.config)",
        "inner = model.module if hasattr(model, 'module') else model; print(inner.config)",
        "print(self.model.config, model.training, model.named_parameters())",
        "if isinstance(model, Trainer): print(model.config)",
        "if return_outputs: print(model.config)",
        "if not model.training: print(model.generate(inputs['input_ids']))",
        "model.seen = 3; print(model.seen)",
    ],
)
def test_right_steps(use: str) -> None:
    check_nothing(AttributeOfWrapper, step(use))


def test_prediction_and_callbacks_are_handed_the_bare_model() -> None:
    method = "    def prediction_step(self, model, inputs, *more):\n        return model.generate(inputs), model.config.name\n"
    check_nothing(AttributeOfWrapper, HEAD + method)
    callback = HEAD.replace("Trainer", "TrainerCallback") + "    def on_step_end(self, args, state, control, model=None, **kw):\n"
    check_nothing(AttributeOfWrapper, callback + "        print(model.config)\n")


@pytest.mark.parametrize(
    "more",
    [
        "    def _wrap_model(self, model, training=True, dataloader=None):\n        return model\n",
        "    def train(self, *args):\n        return self.compute_loss(self.model, {})\n",
        "    def training_step(self, model, inputs):\n        return self.compute_loss(self.model, inputs)\n",
        "    def __init__(self, model):\n        self.model = model\n",
    ],
)
def test_a_trainer_with_a_loop_of_its_own(more: str) -> None:
    check_nothing(AttributeOfWrapper, step("print(model.config)") + "\n" + more)


def test_a_class_of_the_project_called_trainer() -> None:
    source = step("print(model.config)").replace("from transformers import Trainer", "class Trainer: pass")
    check_nothing(AttributeOfWrapper, source)


def test_trainers_that_every_command_starts_with_deepspeed() -> None:
    source = step("print(model.config)")
    check_nothing(AttributeOfWrapper, source, files={"run.sh": "torchrun --nproc_per_node 4 train.py --deepspeed zero3.json\n"})
    check_nothing(AttributeOfWrapper, source, files={"full.yaml": "deepspeed: configs/zero3.json\n"})
    both = "torchrun --nproc_per_node 4 train.py --deepspeed zero3.json\ntorchrun --nproc_per_node 2 train.py\n"
    assert findings_of(AttributeOfWrapper, source, files={"run.sh": both})
