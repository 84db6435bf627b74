"""A file that is no Python: bytes, text, lines and suppressions like any other, and YAML documents as PyYAML composes them."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from codemods.findings import Span
from codemods.source import SourceModule, Suppression, suppression_in

if TYPE_CHECKING:
    import yaml

TEXT_KINDS = (".yaml", ".yml")


class TextFile(SourceModule):
    """A `SourceModule` without a syntax tree: what walks the tree finds nothing in it. Raises Unreadable where it is no UTF-8."""

    def _parse(self) -> ast.Module:
        return ast.Module([], [])

    @cached_property
    def documents(self) -> Sequence[yaml.Node]:
        """The root node of each YAML document; none where PyYAML cannot read the file (a template). Nothing is constructed."""
        import yaml

        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the same nodes and marks, in a tenth of the time
        try:
            return tuple(node for node in yaml.compose_all(self.text, loader) if node is not None)
        except (yaml.YAMLError, RecursionError, ValueError):
            return ()

    @cached_property
    def _starts(self) -> list[int]:
        out = [0]
        for line in self.lines:
            out.append(out[-1] + len(line))
        return out

    def span_between(self, start: int, end: int) -> Span:
        """The span of `text[start:end]`. PyYAML counts lines at more characters than Python, so its own are not taken."""
        top, bottom = (bisect_right(self._starts, at) - 1 for at in (start, end))
        return Span(top + 1, start - self._starts[top], bottom + 1, end - self._starts[bottom])

    def index_of(self, line: int, column: int) -> int:
        """Where in `text` a place of a span lies."""
        return self._starts[line - 1] + column

    @cached_property
    def suppressions(self) -> Sequence[Suppression]:
        found = []
        for number, line in enumerate(self.lines, 1):
            if "ddpfix:" in line and (at := line.rfind("#", 0, line.index("ddpfix:"))) >= 0:
                found.append(suppression_in(line[at:].rstrip(), number, at))
        return tuple(s for s in found if s is not None)
