"""The repository's own commands."""

from __future__ import annotations

import pytest

from ddpfix.summary import Launch, launched, launches
from tests.summary.made import EXAMPLES, found_launches, on_disk

TRAINER = b"from lightning.pytorch import Trainer\ntrainer = Trainer(devices=2)\n"
RAW = b"import torch.distributed as dist\nimport model\ndist.init_process_group('gloo')\n"
TRAIN = {"train.py": RAW, "model.py": b"x = 1\n"}


def told(files: dict[str, bytes], *changed: str) -> list[tuple[str, int, str]]:
    new = {path: files[path] for path in changed or ("train.py",)}
    return [(found.path, found.line, found.command) for found in launches(files, files.get, new) if found.command]


def two(command: str, *, path: str = "run.sh", script: bytes = RAW) -> str | None:
    """What is shown of a command that stands alone in a script."""
    found = told({**TRAIN, "train.py": script, path: command.encode() + b"\n"})
    return found[0][2] if found else None


@pytest.mark.parametrize(
    ("example", "path", "command"),
    [
        (
            "raw-ddp-vision",
            "launch.sh",
            "torchrun --standalone --nproc_per_node=2 train.py --config configs/tiny.yaml --max-steps 10",
        ),
        (
            "hf-speech",
            "launch.sh",
            "torchrun --standalone --nproc_per_node=2 finetune.py --config configs/tiny.json --output_dir out --max_steps 10",
        ),
        ("lightning-diffusion", "README.md", "python train.py --devices 2"),
        ("lightning-classifier", "README.md", "python train.py --run first --devices 2"),
    ],
)
def test_of_the_examples_commands_one_that_can_be_pasted(example: str, path: str, command: str) -> None:
    folder = EXAMPLES / example / "before"
    (found,) = found_launches(folder, on_disk(folder).after)
    assert (found.path, found.command, found.counted) == (path, command, True)


def test_a_folded_text_of_a_job_file_is_one_command() -> None:
    folder = EXAMPLES / "hf-finetune" / "before"
    files = {p: (folder / p).read_bytes() for p in ("finetune.py", "jobs/sft-2gpu.yaml", "configs/accelerate-2gpu.yaml")}
    (job,) = launches(files, files.get, {"finetune.py": files["finetune.py"]})
    assert job.path == "jobs/sft-2gpu.yaml"
    assert job.command.startswith("accelerate launch --num_processes 2 --config_file configs/accelerate-2gpu.yaml finetune.py ")
    assert job.command.endswith("--save_total_limit 2")


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("torchrun --nproc-per-node 8 train.py", "torchrun --nproc-per-node 2 train.py"),
        ("torchrun --nproc_per_node=$N train.py", "torchrun --nproc_per_node=2 train.py"),
        ('torchrun --nproc_per_node="${N:-8}" train.py "$@"', "torchrun --nproc_per_node=2 train.py"),
        ("torchrun train.py", "torchrun --nproc_per_node=2 train.py"),
        ("accelerate launch --num_processes=8 train.py", "accelerate launch --num_processes=2 train.py"),
        ("accelerate launch train.py", "accelerate launch --num_processes 2 train.py"),
        ("deepspeed --hostfile h train.py", "deepspeed --num_gpus 2 train.py"),
        ("python -m torch.distributed.launch train.py --x", "python -m torch.distributed.launch --nproc_per_node=2 train.py --x"),
        ("torchrun --nnodes=4 --node_rank $R --master_addr $A train.py", "torchrun --nproc_per_node=2 train.py"),
        ("CUDA_VISIBLE_DEVICES=3 PYTHONPATH=. torchrun train.py", "PYTHONPATH=. torchrun --nproc_per_node=2 train.py"),
        ("torchrun -m train --x", "torchrun --nproc_per_node=2 -m train --x"),
        ("python train.py --x 1", "torchrun --standalone --nproc_per_node=2 train.py --x 1"),
    ],
)
def test_two_processes_on_this_machine(command: str, shown: str) -> None:
    assert two(command) == shown


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("$PYTHON train.py --trainer.devices 8", "python train.py --trainer.devices 2"),
        ("python train.py trainer.devices=8", "python train.py trainer.devices=2"),
        ("python train.py", "python train.py"),
    ],
)
def test_what_starts_its_processes_itself_is_left_to_python(command: str, shown: str) -> None:
    assert two(command, script=TRAINER) == shown


