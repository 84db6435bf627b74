"""DDP507 where a pipeline of diffusers is handed the wrapper as a part."""

from __future__ import annotations

import pytest

from codemods.checkpoints.attribute_of_wrapper import AttributeOfWrapper
from ddpfix.testing import check_nothing, check_transformed, findings_of

HEAD = """from accelerate import Accelerator
from diffusers import ControlNetModel, StableDiffusionPipeline, UNet2DConditionModel
from transformers import CLIPTextModel


def main(args, loader, optimizer):
    accelerator = Accelerator()
    unet = UNet2DConditionModel.from_pretrained(args.base, subfolder="unet")
    words = CLIPTextModel.from_pretrained(args.base, subfolder="text_encoder")
    {prepare}
    {use}
"""
PREPARE = "unet, optimizer, loader = accelerator.prepare(unet, optimizer, loader)"
BY_SETTING = """if not args.train_words:
        words.requires_grad_(False)
    if args.train_words:
        unet, words, optimizer = accelerator.prepare(unet, words, optimizer)
    else:
        unet, optimizer = accelerator.prepare(unet, optimizer)"""
SAVE = "StableDiffusionPipeline.from_pretrained(args.base, unet={unet}, text_encoder={words}).save_pretrained(args.out)"


def program(unet: str = "unet", words: str = "words", *, prepare: str = PREPARE, above: str = "", save: str = SAVE) -> str:
    use = f"{above}\n    {save}" if above else save
    return HEAD.format(prepare=prepare, use=use.format(unet=unet, words=words))


def test_a_part_that_is_the_wrapper() -> None:
    check_transformed(AttributeOfWrapper, program(), program("accelerator.unwrap_model(unet)"))
    (found,) = findings_of(AttributeOfWrapper, program())
    assert "handed the DDP wrapper as `unet`" in found.message
    assert "raises ValueError" in found.message


def test_a_part_that_one_way_prepares() -> None:
    before = program(prepare=BY_SETTING)
    after = program("accelerator.unwrap_model(unet)", "accelerator.unwrap_model(words)", prepare=BY_SETTING)
    check_transformed(AttributeOfWrapper, before, after)
    assert "`text_encoder` where line 13 prepares it:" in " ".join(f.message for f in findings_of(AttributeOfWrapper, before))


@pytest.mark.parametrize(
    "source",
    [
        program("accelerator.unwrap_model(unet)"),
        program(above="unet = accelerator.unwrap_model(unet)"),
        program(prepare="loader = accelerator.prepare(loader)"),
        program(prepare=f"unet.requires_grad_(False)\n    {PREPARE}"),  # nothing to train: it is not wrapped
        program(above="if hasattr(unet, 'module'):\n        unet = unet.module"),
        # a saved pipeline has no such part, and the constructor does not look at the class
        program(save="StableDiffusionPipeline.from_pretrained(args.base, controlnet={unet})"),
        program(save="args.pipeline.from_pretrained(args.base, unet={unet})"),  # the class is not seen
    ],
)
def test_what_is_no_wrapper_or_is_not_looked_at(source: str) -> None:
    check_nothing(AttributeOfWrapper, source)
