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
    heads = [line.split()[1] for line in left_alone(fixed, frozenset(), Detail()) if line.startswith("### ")]
    assert heads == ["DDP302", "DDP203", "DDP101"]


def test_a_file_that_a_command_starts_is_named_among_many() -> None:
    fixed = left(*(("DDP101", f"tool{n:02}.py", "noise") for n in range(20)))
    (row,) = [line for line in left_alone(fixed, frozenset({"tool19.py"}), Detail()) if line.startswith("- ")]
    assert row.startswith("- 20 places, `tool19.py` ")
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
    assert crash.startswith("- **Crash**: not fixed: `c.py:") and crash.endswith(" (DDP302)")
    assert data.index("`d.py:") < data.index("`b.py:")  # a command starts it
    assert noise == "- **Noise or lost time**: not fixed: 1 place (DDP101)"
    assert crash in render(fixed, context()).split("\n## ")[0]


def test_many_places_that_stay_are_counted() -> None:
    (row,) = breaks_today({}, told(left(*(("DDP203", f"m{n}.py", "data") for n in range(5)))))
    assert row.count("(DDP203)") == 3 and row.endswith(" and 2 more places")


def test_it_stands_before_the_sections_of_the_codemods() -> None:
    text = render(left(("DDP101", "a.py", "data")), context())
    assert text.index("## Left alone") < text.index("cause, safety and places") < text.index("## How this was made")
    assert "nobody knows how" in section(text, "## Left alone").casefold()
