"""DDP001 and DDP002 beside what a probe saw: it decides where the source does not, and never against it."""

from __future__ import annotations

import textwrap

from codemods.api.codemod import DdpCodemod
from codemods.api.evidence import Observed
from codemods.api.findings import Applicability, Finding
from codemods.engine.fix_source import fix_project, with_unsafe
from codemods.flags.missing_find_unused_parameters import MissingFindUnusedParameters
from codemods.flags.needless_find_unused_parameters import NeedlessFindUnusedParameters
from codemods.store.project import Project

HUB = """\
import torch
from hub import load
from torch.nn.parallel import DistributedDataParallel as DDP


def train(loader, device):
    model = DDP(load("some/model").to(device), device_ids=[device]{more})
    for x, y in loader:
        torch.nn.functional.cross_entropy(model(x), y).backward()
"""
OWN = """\
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
UNUSED = OWN.replace("self.head(torch.relu(self.body(x)))", "self.body(x)")
DROPS = OWN.replace("        return self.head", "        if torch.rand(1) < 0.1:\n            return x\n        return self.head")
ON, OFF = ", find_unused_parameters=True", ""


def seen(source: str, *, never: tuple[str, ...] = (), sometimes: tuple[str, ...] = (), steps: int = 50, model: str = "Net",
         flag: bool | None = None, at: int = 0, reentrant: bool = False) -> Observed:  # fmt: skip
    line = at or source.splitlines().index(next(t for t in source.splitlines() if "DDP(" in t)) + 1
    return Observed(
        "probe", "seen.json", text=f"{steps} steps", places=(("train.py", line),), framework="torch", model=model, steps=steps,
        never=never, sometimes=sometimes, parameters=(*never, *sometimes), flag=flag, reentrant=reentrant,
        missed=tuple((p, (1 - p) ** steps) for p in (0.01, 0.05, 0.1)),
    )  # fmt: skip


def judged(rule: DdpCodemod, source: str, *rows: Observed, **files: str) -> tuple[list[Finding], str]:
    """The findings in train.py, and its text with all fixes."""
    sources = {"train.py": source.encode(), **{f"{k}.py": v.encode() for k, v in files.items()}}
    project = Project.of(sources, rows)
    module = project.module("train.py")
    assert module is not None
    result = fix_project(project, lambda now, paths: {p: [rule] for p in paths}, ["train.py"], with_unsafe)
    return list(rule.find(module, project)), result.changed.get("train.py", b"").decode()


def test_a_probe_that_left_nothing_out_lets_the_flag_go_where_the_source_does_not_show_it() -> None:
    source = HUB.format(more=ON)
    assert judged(NeedlessFindUnusedParameters(), source) == ([], ""), "an open question alone is not told"
    (found,), after = judged(NeedlessFindUnusedParameters(), source, seen(source, model="HubNet"))
    assert found.applicability is Applicability.UNSAFE
    assert [e.kind for e in found.evidence][:1] == ["probe"]
    assert "60.5% for one in 100 steps" in found.reason and "0.5% for one in 10 steps" in found.reason
    off = textwrap.dedent("""\
        # Off: in 50 steps of a probe every parameter of HubNet had a path to the loss.
    """)
    assert off in textwrap.dedent(after[after.index("    # Off") :]) and "find_unused_parameters=False)" in after


def test_a_short_probe_and_one_of_another_wrap_change_nothing() -> None:
    source = HUB.format(more=ON)
    for row in (seen(source, steps=19, model="HubNet"), seen(source, at=2, model="HubNet")):
        found, after = judged(NeedlessFindUnusedParameters(), source, row)
        assert all(f.applicability is Applicability.DISPLAY for f in found) and not after


def test_two_wraps_are_told_apart_by_their_lines() -> None:
    source = HUB.format(more=ON) + "\n\n" + HUB.format(more=ON).partition("\n\n\n")[2].replace("def train", "def other")
    lines = [i for i, text in enumerate(source.splitlines(), 1) if "DDP(" in text]
    rows = [seen(source, at=lines[0], model="A"), seen(source, at=lines[1], model="B", sometimes=("gate.weight",))]
    found, after = judged(NeedlessFindUnusedParameters(), source, *rows)
    assert [f.span.line for f in found] == [lines[0]]
    assert after.count("find_unused_parameters=False") == 1 and after.count("find_unused_parameters=True") == 1


def test_where_a_probe_left_a_parameter_out_the_flag_stays_and_one_never_used_is_to_be_frozen() -> None:
    source = HUB.format(more=ON)
    assert judged(NeedlessFindUnusedParameters(), source, seen(source, sometimes=("aux.weight",))) == ([], "")
    (found,), after = judged(NeedlessFindUnusedParameters(), source, seen(source, never=("aux.weight", "aux.bias")))
    assert not after and "aux of Net never reached the loss in 50 steps" in found.message
    assert "requires_grad_(False)" in found.reason


def test_a_probe_against_the_source_changes_nothing_and_both_are_shown() -> None:
    source = OWN.format(more=ON)
    assert judged(NeedlessFindUnusedParameters(), source)[1], "the source alone proves it"
    (found,), after = judged(NeedlessFindUnusedParameters(), source, seen(source, sometimes=("head.weight",)))
    assert found.applicability is Applicability.DISPLAY and not after
    assert "every parameter of Net reaches the loss" in found.reason and "left head out" in found.reason
    assert {e.kind for e in found.evidence} == {"probe", "static"}
    source = UNUSED.format(more=ON)
    (found,), after = judged(NeedlessFindUnusedParameters(), source, seen(source))
    assert not after and "head of Net never reaches the loss" in found.reason and "nothing out in 50 steps" in found.reason
    source = OWN.format(more=OFF)
    (found,), after = judged(MissingFindUnusedParameters(), source, seen(source, sometimes=("head.weight",)))
    assert found.applicability is Applicability.DISPLAY and not after
    assert "contradicts itself" in found.reason and "left head out" in found.reason


def test_a_random_branch_in_the_source_outweighs_a_probe_that_did_not_meet_it() -> None:
    source = DROPS.format(more=ON)
    assert judged(NeedlessFindUnusedParameters(), source, seen(source)) == ([], "")
    source = DROPS.format(more=OFF)
    (found,), after = judged(MissingFindUnusedParameters(), source, seen(source))
    assert "find_unused_parameters=True" in after and "probe" in {e.kind for e in found.evidence}


def test_a_parameter_that_a_probe_saw_left_out_asks_for_the_flag() -> None:
    source = HUB.format(more=OFF)
    assert judged(MissingFindUnusedParameters(), source) == ([], "")
    (found,), after = judged(MissingFindUnusedParameters(), source, seen(source, sometimes=("tower.weight", "tower.bias")))
    assert found.applicability is Applicability.UNSAFE and "tower of Net" in found.message
    assert "device_ids=[device], find_unused_parameters=True)" in after
    assert judged(MissingFindUnusedParameters(), source, seen(source)) == ([], "")


def test_a_reentrant_checkpoint_and_a_static_graph_keep_the_flag_off() -> None:
    source = HUB.format(more=OFF)
    (found,), after = judged(MissingFindUnusedParameters(), source, seen(source, sometimes=("a",), reentrant=True))
    assert not after and "use_reentrant=False first" in found.reason
    source = HUB.format(more=", static_graph=True")
    (found,), after = judged(MissingFindUnusedParameters(), source, seen(source, sometimes=("a",)))
    assert not after and "static_graph=True stands beside it" in found.reason


def test_a_model_is_also_known_by_its_class() -> None:
    source = OWN.format(more=OFF)
    unknown = source.replace("self.head(torch.relu(self.body(x)))", "helper(self.head, self.body(x))").replace(
        "import torch\n", "import torch\nfrom elsewhere import helper\n", 1
    )
    row = seen(unknown, at=1, sometimes=("head.weight",))
    (found,), after = judged(MissingFindUnusedParameters(), unknown, row)
    assert found.applicability is Applicability.UNSAFE and "find_unused_parameters=True" in after


def test_no_flag_is_asked_for_where_the_run_had_it_on_by_default() -> None:
    source = (
        "import pytorch_lightning as pl\nfrom hub import Model\n\n"
        "trainer = pl.Trainer(strategy='ddp', devices=2)\ntrainer.fit(Model())\n"
    )
    def row(flag: bool) -> Observed:
        return Observed("probe", "s", places=(("train.py", 4),), framework="Lightning", model="M", steps=50, never=("a",),
                        flag=flag)  # fmt: skip

    assert judged(MissingFindUnusedParameters(), source, row(True)) == ([], "")
    (found,), after = judged(MissingFindUnusedParameters(), source, row(False))
    assert "strategy='ddp_find_unused_parameters_true'" in after and found.applicability is Applicability.UNSAFE
