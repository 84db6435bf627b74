"""How the repository itself starts a program, word for word."""

from __future__ import annotations

import pytest

from ddpfix.summary import Launch, launches

SCRIPT = "import torch.distributed as dist\ndist.init_process_group('gloo')\nif read():\n    print(1)\n"


def found(files: dict[str, str], script: str = "main.py") -> Launch:
    every = {path: text.encode() for path, text in {script: SCRIPT, **files}.items()}
    (launch,) = launches(every, every.get, {script: every[script] + b"    print(2)\n"})
    assert not launch.command
    return launch


@pytest.mark.parametrize(
    ("path", "text", "quoted", "place"),
    [
        ("go.sh", "cd .\ntorchrun --nnodes=$N main.py --lr 1\n", "torchrun --nnodes=$N main.py --lr 1", "go.sh:2"),
        ("go.sh", "torchrun \\\n  main.py \\\n\t--lr 1\n", "torchrun \\\n    main.py \\\n    --lr 1", "go.sh:1"),
        ("README.md", "- Run `torchrun main.py -d ${DATA}`, `${DATA}` is yours\n", "torchrun main.py -d ${DATA}", "README.md:1"),
        ("README.md", "\n```python -m main --lr 1```\n", "python -m main --lr 1", "README.md:2"),
        ("README.md", "```\n$ torchrun main.py --data <your data>\n```\n", "torchrun main.py --data <your data>", "README.md:2"),
    ],
)  # fmt: skip
def test_a_command_is_quoted_as_it_stands(path: str, text: str, quoted: str, place: str) -> None:
    launch = found({path: text})
    assert (launch.quoted, launch.quoted_at) == (quoted, place)


def test_the_folder_that_it_is_typed_in_is_told() -> None:
    launch = found({"src/go.sh": "torchrun main.py\n"}, "src/main.py")
    assert (launch.quoted, launch.quoted_at) == ("torchrun main.py", "src/go.sh:1, in src")


@pytest.mark.parametrize(
    ("call", "quoted", "folder"),
    [
        ("./go.sh 8 data --lr 1", "./go.sh 8 data --lr 1", ", in src"),
        ("bash src/go.sh 8 data", "bash src/go.sh 8 data", ""),
        ("./go.sh 8 \\\n  data", "./go.sh 8 \\\n    data", ", in src"),
    ],
)
def test_of_a_script_that_hands_on_its_words_the_call_is_quoted(call: str, quoted: str, folder: str) -> None:
    files = {"src/go.sh": 'N=$1\nshift\ntorchrun --nproc_per_node=$N main.py "$@"\n', "src/train.sh": f"GPUS=8\n{call}\n"}
    launch = found(files, "src/main.py")
    assert (launch.quoted, launch.quoted_at) == (quoted, f"src/train.sh:2{folder}")


def test_what_no_text_calls_and_what_is_long_is_not_quoted() -> None:
    handed_on = found({"go.sh": 'torchrun main.py "$@"\n', "other.sh": "./ergo.sh 1\n"})
    assert (handed_on.quoted, handed_on.quoted_at) == ("", "")
    long = found({"go.sh": "torchrun main.py \\\n" + " \\\n".join(f"--x{i} 1" for i in range(20)) + "\n"})
    assert (long.quoted, long.quoted_at) == ("", "go.sh:1")


def test_of_a_program_that_no_text_starts_nothing_is_quoted() -> None:
    launch = found({})
    assert (launch.script, launch.quoted) == ("main.py", "")
