"""Command lines in job files: what is started, with which flags, and the flags changed in their place."""

from __future__ import annotations

import pytest

from codemods.analysis.job_files.command_lines import CommandLine, command_lines, script_of
from codemods.analysis.job_files.flag_edits import NoEdit, add_flag, drop_flag, rename_flag, set_value
from codemods.api.findings import Edit
from codemods.files.text_file import TextFile
from codemods.rewriting.rewriter import rewrite_bytes
from codemods.store.project import Project

FOLDED = """\
command: >-
  accelerate launch --num_processes 2
  train.py
  --lr 1e-4
  --steps=10
outputs: 1  # one
"""


def of(text: str, path: str = "run.sh") -> CommandLine:
    (command,) = command_lines(TextFile(path, text.encode()))
    return command


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("python train.py --a 1 -b\n", ("", "train.py", {"a": "1", "b": None})),
        (
            "A=1 srun -n 2 python3 -u x/train.py --lr=$LR --b 'c d' --n -1 2\n",
            ("", "x/train.py", {"lr": None, "b": "c d", "n": None}),
        ),
        ("torchrun --nproc_per_node 2 train.py --a b\n", ("torchrun", "train.py", {"a": "b"})),
        ("python -W ignore -m torch.distributed.launch train.py --a b\n", ("torchrun", "train.py", {"a": "b"})),
        ("python -X dev train.py --a b\n", ("", "train.py", {"a": "b"})),
        ("torchrun -m pkg.train --a b\n", ("torchrun", "pkg.train", {"a": "b"})),
        ("python -m torch.distributed.run --standalone $DIR/train.py --a b", ("torchrun", "$DIR/train.py", {"a": "b"})),
        ("accelerate launch --multi_gpu \\\n  train.py \\\n --a \\\n  b\n", ("accelerate", "train.py", {"a": "b"})),
        ("deepspeed --num_gpus=2 train.py --x-y 1\n", ("deepspeed", "train.py", {"x_y": "1"})),
        ("run:\n\t@$(PYTHON) train.py --a $(A)\n", ("", "train.py", {"a": None})),
    ],
)
def test_what_a_script_starts(text: str, seen: tuple[str, str, dict[str, str | None]]) -> None:
    command = of(text, "Makefile" if "\t@" in text else "run.sh")
    assert (command.launcher, command.target, {f.field: f.value for f in command.flags}) == seen


@pytest.mark.parametrize(
    "text", ["echo python train.py --a 1", "# python train.py", "python -c 'x' --a", "accelerate config", "python --version"]
)
def test_what_starts_no_script(text: str) -> None:
    assert command_lines(TextFile("run.sh", text.encode())) == ()


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.yaml", FOLDED),
        ("a.yaml", "command: accelerate launch train.py\n  --lr 1e-4\n  --steps=10\n"),
        ("a.yaml", "command: 'accelerate launch train.py --lr 1e-4 --steps=10'\n"),
        ("a.yaml", "jobs:\n- run: |\n    cd x\n    accelerate launch train.py --lr 1e-4 \\\n      --steps=10\n"),
        ("a.yaml", "command: [accelerate, launch, train.py, --lr, '1e-4', '--steps=10']\n"),
        ("a.json", '{"cmd": "accelerate launch train.py --lr 1e-4 --steps=10"}'),
    ],
)
def test_texts_in_yaml_and_json(path: str, text: str) -> None:
    command = of(text, path)
    assert command.launcher == "accelerate" and command.target == "train.py"
    assert {f.field: f.value for f in command.flags if f.field == "steps"} == {"steps": "10"}
    lr = command.flag("lr")
    assert lr is not None and command.file.text_at(command.span_of(lr)).startswith("--lr")


def changed(text: str, how: str, path: str = "run.sh") -> str:
    command = of(text, path)
    flag = command.flag("steps")
    assert flag is not None
    edit: Edit | NoEdit = {
        "set": lambda: set_value(command, flag, "20"),
        "rename": lambda: rename_flag(command, flag, "max_steps"),
        "drop": lambda: drop_flag(command, flag),
        "add": lambda: add_flag(command, "workers", "4"),
    }[how]()
    assert not isinstance(edit, NoEdit), edit
    return rewrite_bytes(command.file, [edit]).decode()


