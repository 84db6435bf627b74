"""A class of the project that has the name of a framework's is not the framework's."""

from __future__ import annotations

import pytest

from codemods.analysis.output.script_guards import script_guard
from codemods.files.source import SourceModule
from codemods.store.project import Project

HEAD = """import json
from dataclasses import dataclass

from accelerate import Accelerator
from transformers import HfArgumentParser, TrainingArguments


@dataclass
class Paths:
    out: str = "a.json"


"""
OWN = "@dataclass\nclass TrainingArguments:\n    batch: int = 8\n\n\n"
HEIR = "@dataclass\nclass TrainingArguments(TrainingArguments):\n    batch: int = 8\n\n\n"
MAIN = """def infer(model):
    accelerator = Accelerator()
    accelerator.prepare(model)(1)


def main():
    parser = HfArgumentParser(({}))
    {} = parser.parse_args_into_dataclasses()
    infer(build(training_args))
    with open("out.json", "w") as f:
        json.dump({{}}, f)


if __name__ == "__main__":
    main()
"""
USED = MAIN.format("Paths, TrainingArguments", "paths, training_args")


def guards(source: str) -> str:
    """The test for rank 0 that is offered for the file that `main` writes."""
    project = Project.of({"run.py": source.encode()})
    module = project.module("run.py")
    assert module is not None
    (main,) = (f for f in module.functions if f.name == "main")
    spelled = script_guard(project, module, main.body[-1], main, lines=False)
    return spelled.test if spelled is not None else ""


def test_parsed_arguments_of_transformers() -> None:
    for source in (HEAD + USED, HEAD + HEIR + USED):
        assert "training_args.process_index == 0" in guards(source)


@pytest.mark.parametrize(
    "source",
    [
        HEAD + OWN + USED,
        HEAD + MAIN.format("TrainingArguments, Paths", "paths, training_args"),  # by their place, it is the other one
        HEAD.replace(", TrainingArguments\n", "\n") + OWN + USED,
    ],
)
def test_a_class_of_the_project_has_no_rank(source: str) -> None:
    assert "process_index" not in guards(source)


def test_what_a_class_hides() -> None:
    hidden = SourceModule("a.py", b"from accelerate import Accelerator\n\nclass Accelerator:\n    pass\n")
    assert not hidden.imports
    for code in (
        b"from accelerate import Accelerator\n\nclass Accelerator(Accelerator):\n    pass\n",
        b"class Accelerator:\n    pass\n\nfrom accelerate import Accelerator\n",
        b"try:\n    from accelerate import Accelerator\nexcept ImportError:\n    class Accelerator:\n        pass\n",
        b"from accelerate import Accelerator\n\ndef f():\n    class Accelerator:\n        pass\n",
    ):
        assert "Accelerator" in SourceModule("a.py", code).imports
