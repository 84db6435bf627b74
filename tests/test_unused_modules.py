"""Which files of a repository are taken along, and not used."""

from __future__ import annotations

import pytest

from codemods.analysis.unused_modules import is_unused
from codemods.store.project import Project

PLAIN = "import torch\n\n\ndef seeded(number):\n    torch.manual_seed(number)\n"
PATH = "parts/tools/seeds.py"
OTHERS = {
    "train.py": "from parts.tools.layers import Net\n\nNet()\n",
    "parts/tools/layers.py": "class Net: pass\n",
    "run.sh": "python train.py\n",
}


def unused(files: dict[str, str], path: str = PATH) -> bool:
    return is_unused(Project.of({name: text.encode() for name, text in ({PATH: PLAIN} | OTHERS | files).items()}), path)


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"other/seeds.py": "", "use.py": "from other.seeds import *\n"},
        {"parts/tools/report.py": "from parts.tools.seeds import seeded\n\n\ndef show(): ...\n"},
        {"README.md": "Set the seeds.\n"},
        {"settings.yaml": "seeds: 3\n"},
        {"nets/__init__.py": "import importlib\n\nall = [importlib.import_module('.' + m, __name__) for m in names]\n"},
        {"use.py": "import importlib\n\nimportlib.import_module('compiled_core')\n"},
        {"use.py": "model.execute(names)\n"},
        {"use.py": "def run(steps):\n    def exec(step):\n        return step()\n    return [exec(s) for s in steps]\n"},
    ],
)
def test_a_file_that_nobody_imports(files: dict[str, str]) -> None:
    assert unused(files)


@pytest.mark.parametrize(
    "files",
    [
        {"use.py": "from parts.tools.seeds import seeded\n\nseeded(1)\n"},
        {"use.py": "from parts.tools.report import show\n\nshow()\n",
         "parts/tools/report.py": "from parts.tools.seeds import seeded\n\n\ndef show(): ...\n"},
        {"parts/tools/__init__.py": "from .seeds import seeded\n"},
        {"parts/tools/layers.py": "from .seeds import seeded\n"},
        {"use.py": "def f():\n    from parts.tools import seeds\n    return seeds\n\nf()\n"},
        {"settings.yaml": "_target_: parts.tools.seeds.seeded\n"},
        {"README.md": "python parts/tools/seeds.py\n"},
        {"use.py": "names = ['parts.tools.seeds.seeded']\n"},
        {"use.py": "import importlib\n\nfor name in names:\n    importlib.import_module(name)\n"},
        {"parts/__init__.py": "from importlib import import_module\n\n"
                              "for m in names:\n    import_module(f'.{m}', package=__name__)\n"},
        {"nets/__init__.py": "import importlib\n\nall = [importlib.import_module('..' + m, __name__) for m in names]\n"},
        {"use.py": "exec(open(name).read())\n"},
        {"use.py": "import importlib\n\nimportlib.import_module('parts.tools.seeds')\n"},
        {"look.ipynb": '{"cells": [{"cell_type": "code", "metadata": {}, "outputs": [], "source": '
                       '["from parts.tools import seeds"]}], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}'},
        {PATH: PLAIN + "\n\nseeded(3)\n"},
        {PATH: PLAIN + "\n\nif __name__ == '__main__':\n    seeded(3)\n"},
    ],
)  # fmt: skip
def test_a_file_that_something_imports_or_names(files: dict[str, str]) -> None:
    assert not unused(files)


def test_a_file_at_the_root() -> None:
    files = {"seeds.py": PLAIN}
    assert unused(files, "seeds.py")
    assert not unused(files | {"use.py": "import seeds\n\nseeds.seeded(1)\n"}, "seeds.py")
    assert not unused(files | {"settings.toml": "call = 'seeds:seeded'\n"}, "seeds.py")
