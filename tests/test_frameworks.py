"""Framework versions from pins: every file that can hold one, every spelling of a specifier."""

from __future__ import annotations

import pytest

from codemods.analysis.frameworks import Pin, accelerate_pin, lightning_pin, pins, torch_pin, transformers_pin
from codemods.analysis.python_bounds import ruled_out_by_python
from codemods.analysis.requirement_files import read_pins
from codemods.analysis.version_pins import range_of
from codemods.store.project import Project


def project(**files: str) -> Project:
    return Project.of({path.replace("__", "/"): text.encode() for path, text in files.items()})


def of(path: str, text: str) -> Project:
    return Project.of({path: text.encode()})


@pytest.mark.parametrize(
    ("spec", "minimum", "below"),
    [
        ("==1.9.5", (1, 9, 5), (1, 9, 6)),
        ("==1.9", (1, 9, 0), (1, 9, 1)),
        ("==1.9.*", (1, 9, 0), (1, 10, 0)),
        (">=1.6.4", (1, 6, 4), None),
        (">1.6.4", (1, 6, 5), None),
        (">=1.7,<2", (1, 7, 0), (2, 0, 0)),
        ("<2.0.0", None, (2, 0, 0)),
        ("<=1.9.5", None, (1, 9, 6)),
        ("~=1.7.0", (1, 7, 0), (1, 8, 0)),
        ("~=1.7", (1, 7, 0), (2, 0, 0)),
        ("^2.4.0", (2, 4, 0), (3, 0, 0)),
        ("^0.3.1", (0, 3, 1), (0, 4, 0)),
        ("~1.2.3", (1, 2, 3), (1, 3, 0)),
        ("=2.5", (2, 5, 0), (2, 6, 0)),
        ("=2.*", (2, 0, 0), (3, 0, 0)),
        ("2.0.1", (2, 0, 1), (2, 0, 2)),
        ("==2.6.0+cu121", (2, 6, 0), (2, 6, 1)),
        ("==2.2.0.post0", (2, 2, 0), (2, 2, 1)),
        (">=1.7.0,!=1.12.0", (1, 7, 0), None),
        ("^1.9 || ^2.1", (1, 9, 0), (3, 0, 0)),
        (">=1.9 || ", None, None),
        ("", None, None),
        ("*", None, None),
        ("@ git+https://example.org/x.git@v4.30.0", None, None),
    ],
)
def test_specifier(spec: str, minimum: tuple[int, ...] | None, below: tuple[int, ...] | None) -> None:
    assert range_of(spec) == (minimum, below)


def test_surely_answers_only_what_every_allowed_version_satisfies() -> None:
    pin = Pin("lightning", ">=1.9,<2.2", "requirements.txt", 1)
    assert pin.surely_at_least((1, 9))
    assert not pin.surely_at_least((2, 0))
    assert pin.surely_below((2, 2))
    assert not pin.surely_below((2, 0))
    unknown = Pin("lightning", "", "requirements.txt", 1)
    assert not unknown.surely_at_least((1,))
    assert not unknown.surely_below((9,))


def test_requirements_with_extras_markers_comments_hashes_and_options() -> None:
    text = """\
# torch==0.1
--extra-index-url https://example.org
pytorch_lightning[extra]==2.4.0 ; python_version < "3.13"  # pinned
transformers (>=4.40,<5)
torch==2.2.1 \\
    --hash=sha256:abc
accelerate
"""
    found = of("requirements.txt", text)
    assert lightning_pin(found) == Pin("pytorch-lightning", "==2.4.0", "requirements.txt", 3)
    assert (transformers_pin(found) or Pin("", "", "", 0)).below == (5, 0, 0)
    assert (torch_pin(found) or Pin("", "", "", 0)).minimum == (2, 2, 1)
    accelerate = accelerate_pin(found)
    assert accelerate is not None
    assert accelerate.minimum is None


