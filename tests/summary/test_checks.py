"""The table behind a flag flip."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Asked, Evidence, Finding, SetKeyword
from codemods.files.source import SourceModule
from codemods.flags.conflicting_static_graph import ConflictingStaticGraph
from codemods.flags.needless_find_unused_parameters import NeedlessFindUnusedParameters
from codemods.store.project import Project
from ddpfix import catalog
from ddpfix.summary import render
from ddpfix.summary.checks import OTHER, question
from tests.summary.made import block, check_markdown, context, in_memory

WRAP = """
from torch.nn.parallel import DistributedDataParallel as DDP


def wrap(model):
    return DDP(model, find_unused_parameters=True)
"""


class NeedlessFlag(DdpCodemod):
    """The flag is on and nothing is unused.

    ## What it does
    Finds the flag and turns it off.

    ## Why it matters
    DDP walks the graph at every step.
    """

    code = "DDP990"
    TRIGGERS = ((b"DDP",),)

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        for call in module.calls_named("DDP"):
            value = call.keywords[0].value
            if isinstance(value, ast.Constant) and value.value is True:
                evidence = [
                    Evidence("static", "every parameter of Encoder reaches the loss", "model.py", 12, asked=Asked.PARAMETERS),
                    Evidence("static", "an if chooses by input shape only", "model.py", 20, asked=Asked.BRANCHES),
                    Evidence("log", "did not find any unused parameters in the forward pass", "logs/a|b.log", 3, strength="weak"),
                    Evidence("version", "torch 2.1", "requirements.txt", 1),
                ]
                edit = SetKeyword(module.path, module.span(call), "find_unused_parameters", "False")
                yield self.finding(module, call, "the flag is on", level=Applicability.SAFE, edits=[edit], evidence=evidence)


NeedlessFlag.__module__ = "codemods.flags.needless_flag"


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    known = (NeedlessFlag(), NeedlessFindUnusedParameters(), ConflictingStaticGraph())
    monkeypatch.setattr(catalog, "all_codemods", lambda: known)


def rows(source: str = WRAP) -> dict[str, tuple[str, str]]:
    text = render(in_memory({"train.py": source}, codemods=[NeedlessFlag()]), context())
    check_markdown(text)
    part = block(text, "DDP990")
    assert "**Checks behind `train.py` 5:**" in part
    cells = [row.strip("| ").replace("\\|", "¦").split(" | ") for row in part.splitlines() if row.startswith("| ")]
    return {c[0]: (c[1], c[2] if len(c) > 2 else "") for c in cells}


def test_each_question_of_a_reviewer_has_a_row() -> None:
    found = rows()
    assert list(found)[2:] == [
        "Does every parameter reach the loss?",
        "Which branches skip modules, and what decides them?",
        "Are there optional modules, and does training use them?",
        "Is `static_graph` set?",
        "What does a log of the training say?",
        "Which versions does the project pin?",
    ]
    assert found["Does every parameter reach the loss?"] == ("every parameter of Encoder reaches the loss", "`model.py:12`")
    assert found["Which branches skip modules, and what decides them?"][0].startswith("an if chooses by input shape")
    assert found["What does a log of the training say?"] == (
        "did not find any unused parameters in the forward pass (weak)",
        "`logs/a¦b.log:3`",
    )


def test_flags_with_the_same_answers_share_a_table() -> None:
    fixed = in_memory({f"train_{n}.py": WRAP for n in range(9)}, codemods=[NeedlessFlag()])
    text = render(fixed, context())
    check_markdown(text)
    part = block(text, "DDP990")
    assert part.count("Does every parameter reach the loss?") == 1
    assert "**Checks behind `train_0.py` 5; `train_1.py` 5;" in part
    assert "and 5 more files:**" in part


def test_a_question_without_evidence_says_so() -> None:
    assert rows()["Are there optional modules, and does training use them?"][0] == "Nothing was recorded for this question."


def test_static_graph_is_looked_up_in_the_changed_files() -> None:
    assert rows()["Is `static_graph` set?"][0] == "`static_graph` does not occur in the changed files."
    source = WRAP.replace("True)", "True, static_graph=True)")
    assert rows(source)["Is `static_graph` set?"][0] == "Nothing was recorded for this question."


def test_evidence_of_no_question_stands_at_the_end() -> None:
    assert question(Evidence("static", "the file imports lightning")) == OTHER
    assert question(Evidence("static", "static_graph=True stands beside it")) == OTHER  # by data, never by its words


OPTIONAL_HEAD = """
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Net(nn.Module):
    def __init__(self, bias=None):
        super().__init__()
        self.body = nn.Linear(8, 4)
        self.bias = bias

    def forward(self, x):
        h = self.body(x)
        if self.bias is not None:
            h = h + self.bias
        if x.sum() > 0:
            h = h * 2
        return h


net = DistributedDataParallel(Net(torch.zeros(4)), find_unused_parameters=True)
net(torch.zeros(1, 8)).sum().backward()
"""


def test_the_flag_names_the_question_of_each_of_its_facts() -> None:
    project = Project.of({"train.py": OPTIONAL_HEAD.encode()})
    module = project.module("train.py")
    assert module is not None
    (found,) = NeedlessFindUnusedParameters().find(module, project)
    asked = {e.asked for e in found.evidence if e.asked is not None}
    assert asked == {Asked.PARAMETERS, Asked.BRANCHES, Asked.OPTIONAL}


def test_what_static_graph_settles_is_not_asked() -> None:
    fixed = in_memory({"train.py": WRAP.replace("True)", "True, static_graph=True)")}, codemods=[ConflictingStaticGraph()])
    part = block(render(fixed, context()), "DDP003")
    assert part.count("Not asked: `static_graph=True` makes torch ignore the flag.") == 3
    assert "Nothing was recorded" not in part
