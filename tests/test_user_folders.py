"""Where what ddpfix keeps for its user lies."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ddpfix import user_folders

ASK = "import sys; sys.platform = {0!r}; from ddpfix import user_folders as u; print(u.cache(), u.config(), u.state(), sep='\\n')"
LOADED = "import sys; from ddpfix import user_folders as u; u.cache(); print('platformdirs' in sys.modules)"


def asked(code: str, home: Path) -> list[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("XDG_")} | {"HOME": str(home)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return [line.replace(str(home), "~") for line in done.stdout.splitlines()]


def test_each_platform_has_its_own(tmp_path: Path) -> None:
    assert asked(ASK.format("linux"), tmp_path) == ["~/.cache/ddpfix", "~/.config/ddpfix", "~/.local/state/ddpfix"]
    support = "~/Library/Application Support/ddpfix"
    assert asked(ASK.format("darwin"), tmp_path) == ["~/Library/Caches/ddpfix", support, support]


@pytest.mark.skipif(sys.platform != "linux", reason="only there the import is saved")
def test_the_answer_of_a_cache_does_not_wait_for_a_library(tmp_path: Path) -> None:
    assert asked(LOADED, tmp_path) == ["False"]


@pytest.mark.parametrize(("name", "ask"), [("CACHE", "cache"), ("CONFIG", "config"), ("STATE", "state")])
def test_the_variables_go_first_unless_they_are_relative(name: str, ask: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"XDG_{name}_HOME", "/srv/mine")
    assert getattr(user_folders, ask)() == "/srv/mine/ddpfix"
    monkeypatch.setenv(f"XDG_{name}_HOME", "mine")
    assert "mine" not in getattr(user_folders, ask)()
