"""Whether a file's new text means what the old one meant, but for what was asked: events of YAML and JSON, words of a shell."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from codemods.files.json_values import JsonValue
from codemods.files.passages import Passage, passages
from codemods.files.shell_words import commands
from codemods.files.text_entries import PROPERTIES
from codemods.files.text_file import IMAGE_KINDS, JSON_KINDS, SHELL_KINDS, YAML_KINDS, TextFile
from codemods.rewriting.runs import RewriteError
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import field, record

_ANY = "\0any"
_FOLD = lazy(r"(?<!\\)\r?\n[ \t]*")


@record(frozen=False)
class Meant:
    """What the edits ask for. values: place of a scalar -> its new value; texts: pieces of command lines and what takes their
    place; dropped: places of keys that go; added: places of keys behind whose values a number of new entries stand; items:
    stretches of a list whose items go, and how many new ones stand there.
    """

    values: dict[int, str] = field(default_factory=dict)
    texts: list[tuple[int, int, str]] = field(default_factory=list)
    dropped: set[int] = field(default_factory=set)
    added: dict[int, int] = field(default_factory=dict)
    items: list[tuple[int, int, int]] = field(default_factory=list)


@record
class Event:
    """One step through a document: a scalar, or the begin or end of a collection; start and end are its place."""

    kind: str
    value: str
    form: tuple[str, ...]
    start: int
    end: int

    @property
    def depth(self) -> int:
        return 1 if self.kind.endswith("Start") else -1 if self.kind.endswith("End") else 0


def must_mean(before: TextFile, after: TextFile, meant: Meant, splices: Sequence[tuple[int, int, str]]) -> None:
    """Raises RewriteError unless `after` differs from `before` in what is meant, and in the words that the splices touch."""
    if not before.path.endswith((*YAML_KINDS, *JSON_KINDS)):
        _same_words(before, after, meant, splices)
        return
    old, new = _events(before), _events(after)
    if old is None or new is None:
        raise RewriteError(f"the new text of {before.path} would not be the same {_name(before)}")
    expected = _expected(old, meant)
    if len(expected) != len(new):
        raise RewriteError(f"the new text of {before.path} would not be the same {_name(before)}")
    for want, got in zip(expected, new, strict=True):
        same_form = want.form == got.form or want.value == _ANY or want.start in meant.values
        if want.kind != got.kind or not same_form or (want.value not in (_ANY, got.value)):
            raise RewriteError(f"the new text of {before.path} would change more than was meant")
    if before.documents and not after.documents:
        raise RewriteError(f"the new text of {before.path} would leave an alias without its anchor")
    _same_words(before, after, meant, splices)


def _name(file: TextFile) -> str:
    return "JSON" if file.path.endswith(JSON_KINDS) else "YAML"


def _expected(old: Sequence[Event], meant: Meant) -> list[Event]:
    out: list[Event] = []
    at = 0
    added: list[tuple[int, int]] = []  # where a value ends -> how many entries follow it
    while at < len(old):
        event = old[at]
        if event.start in meant.dropped and event.kind == "Scalar":
            at = _behind(old, at + 1)
            continue
        if event.start in meant.added and event.kind == "Scalar":
            added.append((_behind(old, at + 1), meant.added[event.start]))
        if event.kind == "Scalar" and any(start <= event.start < end for start, end, _ in meant.items):
            at += 1
            continue
        value = event.value
        if event.kind == "Scalar":
            if event.start in meant.values:
                value = meant.values[event.start]
            elif any(_is_within(event, start, end) for start, end, _ in meant.texts):
                value = _ANY
        out.append(Event(event.kind, value, event.form, event.start, event.end))
        at += 1
        made = sum(new for start, _, new in meant.items if event.kind == "Scalar" and event.end == start)
        out += [Event("Scalar", _ANY, (), -1, -1)] * made
        while added and added[-1][0] == at:
            out += [Event("Scalar", _ANY, (), -1, -1)] * (2 * added.pop()[1])
    return out


def _is_within(event: Event, start: int, end: int) -> bool:
    return event.start <= start and end <= event.end and (start < end or event.start < start)


def _behind(events: Sequence[Event], at: int) -> int:
    """The number of the event behind the node that begins at `at`."""
    depth = 0
    while True:
        depth += events[at].depth
        at += 1
        if depth <= 0:
            return at


def _events(file: TextFile) -> list[Event] | None:
    if file.path.endswith(JSON_KINDS):
        return list(_json_events(file.json)) if file.json else None
    import yaml

    try:
        return [_event(file.text, e) for e in yaml.parse(file.text, yaml.SafeLoader)]
    except (yaml.YAMLError, RecursionError, ValueError):
        return None


def _event(text: str, event: object) -> Event:
    kind = type(event).__name__.removesuffix("Event")
    start, end = int(event.start_mark.index), int(event.end_mark.index)  # type: ignore[attr-defined]
    if kind == "Scalar" and text[start : start + 1] in ("&", "!") and (properties := PROPERTIES.match(text, start, end)):
        start = properties.end()
    form = tuple(str(getattr(event, name, "")) for name in ("anchor", "tag", "style", "flow_style"))
    return Event(kind, str(getattr(event, "value", "")), form, start, end)


def _json_events(value: JsonValue) -> Iterator[Event]:
    if value.kind in ("list", "mapping"):
        yield Event(f"{value.kind}Start", "", (), value.start, value.start)
        for item in value.items:
            yield from _json_events(item)
        for key, held in value.pairs:
            yield from _json_events(key)
            yield from _json_events(held)
        yield Event(f"{value.kind}End", "", (), value.end, value.end)
    else:
        text = str(value.value) if value.kind == "text" else str(value.value).lower().replace("none", "null")
        yield Event("Scalar", text, (), value.start, value.end)


# Words


def _same_words(before: TextFile, after: TextFile, meant: Meant, splices: Sequence[tuple[int, int, str]]) -> None:
    """In every text that is changed the words outside the changes are the same, in the same commands, after as before."""
    if not meant.texts:
        return
    new = passages(after)
    for passage in passages(before):
        whole = before.path.endswith((*SHELL_KINDS, *IMAGE_KINDS))  # one text, in which lists stand as well
        inner = sorted(s for s in (splices if whole else meant.texts) if _is_in(passage, s))
        if not inner:
            continue
        text, made = _with_splices(passage, inner)
        following = _follower(new, passage, splices)
        if following is None or _raw(following.text) != _raw(text):
            raise RewriteError(f"the new text of {before.path} would change more than was meant")
        touched = [(_inner(passage, s), _inner(passage, e)) for s, e, _ in inner]
        kept = [[w.raw for w in c if not _meets(w.start, w.end, touched)] for c in commands(passage.text)]
        still = [[w.raw for w in c if not _meets(w.start, w.end, made)] for c in commands(text)]
        if kept != still:
            raise RewriteError(f"the new text of {before.path} would change other words of the command")


def _is_in(passage: Passage, splice: tuple[int, int, str]) -> bool:
    start, end, _ = splice
    places = passage.places
    if not places:
        return False
    return places[0] <= start and end <= places[-1] + 1


def _inner(passage: Passage, place: int) -> int:
    """The character of the passage at a place of the file, or the first behind it."""
    return bisect_left(passage.places, place)


def _with_splices(passage: Passage, splices: Sequence[tuple[int, int, str]]) -> tuple[str, list[tuple[int, int]]]:
    """The passage with the splices made in it, and where their texts stand then."""
    out, at, made = "", 0, []
    folds = passage.style != "|" and not passage.file.path.endswith(SHELL_KINDS)
    for start, end, written in splices:
        text = _FOLD.sub(" ", written) if folds else written
        out += passage.text[at : _inner(passage, start)]
        made.append((len(out), len(out) + len(text)))
        out += text
        at = _inner(passage, end)
    return out + passage.text[at:], made


def _follower(new: Sequence[Passage], passage: Passage, splices: Sequence[tuple[int, int, str]]) -> Passage | None:
    """The passage of the new text that stands where this one stood."""
    first = 0 if passage.file.path.endswith(SHELL_KINDS) else passage.places[0]
    place = first + sum(len(text) - (end - start) for start, end, text in splices if end <= first and start < first)
    return next((p for p in new if p.places and p.places[0] == place), None)


def _raw(text: str) -> list[list[str]]:
    return [[w.raw for w in command] for command in commands(text)]


def _meets(start: int, end: int, regions: Sequence[tuple[int, int]]) -> bool:
    return any(a < end and start < b for a, b in regions if a != b)
