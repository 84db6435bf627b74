"""Commands for programs that the repository's texts do not start."""

from __future__ import annotations

import pytest

from ddpfix.summary import Launch, launches

MAIN = "\n\nif __name__ == '__main__':\n    main()\n"
JOINS = "import torch.distributed as dist\n\n\ndef main():\n    dist.init_process_group('gloo')\n    print('NEW')\n"


def shown(files: dict[str, str]) -> tuple[Launch, ...]:
    old = {path: text.replace("NEW", "OLD").encode() for path, text in files.items()}
    return launches(old, old.get, {path: text.encode() for path, text in files.items() if "NEW" in text})


def one(files: dict[str, str]) -> str:
    (found,) = shown(files)
    assert found.made
    return found.command


def test_a_changed_program_by_its_own_path() -> None:
    assert one({"tools/go.py": JOINS + MAIN}) == "torchrun --standalone --nproc_per_node=2 tools/go.py"
    assert one({"tools/go.py": JOINS + "\n\nmain()\n"}) == "torchrun --standalone --nproc_per_node=2 tools/go.py"
    assert one({"lib/tools/go.py": "from . import x\n" + JOINS + MAIN}).endswith(" -m lib.tools.go")


def test_what_the_parser_demands_is_the_reader_s_to_give() -> None:
    body = "    import argparse\n    parser = argparse.ArgumentParser()\n    parser.add_argument('folder')\n"
    body += "    parser.add_argument('-c', '--config', required=True)\n    parser.add_argument('--seed', default=1)\n"
    (found,) = shown({"go.py": JOINS + body + MAIN})
    assert found.command.endswith(" go.py --config YOUR_CONFIG YOUR_FOLDER")


def test_the_program_above_a_changed_file() -> None:
    files = {"lib.py": "def work():\n    print('NEW')\n", "train.py": "import lib\n" + JOINS.replace("NEW", "lib.work()") + MAIN}
    files["train.py"] = files["train.py"].replace("print('lib.work()')", "lib.work()")
    files["tests/test_lib.py"] = "import lib\nlib.work()\n"
    assert one(files) == "torchrun --standalone --nproc_per_node=2 train.py"
    assert shown({"lib.py": files["lib.py"]}) == ()


@pytest.mark.parametrize(
    ("devices", "counted", "place"),
    [("GPUS", True, "go.py:1"), ("2", True, "go.py:7"), ("4", False, "go.py:7")],
)
def test_devices_that_the_program_has(devices: str, counted: bool, place: str) -> None:
    text = "GPUS = 2\nfrom lightning import Trainer\n\n\ndef main():\n    print('NEW')\n"
    text += f"    Trainer(devices={devices}).fit(None)\n"
    (found,) = shown({"go.py": text + MAIN})
    assert (found.command, found.counted, found.devices) == ("python go.py", counted, place)


def test_changed_imports_of_a_file_that_no_program_comes_to() -> None:
    assert one({"pkg/seed.py": "from NEW import x\n\n\ndef f():\n    return x\n"}) == "python -c 'import pkg.seed'"
    assert one({"src/pkg/seed.py": "import NEW\n"}) == "PYTHONPATH=src python -c 'import pkg.seed'"
    assert shown({"pkg/seed.py": "def f():\n    import NEW\n"}) == ()
    assert shown({"pkg/seed.py": "import NEW\n\n\ndef f():\n    print('NEW')\n"}) == ()
    assert shown({"my-tools/seed.py": "import NEW\n"}) == ()
