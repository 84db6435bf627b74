"""Which commands of the repository's texts start a script on several processes."""

from __future__ import annotations

import pytest

from codemods.analysis.job_files.documented_starts import launched_as_several, starts
from codemods.store.project import Project

TRAIN = "import sw\n\nif __name__ == '__main__':\n    sw.train()\n"


@pytest.mark.parametrize(
    ("path", "text", "several"),
    [
        ("run.sh", "python -m sw.distributed.launch --nproc_per_node=8 train.py --lr 1\n", True),
        ("run.sh", "python3 -m sw.distributed.run \\\n  --nproc-per-node $(nvidia-smi -L | wc -l) \\\n  train.py -x\n", True),
        ("README.md", "    $ python -m sw.core.distributed.launch --nnodes 1 --nproc_per_node 4 train.py\n", True),
        ("run.sh", "python -m torch.distributed.launch --nproc_per_node=8 train.py\n", True),
        ("run.sh", "python -m sw.distributed.launch --port 80 train.py\n", False),
        ("run.sh", "python -m sw.distributed.launch --port 80; NOTE=--nproc_per_node python train.py\n", False),
        ("run.sh", "python -m sw.distributed.launched --nproc_per_node=8 train.py\n", False),
        ("run.sh", "python -m sw.launch train.py --nproc_per_node=8\n", False),
        ("run.sh", "python -m sw.distributed.launch train.py --nproc_per_node=8\n", False),
        ("run.sh", "python train.py\n", False),
    ],
)
def test_the_launcher_of_torch_by_the_name_of_another_package(path: str, text: str, several: bool) -> None:
    files = {"train.py": TRAIN.encode(), path: text.encode()}
    project = Project(files, files.get)
    assert (launched_as_several(project, "train.py") is not None) is several


@pytest.mark.parametrize(
    ("given", "script"),
    [
        ('program="${ROOT}/tools/train.py"', "train.py"),
        ("program=$ROOT/tools/train.py;", "train.py"),
        ("  export program=$ROOT/tools/train.py  # the new one", "train.py"),
        ('if [ "$KIND" = a ]; then\n  program="$ROOT/train.py"\nfi', "train.py"),
        ('run() {\n  program="tools/train.py"\n}', "train.py"),
        ('program="$ROOT/tools/$1"', ""),
        ('program="$ROOT/tools/$KIND.py"', ""),
        ('program="$ROOT/train.py"\nprogram="$ROOT/test.py"', ""),
        ('program="$ROOT/train.py"\nfor program in a.py b.py; do true; done', ""),
        ('my_program="$ROOT/train.py"', ""),
        ("", ""),
    ],
)
def test_a_variable_that_names_a_script_in_some_folder(given: str, script: str) -> None:
    files = {"run.sh": f"ROOT=$(pwd)\n{given}\ntorchrun --nproc_per_node 4 ${{program}} --lr 1\n", "tools/train.py": "\n"}
    found = starts(Project.of({path: text.encode() for path, text in files.items()}))
    assert [(s.script, s.several) for s in found if s.launched] == [(script, True)]


def test_a_script_that_python_alone_starts_by_its_variable() -> None:
    text = 'function tune() {\n    program="${ROOT}/tools/train.py";\n    python $program \\\n        --lr 1\n}\ntune\n'
    (found,) = starts(Project.of({"run.sh": text.encode(), "tools/train.py": b"\n"}))
    assert (found.script, found.several, found.flags) == ("train.py", False, frozenset({"lr"}))


OFFERED = """\
```sh
python -m torch.distributed.launch --nproc_per_node=4
  # the small one
  train.py --small

  # the large one
  tools/large.py --data x
```
  late.py
"""


@pytest.mark.parametrize(
    ("path", "text", "several"),
    [
        ("train.py", OFFERED, True),
        ("tools/large.py", OFFERED, True),
        ("late.py", OFFERED, False),  # behind the end of the block
        ("tools/large.py", OFFERED.replace("launch --", "launch train.py --"), False),  # the launcher has its script
        ("tools/large.py", OFFERED.replace("  tools", "tools"), False),  # a line of its own
        ("tools/large.py", OFFERED.replace("python -m torch.distributed.launch", "# torch.distributed.launch"), False),
        ("tools/large.py", OFFERED.replace("  tools/large.py", "  see tools/large.py"), False),
    ],
)
def test_a_launcher_with_a_choice_of_scripts_below_it(path: str, text: str, several: bool) -> None:
    files = {name: TRAIN.encode() for name in ("train.py", "tools/large.py", "late.py")} | {"README.md": text.encode()}
    project = Project(files, files.get)
    assert (launched_as_several(project, path) is not None) is several
