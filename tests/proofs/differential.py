"""What a fix has taken away or brought in, told from two runs of one program: before it and after it.

An expectation names what the author of a proof thought of. This compares everything that the harness sees.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ddpfix.prove.compare import first_divergence, metrics_that_differ, weights_that_differ
from tests.proofs.expectation import Changes
from tests.proofs.harness import Seen

# What no two runs of a program share: times, rates, addresses, process numbers, folders of the run.
_OF_THE_RUN = re.compile(
    r"/tmp/[^\s'\"]*|0x[0-9a-f]+|\b\d+(?:\.\d+)?(?:e-?\d+)?\s?(?:s|ms|it/s|sec|seconds|MB|GB)\b|\d\d:\d\d(?::\d\d)?"
    r"|(?<=_runtime': )[^,}]*|(?<=_per_second': )[^,}]*"
)
_SKIPPED = re.compile(r"rank-\d+\.json$")  # what each rank tells of itself: the expectation names what of it counts
_VALUE = re.compile(r"(?<==)-?[\d.]+(?=[-.]|$)")  # of a metric, in the name of a checkpoint
_ARCHIVES = (".pt", ".pth", ".ckpt")


def introduced(before: Seen, after: Seen, changes: Changes) -> list[str]:
    """What is wrong after the fix on several ranks, and was not before; an empty list is the proof.

    The output is a multiset over all ranks: a line that somebody printed is printed by somebody. A run that did not end well
    before has nothing to lose.
    """
    out = list(_parted(before, after))
    if before.ended.outcome == after.ended.outcome == "completes":
        lost = _texts(before, changes) - _texts(after, changes)
        out += [f"printed before, and by no rank after: {line!r}" for line in sorted(lost)]
        gone = _files(before.out).keys() - _files(after.out).keys()
        out += [f"written before, and not after: {name}" for name in sorted(gone) if not _is_named(name, changes.files)]
    return out


def changed_alone(before: Seen, after: Seen, changes: Changes) -> list[str]:
    """Files that one process leaves otherwise after the fix than before it."""
    one, two = _files(before.out), _files(after.out)
    out = [f"{n} is there {'before' if n in one else 'after'} alone" for n in sorted(one.keys() ^ two.keys())]
    out += [f"{n} has other bytes" for n in sorted(one.keys() & two.keys()) if _bytes(one[n]) != _bytes(two[n])]
    return [text for text in out if not _is_named(text.partition(" ")[0], changes.files)]


def _parted(before: Seen, after: Seen) -> Iterator[str]:
    """In what the ranks part after the fix, and did not before."""
    old, new = before.ended.traces, after.ended.traces
    if after.ended.outcome == "completes" and (parted := first_divergence(new)) and not first_divergence(old):
        yield f"the ranks part at collective {parted.number}: {dict(parted.calls)}"
    known = {d.name for d in weights_that_differ(old)}
    yield from (f"weights differ between the ranks: {d.name}" for d in weights_that_differ(new) if d.name not in known)
    known = {d.name.partition("@")[0] for d in metrics_that_differ(old)}  # behind it: the step, which a fix may move
    fresh = (d for d in metrics_that_differ(new) if d.name.partition("@")[0] not in known)
    yield from (f"a metric differs between the ranks: {d}" for d in fresh)


def _texts(seen: Seen, changes: Changes) -> set[str]:
    """The lines of all ranks on stdout, without what changes from run to run, and without those that are named."""
    lines = (text for _, stream, text in seen.ended.lines if stream == "stdout")
    plain = (_OF_THE_RUN.sub("_", line).strip() for line in lines if not any(re.search(c, line) for c in changes.lines))
    return {line for line in plain if line}


def _files(folder: Path) -> Mapping[str, Path]:
    found = (p for p in folder.rglob("*") if p.is_file())
    return {_VALUE.sub("_", p.relative_to(folder).as_posix()): p for p in found if not _SKIPPED.search(p.name)}


def _bytes(path: Path) -> list[bytes]:
    """Of what torch saved the tensors: the rest holds the file's name, folders and times."""
    if not path.name.endswith(_ARCHIVES) or not zipfile.is_zipfile(path):
        return [path.read_bytes()]
    with zipfile.ZipFile(path) as archive:
        return [archive.read(n) for n in sorted(archive.namelist()) if re.search(r"/data/\d+$", n)]


def _is_named(name: str, patterns: Sequence[str]) -> bool:
    return any(re.search(p, name) for p in patterns)
