"""A copy of an installed package in a folder of the project: who imports it by its bare name gets the installed one."""

from __future__ import annotations

import pytest

from codemods.analysis.ranks.hidden_packages import is_hidden
from codemods.store.project import Project
from codemods.sync.cache_filled_by_every_rank import CacheFilledByEveryRank
from ddpfix.testing import check_nothing, findings_of

COPY = {
    "nets/clip/__init__.py": "from .clip import *\n",
    "nets/model.py": "import clip\n\n\ndef build():\n    return clip.load('weights.pt')\n",
    "train.py": (
        "import torch.distributed as dist\nfrom nets.model import build\n\n\ndef main():\n    dist.init_process_group('gloo')\n"
        "    build()\n\n\nif __name__ == '__main__':\n    main()\n"
    ),
}
LOAD = (
    "import os\nimport torch\n\n\ndef load(path):\n    if not os.path.exists(path):\n        torch.save({}, path)\n"
    "    return torch.load(path)\n"
)
PINNED = {"requirements.txt": "openai-clip==1.0.1\n"}


def hidden(files: dict[str, str]) -> bool:
    project = Project.of({path: text.encode() for path, text in {**COPY, "nets/clip/clip.py": LOAD, **files}.items()})
    module = project.module("nets/clip/clip.py")
    assert module is not None
    return is_hidden(project, module)


CONDA = {"environment.yml": "dependencies:\n  - pip:\n    - clip\n"}


@pytest.mark.parametrize("shown", [PINNED, CONDA, {"test.py": "import clip\n"}])
def test_the_installed_package_is_meant(shown: dict[str, str]) -> None:
    assert hidden(shown)


@pytest.mark.parametrize(
    "other",
    [
        {"nets/model.py": "from . import clip\n"},
        {"nets/other.py": "from nets.clip import load\n"},
        {"nets/run.py": "import clip\n\nif __name__ == '__main__':\n    clip.load('a')\n"},  # its own folder is on the path
        {"train.py": "import sys\nsys.path.append('nets')\nfrom nets.model import build\n"},
        {"run.sh": "PYTHONPATH=nets python train.py\n"},
        {"nets/clip/clip.py": f"{LOAD}\nif __name__ == '__main__':\n    load('a.pt')\n"},
    ],
)
def test_the_copy_may_be_meant(other: dict[str, str]) -> None:
    assert not hidden({**PINNED, **other})


def test_nothing_shows_an_installed_one() -> None:
    assert not hidden({})


def test_what_a_hidden_copy_does_is_no_finding() -> None:
    check_nothing(CacheFilledByEveryRank, LOAD, files={**COPY, **PINNED}, path="nets/clip/clip.py")
    own = {**COPY, "nets/model.py": COPY["nets/model.py"].replace("import clip", "from nets import clip")}
    assert findings_of(CacheFilledByEveryRank, LOAD, {**own, **PINNED}, path="nets/clip/clip.py")
