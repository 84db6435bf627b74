"""What the editor's settings say; they win over the project's own, as the options of the command line do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codemods.runtime.record import record
from ddpfix.api import Asking

_LISTS = {"select": "select", "ignore": "ignore", "extendSelect": "extend_select", "exclude": "exclude"}


@record
class Options:
    """ask_for_reason: the editor asks why a finding is ignored, and sends that with `ddpfix.ignore`."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    unsafe_fixes: bool = False
    ask_for_reason: bool = False

    def asking(self) -> Asking:
        return Asking(
            select=self.select, ignore=self.ignore, extend_select=self.extend_select, exclude=self.exclude,
            unsafe_fixes=self.unsafe_fixes, force_exclude=True,
        )  # fmt: skip


def options(said: object, ask_for_reason: bool = False) -> Options:
    """The options in what a client sends, alone or under `ddpfix`; what is of another kind than it should be is not taken."""
    table: Mapping[str, Any] = said if isinstance(said, Mapping) else {}
    if isinstance(table.get("ddpfix"), Mapping):
        table = table["ddpfix"]
    lists = {ours: _words(table.get(theirs)) for theirs, ours in _LISTS.items()}
    asks = table.get("askForReason") is True or ask_for_reason
    return Options(**lists, unsafe_fixes=table.get("unsafeFixes") is True, ask_for_reason=asks)


def _words(value: object) -> tuple[str, ...]:
    return tuple(w for w in value if isinstance(w, str)) if isinstance(value, list) else ()
