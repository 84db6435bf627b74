"""DDP001 and DDP002 beside what a log says: an error of the run decides, torch's own line never does alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.api.codemod import DdpCodemod
from codemods.api.evidence import Observed
from codemods.api.findings import Applicability, Finding
from codemods.engine.fix_source import fix_project, safe
from codemods.flags.missing_find_unused_parameters import MissingFindUnusedParameters as Missing
from codemods.flags.needless_find_unused_parameters import NeedlessFindUnusedParameters as Needless
from codemods.store.project import Project
from ddpfix.diagnosis import cause, log, observations

LOGS = Path(__file__).parent / "diagnosis" / "logs"

NET = """\
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))


def train(loader, device):
    model = DDP(Net().to(device), device_ids=[device]{more})
    for x, y in loader:
        nn.functional.cross_entropy(model(x), y).backward()
"""
BY_DATA = NET.replace("        return self.head", "        if x.sum() > 0:\n            return x\n        return self.head")
NEVER = NET.replace("self.head(torch.relu(self.body(x)))", "self.body(x)")
DRAWN = BY_DATA.replace("x.sum() > 0", "torch.rand(1) < 0.1")
FOREIGN = NET.replace("from torch import nn", "from kernels import fused\nfrom torch import nn").replace("torch.relu(", "fused(")
TWO = FOREIGN.replace("return self.head(fused(self.body(x)))", "return self.head(fused(self.body(x))), self.body(x)").replace(
    "nn.functional.cross_entropy(model(x), y)", "fused(model(x), y)"
)
CHECKPOINTED = NEVER.replace("self.body(x)\n", "torch.utils.checkpoint.checkpoint(self.body, x, use_reentrant=True)\n")
OWN_OUTPUT = BY_DATA.replace("class Net", "class Out:\n    def __init__(self, y):\n        self.y = y\n\n\nclass Net").replace(
    "return self.head(torch.relu(self.body(x)))", "return Out(self.head(torch.relu(self.body(x))))"
)
HUB = FOREIGN.replace("Net().to(device)", "load('some/model').to(device)").replace("import fused", "import fused, load")
ON, OFF, STATIC = ", find_unused_parameters=True", "", ", static_graph=True"


def said(*messages: str, places: tuple[tuple[str, int], ...] = (), parameters: tuple[str, ...] = ()) -> list[Observed]:
    texts = {"T01": "did not find any unused parameters", "T02": "Expected to have finished reduction in the prior iteration"}
    rows = enumerate(messages, 7)
    return [Observed("log", "train.log", n, m, texts.get(m, m), 1, parameters, places=places) for n, m in rows]


def judged(rule: DdpCodemod, source: str, rows: list[Observed], **files: str) -> tuple[list[Finding], str]:
    """The findings in train.py, and its text with the safe fixes."""
    sources = {"train.py": source.encode(), **{f"{k}.py": v.encode() for k, v in files.items()}}
    project = Project.of(sources, rows)
    module = project.module("train.py")
    assert module is not None
    result = fix_project(project, lambda now, paths: {p: [rule] for p in paths}, ["train.py"], safe)
    return list(rule.find(module, project)), result.changed.get("train.py", b"").decode()


# An error with the flag off


@pytest.mark.parametrize("source", [BY_DATA, NEVER, DRAWN, FOREIGN], ids=["data decides", "never used", "drawn", "not known"])
def test_an_error_makes_the_flag_safe_where_one_wrapper_fits_and_the_model_is_read(source: str) -> None:
    without, same = judged(Missing(), source.format(more=OFF), [])
    assert same == "" or source is DRAWN
    (found,), after = judged(Missing(), source.format(more=OFF), said("T02", parameters=("head.weight",)))
    assert found.applicability is Applicability.SAFE
    assert "head.weight went without a gradient" in found.message and "train.log" in found.message
    assert found.evidence[0].kind == "log" and "train.log:7" in found.evidence[0].text
    assert after == source.format(more=ON)
    assert not without or without[0].message in found.message


def test_where_a_module_is_never_used_the_better_way_is_told_too() -> None:
    (found,), _ = judged(Missing(), NEVER.format(more=OFF), said("T02"))
    assert "freezing it before the wrap would do without the flag" in found.reason


def test_an_error_of_another_wrapper_is_no_reason_to_change_this_one() -> None:
    source, other = BY_DATA.format(more=OFF), BY_DATA.format(more=OFF)
    (found,), after = judged(Missing(), source, said("T02"), other=other)
    assert found.applicability is Applicability.UNSAFE and "other.py:19" in found.reason and not after
    (found,), after = judged(Missing(), source, said("T02", places=(("train.py", 21),)), other=other)
    assert found.applicability is Applicability.SAFE and ON in after
    (found,), after = judged(Missing(), source, said("T02", places=(("other.py", 21),)), other=other)
    assert found.applicability is Applicability.UNSAFE and not after
    assert all(e.kind != "log" for e in found.evidence)


@pytest.mark.parametrize(
    ("source", "rows", "reason"),
    [
        (NET.format(more=OFF), said("T02"), "the source shows that every parameter of Net reaches the loss"),
        (BY_DATA.format(more=OFF), said("T02", "T06"), "also says “T06”"),
        (FOREIGN.format(more=OFF), said("T02", "T01"), "also says “did not find any unused parameters”"),
        (BY_DATA.format(more=STATIC), said("T02"), "static_graph=True stands beside it"),
        (CHECKPOINTED.format(more=OFF), said("T02"), "reentrant checkpointing"),
    ],
    ids=["source against log", "log against log", "two runs", "static graph", "reentrant"],
)
def test_what_speaks_against_it_leaves_everything_as_it_is(source: str, rows: list[Observed], reason: str) -> None:
    (found,), after = judged(Missing(), source, rows)
    assert found.applicability is Applicability.DISPLAY and reason in found.reason and not after
    assert {"log", "static"} <= {e.kind for e in found.evidence} | ({"static"} if "static_graph" in reason else set())


def test_a_static_sign_outweighs_torchs_line() -> None:
    (found,), after = judged(Missing(), BY_DATA.format(more=OFF), said("T02", "T01"))
    assert found.applicability is Applicability.SAFE and ON in after


def test_a_model_that_is_not_read_is_left_to_the_user() -> None:
    (found,), after = judged(Missing(), HUB.format(more=OFF), said("T02"))
    assert found.applicability is Applicability.UNSAFE and "assumes no reentrant checkpointing" in found.reason and not after


def test_an_output_of_a_class_of_its_own_is_left_to_the_user() -> None:
    (found,), after = judged(Missing(), OWN_OUTPUT.format(more=OFF), said("T02"))
    assert found.applicability is Applicability.UNSAFE and "Out" in found.reason and not after


LIT = """\
import pytorch_lightning as pl
import torch
from torch import nn


