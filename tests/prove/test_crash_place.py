"""The line of the project at which a rank failed, read from its traceback."""

from __future__ import annotations

from pathlib import Path

from ddpfix.prove.on_cpu import crash_place

TRACEBACK = """\
[rank0]: Traceback (most recent call last):
[rank0]:   File "{folder}/train.py", line 2, in <module>
[rank0]:     import library
[rank0]:   File "<frozen importlib._bootstrap>", line 1176, in _find_and_load
[rank0]:   File "<frozen importlib._bootstrap>", line 241, in _call_with_frames_removed
[rank0]:   File "/usr/lib/python3/site-packages/library/__init__.py", line 7, in <module>
[rank0]:     raise ValueError("no")
[rank0]: ValueError: no
"""


def test_frames_of_python_itself_are_no_place_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import os\nimport library\n")
    found = crash_place(TRACEBACK.format(folder=tmp_path), tmp_path)
    assert found is not None
    assert (str(found), found.text) == ("train.py:2", "import library")
