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
    assert "torchrun a4.py" in part and "torchrun a5.py" not in part
    assert "More that is changed is started in `go.sh:5`, `go.sh:6`." in part


def test_a_command_that_cannot_be_shown_is_named() -> None:
    part = how_to_test(Launch("", "go.sh", 3, programs=("model.py",)))
    assert "No command that starts a changed program was found" in part
    assert "Started by `go.sh:3` too, whose words cannot be shown whole." in part
    assert "reached by no command" not in part
