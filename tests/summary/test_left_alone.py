"""What was left as it is: the worst first, and what a command starts before the rest."""

from __future__ import annotations

from dataclasses import replace

from codemods.api.findings import Finding, Severity
from ddpfix.results import Fixed
from ddpfix.summary import render
from ddpfix.summary.breakage import repairs
from ddpfix.summary.codemod_section import Detail
from ddpfix.summary.left_alone import left_alone
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


def test_the_first_screen_leads_with_what_is_repaired_and_counts_what_stays() -> None:
    fixed = left(("DDP101", "a.py", "noise"), ("DDP203", "b.py", "data"), ("DDP203", "d.py", "data"), ("DDP302", "c.py", "crash"))
    screen = render(fixed, context()).split("\n## ")[0]
    assert "What this repairs:\n\n- **Lost or wrong data**: " in screen
    assert "a.py" not in screen and "DDP302" not in screen  # they wait below
    assert (
        "Found too, and not changed here: a crash, 2 places with lost or wrong data, noise or lost time in one place "
        "(4 without a fix): see [Left alone](#left-alone)."
    ) in screen


def test_nothing_is_said_of_what_stays_where_nothing_does() -> None:
    assert "Found too" not in render(left(), context())


def test_what_is_repaired_is_counted_alone() -> None:
    fixed = left(("DDP101", "a.py", "data"))
    (row,) = repairs({"DDP101": fixed.fixed})
    assert row.endswith(" (DDP101): 1 place")


def test_more_lines_than_fixes_are_folded_up() -> None:
    one = left(("DDP101", "a.py", "data"), ("DDP203", "a.py", "data"))
    two = replace(one, fixed=(one.fixed[0], replace(one.fixed[0], id="two")))
    assert "<details>" in left_alone(one, frozenset(), Detail())
    assert "<details>" not in left_alone(two, frozenset(), Detail())


def test_more_than_five_lines_are_folded_up_however_many_fixes_there_are() -> None:
    codes = ("DDP101", "DDP103", "DDP202", "DDP203", "DDP204", "DDP205")
    some = left(*((code, "a.py", "data") for code in codes))
    many = tuple(replace(some.fixed[0], id=str(n)) for n in range(9))
    assert "<details>" in left_alone(replace(some, fixed=many), frozenset(), Detail())
    assert "<details>" not in left_alone(replace(some, fixed=many, left=some.left[:5]), frozenset(), Detail())
    assert "<details>" not in left_alone(replace(some, fixed=(), left=some.left[:5]), frozenset(), Detail())


def test_it_stands_between_the_fixes_and_the_undoing() -> None:
    text = render(left(("DDP101", "a.py", "data")), context())
    assert text.index("## Fixes") < text.index("## Left alone") < text.index("<summary>Undo</summary>")
    assert "nobody knows how" in section(text, "## Left alone").casefold()
