"""What a version specifier allows: pip's, Poetry's and conda's spellings -> lowest version and first version above."""

from __future__ import annotations

import re
from functools import cached_property

from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record

Version = tuple[int, ...]
# (lowest allowed, first not allowed); None is "no bound".
Range = tuple[Version | None, Version | None]

_CLAUSE = lazy(r"(===|==|~=|!=|<=|>=|<|>|\^|~|=)?\s*v?(\d[\w.*+!-]*|\*)")


@record
class Pin:
    """A requirement of `package` in a file. `spec` is what stands behind the name, "" where any version will do.

    minimum: the lowest version allowed. below: the first version that is not allowed any more. Both with three parts.
    limit: the first version that what is pinned `beside` it does not go with.
    """

    package: str
    spec: str
    path: str
    line: int
    limit: Version | None = None
    beside: str = ""

    @cached_property
    def _range(self) -> Range:
        return range_of(self.spec)

    @property
    def bounds(self) -> bool:
        """True where it bounds the versions by itself: a bare name, and "any", do not."""
        return self._range != (None, None)

    @property
    def minimum(self) -> Version | None:
        return self._range[0]

    @property
    def below(self) -> Version | None:
        ends = [end for end in (self._range[1], self.limit) if end is not None]
        return min(ends, default=None)

    def surely_at_least(self, version: Version) -> bool:
        """True if every version that the pin allows is `version` or newer."""
        return self.minimum is not None and self.minimum >= padded(version)

    def surely_below(self, version: Version) -> bool:
        """True if every version that the pin allows is older than `version`."""
        return self.below is not None and self.below <= padded(version)

    @property
    def text(self) -> str:
        own = f"{self.package} {self.spec}".strip()
        return f"{own} beside {self.beside}" if self.beside else own


def padded(version: Version) -> Version:
    """Three parts at least: (2,) and (2, 0, 0) are the same version."""
    return version + (0,) * (3 - len(version))


def parse_version(text: str) -> Version:
    """The leading numbers: `2.6.0+cu121` and `2.6.0rc1` are (2, 6, 0)."""
    numbers: list[int] = []
    for part in text.partition("!")[2].split(".") if "!" in text else text.split("."):
        digits = re.match(r"\d+", part)
        if digits is None:
            break
        numbers.append(int(digits.group()))
        if digits.end() != len(part):
            break
    return tuple(numbers)


def _next(version: Version, kept: int) -> Version:
    """The first version whose first `kept` numbers differ: (1, 9, 5) with 2 -> (1, 10, 0)."""
    head = padded(version)[:kept]
    return padded((*head[:-1], head[-1] + 1))


def range_of(spec: str) -> Range:
    """The range that a specifier allows; alternatives (`||`, `|`) are joined, what cannot be read bounds nothing."""
    ranges = [_conjunction(part) for part in re.split(r"\|\|?", spec)]
    lows = [low for low, _ in ranges if low is not None]
    highs = [high for _, high in ranges if high is not None]
    return (
        min(lows) if len(lows) == len(ranges) else None,
        max(highs) if len(highs) == len(ranges) else None,
    )


def _conjunction(spec: str) -> Range:
    low: Version | None = None
    high: Version | None = None
    for operator, text in _CLAUSE.findall(spec if "://" not in spec else ""):
        start, end = _clause(operator, text)
        if start is not None:
            low = start if low is None else max(low, start)
        if end is not None:
            high = end if high is None else min(high, end)
    return low, high


def _clause(operator: str, text: str) -> Range:
    version = parse_version(text)
    if not version or operator == "!=":
        return None, None
    exact, given = padded(version), len(version)
    if operator == ">=":
        return exact, None
    if operator == ">":
        return _next(version, max(given, 3)), None
    if operator == "<":
        return None, exact
    if operator == "<=":
        return None, _next(version, max(given, 3))
    if operator == "~=":
        return exact, _next(version, max(given - 1, 1))
    if operator == "^":
        first = next((i for i, number in enumerate(version) if number), given - 1)
        return exact, _next(version, first + 1)
    if operator == "~":
        return exact, _next(version, min(given, 2))
    if text.endswith("*") or (operator == "=" and given < 3):  # conda: `=1.9` is `1.9.*`
        return exact, _next(version, given)
    return exact, _next(version, max(given, 3))
