"""What in a function shows that several processes run it; a question after the kind of a model does not."""

from __future__ import annotations

import pytest

from codemods.analysis.files.shown_ranks import shown_in
from codemods.ranks.unguarded_file_io import UnguardedFileIo
from codemods.store.project import Project
from ddpfix.testing import check_nothing, findings_of

HEAD = "import numpy as np\nimport torch.nn as nn\nfrom torch.nn.parallel import DistributedDataParallel\n\n\n"
CLASS = """\
class Answers:
    def load(self, state):
{load}

    def keep(self, rows):
        np.savez('rows.npz', rows=rows)
"""
ASKS = (
    "        (self.net.module if isinstance(self.net, DistributedDataParallel) else self.net).load_state_dict(state)",
    "        if isinstance(self.net, (nn.DataParallel, DistributedDataParallel)):\n            self.net = self.net.module",
    "        if not isinstance(self.inner(), DistributedDataParallel):\n            self.net.load_state_dict(state)",
)
SHOWS = (
    "        self.net = DistributedDataParallel(self.net)",
    "        self.net = self.net if isinstance(self.net, DistributedDataParallel) else DistributedDataParallel(self.net)",
    "        assert isinstance(self.net, DistributedDataParallel) and self.world_size",
)


def is_shown(source: str, name: str) -> bool:
    project = Project.of({"answers.py": source.encode()})
    module = project.module("answers.py")
    assert module is not None
    return shown_in(project, module, next(f for f in module.functions if f.name == name)) is not None


@pytest.mark.parametrize("load", ASKS)
def test_the_kind_of_a_model_is_asked_in_one_process_too(load: str) -> None:
    assert not is_shown(HEAD + CLASS.format(load=load), "keep")
    assert not is_shown(HEAD + CLASS.format(load=load), "load")


@pytest.mark.parametrize("load", SHOWS)
def test_what_wraps_a_model_or_knows_its_ranks_shows_them(load: str) -> None:
    assert is_shown(HEAD + CLASS.format(load=load), "keep")


def test_a_file_of_answers_that_one_process_writes() -> None:
    run = "\n\ndef main():\n    answers = Answers()\n    answers.keep(answers.load(1))\n\n\n"
    run += "if __name__ == '__main__':\n    main()\n"
    check_nothing(UnguardedFileIo, HEAD + CLASS.format(load=ASKS[0]) + run)
    assert findings_of(UnguardedFileIo, HEAD + CLASS.format(load=SHOWS[0]) + run)


def test_callers_show_the_ranks_of_a_class_that_only_asks() -> None:
    caller = (
        "import torch.distributed as dist\nfrom answers import Answers\n\n\ndef main():\n    dist.init_process_group('nccl')\n"
        "    answers = Answers()\n    answers.keep(answers.load(1))\n\n\nif __name__ == '__main__':\n    main()\n"
    )
    found = findings_of(UnguardedFileIo, HEAD + CLASS.format(load=ASKS[0]), {"train.py": caller}, path="answers.py")
    assert found
