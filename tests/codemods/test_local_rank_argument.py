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
         "'--local_rank', '--local-rank', default=int(os.environ.get(\"LOCAL_RANK\", -1)), type=int, help='rank'"),
        ("'--local-rank', type=int, required=True",
         "'--local-rank', '--local_rank', type=int, default=os.environ.get(\"LOCAL_RANK\")"),
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
        after = script(option, tail).replace("'--local_rank'", "'--local_rank', '--local-rank'")
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
    one, other = both.replace("'--local-rank', ", ""), fixed
    check_transformed(RULE, one, other, files=launched)


# Files that a command of the repository starts

OPTION = "parser.add_argument('--local_rank', type=int, default=0)"
LAUNCH = "python -m torch.distributed.launch --nproc_per_node=2 \\\n    module.py --epochs 3\n"
PARSER = f"import argparse\n\nparser = argparse.ArgumentParser()\n{OPTION}\nargs = parser.parse_args()\n"
BOTH = PARSER.replace("'--local_rank'", "'--local_rank', '--local-rank'")
OUTER = (
    "import subprocess\nimport sys\n\n\ndef again(script):\n"
    "    subprocess.run([sys.executable, '-m', 'torch.distributed.launch', '--nproc_per_node', '2', script, *sys.argv[1:]])\n"
)


@pytest.mark.parametrize("name", ["run.sh", "README.md", "jobs/train.slurm"])
def test_a_script_that_the_launcher_starts(name: str) -> None:
    found = check_transformed(RULE, PARSER, BOTH, files={name: LAUNCH})
    assert f"{name} (line 1) starts this script" in found[0].message
    check_transformed(RULE, f"import os\n\nprint(os.environ['LOCAL_RANK'])\n{PARSER}",
                      f"import os\n\nprint(os.environ['LOCAL_RANK'])\n{BOTH}", files={name: LAUNCH})  # fmt: skip


def test_options_that_the_started_script_imports() -> None:
    files = {"main.py": "from module import args\n", "run.sh": LAUNCH.replace("module", "main")}
    check_transformed(RULE, PARSER, BOTH, files=files)


def test_a_program_that_starts_the_script_again() -> None:
    check_transformed(RULE, f"import start\n{PARSER}", f"import start\n{BOTH}", files={"start.py": OUTER})
    check_nothing(RULE, PARSER, files={"start.py": OUTER})


@pytest.mark.parametrize(
    "files",
    [{}, {"run.sh": LAUNCH.replace("launch", "launch --use_env")}, {"run.sh": LAUNCH.replace("module.py", "other.py")},
     {"run.sh": "torchrun --nproc_per_node=2 module.py\n"}, {"run.sh": LAUNCH, "requirements.txt": "torch==1.12.1\n"},
     {"run.sh": LAUNCH, "README.md": "    conda install pytorch==1.7.1\n"},
     {"old/run.sh": LAUNCH, "old/module.py": PARSER}],
)  # fmt: skip
def test_what_no_new_launcher_starts(files: dict[str, str]) -> None:
    check_nothing(RULE, PARSER, files=files)


def test_a_script_that_passes_over_what_it_does_not_know() -> None:
    check_nothing(RULE, PARSER.replace("parse_args", "parse_known_args"), files={"run.sh": LAUNCH})


def test_an_option_with_a_comment_that_the_launcher_fills() -> None:
    source = PARSER.replace("type=int,", "type=int,  # of the launcher\n   ")
    check_told(RULE, source, reason="both spellings", files={"run.sh": LAUNCH})


def test_an_old_torch_that_the_texts_speak_of() -> None:
    source = script("parser.add_argument('--local_rank', type=int, default=0)")
    options = "'--local_rank', '--local-rank', type=int, default=int(os.environ.get(\"LOCAL_RANK\", 0))"
    after = script(f"parser.add_argument({options})")
    check_transformed(RULE, source, after, files={"README.md": "pip install torch==1.9.0\n"}, unsafe=True)


def test_options_beside_those_of_the_started_script() -> None:
    check_nothing(RULE, PARSER, files={"main.py": f"import module\n{PARSER}", "run.sh": LAUNCH.replace("module", "main")})


def test_the_call_stays_as_it_is_laid_out() -> None:
    before = script("parser.add_argument(\n    '--local_rank',\n    type=int,\n    default=-1,\n)")
    after = before.replace("    '--local_rank',", "    '--local_rank', '--local-rank',").replace(
        "default=-1", 'default=int(os.environ.get("LOCAL_RANK", -1))'
    )
    check_transformed(RULE, before, after)
