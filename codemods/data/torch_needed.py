"""The first release of a package that asks for a torch: what is installed beside an older one stays below that release.

Source: `Requires-Dist` of the first wheel of each release on PyPI. 1.8 of Lightning asks for what 1.7
does, 2.5 and 2.6 for what 2.4 does.
"""

from __future__ import annotations

_LIGHTNING = (
    ((1, 8), (1, 6)), ((1, 9), (1, 7)), ((1, 10), (1, 9)), ((1, 11), (2, 0)), ((1, 12), (2, 1)), ((1, 13), (2, 2)),
    ((2, 0), (2, 3)), ((2, 1), (2, 4)),
)  # fmt: skip
# By package: (first torch that it may go with, first release that asks for it), oldest first.
FIRST_TORCH: dict[str, tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]] = {
    "pytorch-lightning": _LIGHTNING,
    "lightning": _LIGHTNING,
}
