"""A file that is no Python: bytes, text, lines, suppressions like any other; YAML as PyYAML composes it, JSON with its places."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from codemods.api.findings import Span
from codemods.files.json_values import JsonValue, read_json
from codemods.files.source import SourceModule, Suppression, suppression_in
from codemods.runtime.lazy_pattern import lazy

if TYPE_CHECKING:
    import yaml

YAML_KINDS = (".yaml", ".yml")
SHELL_KINDS = (".sh", ".bash", ".slurm", ".sbatch", "Makefile")
JSON_KINDS = (".json",)
NOTEBOOK = ".ipynb"
UNREADABLE = b"#= unreadable notebook =#"  # how a notebook begins, as it is read, in which nothing can be
PYTHON_KINDS = (".py", NOTEBOOK)  # a notebook is a program (notebook.py)
TEXT_KINDS = (*YAML_KINDS, *SHELL_KINDS, *JSON_KINDS)
DOCUMENT_KINDS = (".md",)  # of which the fenced blocks that a shell may read are looked at
IMAGE_KINDS = ("Dockerfile",)
READ_KINDS = (*TEXT_KINDS, *DOCUMENT_KINDS, *IMAGE_KINDS)
# Files in which a word cannot refer to anything; reading them costs time.
BINARY_KINDS = (
    ".png", ".jpg", ".jpeg", ".gif", ".webp", ".ico", ".svg", ".pdf", ".mp3", ".mp4", ".wav", ".flac", ".ogg", ".zip", ".gz",
    ".bz2", ".xz", ".tar", ".npy", ".npz", ".pt", ".pth", ".bin", ".onnx", ".safetensors", ".parquet", ".arrow", ".so", ".pkl",
    ".ttf", ".woff", ".woff2", ".pyc", ".mo", ".db", ".sqlite", ".h5", ".ckpt", ".model",
)  # fmt: skip


# A fence, and what it says of its block: nothing, or a shell. A block ends with a fence of the same marks, or the file.
_FENCE = lazy(r"^[ \t]{0,12}(?:>[ \t]?)?(?P<marks>`{3,}|~{3,})[ \t]*(?P<of>[^\s`]*)[^\r\n`]*(?=\r?$)", re.M)
_SHELLS = frozenset({"", "bash", "sh", "shell", "zsh", "console", "shell-session", "terminal", "text", "none", "{bash}"})


class TextFile(SourceModule):
    """A `SourceModule` without a syntax tree: what walks the tree finds nothing in it. Raises Unreadable where it is no UTF-8."""

    def _parse(self) -> ast.Module:
        return ast.Module([], [])

    @cached_property
    def documents(self) -> Sequence[yaml.Node]:
        """The root node of each YAML document; none where PyYAML cannot read the file (a template). Nothing is constructed."""
        if not self.path.endswith(YAML_KINDS):
            return ()
        import yaml

        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the same nodes and marks, in a tenth of the time
        try:
            return tuple(node for node in yaml.compose_all(self.text, loader) if node is not None)
        except (yaml.YAMLError, RecursionError, ValueError):
            return ()

    def yaml_nodes(self) -> Iterator[yaml.Node]:
        """Every node once, also where an anchor is used again; not in order of their places."""
        stack = list(self.documents)
        seen: set[int] = set()
        while stack:
            node = stack.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            yield node
            if node.id != "scalar":
                stack += [n for pair in node.value for n in (pair if node.id == "mapping" else (pair,))]

    @cached_property
    def json(self) -> JsonValue | None:
        """The value of a JSON file; None for another kind, and where it is not quite JSON."""
        return read_json(self.text) if self.path.endswith(JSON_KINDS) else None

    @cached_property
    def fenced(self) -> Sequence[tuple[int, int]]:
        """Where the fenced blocks of a document that a shell may read begin and end."""
        found: list[tuple[int, int]] = []
        opened: re.Match[str] | None = None
        for fence in _FENCE.finditer(self.text) if self.path.endswith(DOCUMENT_KINDS) else ():
            if opened is None:
                opened = fence
            elif fence["marks"].startswith(opened["marks"]) and not fence["of"]:
                if opened["of"].lower() in _SHELLS:
                    found.append((opened.end(), fence.start()))
                opened = None
        return tuple(found)

    @cached_property
    def _starts(self) -> list[int]:
        out = [0]
        for line in self.lines:
            out.append(out[-1] + len(line))
        return out if not self.text or self.text.endswith(("\n", "\r")) else out[:-1]

    def span_between(self, start: int, end: int) -> Span:
        """The span of `text[start:end]`. PyYAML counts lines at more characters than Python, so its own are not taken."""
        top, bottom = (bisect_right(self._starts, at) - 1 for at in (start, end))
        return Span(top + 1, start - self._starts[top], bottom + 1, end - self._starts[bottom])

    def index_of(self, line: int, column: int) -> int:
        """Where in `text` a place of a span lies."""
        return self._starts[line - 1] + column

    @cached_property
    def suppressions(self) -> Sequence[Suppression]:
        """Those in comments of YAML and of a shell; JSON has no comments, there only the settings can silence."""
        if self.path.endswith(JSON_KINDS):
            return ()
        found = []
        for number, line in enumerate(self.lines, 1):
            if "ddpfix:" in line and (at := line.rfind("#", 0, line.index("ddpfix:"))) >= 0 and self._may_comment(number):
                found.append(suppression_in(line[at:].rstrip(), number, at))
        return tuple(s for s in found if s is not None)

    def _may_comment(self, number: int) -> bool:
        """False for a line of a document outside of its commands: it only speaks of the comment."""
        at = self._starts[number - 1]
        return not self.path.endswith(DOCUMENT_KINDS) or any(start <= at < end for start, end in self.fenced)

    def reach(self, span: Span) -> tuple[int, int]:
        """First and last line of what cannot be parted by a comment: a continued shell command, the text of a YAML scalar."""
        top, bottom = span.line, span.end_line
        for first, last in self._unparted:
            if first <= span.line <= last:
                top, bottom = min(top, first), max(bottom, last)
        return top, bottom

    @cached_property
    def _unparted(self) -> Sequence[tuple[int, int]]:
        if self.path.endswith(YAML_KINDS):
            return tuple(self._long_scalars())
        found: list[tuple[int, int]] = []
        for number, line in enumerate(self.lines, 1):
            if line.rstrip("\r\n").endswith("\\"):
                first = found.pop()[0] if found and found[-1][1] == number else number
                found.append((first, number + 1))
        return tuple(found)

    def _long_scalars(self) -> Iterator[tuple[int, int]]:
        for node in self.yaml_nodes():
            if node.id == "scalar":
                span = self.span_between(node.start_mark.index, max(node.start_mark.index, node.end_mark.index - 1))
                if span.line < span.end_line:
                    yield span.line, span.end_line