def test_requirements_folder_and_other_names() -> None:
    assert torch_pin(of("requirements/gpu.txt", "torch==2.1.0\n")) is not None
    assert torch_pin(of("requirements-train.in", "torch==2.1.0\n")) is not None
    assert torch_pin(of("notes.txt", "torch==2.1.0\n")) is None


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("# Name  Version  Build  Channel\ntorch                     2.0.1+cu118               <pip>\n", (2, 0, 1)),
        ("Package      Version\n------------ -------\ntorch        1.13.1\n", (1, 13, 1)),
        ("numpy 1.24\ntorch\t1.12.0   /home/me/torch\n", (1, 12, 0)),
        ("# platform: linux-64\npytorch=1.7.1=py3.8_cuda11.0.221_cudnn8.0.5_0\n", (1, 7, 1)),
    ],
)
def test_what_pip_and_conda_print_of_an_environment(text: str, version: tuple[int, ...]) -> None:
    pin = torch_pin(of("requirements.txt", text))
    assert pin is not None and pin.minimum == version and pin.below == (*version[:2], version[2] + 1)


@pytest.mark.parametrize("line", ["torch is needed", "torch 2 or newer", "torch # 2.0.1", "torch"])
def test_a_line_that_prints_no_version(line: str) -> None:
    pin = torch_pin(of("requirements.txt", f"{line}\n"))
    assert pin is None or pin.below is None


def test_utf16_requirements() -> None:
    found = Project.of({"requirements.txt": "torch==2.1.0\r\n".encode("utf-16")})
    assert torch_pin(found) is not None


def test_pyproject_project_tables() -> None:
    text = """\
[project]
name = "torch"
dependencies = [
    "lightning>=2.2,<3",
]
[project.optional-dependencies]
hf = ["transformers==4.44.0"]
[dependency-groups]
dev = [{include-group = "x"}, "accelerate~=1.2"]
"""
    found = of("pyproject.toml", text)
    assert lightning_pin(found) == Pin("lightning", ">=2.2,<3", "pyproject.toml", 4)
    assert transformers_pin(found) == Pin("transformers", "==4.44.0", "pyproject.toml", 7)
    assert (accelerate_pin(found) or Pin("", "", "", 0)).below == (2, 0, 0)
    assert torch_pin(found) is None


def test_poetry_tables() -> None:
    text = """\
[tool.poetry.dependencies]
python = "^3.10"
lightning = "^2.4.0"
torch = {version = "2.5.1", source = "cu"}
[tool.poetry.group.dev.dependencies]
transformers = "*"
"""
    found = of("pyproject.toml", text)
    assert lightning_pin(found) == Pin("lightning", "^2.4.0", "pyproject.toml", 3)
    assert torch_pin(found) == Pin("torch", "2.5.1", "pyproject.toml", 4)
    assert pins(found, "python") == ()
    assert pins(found, "transformers")[0].spec == ""


def test_broken_pyproject_is_passed_over() -> None:
    assert torch_pin(of("pyproject.toml", "[project\n")) is None


def test_setup_py_and_setup_cfg() -> None:
    setup = 'import x\nsetup(name="torch", install_requires=["pytorch-lightning>=1.6.4", "torch"])\n'
    assert lightning_pin(of("setup.py", setup)) == Pin("pytorch-lightning", ">=1.6.4", "setup.py", 2)
    assert torch_pin(of("setup.py", 'setup(name="torch")\n')) is None
    assert torch_pin(of("setup.py", "print 'python 2'\n")) is None
    cfg = "[metadata]\nname = torch\n[options]\ninstall_requires =\n    torch>=2.0\n"
    cfg += "[options.extras_require]\npl =\n    lightning==2.1\n"
    assert torch_pin(of("setup.cfg", cfg)) == Pin("torch", ">=2.0", "setup.cfg", 5)
    assert lightning_pin(of("setup.cfg", cfg)) == Pin("lightning", "==2.1", "setup.cfg", 8)


