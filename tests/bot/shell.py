"""The command line in the tester's own process: the same door, without starting Python anew each time."""

from __future__ import annotations

import gc
import sys
from dataclasses import dataclass

import pytest

from ddpfix.bot.client import SystemClock


@dataclass(frozen=True)
class Done:
    status: object
    out: str
    err: str


class Shell:
    """Runs commands as `ddpfix …` would, with these variables, and without waiting between two writes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys
        monkeypatch.setattr(SystemClock, "sleep", lambda self, seconds: None)
        monkeypatch.setattr(gc, "freeze", lambda: None)
        names = ("DDPFIX_TOKEN", "GITHUB_TOKEN", "GH_TOKEN", "GITLAB_TOKEN", "DDPFIX_APP_ID", "DDPFIX_WEBHOOK_SECRET")
        for name in names:
            monkeypatch.delenv(name, raising=False)

    def ddpfix(self, *arguments: str, **environment: str) -> Done:
        from ddpfix import cli

        for name, value in environment.items():
            self._monkeypatch.setenv(name, value)
        self._monkeypatch.setattr(sys, "argv", ["ddpfix", *arguments])
        self._capsys.readouterr()
        try:
            with pytest.raises(SystemExit) as ended:
                cli.main()
        finally:
            gc.enable()
        out, err = self._capsys.readouterr()
        return Done(ended.value.code, out, err)

