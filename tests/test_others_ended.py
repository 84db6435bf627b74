"""What stands behind, or right above, a read that ends every rank but 0."""

from __future__ import annotations

import pytest

from codemods.analysis.ranks.others_ended import others_end_nearby, others_have_ended
from codemods.checkpoints.unguarded_save import UnguardedSave
from codemods.files.source import walk
from codemods.ranks.value_of_one_rank import ValueOfOneRank
from codemods.store.project import Project
from ddpfix.testing import check_nothing, findings_of

HEAD = "import torch.distributed as dist\n\n"
BODY = """\
def save(model, path):
    mark(model, path)

def main(model, path, rows):
    rank = dist.get_rank()
    if rank == 0:
        dev = rows[1:]
    show(len(dev))
    save(model, path)

if __name__ == "__main__":
    dist.init_process_group("nccl")
    main(1, "out", [])
"""


def ended(body: str, call: str = "mark") -> tuple[bool, bool]:
    project = Project.of({"train.py": (HEAD + body).encode()})
    module = project.module("train.py")
    assert module is not None
    node = module.calls_named(call)[0]
    assert any(n is node for n in walk(module.tree))
    return others_have_ended(project, module, node), others_end_nearby(project, module, node)


def test_behind_a_read_of_what_rank_zero_alone_has() -> None:
    assert ended(BODY) == (True, False)
    assert ended(BODY.replace("mark(model, path)", "pass").replace("save(model, path)\n\nif", "mark(model, path)\n\nif"))[0]


def test_right_above_such_a_read() -> None:
    above = BODY.replace("    show(", "    mark(model)\n    show(").replace("mark(model, path)", "pass")
    assert ended(above) == (False, True)
    trained = above.replace("    show(", "    train(model)\n    show(")
    assert ended(trained) == (False, False)  # it is seen for as long as that takes


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("        dev = rows[1:]\n", "        dev = rows[1:]\n    else:\n        dev = rows\n"),  # they have one
        ("    show(len(dev))", "    if rank == 0:\n        show(len(dev))"),  # rank 0 alone reads it
        ("    show(len(dev))", "    if rows:\n        show(len(dev))"),  # not in each run
        ("    show(len(dev))", "    rank == 0 and show(len(dev))"),
        ("    show(len(dev))", "    try:\n        show(len(dev))\n    except NameError:\n        pass"),
        ("    show(len(dev))", "    later = lambda: show(len(dev))"),
        ("    show(len(dev))\n    save(model, path)", "    save(model, path)\n    show(len(dev))"),
        ("main(1, \"out\", [])", "main(1, \"out\", [])\n    save(1, \"end\")"),  # it is called from elsewhere, too
    ],
)
def test_places_that_others_come_to(old: str, new: str) -> None:
    assert old in BODY
    assert not ended(BODY.replace(old, new))[0]


METHODS = """\
class Loop{base}:
    def {name}(self, model):
        mark(model)

    def fit(self, model, rows):
        if dist.get_rank() == 0:
            best = score(rows)
        self.best = best["loss"]
        self.{name}(model)

    def note(self, model):
        show(model)

if __name__ == "__main__":
    dist.init_process_group("nccl")
    Loop().fit(1, [])
"""


def test_a_method_that_is_called_behind_such_a_read() -> None:
    assert ended(METHODS.format(base="", name="_keep"))[0]
    assert ended(METHODS.format(base="(Base)", name="_keep").replace("class Loop", "class Base:\n    pass\n\nclass Loop"))[0]


@pytest.mark.parametrize(
    ("base", "name", "note"),
    [
        ("", "_keep", "self._keep(model)"),  # it is called from elsewhere, too
        ("", "_keep", "show(self._keep)"),
        ("", "on_end", "show(model)"),
        ("", "__call__", "show(model)"),
        ("(somewhere.Base)", "_keep", "show(model)"),  # which may call it
    ],
)
def test_a_method_that_others_may_call(base: str, name: str, note: str) -> None:
    body = METHODS.format(base=base, name=name).replace("show(model)", note)
    assert not ended(f"import somewhere\n\n{body}")[0]


def test_a_file_that_rank_zero_is_left_to_write() -> None:
    """The read is reported, and no guard round a write behind it."""
    body = BODY.replace("mark(model, path)", "torch.save(model, path)").replace("show(len(dev))", "model = prepare(model, dev)")
    source, files = f"import torch\n{HEAD}{body}", {"run.sh": "torchrun --nproc_per_node=2 train.py\n"}
    assert findings_of(ValueOfOneRank, source, files, path="train.py")
    check_nothing(UnguardedSave, source, files=files, path="train.py")
    assert findings_of(UnguardedSave, source.replace("if rank == 0:", "if rows is not None:"), files, path="train.py")
