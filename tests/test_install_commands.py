"""Versions that commands name, in scripts, images, CI files and instructions."""

from __future__ import annotations

import pytest

from codemods.analysis.frameworks import Pin, accelerate_pin, lightning_pin, torch_pin, transformers_pin
from codemods.analysis.job_files.said_torch import said_torch
from codemods.store.project import Project


def of(path: str, text: str) -> Project:
    return Project.of({path: text.encode()})


@pytest.mark.parametrize("path", ["setup.sh", "scripts/install_env.sh", "Dockerfile", "docker/Dockerfile"])
def test_what_installs_the_repository_pins(path: str) -> None:
    text = "# pip install accelerate==0.1\nRUN pip install transformers==4.33.3 \\\n"
    text += "    'accelerate>=0.21' && pip install -e .  # torch==1.0\n"
    found = of(path, text)
    assert transformers_pin(found) == Pin("transformers", "==4.33.3", path, 2)
    assert accelerate_pin(found) == Pin("accelerate", ">=0.21", path, 3)
    assert torch_pin(found) is None


def test_a_script_that_the_instructions_name_pins_ranges_too() -> None:
    script = {"tools/first.sh": b"pip install 'pytorch-lightning<1.6'\n"}
    assert lightning_pin(Project.of(script)) is None  # for this code, or for another?
    named = Project.of({**script, "README.md": b"Run `bash tools/first.sh` once.\n"})
    assert lightning_pin(named) == Pin("pytorch-lightning", "<1.6", "tools/first.sh", 1)


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("scripts/fetch.sh", "pip3 download --no-deps torchmetrics==0.5.1 pytorch-lightning==1.5.10 -d dist/"),
        ("scripts/fetch.sh", "python -m pip wheel -w dist pytorch-lightning==1.5.10"),
        ("jobs/node.slurm", "cd /tmp && pip install --no-index dist/pytorch_lightning-1.5.10-py3-none-any.whl || exit 1"),
        ("jobs/node.slurm", "uv pip install --system pytorch-lightning==1.5.10; python train.py"),
        (".github/workflows/tests.yml", "      - run: pip install pytest pytorch-lightning==1.5.10"),
        (".gitlab-ci.yml", "    - poetry add pytorch-lightning==1.5.10"),
        ("job.yaml", "setup: conda create -y -n run python=3.8 pytorch-lightning=1.5.10"),
        ("README.md", "uv run --with pytorch-lightning==1.5.10 train.py"),
        ("README.md", "pip install git+https://git.example/lightning/pytorch-lightning.git@v1.5.10"),
        ("Makefile", "\tpip --no-cache-dir install pytorch-lightning==1.5.10"),
    ],
)
def test_every_command_that_names_one_release(path: str, line: str) -> None:
    pin = lightning_pin(of(path, f"# \n{line}\n"))
    assert pin is not None and (pin.package, pin.path, pin.line) == ("pytorch-lightning", path, 2)
    assert pin.surely_at_least((1, 5, 10)) and pin.surely_below((1, 6))


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("scripts/run.sh", "pip install pytorch-lightning"),
        ("scripts/run.sh", "pip install 'pytorch-lightning>=1.5'"),  # in a script of any name
        ("scripts/run.sh", "# pip install pytorch-lightning==1.5.10"),
        ("scripts/run.sh", "pip install -e . && python train.py lightning=1.5"),  # an argument of the program
        ("scripts/run.sh", "pip install pytorch-lightning==${VERSION}"),
        (".github/workflows/tests.yml", "        lightning: [1.5.10, 2.0]"),
        (".github/dependabot.yml", "  - run: pip install pytorch-lightning==1.5.10"),
        ("docs/build.sh", "pip install pytorch-lightning==1.5.10"),
        ("config.yaml", "- pytorch-lightning==1.5.10"),  # no command
    ],
)
def test_commands_that_leave_the_version_open(path: str, line: str) -> None:
    pin = lightning_pin(Project.of({path if path != "config.yaml" else "conf/config.yaml": f"{line}\n".encode()}))
    assert pin is None or not pin.spec


def test_torch_that_a_script_of_any_name_fetches() -> None:
    found = Project.of({"scripts/fetch.sh": b"pip download torch==1.10.2\n", "train.py": b"import torch\n"})
    module = found.module("train.py")
    assert module is not None and said_torch(found, module).surely_below((2, 0))


