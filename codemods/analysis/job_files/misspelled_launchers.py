"""Commands that give the options of torchrun to a program of a wrong name, which nothing installs: `torch --nnodes=1 a.py`."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.api.findings import Span
from codemods.data.launcher_options import VALUES_OF_TORCHRUN
from codemods.files.passages import passages
from codemods.files.shell_words import Word, commands
from codemods.files.text_file import DOCUMENT_KINDS, SHELL_KINDS, TextFile
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record

_NAMES = lazy(r"(torch|torch[-_.]run|torchrum|trochrun|touchrun|torchun|torchrn)$")
_PROCESSES = ("nproc_per_node", "nnodes")


@record
class Misspelled:
    """span: that of the program. name: how it is written."""

    span: Span
    name: str


def misspelled_launchers(file: TextFile) -> Iterator[Misspelled]:
    if not file.path.endswith((*SHELL_KINDS, *DOCUMENT_KINDS)):
        return
    for passage in passages(file):
        for words in commands(passage.text):
            rest = [w for i, w in enumerate(words) if i or "=" not in w.raw]
            first = rest[0] if rest else None
            if first is not None and _NAMES.match(first.raw) and _is_torchruns(rest[1:]):
                yield Misspelled(passage.span(first.start, first.end), first.raw)


def _is_torchruns(words: list[Word]) -> bool:
    """True where all options in front of a script are those of torchrun, and say how many processes there are."""
    names: list[str] = []
    for word in words:
        if (word.value or word.raw).endswith(".py"):
            return any(n in _PROCESSES for n in names) and all(n in VALUES_OF_TORCHRUN for n in names)
        if word.raw.startswith("-"):
            names.append(word.raw.partition("=")[0].lstrip("-").replace("-", "_"))
    return False