@pytest.mark.parametrize(
    ("path", "head", "pinned"),
    [("net.yml", "channels:\n  - pytorch\ndependencies:\n", True), ("net.yml", "model:\n", False),
     ("configs/net.yml", "channels:\n  - pytorch\ndependencies:\n", False),
     ("envs/py39.yaml", "channels:\n  - pytorch\ndependencies:\n", True), ("envs/py39.yaml", "model:\n", False),
     ("tools/conda/net.yml", "channels:\n  - pytorch\ndependencies:\n", True)],
)  # fmt: skip
def test_an_environment_of_any_name_at_the_root_or_in_its_folder(path: str, head: str, pinned: bool) -> None:
    found = read_pins(path, f"{head}  - pytorch=1.7.1=py3.8_cuda10\n".encode())
    assert [(p.package, p.spec) for p in found] == ([("torch", "=1.7.1")] if pinned else [])


def test_conda_environment() -> None:
    text = """\
dependencies:
  - python=3.11
  - conda-forge::pytorch-lightning=2.0.*
  - pytorch=2.5=py3.11_cuda12_0
  - pip:
      - "transformers>=4.40,<4.50"
"""
    found = of("environment.yml", text)
    assert (lightning_pin(found) or Pin("", "", "", 0)).below == (2, 1, 0)
    assert (torch_pin(found) or Pin("", "", "", 0)).below == (2, 6, 0)
    assert (transformers_pin(found) or Pin("", "", "", 0)).below == (4, 50, 0)


@pytest.mark.parametrize("name", ["uv.lock", "poetry.lock", "pdm.lock"])
def test_a_lock_file_wins_over_a_range(name: str) -> None:
    lock = 'version = 1\n\n[[package]]\nname = "lightning"\nversion = "2.5.1"\n\n'
    lock += '[[package]]\nname = "x"\nversion = "1"\n'
    found = Project.of({name: lock.encode(), "pyproject.toml": b'[project]\ndependencies = ["lightning>=1.9"]\n'})
    assert lightning_pin(found) == Pin("lightning", "==2.5.1", name, 5)


def test_what_pipenv_locked() -> None:
    lock = """{
    "_meta": {
        "hash": {"sha256": "aa"},
        "requires": {"python_version": "3.6"},
        "sources": [{"name": "pypi", "url": "https://pypi.org/simple", "verify_ssl": true}]
    },
    "default": {
        "torch": {
            "hashes": ["sha256:01", "sha256:02"],
            "index": "pypi",
            "version": "==1.10.1"
        },
        "lightning": {"extras": ["extra"], "version": "==2.1.0"}
    },
    "develop": {}
}
"""
    found = project(**{"Pipfile.lock": lock, "Pipfile": '[packages]\ntorch = "*"\n'})
    assert torch_pin(found) == Pin("torch", "==1.10.1", "Pipfile.lock", 11)
    assert lightning_pin(found) == Pin("lightning", "==2.1.0", "Pipfile.lock", 13)


@pytest.mark.parametrize(
    ("line", "first"),
    [
        ("python=3.8", (4, 47, 0)),
        ("python=3.8.10", (4, 47, 0)),
        ("python=3.9", (5, 0, 0)),
        ("python<3.10", (5, 0, 0)),
        ("python=3.10", None),
        ("python>=3.8", None),
        ("pip", None),
    ],
)
def test_what_the_python_of_an_environment_rules_out(line: str, first: tuple[int, int, int] | None) -> None:
    found = of("environment.yml", f"dependencies:\n  - {line}\n  - transformers\n")
    assert ruled_out_by_python(found, "transformers") == first


def test_files_that_disagree_allow_what_any_of_them_allows() -> None:
    files = {"requirements.txt": "lightning==2.1.0\n", "setup.py": 'x = ["pytorch-lightning>=1.8"]\n'}
    pin = lightning_pin(project(**files))
    assert pin is not None
    assert not pin.surely_at_least((2, 0))
    assert not pin.surely_below((2, 0))


def test_a_bare_name_beside_a_pin_says_nothing() -> None:
    pin = lightning_pin(project(**{"requirements.txt": "lightning==2.1.0\n", "environment.yml": "  - lightning\n"}))
    assert pin is not None
    assert pin.surely_at_least((2, 0))


