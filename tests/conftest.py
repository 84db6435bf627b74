from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the tester's own cache."""
    folder: Path = tmp_path_factory.getbasetemp() / "ddpfix-cache"
    monkeypatch.setenv("DDPFIX_CACHE_DIR", str(folder))
