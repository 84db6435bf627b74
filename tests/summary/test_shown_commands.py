"""How commands are laid out."""

from __future__ import annotations

from ddpfix.summary import Launch, render
from ddpfix.summary.shown_commands import wrapped
from tests.summary.made import MODEL, context, fenced, in_memory, section


def how_to_test(*launches: Launch) -> str:
    return section(render(in_memory({"model.py": MODEL}), context(launches=launches)), "## How to test")


def test_a_long_command_is_broken_at_its_options() -> None:
    options = [f"--option_{i} value_{i} 'two words --not-one'" for i in range(6)]
    lines = wrapped(f"cd tool && torchrun --nproc_per_node=2 train.py {' '.join(options)}")
    assert len(lines) > 2 and max(map(len, lines)) <= 100
    assert all(line.endswith(" \\") for line in lines[:-1]) and not lines[-1].endswith("\\")
    assert all(line.startswith("    --") for line in lines[1:])
    joined = " ".join(line.removesuffix("\\").strip() for line in lines)
    assert joined == f"cd tool && torchrun --nproc_per_node=2 train.py {' '.join(options)}"
    assert wrapped("torchrun train.py --a 1") == ["torchrun train.py --a 1"]


def test_settings_of_hydra_are_places_to_break_at() -> None:
    lines = wrapped("python main.py " + " ".join(f"group.key_{i}=value_{i}" for i in range(12)))
    assert len(lines) > 1 and all(line.strip().startswith("group.") for line in lines[1:])


def test_what_a_command_lacks_is_told_above_it() -> None:
    part = how_to_test(Launch("torchrun a.py", "go.sh", 3, programs=("model.py",), needs=("a.py:9 needs --resume",)))
    assert fenced(part, "sh")[0] == "# from go.sh:3\n# a.py:9 needs --resume\ntorchrun a.py\n"


def test_of_many_commands_some_are_named() -> None:
    part = how_to_test(*(Launch(f"torchrun a{i}.py", "go.sh", i, programs=("model.py",)) for i in range(1, 7)))
    assert "torchrun a3.py" in part and "torchrun a4.py" not in part
    assert "More commands that run changed lines: `go.sh:4`, `go.sh:5`, `go.sh:6`." in part


def test_positions_too_wide_for_a_line_are_broken_too() -> None:
    lines = wrapped("python main.py " + " ".join(f"folder_{i}/of/the/data" for i in range(8)) + " --x 1")
    assert len(lines) == 2 and max(map(len, lines)) <= 100 and lines[0].startswith("python main.py folder_0")


def test_what_makes_a_run_short_is_told_and_else_nothing() -> None:
    part = how_to_test(Launch("torchrun a.py --epochs 1", "go.sh", 3, short="--epochs 1"))
    assert fenced(part, "sh")[0].startswith("# from go.sh:3, with --epochs 1\n")
    part = how_to_test(Launch("torchrun a.py", "go.sh", 3))
    assert "Ctrl-C" not in part and "It takes two processes" not in part


def test_which_lines_a_command_comes_to() -> None:
    needs = tuple(f"a.py:{i} needs --x{i}" for i in range(6))
    part = how_to_test(Launch("torchrun a.py", "go.sh", 3, programs=("model.py",), comes_to="a.py:7, 9", needs=needs))
    rows = fenced(part, "sh")[0].split("\n")
    assert rows[:3] == ["# from go.sh:3", "# runs a.py:7, 9", "# a.py:0 needs --x0"]
    assert rows[6:8] == ["# 2 more stretches of changed lines need options too", "torchrun a.py"]


def test_imports_are_tried_on_one_process() -> None:
    part = how_to_test(Launch("python -c 'import model'", "model.py", 0, programs=("model.py",), made=True))
    assert "It takes two processes" not in part
    assert "# imports model.py\npython -c 'import model'\n" in part


def test_devices_that_the_script_has() -> None:
    part = how_to_test(Launch("python a.py", "go.sh", 3, devices="a.py:7"))
    assert "# from go.sh:3, its two devices are set in a.py:7\n" in part
