"""DDP701: a script learns its local rank from `--local_rank` alone."""

from __future__ import annotations

import pytest

from codemods.launch.local_rank_argument import LocalRankArgument
from ddpfix.testing import check_nothing, check_told, check_transformed

RULE = LocalRankArgument
HEAD = "import argparse\nimport os\n\nimport torch\nimport torch.distributed as dist\n\nparser = argparse.ArgumentParser()\n"
TAIL = "args = parser.parse_args()\ntorch.cuda.set_device(args.local_rank)\ndist.init_process_group('nccl')\n"


def script(call: str, tail: str = TAIL) -> str:
    return f"{HEAD}{call}\n{tail}"


def test_the_example_of_the_documentation() -> None:
    sections = RULE.sections()
    before, after = (sections[s].removeprefix("```python\n").removesuffix("```") for s in ("Example", "Use instead"))
    check_transformed(RULE, before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("'--local_rank', default=-1, type=int, help='rank'",
         "'--local_rank', \"--local-rank\", default=int(os.environ.get(\"LOCAL_RANK\", -1)), type=int, help='rank'"),
        ("'--local-rank', type=int, required=True",
         "'--local-rank', \"--local_rank\", type=int, default=os.environ.get(\"LOCAL_RANK\")"),
        ("'--local_rank', '--local-rank', type=int, default=0",
         "'--local_rank', '--local-rank', type=int, default=int(os.environ.get(\"LOCAL_RANK\", 0))"),
    ],
)  # fmt: skip
def test_forms_of_the_option(before: str, after: str) -> None:
    check_transformed(RULE, script(f"parser.add_argument({before})"), script(f"parser.add_argument({after})"))


def test_the_device_chosen_in_other_ways() -> None:
    option = "parser.add_argument('--local_rank', type=int, default=0)"
    for use in ("net = net.cuda(args.local_rank)", "d = torch.device('cuda', args.local_rank)", "net.to(args.local_rank)"):
        tail = TAIL.replace("torch.cuda.set_device(args.local_rank)", use)
        after = script(option, tail).replace("'--local_rank'", "'--local_rank', \"--local-rank\"")
        after = after.replace("default=0", 'default=int(os.environ.get("LOCAL_RANK", 0))')
        check_transformed(RULE, script(option, tail), after)


@pytest.mark.parametrize(
    "call",
    ["parser.add_argument('--local_rank', default=0)", "parser.add_argument('--local_rank', type=int, default=first())",
     "parser.add_argument(\n    '--local_rank',  # of the launcher\n    type=int, default=0,\n)"],
)  # fmt: skip
def test_what_is_told(call: str) -> None:
    check_told(RULE, script(call), reason="os.environ")


def test_another_meaning_of_os() -> None:
    source = script("parser.add_argument('--local_rank', type=int, default=0)").replace("import os\n", "os = 'linux'\n")
    check_told(RULE, source, reason="another meaning")


OPTION = "parser.add_argument('--local_rank', type=int, default=0)"


@pytest.mark.parametrize(
    "source",
    [
        script(OPTION, TAIL + "rank = os.environ['LOCAL_RANK']\n"),
        script(OPTION, TAIL + "import deepspeed\n"),
        script(OPTION, TAIL.replace("torch.cuda.set_device(args.local_rank)\n", "")),
        script(OPTION, TAIL.replace("dist.init_process_group('nccl')\n", "")),
        script("parser.add_argument('--rank', type=int, default=0)"),
    ],
)
def test_nothing_is_said(source: str) -> None:
    check_nothing(RULE, source)


def test_another_file_takes_it_from_the_environment() -> None:
    setup = "import os\n\ndef setup(args):\n    args.local_rank = int(os.environ['LOCAL_RANK'])\n"
    check_nothing(RULE, script(OPTION), files={"setup_ranks.py": setup})


def test_an_old_torch_and_own_tests() -> None:
    check_nothing(RULE, script(OPTION), files={"requirements.txt": "torch==1.12.1\n"})
    check_nothing(RULE, script(OPTION), path="tests/test_ranks.py")


def test_a_spelling_that_the_launcher_of_the_repository_passes() -> None:
    both = script("parser.add_argument('--local_rank', '--local-rank', type=int, default=0)")
    fixed = both.replace("default=0", 'default=int(os.environ.get("LOCAL_RANK", 0))')
    launched = {"run.sh": "python -m torch.distributed.launch --nproc_per_node 2 train.py\n"}
    check_nothing(RULE, both, files=launched)
    check_transformed(RULE, both, fixed, files={**launched, "README.md": "Or: `torchrun train.py`\n"})
    one, other = both.replace("'--local-rank', ", ""), fixed.replace("'--local-rank'", '"--local-rank"')
    check_transformed(RULE, one, other, files=launched)
