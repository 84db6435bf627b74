"""What else a file pins bounds a package from above: `torch==1.8.1` beside `pytorch-lightning>=1.3` leaves no Lightning 1.7."""

from __future__ import annotations

import re

from codemods.analysis.version_pins import Pin, Version, padded
from codemods.data.python_versions import FIRST_PYTHON
from codemods.data.torch_needed import FIRST_TORCH
from codemods.files.text_file import YAML_KINDS
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import replace

_BY_PIP = lazy(rb"^[ \t]*-[ \t]*[\"']?pip[\"']?[ \t]*:", re.M)


def limited(pin: Pin, torch: Pin | None, python: Pin | None, data: bytes) -> Pin:
    """The pin with the first release that asks for a newer torch, or Python, than the same file (its text is `data`) allows.

    Not where the pin itself asks for that release: such a file was never installed as it stands. Nor of a torch that conda
    installs where pip installs the package: pip takes another torch for it.
    """
    ends = [(_first(pin.package, FIRST_PYTHON, python), python)]
    if torch is not None and _together(pin, torch, data):
        ends.append((_first(pin.package, FIRST_TORCH, torch), torch))
    known = [(limit, other) for limit, other in ends if limit is not None and other is not None]
    if not known:
        return pin
    limit, other = min(known, key=lambda one: one[0])
    if (pin.minimum is not None and pin.minimum >= limit) or (pin.below is not None and pin.below <= limit):
        return pin
    return replace(pin, limit=limit, beside=other.text)


def _first(package: str, rows: dict[str, tuple[tuple[Version, Version], ...]], other: Pin | None) -> Version | None:
    """The first release of the package that asks for a version which the other pin does not allow."""
    below = other.below if other is not None else None
    if below is None:
        return None
    return next((padded(release) for first, release in rows.get(package, ()) if padded(first) >= below), None)


def _together(pin: Pin, torch: Pin, data: bytes) -> bool:
    """True where one program installs both: all of a file, but for the list that an environment of conda hands to pip."""
    by_pip = _BY_PIP.search(data) if pin.path.endswith(YAML_KINDS) else None
    if by_pip is None:
        return True
    line = data.count(b"\n", 0, by_pip.start()) + 1
    return (pin.line > line) == (torch.line > line)
