"""How a change is to be tested: the repository's own commands, and what they do not reach."""

from __future__ import annotations

from ddpfix.summary import Launch, render
from tests.summary.made import MODEL, context, fenced, in_memory, section


def how_to_test(*launches: Launch, script: str = MODEL) -> str:
    """`model.py` and `other.py` are changed."""
    return section(render(in_memory({"model.py": script, "other.py": MODEL}), context(launches=launches)), "## How to test")


def test_it_is_said_how_a_command_differs_from_what_stands_there() -> None:
    launch = Launch("torchrun a.py", "go.sh", 3, edits=("by torchrun, where it has plain Python", "less"))
    (shown, *_) = fenced(how_to_test(launch), "sh")
    assert shown == "# from go.sh:3, by torchrun, where it has plain Python\ntorchrun a.py\n"


def test_it_is_said_where_the_number_of_devices_is_set() -> None:
    launch = Launch("python a.py", "go.sh", 3, counted=False, devices="config.py:7")
    assert "# from go.sh:3, set two devices in config.py:7\n" in fenced(how_to_test(launch), "sh")[0]
    assert "# from go.sh:3, set two devices\n" in fenced(how_to_test(Launch("python a.py", "go.sh", 3, counted=False)), "sh")[0]


def test_words_that_the_reader_has_to_give_are_named() -> None:
    launch = Launch("torchrun a.py --data $DATA", "go.sh", 3, to_fill=("$DATA", "your_run"))
    assert "Yours to give, before or in the command: `$DATA`, `your_run`." in how_to_test(launch, launch)
    assert "Yours to give" not in how_to_test(Launch("torchrun a.py", "go.sh", 3))


def test_changed_programs_that_no_command_reaches_are_named() -> None:
    one, both = (Launch("torchrun a.py", "go.sh", 3, programs=p) for p in (("model.py",), ("model.py", "other.py")))
    assert "reached by no command that was found, as far as imports and settings show: `other.py`." in how_to_test(one)
    assert "reached by no command" not in how_to_test(both)


def test_without_a_command_the_program_and_what_its_lines_need_are_told() -> None:
    needs = ("model.py:9, 12 needs --mode test", "model.py:20 needs `ready()` and `x > 1`")
    told = Launch(
        "", "go.sh", 3, script="model.py", needs=needs, comes_to="model.py:5", faults=("names `c.yaml`, which is gone",)
    )
    part = how_to_test(told)
    assert "No command is given: none is shown to start two processes and to come to the changed lines.\n" in part
    row = "- `model.py` starts the program, which comes to `model.py:5`; `model.py:9, 12` needs `--mode test`; "
    assert row + "`model.py:20` needs `ready()` and `x > 1`; the command in `go.sh:3` names `c.yaml`, which is gone.\n" in part
    assert "```" not in part and "reached by no command" not in part
    assert "- `run.py` starts the program.\n" in how_to_test(Launch("", "run.py", 0, script="run.py"))


def test_of_many_needs_those_of_options_come_first() -> None:
    needs = (*(f"model.py:{i} needs `x{i}`" for i in range(4)), "model.py:7 needs --late, and `x`", "model.py:9 needs --late")
    part = how_to_test(Launch("", "go.sh", 3, script="model.py", needs=needs))
    row = "- `model.py` starts the program; `model.py:9` needs `--late`; `model.py:7` needs `--late`, and `x`; "
    assert row + "`model.py:0` needs `x0`; 3 more stretches of changed lines need something else.\n" in part


def test_what_the_commands_do_not_come_to_is_told_behind_them() -> None:
    told = Launch("", "other.py", 0, script="other.py", comes_to="other.py:5")
    part = how_to_test(Launch("torchrun a.py", "go.sh", 3, programs=("model.py",)), told)
    assert "No command is shown to come to the other changed lines:\n- `other.py` starts the program" in part
    assert fenced(part, "sh") == ["# from go.sh:3\ntorchrun a.py\n"]
