"""Which files may get names of a file, also over a package round it that passes those between them by."""

from __future__ import annotations

import pytest

from codemods.analysis.importing import importers
from codemods.store.project import Project

FILES = {
    "nets/__init__.py": "from .plain.small import Small\n",
    "nets/plain/__init__.py": "",
    "nets/plain/small.py": "class Small:\n    pass\n",
    "train.py": "from nets import Small\n",
    "other.py": "import json\n",
}


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({}, True),
        ({"nets/__init__.py": "from .plain import Small\n", "nets/plain/__init__.py": "from .small import Small\n"}, True),
        ({"nets/__init__.py": "from .wide import Small\n"}, False),  # another file's
        ({"nets/__init__.py": ""}, False),
    ],
)
def test_a_package_hands_a_name_on(changed: dict[str, str], found: bool) -> None:
    project = Project.of({path: text.encode() for path, text in {**FILES, **changed}.items()})
    named = importers(project, "nets/plain/small.py")
    assert ("train.py" in named) is found
    assert "other.py" not in named
