"""How a run of the program ends: its exit statuses, and what a user can repair."""

from __future__ import annotations

CLEAN, FINDINGS, ERROR, INTERRUPTED = 0, 1, 2, 130


class CommandError(Exception):
    """Something the user can repair: what, why, what to do, a line each."""

    def __init__(self, what: str, why: str = "", todo: str = "") -> None:
        super().__init__(": ".join(p for p in (what, why) if p) + (f". {todo}" if todo else ""))
