"""The first release of a package that a version of Python no longer has: what an environment with that Python stays below."""

from __future__ import annotations

_LIGHTNING = (((3, 7), (1, 6)), ((3, 8), (2, 0)), ((3, 9), (2, 5)))
# By package: (first Python that may have it, first release that asks for it), oldest first.
FIRST_PYTHON: dict[str, tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]] = {
    "transformers": (((3, 7), (4, 19)), ((3, 8), (4, 31)), ((3, 9), (4, 47)), ((3, 10), (5, 0))),
    "pytorch-lightning": _LIGHTNING,
    "lightning": _LIGHTNING,
    "accelerate": (((3, 8), (0, 21)), ((3, 9), (1, 1)), ((3, 10), (1, 11))),
}