@pytest.mark.parametrize(
    ("how", "after"),
    [
        ("set", FOLDED.replace("--steps=10", "--steps=20")),
        ("rename", FOLDED.replace("--steps=10", "--max_steps=10")),
        ("drop", FOLDED.replace("\n  --steps=10", "")),
        ("add", FOLDED.replace("--steps=10", "--steps=10\n  --workers=4")),
    ],
)
def test_flags_in_a_folded_text(how: str, after: str) -> None:
    assert changed(FOLDED, how, "a.yaml") == after
    assert changed(FOLDED.replace("\n", "\r\n"), how, "a.yaml") == after.replace("\n", "\r\n")


SCRIPT = 'python train.py \\\n    --lr "1e-4" \\\n    --steps "10" \\\n    --out $OUT > log 2>&1\n'


@pytest.mark.parametrize(
    ("how", "after"),
    [
        ("set", SCRIPT.replace('"10"', '"20"')),
        ("rename", SCRIPT.replace("--steps", "--max_steps")),
        ("drop", SCRIPT.replace('    --steps "10" \\\n', "")),
        ("add", SCRIPT.replace("--out $OUT", "--out $OUT \\\n    --workers 4")),
    ],
)
def test_flags_in_a_script(how: str, after: str) -> None:
    assert changed(SCRIPT, how) == after
    assert changed(SCRIPT.replace("\n", "\r\n"), how) == after.replace("\n", "\r\n")


def test_flags_in_a_list_and_in_json() -> None:
    listed = "command: [python, train.py, '--steps', '10']  # two\n"
    assert changed(listed, "set", "a.yaml") == listed.replace("'10'", "'20'")
    assert changed(listed, "drop", "a.yaml") == "command: [python, train.py]  # two\n"
    assert changed(listed, "add", "a.yaml") == listed.replace("'10'", "'10', --workers, \"4\"")
    block = "command:\n  - python\n  - train.py\n  - --steps  # few\n  - 10\nx: 1\n"
    assert changed(block, "drop", "a.yaml") == "command:\n  - python\n  - train.py\nx: 1\n"
    lined = block.replace("  # few", "")
    assert changed(lined, "add", "a.yaml") == lined.replace("- 10", '- 10\n  - --workers\n  - "4"')
    noted = of(block.replace("train.py", "train.py  # why"), "a.yaml")
    assert isinstance(refused := drop_flag(noted, noted.flags[0]), NoEdit) and refused.why == "a comment stands before --steps"
    assert isinstance(add_flag(of(block, "a.yaml"), "workers", "4"), NoEdit)
    text = '{"cmd": "python train.py --steps 10", "x": 1}'
    assert changed(text, "drop", "a.json") == '{"cmd": "python train.py", "x": 1}'


def test_what_the_shell_decides_is_not_changed() -> None:
    command = of("python train.py --steps $N --a 1 2\n")
    assert [isinstance(set_value(command, f, "20"), NoEdit) for f in command.flags] == [True, True]


@pytest.mark.parametrize(
    ("path", "text", "script"),
    [
        ("jobs/run.sh", "python train.py\n", "train.py"),
        ("jobs/run.sh", "cd .. && python jobs/own.py\n", "jobs/own.py"),
        ("jobs/run.sh", "python $ROOT/src/deep.py\n", "src/deep.py"),
        ("jobs/run.sh", "python -m src.deep\n", "src/deep.py"),
        ("jobs/run.sh", "python -m src\n", "src/__main__.py"),
        ("jobs/run.sh", "python elsewhere.py\n", None),
        ("jobs/run.sh", "python deep.py\n", "src/deep.py"),
    ],
)
def test_the_file_that_is_started(path: str, text: str, script: str | None) -> None:
    files = dict.fromkeys(("train.py", "jobs/own.py", "src/deep.py", "src/__init__.py", "src/__main__.py"), b"")
    assert script_of(Project.of({**files, path: text.encode()}), of(text, path)) == script