class Lit(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 2)
        self.spare = nn.Linear(8, 2)

    def training_step(self, batch, batch_idx):
        x, y = batch
        return nn.functional.cross_entropy(self.body(x), y)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


trainer = pl.Trainer(strategy="ddp", devices=2)
trainer.fit(Lit())
"""


def test_lightnings_own_text_says_which_version_ran() -> None:
    (found,), after = judged(Missing(), LIT, said("L01"))
    assert found.applicability is Applicability.SAFE
    assert 'strategy="ddp_find_unused_parameters_true"' in after


def test_a_configuration_that_may_have_said_it_too_is_left_to_the_user() -> None:
    sources = {"train.py": LIT.encode(), "conf/trainer.yaml": b"trainer:\n  devices: 2\n  strategy: ddp\n"}
    for places, level in (((), Applicability.UNSAFE), ((("train.py", 24),), Applicability.SAFE)):
        project = Project.of(sources, said("L01", places=places))
        module = project.module("train.py")
        assert module is not None
        (found,) = Missing().find(module, project)
        assert found.applicability is level
        assert ("conf/trainer.yaml:3" in found.reason) is (level is Applicability.UNSAFE)


def test_lightnings_text_is_not_of_a_plain_wrapper() -> None:
    (found,), after = judged(Missing(), BY_DATA.format(more=OFF), said("L01"))
    assert found.applicability is Applicability.UNSAFE and all(e.kind != "log" for e in found.evidence) and not after


# Torch's line, and errors, with the flag on


def test_torchs_line_decides_nothing_of_a_model_that_is_not_read() -> None:
    (found,), _ = judged(Needless(), HUB.format(more=ON), said("T01"))
    assert found.applicability is Applicability.DISPLAY
    assert found.evidence[0].kind == "log"


def test_torchs_line_and_a_source_without_a_sign_offer_the_change() -> None:
    assert judged(Needless(), FOREIGN.format(more=ON), []) == ([], ""), "an open question alone is not told"
    (found,), after = judged(Needless(), FOREIGN.format(more=ON), said("T01"))
    assert found.applicability is Applicability.UNSAFE and not after
    assert "assumes that the first step of the logged run is like all others" in found.reason


def test_an_output_that_the_loss_may_ignore_is_a_sign() -> None:
    (found,), _ = judged(Needless(), TWO.format(more=ON), said("T01"))
    assert found.applicability is Applicability.DISPLAY


@pytest.mark.parametrize("source", [DRAWN, BY_DATA], ids=["drawn", "data decides"])
def test_a_skipped_branch_wins_over_torchs_line(source: str) -> None:
    assert judged(Needless(), source.format(more=ON), said("T01")) == ([], "")


def test_a_family_that_drops_layers_is_told_whatever_the_line_says() -> None:
    source = FOREIGN.format(more=ON).replace("nn.Module):", 'nn.Module):\n    base = "facebook/wav2vec2-base"\n')
    (found,), _ = judged(Needless(), source, said("T01"))
    assert found.applicability is Applicability.DISPLAY


def test_an_error_forbids_to_switch_off_what_the_source_calls_needless() -> None:
    (sure,), off = judged(Needless(), NET.format(more=ON), [])
    assert sure.applicability is Applicability.SAFE and "find_unused_parameters" not in off
    (found,), after = judged(Needless(), NET.format(more=ON), said("T02"))
    assert found.applicability is Applicability.DISPLAY and not after
    assert "the evidence contradicts itself" in found.reason
    assert {"log", "static"} <= {e.kind for e in found.evidence}


# From a log to the row


def test_the_rows_of_a_real_log() -> None:
    data = (LOGS / "unused-names.log").read_bytes()
    (row,) = observations.observed(cause.diagnose(log.read(data, "train.log")), ("model.py", "train.py"))
    assert (row.kind, row.message, row.line, row.rank) == ("log", "T02", 17, 0)
    assert row.parameters == ("unused_head.bias", "unused_head.weight") and row.indices == (2, 3)
    assert row.places == (("train.py", 24), ("train.py", 15))
