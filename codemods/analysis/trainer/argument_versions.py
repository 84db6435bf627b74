"""What a parameter of the Hugging Face Trainer has become in every version that a project allows."""

from __future__ import annotations

from enum import Enum

from codemods.analysis.version_pins import Pin, Version, padded
from codemods.data.training_arguments import Parameter, last_with, text_of
from codemods.runtime.record import record


class Act(Enum):
    """RENAME: the value stays. REPLACE: name and value are others now. DROP: with this value it does nothing. TOLD: no edit."""

    RENAME = "rename"
    REPLACE = "replace"
    DROP = "drop"
    TOLD = "told"


@record
class Judged:
    """What to do with one use of a parameter. name, python, flag: the new spelling; why: the reason where there is no edit.

    unpinned: there is no edit only because versions with and without it are allowed.
    """

    act: Act
    parameter: Parameter
    name: str = ""
    python: str = ""
    flag: str = ""
    why: str = ""
    unpinned: bool = False


def judge(
    parameter: Parameter, pin: Pin | None, literal: str | None, ruled_out: Version | None = None
) -> Judged | None:
    """None where the old name is right in every version that the pin allows.

    literal: the value as Python writes it, None where it is not known. ruled_out: the first version that cannot be there.
    """
    gone = pin is not None and parameter.gone is not None and pin.surely_at_least(parameter.gone)
    there = parameter.gone is None or (pin is not None and pin.surely_below(parameter.gone))
    if not gone and parameter.gone is not None and ruled_out is not None and ruled_out <= padded(parameter.gone):
        return None
    if pin is not None and there:
        return None  # deprecated at most: a warning, and nothing that has to change before the pin does
    if gone and literal in parameter.idle:
        return Judged(Act.DROP, parameter)
    if pin is not None and parameter.renamed is not None and pin.surely_at_least(parameter.renamed):
        if literal is not None and (new := parameter.values.get(literal)):
            return Judged(Act.REPLACE, parameter, new.name, new.python, new.flag)
        if parameter.new:
            why = _no_share(literal) if parameter.name == "warmup_ratio" else ""
            return Judged(Act.TOLD if why else Act.RENAME, parameter, parameter.new, why=why)
        if parameter.values:
            return Judged(Act.TOLD, parameter, why="what it is called now depends on the value, which is not shown")
    if there:
        return None
    return Judged(Act.TOLD, parameter, parameter.new, why=_why_told(parameter, pin, gone), unpinned=not gone)


def _no_share(literal: str | None) -> str:
    """`warmup_steps` takes a number below 1 for a share and any other for steps (5.23, `get_warmup_steps`)."""
    if literal is None:
        return "warmup_steps takes the same number only where it is below 1, which is not shown"
    try:
        return "" if 0 <= float(literal) < 1 else "warmup_steps takes a number from 1 on for steps"
    except ValueError:
        return "the value is no number"


def _why_told(parameter: Parameter, pin: Pin | None, gone: bool) -> str:
    if gone:
        return parameter.note or "it has no successor, and what it asked for is decided by its value"
    new = _new_name(parameter)
    now = f"from {text_of(parameter.renamed)} on it is {new}" if new else _takes_its_place(parameter) or "it has to go there"
    if pin is None:
        return f"no file pins transformers: {now}"
    allowed = "does not say which version that is" if "://" in pin.spec else "allows versions with it and without"
    return f"{pin.text} ({pin.path}:{pin.line}) {allowed}: {now}"


def _takes_its_place(parameter: Parameter) -> str:
    """`it is now the environment variable X`, by what the table says of what is no rename."""
    return f"it is {parameter.note}" if parameter.note.startswith("now ") else ""


def _new_name(parameter: Parameter) -> str:
    return parameter.new or next((r.name for r in parameter.values.values()), "")


def what_happened(parameter: Parameter) -> str:
    """`transformers has had no evaluation_strategy since 4.51 (eval_strategy since 4.41)`."""
    new = _new_name(parameter)
    called = f"it has been {new} since {text_of(parameter.renamed)}" if new else _takes_its_place(parameter)
    called = called or "nothing takes its place"
    return f"{parameter.name} was last known to transformers {last_with(parameter)}; {called}"
