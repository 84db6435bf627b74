"""Which torch goes with another package: a pin of torchvision or torchaudio -> one of torch."""

from __future__ import annotations

from codemods.analysis.version_pins import Pin, Range, Version, padded
from codemods.data.torch_companions import COMPANIONS, CONTAINERS, Release

PACKAGES = tuple(COMPANIONS)


def torch_of(pin: Pin) -> Pin | None:
    """The torch that the versions of a companion's pin are built for; None where the pin bounds none of them."""
    rows = COMPANIONS[pin.package]
    low, high = _row(rows, pin.minimum), _row(rows, _last_before(pin.below))
    lowest = rows[low][1] if low is not None else None
    highest = rows[high][1] if high is not None and high + 1 < len(rows) else None  # of the last row, or later, nothing is known
    if pin.minimum is not None and lowest is None and highest is None:
        return None  # older than the table
    parts = [f">={_text(lowest)}"] if lowest is not None else []
    parts += [f"<{_text(_after(highest))}"] if highest is not None else []
    return Pin("torch", ",".join(parts), pin.path, pin.line) if parts else None


def torch_of_container(year: int, month: int) -> Range | None:
    """The torch of NVIDIA's image of that month, a release wider on both sides: it is built from a state between two."""
    found = [i for i, (first, _) in enumerate(CONTAINERS) if first <= (year, month)]
    if not found:
        return None
    at = found[-1]
    below = padded(_after(CONTAINERS[at][1])) if at + 1 < len(CONTAINERS) else None
    return padded(CONTAINERS[max(at - 1, 0)][1]), below


def _row(rows: tuple[tuple[tuple[int, int, int], Release], ...], version: Version | None) -> int | None:
    """The row of the newest release that is not above `version`."""
    found = [i for i, (first, _) in enumerate(rows) if version is not None and first <= padded(version)]
    return found[-1] if found else None


def _last_before(below: Version | None) -> Version | None:
    """A version that the bound still allows: 0.9.1 -> 0.9.0, 0.10.0 -> one below every 0.10."""
    if below is None:
        return None
    numbers = list(padded(below))
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return (*numbers[:-1], numbers[-1] - 1, 10**6) if numbers else None


def _after(release: Release) -> Release:
    return (2, 0) if release == (1, 13) else (release[0], release[1] + 1)


def _text(release: Release) -> str:
    return f"{release[0]}.{release[1]}"