def test_the_nearest_folder_counts() -> None:
    found = Project.of({"requirements.txt": b"torch==2.0.0\n", "old/requirements.txt": b"torch==1.8.0\n"})
    assert (torch_pin(found) or Pin("", "", "", 0)).minimum == (2, 0, 0)
    assert (torch_pin(found, near="old/sub/train.py") or Pin("", "", "", 0)).minimum == (1, 8, 0)
    assert (torch_pin(found, near="new/train.py") or Pin("", "", "", 0)).minimum == (2, 0, 0)


BARE = b"from setuptools import setup\n\nsetup(name='inner', install_requires=['accelerate', 'torch', 'lightning'])\n"


def test_a_folder_that_only_names_the_package_leaves_its_version_to_those_above() -> None:
    found = Project.of({"requirements.txt": b"accelerate==0.17.1\n", "inner/setup.py": BARE, "inner/pkg/train.py": b""})
    assert (accelerate_pin(found, near="inner/pkg/train.py") or Pin("", "", "", 0)).surely_below((0, 28))
    deeper = Project.of({
        "requirements.txt": b"accelerate==0.17.1\n", "a/pyproject.toml": b'[project]\ndependencies = ["accelerate>=1.0"]\n',
        "a/b/requirements.txt": b"accelerate\n", "a/b/train.py": b"",
    })  # fmt: skip
    pin = accelerate_pin(deeper, near="a/b/train.py")  # what a package there asks for is no word on this one
    assert pin is not None and (pin.path, pin.bounds) == ("a/b/requirements.txt", False)


def test_what_a_folder_that_only_names_the_package_does_not_get() -> None:
    beside = Project.of({"other/requirements.txt": b"accelerate==0.17.1\n", "inner/setup.py": BARE, "inner/train.py": b""})
    pin = accelerate_pin(beside, near="inner/train.py")
    assert pin is not None and (pin.path, pin.bounds) == ("inner/setup.py", False)
    another = Project.of({"requirements.txt": b"pytorch-lightning==1.5.0\n", "inner/setup.py": BARE, "inner/train.py": b""})
    pin = lightning_pin(another, near="inner/train.py")
    assert pin is not None and pin.package == "lightning" and not pin.surely_below((2, 0))
    companion = {"requirements.txt": b"torch==2.1.0\n", "inner/requirements.txt": b"torch\ntorchvision==0.10.0\n"}
    pin = torch_pin(Project.of({**companion, "inner/train.py": b""}), near="inner/train.py")
    assert pin is not None and pin.minimum == (1, 9, 0)


def test_documentation_pins_do_not_count() -> None:
    assert torch_pin(of("docs/requirements.txt", "torch==1.8.0\n")) is None


def test_no_pin() -> None:
    assert lightning_pin(of("train.py", "import lightning\n")) is None


def test_a_folder_that_an_image_is_built_from_speaks_for_the_one_above() -> None:
    files = {"requirements.txt": b"torch==2.0.0\n", "sft/docker/requirements.txt": b"torch==1.8.0\n"}
    found = Project.of({**files, "sft/train.py": b"", "dpo/train.py": b""})
    assert (torch_pin(found, near="sft/train.py") or Pin("", "", "", 0)).minimum == (1, 8, 0)
    assert (torch_pin(found, near="dpo/train.py") or Pin("", "", "", 0)).minimum == (2, 0, 0)
    own = Project.of({**files, "sft/requirements.txt": b"torch==2.2.0\n"})
    assert (torch_pin(own, near="sft/train.py") or Pin("", "", "", 0)).minimum == (2, 2, 0)


