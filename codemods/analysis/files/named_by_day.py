"""Names made of the day alone: `strftime("%Y-%m-%d")` is the same on ranks that start seconds apart."""

from __future__ import annotations

from codemods.runtime.lazy_pattern import lazy

# `time.strftime("%Y-%m-%d", time.localtime())`, `datetime.now().strftime("%m%d")`, `date.today()`
_STAMPS = lazy(
    r"(?:[\w.]*\b(?:now|today|utcnow)\(\)\.)?(?:\b\w+\.)*strftime\(\s*[\"'](?P<form>[^\"']*)[\"']"
    r"(?:\s*,\s*(?:[\w.]*(?:now|today|utcnow)\(\)|(?:time\.)?(?:local|gm)time\((?:time\.time\(\))?\)))?\s*\)"
    r"|\bdate\.today\(\)"
)
_FINER = lazy(r"%-?[HIMSfspXcTRrEk+]")


def without_days(text: str) -> str:
    """The text of a path without the stamps that only tell the day."""
    return _STAMPS.sub(lambda found: found[0] if _FINER.search(found["form"] or "") else "", text)
