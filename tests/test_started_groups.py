"""Scripts that are one process, whatever the library says that they call."""

from __future__ import annotations

from codemods.analysis.distribution import ranks_in_file
from codemods.analysis.files.renamed_to_itself import renames_to_itself
from codemods.analysis.ranks.started_groups import is_of_lone_scripts
from codemods.checkpoints.unguarded_save import UnguardedSave
from codemods.files.source import SourceModule
from codemods.store.project import Project
from ddpfix.testing import check_nothing, findings_of

AGENT = (
    "import torch\nfrom torch.nn.parallel import DistributedDataParallel\n\n\nclass Agent:\n    def __init__(self, rank=None):\n"
    "        self.net = build()\n        if rank is not None:\n            self.net = DistributedDataParallel(self.net)\n\n"
    "    def save(self, path):\n        torch.save(self.net.state_dict(), path)\n"
)
ALONE = "from agent import Agent\n\nagent = Agent()\nfor step in range(9):\n    agent.save('last.pt')\n"
MANY = (
    "import torch.distributed as dist\nfrom agent import Agent\n\n\ndef main(rank):\n    dist.init_process_group('nccl')\n"
    "    agent = Agent(rank)\n    {}agent.save('last.pt')\n\n\nif __name__ == '__main__':\n    main(0)\n"
)


def test_every_program_of_several_processes_tests_the_rank() -> None:
    files = {"alone.py": ALONE, "ddp.py": MANY.format("if rank == 0:\n        ")}
    check_nothing(UnguardedSave, AGENT, files=files, path="agent.py")
    assert findings_of(UnguardedSave, AGENT, {"alone.py": ALONE, "ddp.py": MANY.format("")}, path="agent.py")


def test_a_script_that_starts_no_group() -> None:
    check_nothing(UnguardedSave, AGENT, files={"alone.py": ALONE}, path="agent.py")
    for start in ("from helpers import setup_ddp\nsetup_ddp()\n", "import deepspeed\n", "from helpers import Trainer\n"):
        assert findings_of(UnguardedSave, AGENT, {"alone.py": f"{start}{ALONE}"}, path="agent.py")


SEEDED = (
    "import pickle\nimport lightning as L\n{}\nL.seed_everything(1)\n{}"
    "with open('a.pkl', 'wb') as f:\n    pickle.dump(fit(), f)\n"
)


def shown(source: str) -> bool:
    project = Project.of({"run.py": source.encode()})
    return ranks_in_file(project, SourceModule("run.py", source.encode())) is not None


def test_a_seed_alone_is_no_training() -> None:
    assert not shown(SEEDED.format("", ""))
    assert not shown(SEEDED.format("from lightning.pytorch.callbacks import ModelCheckpoint", ""))
    assert shown(SEEDED.format("", "L.Trainer().fit(model)\n"))
    assert shown(SEEDED.format("", "run(L.Fabric())\n"))
    assert shown(SEEDED.format("from lightning.pytorch.callbacks import ModelCheckpoint", "run(ModelCheckpoint())\n"))


def test_a_rename_to_itself_takes_nothing_away() -> None:
    source = "import os\n\ndef f(path):\n    new = path{}\n    os.rename(path, new)\n    os.rename(path, {})\n"
    for code, expected in (("", "path"), [True, True]), ((" + '_old'", "new"), [False, False]), (("", "other"), [True, False]):
        module = SourceModule("a.py", source.format(*code).encode())
        assert [renames_to_itself(module, call) for call in module.calls_named("rename")] == expected


def test_a_library_of_scripts_that_are_one_process() -> None:
    def lone(**files: str) -> bool:
        texts = {"net.py": AGENT, **{f"{name}.py": text for name, text in files.items()}}
        return is_of_lone_scripts(Project.of({path: text.encode() for path, text in texts.items()}), "net.py")

    shows = "from net import Agent\nAgent().save('a')\n"
    assert lone(show=shows, video=f"import argparse\n{shows}")
    assert not lone()  # who imports it is not seen
    assert not lone(show=shows, train=f"import torch.distributed as dist\n{shows}dist.init_process_group('nccl')\n")