@pytest.mark.parametrize(
    "command",
    [
        "torchrun $method.py $config $2",
        'torchrun train.py --name "run $(hostname)"',
        "torchrun train.py --name ${NAME%.yaml}",
        "torchrun train.py --data <folder>",
        "torchrun train.py --data <folder> --x 1",
        "torchrun train.py --out $(date)",
        "torchrun train.py ...",
    ],
)
def test_a_command_with_a_word_that_is_not_written_out_is_not_shown(command: str) -> None:
    assert two(command) is None


def told_of(script: str, *, path: str = "run.sh", beside: str = "") -> Launch:
    """What is told of the only command that starts train.py. beside: one more file."""
    every = {**TRAIN, **({beside: b""} if beside else {}), path: script.encode() + b"\n"}
    (found,) = launches(every, every.get, {"train.py": every["train.py"]})
    return found


@pytest.mark.parametrize(
    ("command", "to_fill"),
    [
        ('torchrun train.py --resume "$LAST"', ("$LAST",)),
        ("torchrun train.py --data $1", ("YOUR_DATA",)),
        ("torchrun train.py --data=$ROOT/${SET}.json --out $ROOT", ("$ROOT", "$SET")),
        ("torchrun train.py --data /path/to/data", ("/path/to/data",)),
        ("torchrun train.py --data TRAIN_PATH --set ONE_TWO --out=OUT_DIR", ("TRAIN_PATH", "--out=OUT_DIR")),
        ("torchrun train.py --load runs/***/last --init w/a.pth", ("runs/***/last", "w/a.pth")),
        ("torchrun train.py --name your_run --out $HOME/out", ("your_run",)),
        ("torchrun train.py --out out", ()),
    ],
)
def test_words_that_the_reader_has_to_give_are_told(command: str, to_fill: tuple[str, ...]) -> None:
    assert told_of(command).to_fill == to_fill


@pytest.mark.parametrize(
    ("command", "fault"),
    [
        ("torchrun train.py --config $1", "leaves `YOUR_CONFIG` to its reader"),
        ('torchrun train.py --cfg "$CONFIG"', "leaves `$CONFIG` to its reader"),
        ("torchrun train.py --config your-config-path", "leaves `your-config-path` to its reader"),
        ("torchrun train.py path/to/config", "leaves `path/to/config` to its reader"),
        ("torchrun train.py --config-file gone.yaml", "names `gone.yaml`, which is not in the repository"),
        ("accelerate launch --config_file c.yaml train.py", "names `c.yaml`, which is not in the repository"),
        ("torchrun train.py $(date)", "has words that a shell puts together"),
    ],
)
def test_a_command_that_is_not_shown_to_start_is_not_given(command: str, fault: str) -> None:
    found = told_of(command)
    assert (found.command, found.script, found.faults) == ("", "train.py", (fault,))
    assert (found.path, found.line) == ("run.sh", 1)


@pytest.mark.parametrize("given", ["", " --kind a"])
def test_an_option_that_the_parser_demands(given: str) -> None:
    script = RAW + b"import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('-k', '--kind', required=True)\n"
    shown = two(f"torchrun train.py{given}", script=script + b"parser.parse_args()\n")
    assert shown == (f"torchrun --nproc_per_node=2 train.py{given}" if given else None)


def test_a_script_by_its_path_on_another_machine() -> None:
    text = b"```bash\n!accelerate launch --num_processes=8 /data/notes/net/src/train.py --epochs 3\n```\n"
    files = {"src/train.py": RAW, "README.md": text}
    (found,) = launches(files, files.get, {"src/train.py": RAW})
    assert found.command == "accelerate launch --num_processes=2 src/train.py --epochs 3"
    assert found.edits == ("with the script's path in this repository",)
    assert not any(f.command for f in launches({**files, "src/train.py": b""}, {"README.md": text}.get, {"train.py": RAW}))


def test_options_on_lines_of_their_own_in_a_text() -> None:
    text = "Train:\n```bash\naccelerate launch train.py \n--run one\n  --steps 3\n```\n--not this\n"
    found = told_of(text, path="README.md")
    assert (found.command, found.line) == ("accelerate launch --num_processes 2 train.py --run one --steps 3", 3)
    shell = told_of("accelerate launch train.py\n--run one\n")
    assert shell.command == "accelerate launch --num_processes 2 train.py"  # a shell would not take it


def test_a_placeholder_of_a_text_is_the_reader_s_to_give() -> None:
    found = told_of("```sh\ntorchrun train.py --data <path to data> --name=<run_name>\n```", path="README.md")
    assert found.command == "torchrun --nproc_per_node=2 train.py --data your-path-to-data --name=your-run-name"
    assert found.to_fill == ("your-path-to-data", "--name=your-run-name")


