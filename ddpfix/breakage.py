"""What each kind of error does to a run today, the worst first: the order of a check and of a summary."""

from __future__ import annotations

from collections.abc import Mapping

CRASH, HANG, DATA, NOISE = "Crash", "Hang", "Lost or wrong data", "Noise or lost time"
ORDER = (CRASH, HANG, DATA, NOISE)

# By the worst that the pages of the codemods (docs/codemods) say of a run that nobody repaired.
_CODES: Mapping[str, str] = {
    CRASH: "002 004 204 206 207 209 210 213 214 306 407 503 507 508 602 603 701 703 705 706 710 711 712 713 801 802 803 804",
    HANG: "108 114 301 303 305 309 310 312 411 415 608 707 708",
    DATA: "101 104 105 106 107 109 112 113 115 116 117 118 202 205 211 302 307 308 311 313 401 402 403 404 405 406 409 410 412 "
    "413 414 416 417 418 501 502 504 505 506 509 604 605 606 607 709 805",
    NOISE: "001 003 102 103 201 203 208 304 601 702 704 901 902 903 904",
}
BREAKAGE: Mapping[str, str] = {f"DDP{number}": kind for kind, numbers in _CODES.items() for number in numbers.split()}


def rank(code: str) -> int:
    """For sorting: the worst first; what is not ours, such as a project's own renames, last."""
    kind = BREAKAGE.get(code)
    return ORDER.index(kind) if kind else len(ORDER)
