"""May two paths be the same file, where a part of them is not seen? `f"{p}_{kind}_rows.csv"` and `f"{p}_train_rows.csv"`."""

from __future__ import annotations

from codemods.analysis.files.file_calls import Act
from codemods.runtime.lazy_pattern import lazy

_UNSEEN = lazy(r"<E:[^<>]*>")
_TOKEN = lazy(r"<[^<>]*>")
_ENDING = lazy(r"\.\w{1,8}$")
_WORD = lazy(r"[^\W\d_]{4,}")
_ANY = "\0"


def may_meet(written: Act, made: str, used: Act, path: str) -> bool:
    """True where a file that is written may be the one that is read: they end alike, and no part that is seen differs."""
    if written is not Act.WRITES or used not in (Act.READS, Act.LOADS):
        return False
    ours, theirs = _segments(made), _segments(path)
    if _ANY not in ours[-1] + theirs[-1] and ours[-1] != theirs[-1]:
        return False
    if not _words(ours[-1]) & _words(theirs[-1]) or not _fit(ours[-1], theirs[-1]):
        return False
    for one, other in zip(reversed(ours[:-1]), reversed(theirs[:-1]), strict=False):
        if one == _ANY or other == _ANY:
            return True  # a part that may hold any number of folders
        if not _fit(one, other):
            return False
    return len(ours) == len(theirs)


def _segments(form: str) -> list[str]:
    return _UNSEEN.sub(_ANY, form).split("/")


def _words(name: str) -> set[str]:
    """What says which kind of file it is: the words of its name, without its ending and what stands for names."""
    return set(_WORD.findall(_ENDING.sub("", _TOKEN.sub(" ", name))))


def _fit(one: str, other: str) -> bool:
    """True where two texts with unknown parts can be the same."""
    known: dict[tuple[int, int], bool] = {}

    def fits(i: int, j: int) -> bool:
        if (i, j) not in known:
            known[i, j] = _step(i, j)
        return known[i, j]

    def _step(i: int, j: int) -> bool:
        if i == len(one) or j == len(other):
            return not one[i:].strip(_ANY) and not other[j:].strip(_ANY)
        if one[i] == _ANY:
            return fits(i + 1, j) or fits(i, j + 1)
        if other[j] == _ANY:
            return fits(i, j + 1) or fits(i + 1, j)
        return one[i] == other[j] and fits(i + 1, j + 1)

    return fits(0, 0)