def test_a_job_file_in_a_folder_deep_below() -> None:
    files = {"src/train.py": RAW, "src/scripts/train/city/four.sh": b"srun python -u train.py --epochs 3\n"}
    (found,) = launches(files, files.get, {"src/train.py": RAW})
    assert found.path == "src/scripts/train/city/four.sh" and "train.py --epochs 3" in found.command


def test_a_whole_command_comes_before_one_to_fill() -> None:
    files = {**TRAIN, "a.sh": b"torchrun train.py --data $DATA\n", "b.sh": b"python train.py --data x\n"}
    assert [path for path, _, _ in told(files)] == ["b.sh"]


def test_variables_that_the_script_sets_have_their_values() -> None:
    command = "torchrun --nproc_per_node=$1 train.py \\\n  --out $out ${@:2} \\\n  --epochs 3 > $name.log"
    found = told_of(f"name=small\nout=runs/$name\n{command}")
    assert found.command == "torchrun --nproc_per_node=2 train.py --out runs/small --epochs 3"
    assert (found.to_fill, found.edits) == ((), ())


def test_a_value_that_the_reader_has_to_give_stays_a_name() -> None:
    found = told_of("out=$BASE/x\ntorchrun train.py --out $out")
    assert (found.command, found.to_fill) == ("torchrun --nproc_per_node=2 train.py --out $BASE/x", ("$BASE",))
    asked = told_of("out=$(pwd)/x\ntorchrun train.py --out $out")
    assert (asked.command, asked.to_fill) == ("torchrun --nproc_per_node=2 train.py --out $out", ("$out",))


def test_a_value_that_another_command_prints_is_worked_out_in_front() -> None:
    found = told_of("port=$(shuf -i 8000-9999 -n 1)\ntorchrun train.py --url tcp://localhost:$port")
    assert found.command == "port=$(shuf -i 8000-9999 -n 1) && torchrun --nproc_per_node=2 train.py --url tcp://localhost:$port"
    assert found.to_fill == ()
    named = told_of('name=$(basename "$0" .sh)\ntorchrun train.py --name $name')
    assert named.command.startswith("name=$(basename run.sh .sh) && ") and named.to_fill == ()
    for other in ("$(basename $DATA)", "$(date) $1", "$(cat <in)"):
        assert told_of(f"name={other}\ntorchrun train.py --name $name").to_fill == ("$name",)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("PYTHONPATH=$PYTHONPATH:./src ", "PYTHONPATH=$PYTHONPATH:./src "),
        ('PYTHONPATH="$(pwd):$PYTHONPATH" ', 'PYTHONPATH="$(pwd):$PYTHONPATH" '),
        ("CUDA_VISIBLE_DEVICES=$GPUS ", ""),
    ],
)
def test_the_path_of_python_that_each_shell_knows(given: str, shown: str) -> None:
    found = told_of(f"{given}torchrun train.py")
    assert (found.command, found.to_fill) == (f"{shown}torchrun --nproc_per_node=2 train.py", ())


@pytest.mark.parametrize("end", ["\\ ", "\\   # where the data is", "\\\t# (e.g. [DATA])"])
@pytest.mark.parametrize("path", ["run.sh", "README.md"])
def test_a_line_that_a_blank_cuts_off_goes_on(end: str, path: str) -> None:
    text = f"torchrun train.py --data d {end}\n  --out o"
    found = told_of(f"```bash\n{text}\n```" if path.endswith(".md") else text, path=path)
    assert found.command == "torchrun --nproc_per_node=2 train.py --data d --out o"
    assert found.line == (2 if path.endswith(".md") else 1)


def test_what_was_changed_in_a_command_is_told() -> None:
    assert told_of("torchrun --master_port=1 --nnodes 2 train.py").edits == ()  # what two processes on one machine mean
    assert told_of("torchrun $LAUNCH train.py").edits == ("without $LAUNCH",)
    assert told_of("python train.py").edits == ("by torchrun, where it has plain Python",)
    assert told_of("accelerate launch --config_file c.yaml train.py", beside="c.yaml").command


def test_changed_programs_that_share_no_command_have_one_each() -> None:
    files = {**TRAIN, "eval.py": RAW.replace(b"model", b"os"), "run.sh": b"torchrun eval.py\ntorchrun train.py\n"}
    found = launches(files, files.get, {path: files[path] for path in ("eval.py", "model.py")})
    assert [(launch.line, launch.programs) for launch in found] == [(2, ("model.py",)), (1, ("eval.py",))]