@pytest.mark.parametrize(
    ("line", "spec"),
    [
        ("conda install pytorch==2.0.1 torchvision==0.15.2 pytorch-cuda=11.8 -c pytorch -c nvidia", "==2.0.1"),
        ("   `conda install pytorch=1.11 cudatoolkit=11.3 -c pytorch`", "=1.11"),
        ("$ pip install torch==1.12.1+cu113 -f https://download.pytorch.org/whl/torch_stable.html", "==1.12.1+cu113"),
        ("RUN pip3 install 'torch>=1.8,<2' numpy", ">=1.8,<2"),
        ("* torch==1.7.0", "==1.7.0"),
        ("  - `pytorch == 1.13`", "== 1.13"),
        ("mamba install -y pytorch==1.13.0 \\", "==1.13.0"),
        ("> torch <= 2.2.0  ", "<= 2.2.0"),
        ("torch<2.3", "<2.3"),
        ("- `torch ~= 2.1.0`", "~= 2.1.0"),
        ("* torch>=1.8,<2.1<br>", ">=1.8,<2.1"),
        ("It runs with torch<=2.1.2 and numpy.", "<=2.1.2"),
    ],
)
def test_what_a_readme_says_to_install(line: str, spec: str) -> None:
    pin = torch_pin(of("README.md", f"# Model\n\n## Installation\n\n{line}\n"))
    assert pin is not None
    assert (pin.spec, pin.path, pin.line) == (spec, "README.md", 5)
    assert pin.surely_below((2, 4))


@pytest.mark.parametrize(
    "text",
    ["pip install torch", "It needs torch==1.9.0", "* torch>=1.7", "Install:\n> torch >= 1.7",
     "Install: it breaks if it runs with torch<2.0",
     "Install:\nloss <= 0.5", "Install: it runs with torch > 1.9.0", "| torch==1.7.0 | 71.2 |", "pip install -r torch.txt"],
)
def test_what_a_readme_leaves_open(text: str) -> None:
    assert torch_pin(of("README.md", text)) is None


@pytest.mark.parametrize(
    ("heading", "line", "spec"),
    [
        ("Prerequisites:", "- pytorch-lightning=1.3.5", "=1.3.5"),
        ("## Model", "* `pytorch-lightning = 1.3.5`", "=1.3.5"),
        ("## Requirements", "- PyTorch Lightning 1.3.5", "=1.3.5"),
        ("Dependencies\n------------", "- **PyTorch Lightning** v1.3", "=1.3"),
        ("It was tested with", "+ pytorch_lightning 1.3.5", "=1.3.5"),
    ],
)
def test_versions_in_a_list_of_what_is_needed(heading: str, line: str, spec: str) -> None:
    pin = lightning_pin(of("README.md", f"# Install\n\n{heading}\n\n- python 3.9\n{line}\n- rdkit\n"))
    assert pin is not None
    assert (pin.package, pin.spec) == ("pytorch-lightning", spec)
    assert pin.surely_below((1, 4)) and pin.surely_at_least((1, 3))


@pytest.mark.parametrize(
    ("heading", "line"),
    [
        ("## News", "- PyTorch Lightning 2.0"),  # no list of needs
        ("## Requirements", "- PyTorch Lightning 1.3 or later"),
        ("## Requirements", "- PyTorch Lightning >= 1.3"),
        ("## Requirements", "- PyTorch Lightning 1.3, 1.4"),
        ("## Requirements", "PyTorch Lightning 1.3"),  # no item
        ("## Requirements", "- our port of PyTorch Lightning 1.3"),
        ("## Requirements", "- PyTorch Lightning 2"),  # a number of what?
    ],
)
def test_lists_that_leave_the_version_open(heading: str, line: str) -> None:
    assert lightning_pin(of("README.md", f"# Install\n\n{heading}\n\n- python 3.9\n{line}\n")) is None


def test_a_file_of_pins_goes_before_a_readme() -> None:
    readme = "pip install torch==1.9.0"
    pinned = torch_pin(project(**{"requirements.txt": "torch>=2.1\n", "README.md": readme}))
    assert pinned is not None and pinned.spec == ">=2.1"
    bare = torch_pin(project(**{"requirements.txt": "torch\n", "README.md": readme}))
    assert bare is not None and bare.surely_below((2,))
    assert torch_pin(project(**{"docs/README.md": readme})) is None


def test_a_bound_in_the_text_alone() -> None:
    pin = transformers_pin(of("README.md", "# Model\n\n## Setup\n\n> pytorch 2.1.0\ntransformers <= 4.45.0  \n"))
    assert pin is not None and pin.surely_below((4, 46)) and not pin.surely_at_least((4, 30))
