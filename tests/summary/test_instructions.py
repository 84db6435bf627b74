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
    assert "Fill in: `$DATA`, `your_run`." in how_to_test(launch, launch)
    assert "Fill in" not in how_to_test(Launch("torchrun a.py", "go.sh", 3))


def test_changed_programs_that_no_command_reaches_are_named() -> None:
    one, both = (Launch("torchrun a.py", "go.sh", 3, programs=p) for p in (("model.py",), ("model.py", "other.py")))
    assert "No command was found that runs the changed lines of `other.py`." in how_to_test(one)
    assert "No command was found" not in how_to_test(both)


def quoted(
    text: str, place: str, script: str = "model.py", needs: tuple[str, ...] = (), faults: tuple[str, ...] = ()
) -> Launch:
    path = place.partition(":")[0]
    return Launch("", path, 3, script=script, quoted=text, quoted_at=place, needs=needs, faults=faults)


def test_without_a_command_the_repository_s_own_is_quoted() -> None:
    needs = ("model.py:9, 12 needs --mode test",)
    part = how_to_test(quoted("python model.py \\\n    --all", "go.sh:3, in src", needs=needs, faults=("names `c.yaml`",)))
    assert "## How to test\n\nAs the repository starts it:\n" in part
    assert fenced(part, "sh") == ["# go.sh:3, in src\npython model.py \\\n    --all\n"]
    assert "needs" not in part and "c.yaml" not in part


def test_a_program_that_no_text_starts_is_named_alone() -> None:
    part = how_to_test(Launch("", "run.py", 0, script="run.py"))
    assert "Program: `run.py`.\n" in part and "```" not in part
    too_long = how_to_test(quoted("", "go.sh:3"))
    assert "Program: `model.py` (`go.sh:3`).\n" in too_long and "```" not in too_long


def test_of_several_commands_of_a_program_one_is_quoted_and_of_long_ones_the_place() -> None:
    long = "python other.py \\\n" + " \\\n".join(f"    --x{i} 1" for i in range(12))
    rows = (quoted("", "go.sh:1"), quoted("python model.py", "go.sh:3"), quoted("python model.py -x", "go.sh:9"))
    part = how_to_test(*rows, quoted(long, "long.sh:1", "other.py"), quoted(long, "long.sh:20", "more.py"))
    assert fenced(part, "sh") == [f"# go.sh:3\npython model.py\n# long.sh:1\n{long}\n"]
    assert "Other programs: `more.py` (`long.sh:20`).\n" in part


def test_what_the_commands_do_not_come_to_is_told_behind_them() -> None:
    told = Launch("", "other.py", 0, script="other.py", comes_to="other.py:5")
    part = how_to_test(Launch("torchrun a.py", "go.sh", 3, programs=("model.py",), script="a.py"), told)
    assert "Program: `other.py`." in part
    assert fenced(part, "sh") == ["# from go.sh:3\ntorchrun a.py\n"]
