"""Codes added to the list of those left out, every other byte as it was."""

from __future__ import annotations

import pytest

from ddpfix.bot.setting_edit import with_ignored
from ddpfix.settings import SettingsError


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("ddpfix.toml", None, b'ignore = ["DDP101"]\n'),
        ("ddpfix.toml", b'select = ["DDP1"]\n', b'select = ["DDP1"]\nignore = ["DDP101"]\n'),
        ("ddpfix.toml", b"ignore = []  # none\n", b'ignore = ["DDP101"]  # none\n'),
        ("ddpfix.toml", b'ignore = ["DDP2"]\n', b'ignore = ["DDP2", "DDP101"]\n'),
        ("ddpfix.toml", b'ignore = ["DDP2",]\n', b'ignore = ["DDP2", "DDP101"]\n'),
        ("ddpfix.toml", b'ignore = [\n  "DDP2" # why\n]\n', b'ignore = [\n  "DDP2", # why\n  "DDP101",\n]\n'),
        ("ddpfix.toml", b'ignore = [\n  "DDP2",\n  # last\n]\n', b'ignore = [\n  "DDP2",\n  # last\n  "DDP101",\n]\n'),
        ("ddpfix.toml", b'"ignore" = ["a]b"]\n', b'"ignore" = ["a]b", "DDP101"]\n'),
        ("ddpfix.toml", b'[prove]\nsteps = 3\n', b'ignore = ["DDP101"]\n\n[prove]\nsteps = 3\n'),
        ("pyproject.toml", b'[tool.ddpfix]\nselect = ["x"]\n[a]\n', b'[tool.ddpfix]\nselect = ["x"]\nignore = ["DDP101"]\n[a]\n'),
        ("pyproject.toml", b"[a]\nignore=[1]\n[tool.ddpfix]\n", b'[a]\nignore=[1]\n[tool.ddpfix]\nignore = ["DDP101"]\n'),
    ],
)
def test_only_the_list_grows(path: str, before: bytes | None, after: bytes) -> None:
    assert with_ignored({path: before}.get, ["DDP101"]) == (path, after)


def test_a_project_without_settings_gets_a_file_of_its_own() -> None:
    assert with_ignored({"pyproject.toml": b"[project]\nname = 'x'\n"}.get, ["DDP101", "DDP2"]) == (
        "ddpfix.toml",
        b'ignore = ["DDP101", "DDP2"]\n',
    )


@pytest.mark.parametrize("text", [b"ignore = 3\n", b"ignore = [3]\n", b"not toml\n"])
def test_what_cannot_be_changed_without_a_doubt_is_left(text: bytes) -> None:
    with pytest.raises(SettingsError, match="by hand"):
        with_ignored({"ddpfix.toml": text}.get, ["DDP101"])
