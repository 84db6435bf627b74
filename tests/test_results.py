from __future__ import annotations

import pickle
from pathlib import Path

from codemods.api.findings import Applicability, Evidence, Finding, Fix, SetKeyword, Span, claims, lowest
from codemods.api.findings import WrapInGuard as Guard
from ddpfix.results import Failure, Fixed, Report

AT = Span(1, 0, 1, 4)


def finding(level: Applicability) -> Finding:
    fix = None if level is Applicability.DISPLAY else Fix(level, (SetKeyword("a.py", AT, "k", "1"),), "g")
    return Finding("DDP1", "x", "a.py", AT, "f", "m", (Evidence("static", "t", "a.py", 1),), "r", fix, "id")


def test_findings_by_level() -> None:
    some = tuple(finding(level) for level in Applicability)
    report = Report(Path("/r"), some, 1, 1, ())
    for level in Applicability:
        assert [f.applicability for f in report.at(level)] == [level]


def test_everything_travels() -> None:
    report = Report(Path("/r"), (finding(Applicability.SAFE),), 1, 1, (Failure("b.py", "why"),), 0.5)
    fixed = Fixed(report, {"a.py": b"1"}, {"a.py": b"2"}, report.findings, (), ((report.findings[0], "why"),))
    assert pickle.loads(pickle.dumps(fixed)) == fixed


def test_a_fix_is_as_safe_as_its_weakest_condition() -> None:
    safe, unsafe, display = Applicability.SAFE, Applicability.UNSAFE, Applicability.DISPLAY
    assert lowest(safe, unsafe) is unsafe and lowest(unsafe, display, safe) is display and lowest(safe) is safe


def test_a_finding_without_a_fix_is_told_only() -> None:
    assert finding(Applicability.DISPLAY).applicability is Applicability.DISPLAY
    assert finding(Applicability.DISPLAY).edits == () and len(finding(Applicability.SAFE).edits) == 1


def test_a_guard_speaks_for_all_its_statements() -> None:
    assert claims(Guard("a.py", AT, "r", Span(5, 2, 7, 9))) == Span(1, 0, 7, 9)
