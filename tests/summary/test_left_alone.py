"""What was left as it is: the worst first, and what a command starts before the rest."""

from __future__ import annotations

from dataclasses import replace

from codemods.api.findings import Finding, Severity
from ddpfix.results import Fixed
from ddpfix.summary import render
from ddpfix.summary.breakage import breaks_today
from ddpfix.summary.codemod_section import Detail
from ddpfix.summary.left_alone import left_alone
from ddpfix.summary.places import told
from tests.summary.made import MODEL, context, in_memory, section


def left(*rows: tuple[str, str, Severity]) -> Fixed:
    """(code, path, severity) of findings without a fix."""
    fixed = in_memory({"model.py": MODEL})
    found = fixed.fixed[0]
    told = tuple(_told(found, code, path, severity) for code, path, severity in rows)
    return replace(fixed, left=told)


def _told(found: Finding, code: str, path: str, severity: Severity) -> Finding:
    return replace(found, code=code, path=path, severity=severity, fix=None, reason="nobody knows how")


def test_the_most_severe_codemod_comes_first() -> None:
    fixed = left(("DDP101", "a.py", "noise"), ("DDP203", "a.py", "data"), ("DDP302", "a.py", "crash"))
    codes = [line.split()[3].rstrip(":") for line in left_alone(fixed, frozenset(), Detail()) if line.startswith("- ")]
    assert codes == ["DDP302", "DDP203", "DDP101"]


def test_a_file_that_a_command_starts_is_named_among_many() -> None:
    fixed = left(*(("DDP101", f"tool{n:02}.py", "noise") for n in range(20)))
    (row,) = [line for line in left_alone(fixed, frozenset({"tool19.py"}), Detail()) if line.startswith("- ")]
    assert row.startswith("- `tool19.py` ")
    assert "and 14 more files" in row and "`tool05.py`" not in row


def test_all_files_that_commands_start_are_named() -> None:
    fixed = left(*(("DDP101", f"tool{n:02}.py", "noise") for n in range(20)))
    started = frozenset(f"tool{n}.py" for n in range(10, 19))
    (row,) = [line for line in left_alone(fixed, started, Detail()) if line.startswith("- ")]
    assert all(f"`tool{n}.py`" in row for n in range(10, 19))


def test_files_with_a_loss_of_data_are_named() -> None:
    fixed = left(*(("DDP101", f"tool{n:02}.py", "data") for n in range(18)))
    (row,) = [line for line in left_alone(fixed, frozenset(), Detail()) if line.startswith("- ")]
    assert "more file" not in row


def test_the_first_screen_names_what_stays() -> None:
    fixed = left(("DDP101", "a.py", "noise"), ("DDP203", "b.py", "data"), ("DDP203", "d.py", "data"), ("DDP302", "c.py", "crash"))
    crash, data, noise = breaks_today({}, told(fixed), frozenset({"d.py"}))
    assert crash.startswith("- **Crash**: `'val/loss'` is logged at epoch level without being reduced over the ranks (DDP302): ")
    assert crash.endswith(" not fixed")
    assert data.index("`d.py:") < data.index("`b.py:")  # a command starts it
    assert noise == "- **Noise or lost time**: 1 place not fixed (DDP101)"
    assert crash in render(fixed, context()).split("\n## ")[0]


def test_what_is_fixed_and_what_stays_of_one_code_are_one_part() -> None:
    fixed = left(("DDP101", "a.py", "data"))
    (row,) = breaks_today({"DDP101": fixed.fixed}, told(fixed))
    assert row.count("DDP101") == 1 and "1 place fixed, `a.py:9` not fixed" in row


def test_many_places_that_stay_are_counted() -> None:
    (row,) = breaks_today({}, told(left(*(("DDP203", f"m{n}.py", "data") for n in range(5)))))
    assert row.count("`m") == 3 and row.endswith("; 2 more places not fixed")


def test_many_lines_are_folded_up_and_few_are_not() -> None:
    codes = ("DDP101", "DDP103", "DDP202", "DDP203", "DDP204", "DDP205", "DDP302", "DDP303", "DDP304", "DDP305", "DDP306")
    assert "<details>" in left_alone(left(*((code, "a.py", "data") for code in codes)), frozenset(), Detail())
    assert "<details>" not in left_alone(left(*((code, "a.py", "data") for code in codes[:9])), frozenset(), Detail())


def test_it_stands_between_the_fixes_and_the_undoing() -> None:
    text = render(left(("DDP101", "a.py", "data")), context())
    assert text.index("## Fixes") < text.index("## Left alone") < text.index("## Undo")
    assert "nobody knows how" in section(text, "## Left alone").casefold()
