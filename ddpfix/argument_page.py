"""docs/training-arguments.md: the parameters of the Hugging Face Trainer by version, from the table that the fixes read."""

from __future__ import annotations

from codemods.data.training_arguments import MEASURED_TO, TABLE, Parameter, now_of, row, text_of

_HEAD = "| parameter | first | last | default | now | note |\n| --- | --- | --- | --- | --- | --- |"


def page() -> str:
    """The page in Markdown."""
    old = [p for p in TABLE if now_of(p)]
    out = [
        "# TrainingArguments by version",
        "",
        "What transformers calls the parameters of its Trainer, and since when. `ddpfix` reads the same table: DDP602",
        "([removed-training-argument](codemods/removed-training-argument.md)) renames what every version that a project allows",
        "calls otherwise, and takes out what is gone and did nothing. Where no file pins transformers, it only reports.",
        "",
        "Measured on the fields of the last patch release of each minor line from 3.0 to "
        f"{text_of(MEASURED_TO)}; “≤ 3.0” is older than that, and “–” was not looked up.",
        "",
        *_section("Renamed or gone", [p for p in old if p.owner == "TrainingArguments"]),
        *_section("There, and worth knowing", [p for p in TABLE if not now_of(p) and p.owner == "TrainingArguments"]),
        *_section("Of the Trainer itself", [p for p in TABLE if p.owner == "Trainer"]),
        "A new name on a version that does not know it yet is the same error as an old one on a version that has dropped it:",
        "`TypeError: TrainingArguments.__init__() got an unexpected keyword argument`.",
    ]
    return "\n".join(out) + "\n"


def _section(heading: str, parameters: list[Parameter]) -> list[str]:
    return [f"## {heading}", "", _HEAD, *map(row, parameters), ""]
