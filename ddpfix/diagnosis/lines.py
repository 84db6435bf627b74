"""A line of a log: what was printed, and what launchers, loggers and progress bars put in front of it."""

from __future__ import annotations

import re
from dataclasses import dataclass

_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
# torchrun's --tee ([default0]:), torch's own hook for uncaught errors ([rank1]: ), mpirun --tag-output ([1,0]<stderr>:),
# srun --label (0: ), Ray's workers, the times that Docker and Kubernetes put first
_LABELS = re.compile(
    r"\[(?:default|rank)(?P<rank>\d+)\]:?[ ]?|\[\d+,(?P<mpi>\d+)\]<std(?:err|out)>:?[ ]?|[ ]{0,3}(?P<srun>\d{1,4}):[ ]|"
    r"\(\w+ pid=\d+[^)]*\)[ ]|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.,]?\d*(?:Z|[+-]\d\d:?\d\d)?[ ]"
)
_NCCL = re.compile(r"\[Rank (\d+)\]|PG GUID \S+ Rank (\d+)\]|\[PG \d+ Rank (\d+)\]")
_PROGRESS = re.compile(r"\d+%\s*[|\u2580-\u258f]|\d\s?(?:it|s|B|ba|ex)/(?:s|it)\b|[\u2500-\u257f\u2580-\u258f]{4}")


@dataclass(frozen=True, slots=True)
class Line:
    """One line, bare of its labels. number: in the file, from 1. rank: whose it is, None where nothing says it."""

    number: int
    rank: int | None
    text: str


def bare(raw: str, number: int = 0) -> Line:
    """A line without labels and colours; of one that was drawn over with carriage returns, what was drawn last."""
    text = raw.rstrip("\r\n")
    if "\x1b" in text:
        text = _COLOUR.sub("", text)
    if "\r" in text:
        text = text.rpartition("\r")[2]
    rank: int | None = None
    while found := _LABELS.match(text):
        said = found["rank"] or found["mpi"] or found["srun"]
        rank = int(said) if said is not None else rank
        text = text[found.end() :]
    if rank is None and (found := _NCCL.search(text)):
        rank = int(next(g for g in found.groups() if g is not None))
    return Line(number, rank, text)


def is_progress(text: str) -> bool:
    """True for a progress bar: it says nothing of why a run ended."""
    return bool(_PROGRESS.search(text))
