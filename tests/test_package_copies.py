"""Copies of published packages are read and left alone; packages of the repository's own are not taken for copies."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddpfix import why_not, why_not_page
from ddpfix.api import projects
from ddpfix.discovery import discover
from ddpfix.settings import Settings
from tests.gitrepos import make, own_settings

SETUP = b"from setuptools import setup\nsetup(name='%s')\n"
TRAIN = b"import torch\nfrom fairseq.utils import save\nsave(torch.ones(1))\n"
COPY = {
    "fairseq/setup.py": SETUP % b"fairseq",
    "fairseq/LICENSE": b"MIT",
    "fairseq/fairseq/__init__.py": b"",
    "fairseq/fairseq/utils.py": b"def save(x):\n    pass\n",
    "fairseq/examples/train.py": b"import torch\n",
}


@pytest.fixture(autouse=True)
def _own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own_settings(monkeypatch, tmp_path)


def chosen(repo: Path, *below: str, copies: bool = False) -> set[str]:
    (tree,) = discover([repo / b for b in below] or [repo], copies=copies)
    return set(tree.chosen)


def test_a_copy_is_read_and_left_alone(tmp_path: Path) -> None:
    repo = make(tmp_path, {"train.py": TRAIN, **COPY})
    (tree,) = discover([repo])
    assert tree.chosen == ("train.py",)
    assert "fairseq/fairseq/utils.py" in tree.files
    assert "fairseq/examples/train.py" not in tree.files, "an example of the package is no program of this project"
    ((folder, why),) = [(f.path, f.error) for f in tree.skipped]
    assert folder == "fairseq" and "a copy of the package fairseq" in why and "check-copies" in why


def test_what_is_asked_for_is_checked(tmp_path: Path) -> None:
    repo = make(tmp_path, {"train.py": TRAIN, **COPY})
    python = {n for n in COPY if n.endswith(".py")}
    assert chosen(repo, "fairseq") == python
    assert chosen(repo, "fairseq/examples/train.py") == {"fairseq/examples/train.py"}
    assert chosen(repo, copies=True) == {"train.py", *python}


def test_the_setting_has_copies_and_vendored_folders_checked(tmp_path: Path) -> None:
    files = {"train.py": TRAIN, **COPY, "third_party/x.py": b"", "ddpfix.toml": b"check-copies = true\n"}
    (project,) = projects(make(tmp_path, files))
    assert {"fairseq/fairseq/utils.py", "third_party/x.py"} <= set(project.tree.chosen)


def test_why_not_says_it(tmp_path: Path) -> None:
    repo = make(tmp_path, {"train.py": TRAIN, **COPY})
    (tree,) = discover([repo / "fairseq/fairseq/utils.py"])
    said = why_not_page.page(why_not.why_not(tree, Settings(), "fairseq/fairseq/utils.py", 1))
    assert "leaves the file alone: fairseq is a copy of the package fairseq" in said


@pytest.mark.parametrize(
    "metadata",
    [
        {"setup.py": b"import setuptools\nNAME = 'fairseq'\nsetuptools.setup(name=NAME)\n"},
        {"pyproject.toml": b"[project]\nname = 'fairseq'\n"},
        {"pyproject.toml": b"[tool.poetry]\nname = 'fairseq'\n"},
        {"pyproject.toml": b"[build-system]\n", "setup.cfg": b"[metadata]\nname = fairseq\n"},
        {"setup.py": b"from setuptools import setup\nsetup()\n", "PKG-INFO": b"Metadata-Version: 2.1\nName: loss-kit\n"},
    ],
)
def test_each_kind_of_metadata(tmp_path: Path, metadata: dict[str, bytes]) -> None:
    files = {f"lib/{name}": data for name, data in metadata.items()}
    repo = make(tmp_path, {"train.py": TRAIN, "lib/LICENSE.md": b"MIT", "lib/src/fairseq/__init__.py": b"", **files})
    assert chosen(repo) == {"train.py"}


def test_a_package_of_any_name_in_a_folder_for_others(tmp_path: Path) -> None:
    made = {"setup.py": SETUP % b"rasterizer", "LICENSE": b"", "rasterizer/__init__.py": b""}
    repo = make(tmp_path, {"train.py": TRAIN, **{f"submodules/rast/{n}": d for n, d in made.items()}})
    assert chosen(repo) == {"train.py"}


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({**COPY, "fairseq/setup.py": SETUP % b"speech-core"}, "a package of the repository's own, with its licence"),
        ({**COPY, "fairseq/setup.py": SETUP % b"datasets"}, "a name that anybody may give"),
        ({n: d for n, d in COPY.items() if n != "fairseq/LICENSE"}, "no licence of its own"),
        ({n: d for n, d in COPY.items() if n != "fairseq/setup.py"}, "no metadata"),
        ({**COPY, "setup.py": SETUP % b"fairseq"}, "the root is this distribution"),
        ({**COPY, "setup.py": SETUP % b"fairscale"}, "several packages of one family in a repository"),
        ({**COPY, "fairseq/setup.py": b"setup(name=read('NAME'))\n"}, "its name is not written out"),
        ({n: d for n, d in COPY.items() if "__init__" not in n}, "it holds no package"),
        ({"external/loaders.py": b"", "external/__init__.py": b""}, "a folder of that name alone"),
        ({"external/loaders/setup.py": SETUP % b"loaders", "external/loaders/loaders/__init__.py": b""}, "and without a licence"),
        ({"pkgs/core/core.egg-info/PKG-INFO": b"Name: core\n", "pkgs/core/setup.py": SETUP % b"core", "pkgs/core/LICENSE": b"",
          "pkgs/core/core/__init__.py": b""}, "egg-info is what an editable install leaves"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_packages_of_its_own_keep_their_findings(tmp_path: Path, files: dict[str, bytes], why: str) -> None:
    assert chosen(make(tmp_path, {"train.py": TRAIN, **files})) == {"train.py", *(n for n in files if n.endswith(".py"))}, why


RELEASE = {
    "libs/torch_scatter-2.0.9/setup.py": SETUP % b"torch-scatter",
    "libs/torch_scatter-2.0.9/src/torch_scatter/__init__.py": b"",
    "libs/torch_scatter-2.0.9/examples/train.py": b"import torch\n",
}
OWN = {"train.py": TRAIN, "examples/own.py": b"import torch\n"}


@pytest.mark.parametrize(
    "text",
    [
        b"cd libs/torch_scatter-2.0.9\npip install -e .\ncd ../..\npython examples/own.py\n",
        b"pip install ./libs/torch_scatter-2.0.9\n",
        b"torchrun examples/train.py\n",
    ],
    ids=["installed", "by its path", "of another folder"],
)
def test_an_unpacked_release_needs_no_licence(tmp_path: Path, text: bytes) -> None:
    repo = make(tmp_path, {**OWN, **RELEASE, "README.md": text})
    (tree,) = discover([repo])
    assert set(tree.chosen) == {"README.md", *OWN}
    assert "libs/torch_scatter-2.0.9/src/torch_scatter/__init__.py" in tree.files
    assert "libs/torch_scatter-2.0.9/examples/train.py" not in tree.files


@pytest.mark.parametrize(
    "files",
    [
        {"run.sh": b"torchrun libs/torch_scatter-2.0.9/examples/train.py\n"},
        {"run.sh": b"cd libs/torch_scatter-2.0.9\ntorchrun examples/train.py\n"},
        {"notes.md": b"Go to `torch_scatter-2.0.9/examples` first.\n"},
        {"start.py": b"import os\nos.chdir('libs/torch_scatter-2.0.9')\nos.system('python ./examples/train.py')\n"},
    ],
    ids=["started", "started inside", "spoken of", "by a program"],
)
def test_a_release_in_which_somebody_works_keeps_its_findings(tmp_path: Path, files: dict[str, bytes]) -> None:
    repo = make(tmp_path, {**OWN, **RELEASE, **files})
    assert chosen(repo) == {*OWN, *files, *RELEASE}


def test_the_folder_and_the_metadata_name_one_known_release(tmp_path: Path) -> None:
    mine = {n.replace("torch_scatter", "speech"): d.replace(b"torch-scatter", b"speech") for n, d in RELEASE.items()}
    for folder in "abc":
        (tmp_path / folder).mkdir()
    assert chosen(make(tmp_path / "a", {**OWN, **mine})) == {*OWN, *mine}
    other = {**RELEASE, "libs/torch_scatter-2.0.9/setup.py": SETUP % b"torch-sparse"}
    assert chosen(make(tmp_path / "b", {**OWN, **other})) == {*OWN, *other}
    bare = {n.replace("-2.0.9", ""): d for n, d in RELEASE.items()}
    assert chosen(make(tmp_path / "c", {**OWN, **bare})) == {*OWN, *bare}


def test_a_repository_that_works_in_the_copy_keeps_its_findings(tmp_path: Path) -> None:
    repo = make(tmp_path, {**COPY, "prepare.py": b"import json\n"})
    assert chosen(repo) == {"prepare.py", *(n for n in COPY if n.endswith(".py"))}
