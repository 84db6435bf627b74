"""Programs that only an older torch runs, by what they import and go through."""

from __future__ import annotations

import pytest

from codemods.analysis.job_files.older_torch import ends_with
from codemods.store.project import Project

HITS = """\
def accuracy(output, target, topk=(1,)):
    _, predicted = output.topk(max(topk), 1, True, True)
    predicted = predicted.t()
    hits = predicted.eq(target.view(1, -1).expand_as(predicted))
    return [hits[:k].view(-1).float().sum(0) for k in topk]
"""
CALLED = "from score import accuracy\n\n\ndef train(output, target):\n    return accuracy(output, target, {})\n"


def last_torch(source: str, **files: str) -> tuple[int, ...] | None:
    texts = {"train.py": source, **{f"{name}.py": text for name, text in files.items()}}
    project = Project.of({path: text.encode() for path, text in texts.items()})
    module = project.module("train.py")
    assert module is not None
    ending = ends_with(project, module)
    return ending.version[:2] if ending is not None else None


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from torch._six import inf\n", (2, 0)),
        ("import torchtext\n", (2, 4)),
        ("from torchtext.data import Field\n", (2, 4)),
        ("from torchtext.legacy import data\n", (1, 11)),
        ("from torchvision.models.utils import load_state_dict_from_url\n", (1, 10)),
        ("from torchvision.transforms.functional_tensor import rgb_to_grayscale\n", (2, 2)),
        ("from torchvision.models import resnet18\n", None),
        ("try:\n    import torchtext\nexcept Exception:\n    torchtext = None\n", None),
        ("def old():\n    import torchtext\n", None),  # asked for when it is called
    ],
)
def test_what_later_versions_no_longer_have(source: str, expected: tuple[int, int] | None) -> None:
    assert last_torch(source) == expected


@pytest.mark.parametrize(
    ("given", "hits", "expected"),
    [
        ("topk=(1, 5)", HITS, (1, 7)),
        ("(1, 5)", HITS, (1, 7)),
        ("", HITS.replace("(1,)", "(1, 5)"), (1, 7)),
        ("", HITS, None),  # one k: its row is a flat one
        ("topk=(1, 5)", HITS.replace(".view(-1).float", ".reshape(-1).float"), None),
        ("topk=(1, 5)", HITS.replace(".t()", ".t().contiguous()"), None),
        ("topk=(1, 5)", HITS.replace("    predicted = predicted.t()\n", ""), None),
    ],
)
def test_a_view_of_what_stands_in_columns(given: str, hits: str, expected: tuple[int, int] | None) -> None:
    assert last_torch(CALLED.format(given), score=hits) == expected


def test_a_score_that_the_program_never_asks_for() -> None:
    assert last_torch("import score\n", score=HITS, other=CALLED.format("topk=(1, 5)")) is None