def test_classes_that_hydra_s_settings_name_belong_to_the_program() -> None:
    main = b"import hydra\n\n\n@hydra.main(config_path='conf', config_name='base')\ndef main(cfg):\n    hydra.utils.call(cfg)\n"
    files = {
        "main.py": main,
        "conf/base.yaml": b"task:\n  _target_: tasks.one.Task\n",
        "tasks/__init__.py": b"",
        "tasks/one.py": b"from lightning.pytorch import Trainer\n\n\nclass Task:\n    trainer = Trainer(devices=2)\n",
        "tasks/two.py": b"class Task: pass\n",
        "run.sh": b"python main.py trainer.gpus=8\n",
    }
    assert told(files, "tasks/one.py") == [("run.sh", 1, "python main.py trainer.gpus=2")]
    assert told(files, "tasks/two.py") == []


def test_what_commands_start() -> None:
    files = {**TRAIN, "eval.py": RAW, "other.py": RAW, "run.sh": b"torchrun train.py\n"}
    files["README.md"] = b"```\npython eval.py $X\n```\n"
    assert launched(files, files.get) == {"train.py", "eval.py"}


def test_it_comes_to_a_file_that_was_changed() -> None:
    files = {**TRAIN, "other.py": RAW.replace(b"model", b"os"), "run.sh": b"torchrun other.py\ntorchrun train.py\n"}
    assert told(files, "model.py") == [("run.sh", 2, "torchrun --nproc_per_node=2 train.py")]
    assert told(files, "run.sh") and told({**files, "unread.py": b""}, "unread.py") == []


def test_the_training_comes_before_the_evaluation_and_the_readme_before_a_script() -> None:
    files = {
        **TRAIN,
        "eval.py": RAW,
        "README.md": b"```bash\ntorchrun eval.py\ntorchrun --nproc_per_node=8 train.py --a 1\n```\n",
        "go.sh": b"torchrun \\\n  --nproc_per_node=4 \\\n  train.py > log.txt 2>&1\n",
    }
    assert told(files, "model.py") == [("README.md", 3, "torchrun --nproc_per_node=2 train.py --a 1")]
    del files["README.md"]
    assert told(files, "model.py") == [("go.sh", 1, "torchrun --nproc_per_node=2 train.py")]


@pytest.mark.parametrize(
    ("path", "text", "shown"),
    [
        ("README.md", "```\ncd tool\ntorchrun train.py\n```", "cd tool && torchrun --nproc_per_node=2 train.py"),
        ("README.md", "```\ngit clone u\ncd u/tool\ntorchrun train.py\n```", "cd tool && torchrun --nproc_per_node=2 train.py"),
        ("tool/jobs/a.sh", 'cd "$(dirname "$0")/.."\ntorchrun train.py', "cd tool && torchrun --nproc_per_node=2 train.py"),
        ("tool/a.sh", "torchrun train.py", "cd tool && torchrun --nproc_per_node=2 train.py"),
        ("tool/a.sh", "torchrun tool/train.py", "torchrun --nproc_per_node=2 tool/train.py"),
        ("a.sh", "torchrun -m tool.train", "torchrun --nproc_per_node=2 -m tool.train"),
    ],
)
def test_the_folder_that_it_needs_is_gone_to(path: str, text: str, shown: str) -> None:
    files = {"tool/train.py": RAW, "tool/model.py": b"", path: text.encode() + b"\n"}
    assert [command for _, _, command in told(files, "tool/train.py")] == [shown]


def test_one_of_two_scripts_of_a_name_is_told_by_the_other_files_of_the_command() -> None:
    files = {"train.py": RAW, "b/train.py": RAW, "b/c.yaml": b"", "b/go.sh": b"torchrun train.py --config c.yaml\n"}
    assert told(files, "b/train.py") == [("b/go.sh", 1, "cd b && torchrun --nproc_per_node=2 train.py --config c.yaml")]


def test_comments_prints_and_names_are_no_commands() -> None:
    text = b"# torchrun train.py\necho torchrun train.py\nTORCHRUN=torchrun\nmy-torchrun train.py\n"
    assert told({**TRAIN, "run.sh": text, "a.yaml": b"x: torchrun\n"}) == []


def test_unreadable_and_huge_files_are_passed_over() -> None:
    files = {**TRAIN, "a.sh": b"\xff\xfe torchrun train.py\n", "b.sh": b"torchrun train.py\n" + b"#" * 100_000}
    assert told(files) == []
    assert launches(["gone.sh"], lambda _path: None, {}) == ()
