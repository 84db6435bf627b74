"""Programs that the repository's texts do not start."""

from __future__ import annotations

from ddpfix.summary import Launch, launches

MAIN = "\n\nif __name__ == '__main__':\n    main()\n"
JOINS = "import torch.distributed as dist\n\n\ndef main():\n    dist.init_process_group('gloo')\n    print('NEW')\n"


def shown(files: dict[str, str]) -> tuple[Launch, ...]:
    old = {path: text.replace("NEW", "OLD").encode() for path, text in files.items()}
    return launches(old, old.get, {path: text.encode() for path, text in files.items() if "NEW" in text})


def one(files: dict[str, str]) -> str:
    """The program that is told of, or the imports to try."""
    (found,) = shown(files)
    assert not found.command or found.made
    return found.command or found.script


def test_a_changed_program_by_its_own_path() -> None:
    assert one({"tools/go.py": JOINS + MAIN}) == "tools/go.py"
    assert one({"tools/go.py": JOINS + "\n\nmain()\n"}) == "tools/go.py"
    assert one({"lib/tools/go.py": "from . import x\n" + JOINS + MAIN}) == "lib/tools/go.py"


def test_what_its_lines_need() -> None:
    body = "    import argparse\n    parser = argparse.ArgumentParser()\n    parser.add_argument('--late', action='store_true')\n"
    body += "    if parser.parse_args().late:\n        print('NEW')\n"
    late = JOINS.replace("    print('NEW')\n", body).replace("parser.parse_args().late", "args.late")
    late = late.replace("    if args", "    args = parser.parse_args()\n    if args")
    (found,) = shown({"go.py": late + MAIN})
    assert (found.command, found.needs, found.line) == ("", ("go.py:11 needs --late",), 0)


def test_the_program_above_a_changed_file() -> None:
    files = {"lib.py": "def work():\n    print('NEW')\n", "train.py": "import lib\n" + JOINS.replace("NEW", "lib.work()") + MAIN}
    files["train.py"] = files["train.py"].replace("print('lib.work()')", "lib.work()")
    files["tests/test_lib.py"] = "import lib\nlib.work()\n"
    assert one(files) == "train.py"
    assert shown({"lib.py": files["lib.py"]}) == ()


def test_changed_imports_of_a_file_that_no_program_comes_to() -> None:
    assert one({"pkg/seed.py": "from NEW import x\n\n\ndef f():\n    return x\n"}) == "python -c 'import pkg.seed'"
    assert one({"src/pkg/seed.py": "import NEW\n"}) == "PYTHONPATH=src python -c 'import pkg.seed'"
    assert shown({"pkg/seed.py": "def f():\n    import NEW\n"}) == ()
    assert shown({"pkg/seed.py": "import NEW\n\n\ndef f():\n    print('NEW')\n"}) == ()
    assert shown({"my-tools/seed.py": "import NEW\n"}) == ()
