"""None of the tester's own git settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gitrepos import own_settings


@pytest.fixture(autouse=True)
def _own_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own_settings(monkeypatch, tmp_path / "home")
