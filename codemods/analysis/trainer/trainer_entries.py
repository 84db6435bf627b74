"""The entries of such a mapping that Lightning 2 does not take, written for it: as those of a call, one file at a time."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.analysis.trainer.argument_files import Keyed
from codemods.analysis.trainer.lightning_trainers import Change
from codemods.analysis.trainer.lightning_upgrade import Standing, standing
from codemods.analysis.trainer.trainer_keys import why_not_renamed
from codemods.analysis.trainer.trainer_tables import readers, tables_of
from codemods.analysis.version_pins import Version
from codemods.api.findings import AddEntry, DropEntry, Edit, ReplaceExpression
from codemods.data.lightning_arguments import (
    ACCELERATOR_GONE,
    DEVICE_ARGUMENTS,
    DEVICES_SINCE,
    GONE_STRATEGIES,
    GPUS_GONE,
    KEPT_STRATEGIES,
    NONE_GONE,
    NONE_WAS_DEFAULT,
    OLD,
    STRATEGY_GONE,
)
from codemods.data.lightning_names import ALWAYS, Minor
from codemods.files.text_entries import Entry, Table
from codemods.runtime.record import record
from codemods.store.project import Project

_COMMANDS = "assumes that no command line gives {}"


@record
class EntryChange:
    """gone: since when the entry is an error; standing: how far the versions are known; became: for people, "" for nothing.

    group: what belongs together, as `Fix.group`.
    """

    entry: Entry
    gone: Minor
    change: Change
    standing: Standing
    became: str = ""
    group: str = ""


def entry_changes(project: Project, table: Table, key: str) -> Iterator[EntryChange]:
    for entry in table.entries:
        if (row := OLD.get(entry.key)) is not None:
            value = Keyed(table, entry, "", "").literal
            edits: list[Edit] = []
            since: Version
            new = ""
            if value in row.idle:
                edits, since = [DropEntry(table.file.path, entry.span)], ALWAYS
            elif row.new and (not row.instead or value in row.values):
                edits, since, new = _renamed(table, entry, row.new, row.values.get(value or "", "")), row.since, row.new
            else:
                since = ALWAYS
            why = row.instead if not edits else f"{row.new} is given as well" if row.new in table.keys and new else ""
            yield from _judged(project, table, key, entry, edits, since, row.gone, why, new)
        elif entry.key in NONE_WAS_DEFAULT and entry.kind == "null":
            edits = [ReplaceExpression(table.file.path, entry.value_span, "auto")] if entry.value else []
            why = "" if edits else f"write {entry.key}: auto"
            since, group = _since_of_auto(table, entry)
            yield from _judged(project, table, key, entry, edits, since, NONE_GONE, why, group=group)
    yield from _devices(project, table, key)


def _since_of_auto(table: Table, entry: Entry) -> tuple[Version, str]:
    """Since when `auto` stands for null, and the group of those that go together: devices need an accelerator in Lightning 1."""
    accelerator = table.entry("accelerator")
    if entry.key == "strategy" or accelerator is None:
        return (NONE_GONE if entry.key == "devices" else NONE_WAS_DEFAULT[entry.key]), ""
    devices = table.entry("devices")
    both = accelerator.kind == "null" and devices is not None and devices.kind == "null"
    return NONE_WAS_DEFAULT[entry.key], f"{table.file.path}:{accelerator.key_span.line}" if both else ""


def _devices(project: Project, table: Table, key: str) -> Iterator[EntryChange]:
    """`gpus: 4` and `accelerator: ddp`, as one change where both can be made."""
    gpus, named = table.entry("gpus"), table.entry("accelerator")
    named = named if named is not None and named.value in (*KEPT_STRATEGIES, *GONE_STRATEGIES) else None
    strategy = table.entry("strategy")
    if strategy is not None and strategy.value in GONE_STRATEGIES:
        gone = STRATEGY_GONE[strategy.value]
        yield from _judged(project, table, key, strategy, [], ALWAYS, gone, GONE_STRATEGIES[strategy.value])
    moved: list[Edit] = []
    group = f"{table.file.path}:{table.entries[0].key_span.line}" if gpus is not None and named is not None else ""
    if named is not None:
        why = GONE_STRATEGIES.get(named.value, "") or ("strategy is given as well" if strategy is not None else "")
        why = why or ("an anchor takes the value to other keys as well" if named.shared else "")
        moved = [] if why else [ReplaceExpression(table.file.path, named.key_span, "strategy")]
        yield from _judged(
            project, table, key, named, moved, DEVICES_SINCE, ACCELERATOR_GONE, why, "strategy" if moved else "", group
        )
    for name in DEVICE_ARGUMENTS:
        entry = table.entry(name)
        if entry is None or (entry.kind == "null" and name != "gpus"):
            continue
        edits, why = _counted(table, entry, moved=bool(moved) or named is None) if entry is gpus else ([], _BY_HAND)
        became = "" if not edits else "accelerator: cpu" if entry.value in ("0", "null", "~") else "devices, with an accelerator"
        yield from _judged(
            project, table, key, entry, edits, DEVICES_SINCE, GPUS_GONE, why, became, group if entry is gpus else ""
        )


_BY_HAND = "write accelerator, devices and strategy by hand: they decide over each other"


def _counted(table: Table, entry: Entry, *, moved: bool) -> tuple[list[Edit], str]:
    """The edits for `gpus`, and why there are none."""
    path = table.file.path
    accelerator = table.entry("accelerator")
    free = accelerator is None or (moved and accelerator.value in KEPT_STRATEGIES)
    if "devices" in table.keys:
        return [], "devices is given as well"
    if not free and (accelerator is None or accelerator.value not in ("gpu", "cuda", "auto")):
        return [], "accelerator beside it: which device is meant is not shown"
    if entry.shared:
        return [], "an anchor takes the value to other keys as well"
    if entry.kind == "null" or (entry.kind == "number" and entry.value == "0"):
        if not free or not entry.value:
            return [], "no GPU is asked for: write accelerator: cpu"
        return [ReplaceExpression(path, entry.key_span, "accelerator"), ReplaceExpression(path, entry.value_span, "cpu")], ""
    plain = entry.kind == "list" or (entry.kind == "number" and entry.value.lstrip("-").isdigit())
    if not plain and not (entry.kind == "text" and ("," in entry.value or entry.value == "-1")):
        return [], f"{entry.value or entry.kind}: how many devices that is, is yours to say"
    edits: list[Edit] = [ReplaceExpression(path, entry.key_span, "devices")]
    if free:
        edits.append(AddEntry(path, entry.span, "accelerator", "gpu"))
    return edits, ""


def new_name(name: str) -> str:
    """What an entry is called that code names as well, "" where that hangs on its value."""
    row = OLD.get(name)
    return "devices" if name == "gpus" else row.new if row is not None and not row.instead else ""


def why_not_in_code(project: Project, key: str, name: str) -> str:
    """Why an entry that code names keeps its name, "" where all its places can get the new one together."""
    reader = next(iter(readers(project, key, name)[0]), "code")
    if not new_name(name):
        return f"{reader} reads {key}.{name}: change both"
    for table in tables_of(project, key, name) if name == "gpus" else ():
        entry = table.entry(name)
        edits = _counted(table, entry, moved=True)[0] if entry is not None else []
        if not _is_rename(edits):
            return f"{reader} reads {key}.{name}, and in {table.file.path} it is 0 or no plain number: change both"
    return why_not_renamed(project, key, name, positive=name == "gpus")


def _is_rename(edits: list[Edit]) -> bool:
    return bool(edits) and isinstance(edits[0], ReplaceExpression) and edits[0].code != "accelerator"


def _renamed(table: Table, entry: Entry, new: str, value: str) -> list[Edit]:
    edits: list[Edit] = [ReplaceExpression(table.file.path, entry.key_span, new)]
    if value:
        edits.append(ReplaceExpression(table.file.path, entry.value_span, value.lower()))
    return edits


def _judged(
    project: Project,
    table: Table,
    key: str,
    entry: Entry,
    edits: list[Edit],
    since: Version,
    gone: Minor,
    why: str,
    became: str = "",
    group: str = "",
) -> Iterator[EntryChange]:
    known = standing(project, table.file.path, entry, since=since, gone=gone)
    if known is None:
        return
    code, texts = readers(project, key, entry.key) if edits and not why else ([], [])
    doubts: tuple[str, ...] = ()
    if code:
        why = why_not_in_code(project, key, entry.key) or (
            "" if _is_rename(edits) else f"{code[0]} reads {key}.{entry.key}: change both"
        )
        group = f"{key}.{entry.key}"
        doubts = (f"{', '.join(code[:3])} {'gets' if len(code) == 1 else 'get'} the new name as well",)
    elif len(table.uses) > 1:
        why = why or "an anchor takes the mapping to other keys as well"
    shown = f"{key}.{entry.key}" + (
        f", as {', '.join(texts[:3])} do" if len(texts) > 1 else f", as {texts[0]} does" if texts else ""
    )
    doubts = (*doubts, _COMMANDS.format(shown))
    yield EntryChange(entry, gone, Change(tuple(edits), doubts, (why,) if why else ()), known, became, group)