_PAGES = ["environment.md", "docs/conda_env.md", "docs/en/get_started.md", "doc/INSTALL.rst", "setup.md", "docs/Requirements.md"]


@pytest.mark.parametrize("path", _PAGES)
def test_pages_that_tell_how_to_install_are_read_under_any_of_their_names(path: str) -> None:
    pin = lightning_pin(of(path, "First:\n\n```\npip install pytorch-lightning==1.3.8\n```\n"))
    assert pin == Pin("pytorch-lightning", "==1.3.8", path, 4)


@pytest.mark.parametrize("path", ["docs/changes.md", "inventory.md", "third_party/setup.md", "docs/environmental.md"])
def test_other_pages_say_nothing_of_what_is_installed(path: str) -> None:
    assert lightning_pin(of(path, "pip install pytorch-lightning==1.3.8\n")) is None


@pytest.mark.parametrize(
    ("path", "around"),
    [
        ("docs/en/install.md", True),
        ("docs/zh_CN/setup.md", True),
        ("docs/source/get_started/installation.rst", True),
        ("docs/INSTALL.md", True),
        ("vendored/docs/en/install.md", False),
        ("zoo/en/install.md", False),
    ],
)
def test_a_page_of_the_documentation_speaks_for_the_folder_above(path: str, around: bool) -> None:
    found = Project.of({path: b"conda create -n env; conda install pytorch=2.0.1\n", "tools/fit.py": b"import torch\n",
                        "pyproject.toml": b"[project]\nname = 'fit'\n"})  # fmt: skip
    module = found.module("tools/fit.py")
    assert module is not None and said_torch(found, module, elsewhere=False).names_below((2, 4)) == (path if around else "")


def test_a_requirement_file_goes_before_an_install_script() -> None:
    files = {"requirements.txt": b"transformers>=4.50\n", "setup.sh": b"pip install transformers==4.33.3\n"}
    assert transformers_pin(Project.of(files)) == Pin("transformers", ">=4.50", "requirements.txt", 1)


@pytest.mark.parametrize(
    ("line", "below"),
    [("* PyTorch (= 1.6)", True), ("- PyTorch (1.6)", True), ("PyTorch (>= 1.6)", False), ("* PyTorch (= 2.6)", False)],
)
def test_a_version_in_brackets(line: str, below: bool) -> None:
    found = Project.of({"README.md": f"## Requirements\n{line}\n".encode(), "train.py": b"import torch\n"})
    module = found.module("train.py")
    assert module is not None and said_torch(found, module).surely_below((2, 4)) is below


@pytest.mark.parametrize(
    "line",
    [
        "- lightning (tested with pytorch_lightning==1.3.8 and torchmetrics==0.5)",
        "The code was developed with torchmetrics==0.5 and `pytorch-lightning==1.3.8`.",
        "It requires pytorch-lightning == 1.3.8, and a GPU.",
    ],
)
def test_a_sentence_that_says_what_the_code_was_tested_with(line: str) -> None:
    pin = lightning_pin(of("README.md", f"# Rows\n{line}\n"))
    assert pin is not None and (pin.package, pin.path, pin.line) == ("pytorch-lightning", "README.md", 2)
    assert pin.surely_at_least((1, 3, 8)) and pin.surely_below((1, 4))


def test_a_file_of_pins_goes_before_what_was_tested() -> None:
    files = {"requirements.txt": b"pytorch-lightning>=2.0\n", "README.md": b"Tested with pytorch-lightning==1.3.8.\n"}
    assert lightning_pin(Project.of(files)) == Pin("pytorch-lightning", ">=2.0", "requirements.txt", 1)


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("README.md", "It was tested with pytorch-lightning==1.3.8 or newer."),
        ("README.md", "Tested with pytorch-lightning==1.3.8+."),
        ("README.md", "Training does not run with pytorch-lightning==1.3.8."),
        ("README.md", "It runs with this error: pytorch-lightning==1.3.8 lacks the strategy."),
        ("README.md", "Rows of pytorch-lightning==1.3.8 are listed below."),
        ("README.md", "Tested with pytorch-lightning>=1.3.8."),
        ("README.md", "Tested with pytorch-lightning==1.3.*."),
        ("NOTES.md", "Tested with pytorch-lightning==1.3.8."),
        ("train.sh", "echo tested with pytorch-lightning==1.3.8"),
    ],
)
def test_a_sentence_that_leaves_the_version_open(path: str, line: str) -> None:
    assert lightning_pin(of(path, f"{line}\n")) is None
