"""Tests of an option that nobody has, and of a file that nobody writes: they never come out true."""

from __future__ import annotations

import pytest

from codemods.analysis.files.never_true import is_never_asked_for
from codemods.checkpoints.unguarded_save import UnguardedSave
from codemods.store.project import Project
from ddpfix.testing import check_nothing, findings_of

PARSER = "import argparse\n\nparser = argparse.ArgumentParser()\nparser.add_argument('--folder')\nargs = parser.parse_args()\n"
MAIN = "\nif __name__ == '__main__':\n    run(args)\n"


def is_closed(body: str, files: dict[str, str] | None = None, head: str = PARSER) -> bool:
    source = f"import os\n{head}\ndef run(args):\n    {body}:\n        mark()\n{MAIN}"
    texts = {"train.py": source, **(files or {})}
    project = Project.of({path: text.encode() for path, text in texts.items()})
    module = project.module("train.py")
    assert module is not None
    return is_never_asked_for(project, module, module.calls_named("mark")[0])


TUNED = "if getattr(args, 'tune_head', False)"


@pytest.mark.parametrize("body", [TUNED, "if args and getattr(args, 'tune_head', None)", "if hasattr(args, 'tune_head')"])
def test_an_option_that_nothing_has(body: str) -> None:
    assert is_closed(body)
    assert is_closed(body, {"other.py": "def f(args):\n    return getattr(args, 'tune_head', False)\n"})


@pytest.mark.parametrize(
    ("body", "files"),
    [
        (TUNED, {"opts.py": "parser.add_argument('--tune-head')\n"}),
        (TUNED, {"opts.py": "class Given:\n    tune_head: bool = False\n"}),
        (TUNED, {"opts.py": "def f(args):\n    args.tune_head = True\n"}),
        (TUNED, {"run.sh": "torchrun train.py --tune_head True\n"}),
        (TUNED, {"conf.yaml": "tune_head: true\n"}),
        ("if getattr(args, 'tune_head', True)", {}),
        ("if getattr(model, 'tune_head', False)", {}),  # no options: whatever made it may have the attribute
        ("if getattr(args, 'use_liger_kernel', False) or args.folder", {}),
        ("if getattr(args, 'deepspeed_config', None)", {}),  # a library's parser gives it
        ("if not getattr(args, 'tune_head', False)", {}),
    ],
)
def test_options_that_somebody_may_have(body: str, files: dict[str, str]) -> None:
    assert not is_closed(body, files)


@pytest.mark.parametrize(
    "head",
    [
        PARSER.replace("parse_args()", "parse_known_args()[0]"),
        f"{PARSER}for k, v in settings.items():\n    setattr(args, k, v)\n",
        f"{PARSER}args.__dict__.update(settings)\n",
        "from zoo import args\n",
        f"from fairseq import models\n{PARSER}",
    ],
)
def test_options_that_are_not_all_written_out(head: str) -> None:
    assert not is_closed(TUNED, head=head)


MARKER = "if os.path.exists(os.path.join(args.folder, 'completed'))"
LAST = """\
from os.path import exists, join

def last(folder):
    over = exists(join(folder, "completed"))
    if over:
        return None, True
    if not folder:
        return None, False
    return join(folder, "last"), over
"""


@pytest.mark.parametrize(
    ("body", "files"),
    [
        (MARKER, {}),
        ("if (Path(args.folder) / '.done').is_file()", {}),
        ("over = os.path.isfile(f(args.folder, 'x', 'done'))\n    if over", {}),
        ("path, over = last(args.folder)\n    if over", {"kept.py": LAST}),
    ],
)
def test_a_marker_that_nobody_writes(body: str, files: dict[str, str]) -> None:
    head = f"from kept import last\n{PARSER}" if files else PARSER
    assert is_closed(body, files, head)


@pytest.mark.parametrize(
    ("body", "files"),
    [
        (MARKER, {"job.sh": "python train.py && touch out/completed\n"}),
        (MARKER, {"end.py": "open(join(folder, 'completed'), 'w').close()\n"}),
        (MARKER, {"end.py": "MARK = 'completed'\n"}),
        (MARKER.replace("completed", "config.json"), {}),  # a file of another kind, which people put there
        (MARKER.replace("if os", "if not os"), {}),
        ("path, over = last(args.folder)\n    if path", {"kept.py": LAST}),
        ("path, over = last(args.folder)\n    if over", {"kept.py": LAST.replace("None, False", "None, folder is None")}),
        ("path, over = last(args.folder)\n    if over", {"kept.py": LAST.replace("if over:", "if folder == 'x':")}),
    ],
)
def test_markers_that_may_be_there(body: str, files: dict[str, str]) -> None:
    head = f"from kept import last\n{PARSER}" if "kept.py" in files else PARSER
    assert not is_closed(body, files, head)


def test_a_save_under_such_a_test() -> None:
    source = (
        f"import torch\nimport torch.distributed as dist\n{PARSER}\ndef run(args, model):\n"
        "    if {test}:\n        torch.save(model.state_dict(), 'last.pt')\n\nif __name__ == '__main__':\n"
        "    dist.init_process_group('nccl')\n    run(args, 1)\n"
    )
    check_nothing(UnguardedSave, source.format(test="getattr(args, 'tune_head', False)"))
    assert findings_of(UnguardedSave, source.format(test="getattr(args, 'folder', False)"))
