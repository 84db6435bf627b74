from __future__ import annotations

import pytest

from codemods.metrics.sample_by_batch_number import SampleByBatchNumber
from ddpfix.testing import check_nothing, check_told

SOURCE = """\
import lightning.pytorch as pl


class Detector(pl.LightningModule):
    def __init__(self, net, image_ids):
        super().__init__()
        self.net, self.image_ids = net, image_ids

    def {step}:
        image, _ = batch
        {line}


def main(net, ids, data):
    pl.Trainer(devices={devices}).test(Detector(net, ids), data)
"""
LINE = "return self.image_ids[batch_idx], self.net(image)"


def detector(line: str = LINE, step: str = "test_step(self, batch, batch_idx)", devices: str = "2") -> str:
    return SOURCE.format(line=line, step=step, devices=devices)


@pytest.mark.parametrize("step", ["test_step", "validation_step", "predict_step"])
@pytest.mark.parametrize("number", ["batch_idx", "batch_nb"])
def test_an_id_by_the_number_of_the_batch(step: str, number: str) -> None:
    source = detector(LINE.replace("batch_idx", number), f"{step}(self, batch, {number})")
    found = check_told(SampleByBatchNumber, source, reason="give the id or the name with each sample")
    assert f"`self.image_ids[{number}]` takes the number of a batch" in found.message


def test_a_file_of_the_data_set() -> None:
    line = "name = self.trainer.datamodule.test_set.files[batch_idx] if self.named else batch_idx"
    check_told(SampleByBatchNumber, detector(line), reason="from the batch")


@pytest.mark.parametrize(
    "source",
    [
        detector(step="training_step(self, batch, batch_idx)"),
        detector(devices="1"),
        detector("return self.net(image), batch_idx"),
        detector("return self.predictions.files[batch_idx], self.net(image)"),
        detector("return self.outputs[batch_idx], self.net(image)"),
        detector("return image[batch_idx], self.net(image)"),
        detector("return self.image_ids[0], self.net(image)"),
        detector("self.image_ids.append(batch_idx); print(self.image_ids[batch_idx])"),
        detector("self.image_ids[batch_idx] = self.net(image)"),
        detector(step="test_step(self, batch, batch_idx, dataloader_idx)"),
        detector().replace("pl.LightningModule", "Base"),
        detector().replace("devices=2", "devices=2, use_distributed_sampler=False"),
        detector() + "\n\ndef load(rows, order):\n    return DataLoader(rows, sampler=order)\n",
    ],
)
def test_what_is_right_or_not_known(source: str) -> None:
    check_nothing(SampleByBatchNumber, source)


def test_tests_of_a_repository() -> None:
    check_nothing(SampleByBatchNumber, detector(), path="tests/test_model.py")
