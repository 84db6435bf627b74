"""DDP710: variables of a script for the processes of a launcher that no line exports."""

from __future__ import annotations

import pytest

from codemods.launch.command_that_cannot_start import CommandThatCannotStart
from ddpfix.testing import check_nothing, findings_of

RULE = CommandThatCannotStart
START = "python -m torch.distributed.launch --nproc_per_node=2 train.py\n"
FILES = {"train.py": "import torch\n"}


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        (f"CUDA_VISIBLE_DEVICES=$2\n{START}", 1, "the processes of line 2 see every GPU"),
        ("#!/bin/bash\nset -e\nHIP_VISIBLE_DEVICES=0,1 # two\ncd src\ntorchrun --nproc_per_node 2 train.py\n", 3, "line 5 see"),
        (f"NCCL_IB_DISABLE=1; {START}", 1, "line 1 are not given it"),
        (f"if [ -n \"$1\" ]; then\n  CUDA_VISIBLE_DEVICES=$1\nelse\n  CUDA_VISIBLE_DEVICES=0\nfi\n{START}", 2, "line 6 see"),
        ("N=2 GLOO_SOCKET_IFNAME=eth0\naccelerate launch train.py\n", 1, "line 2 are not given it"),
        (f"# export CUDA_VISIBLE_DEVICES=1\nCUDA_VISIBLE_DEVICES=0\n{START}", 2, "see every GPU"),
    ],
)
def test_a_variable_that_no_process_is_given(text: str, line: int, says: str) -> None:
    found = findings_of(RULE, text, FILES, path="run.sh")
    assert found and found[0].span.line == line and says in found[0].message
    assert found[0].severity == "risk" and found[0].fix is None and "export" in found[0].reason


@pytest.mark.parametrize(
    "text",
    [
        f"export CUDA_VISIBLE_DEVICES=0\n{START}",
        f"CUDA_VISIBLE_DEVICES=0\nexport CUDA_VISIBLE_DEVICES\n{START}",
        f"CUDA_VISIBLE_DEVICES=0 {START}",
        f"CUDA_VISIBLE_DEVICES=0 \\\n{START}",
        f"CUDA_VISIBLE_DEVICES=0\nCUDA_VISIBLE_DEVICES=$CUDA_VISIBLE_DEVICES {START}",
        f"CUDA_VISIBLE_DEVICES=0\nN=$(echo $CUDA_VISIBLE_DEVICES | wc -c)\n{START}",
        f"CUDA_VISIBLE_DEVICES=0\ndeclare -x CUDA_VISIBLE_DEVICES\n{START}",
        f"set -a\nCUDA_VISIBLE_DEVICES=0\n{START}",
        f"set -o allexport\nCUDA_VISIBLE_DEVICES=0\n{START}",
        f"source settings.sh\nCUDA_VISIBLE_DEVICES=0\n{START}",
        f"#SBATCH --gres=gpu:2\nCUDA_VISIBLE_DEVICES=0\n{START}",
        f"{START}CUDA_VISIBLE_DEVICES=0\n",
        "CUDA_VISIBLE_DEVICES=0\npython train.py\n",  # one process: nothing of this tool's
        f"MASTER_PORT=29500\n{START}",  # read by the shell, in most scripts
    ],
)
def test_a_variable_that_is_given_or_may_be(text: str) -> None:
    check_nothing(RULE, text, path="run.sh", files=FILES)


ALONE = f"CUDA_VISIBLE_DEVICES=$1\n{START}"


@pytest.mark.parametrize(
    "files",
    [
        {"README.md": "```\nCUDA_VISIBLE_DEVICES=0,1 bash run.sh\n```\n"},
        {"all.sh": "export CUDA_VISIBLE_DEVICES=0,1\nbash run.sh\n"},
        {"train.py": "import os\n\nos.environ['CUDA_VISIBLE_DEVICES'] = '0'\n"},
        {"train.py": "import places\n", "places.py": "import os\n\nprint(os.environ['CUDA_VISIBLE_DEVICES'])\n"},
    ],
)
def test_what_others_say_of_it(files: dict[str, str]) -> None:
    check_nothing(RULE, ALONE, path="run.sh", files={**FILES, **files})


def test_texts_of_other_scripts_and_documents() -> None:
    others = {"README.md": "```\nCUDA_VISIBLE_DEVICES=0,1 bash other.sh\nbash run.sh 0,1\n```\n"}
    assert findings_of(RULE, ALONE, {**FILES, **others}, path="run.sh")
    check_nothing(RULE, f"```bash\n{ALONE}```\n", path="README.md", files=FILES)
    check_nothing(RULE, f"CUDA_VISIBLE_DEVICES=0\n\nrun:\n\t{START}", path="Makefile", files=FILES)
