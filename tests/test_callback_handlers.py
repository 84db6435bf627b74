"""What the callbacks of a Trainer of transformers answer."""

from __future__ import annotations

import pytest

from codemods.analysis.variance.values import Cause
from tests.test_variance import probed

CALLBACKS = """
from {package} import CallbackHandler
class Steps{base}:
    def __init__(self, callbacks):
        self.handler = CallbackHandler(callbacks)
    def run(self, args, state, control):
        total = 0
        for row in rows[rank::world]:
            total += row
        control = self.handler.on_log(args, state, control, {{"loss": total}})
        {end}
"""
ANSWERED = "probe(control.should_save)"

DIFFER_BY_CALLBACKS = {
    "what the callbacks of another package answer": CALLBACKS.format(package="mine", base="", end=ANSWERED),
    "what the callbacks were told": CALLBACKS.format(package="transformers.trainer_callback", base="", end="probe(total)"),
}


@pytest.mark.parametrize("name", DIFFER_BY_CALLBACKS)
def test_what_callbacks_of_another_package_answer(name: str) -> None:
    assert probed(DIFFER_BY_CALLBACKS[name]).cause is Cause.DATA


SAME_BY_CALLBACKS = {
    "made here": CALLBACKS.format(package="transformers.trainer_callback", base="", end=ANSWERED),
    "by a name": CALLBACKS.format(package="transformers.trainer_callback", base="", end=ANSWERED).replace(
        "control = self.handler", "handler = CallbackHandler([])\n        control = handler"
    ),
    "made by the Trainer": "from transformers import Trainer\n" + CALLBACKS.format(
        package="mine", base="(Trainer)", end=ANSWERED
    ).replace("control = self.handler", "control = self.callback_handler"),
}


@pytest.mark.parametrize("name", SAME_BY_CALLBACKS)
def test_what_the_callbacks_of_transformers_answer(name: str) -> None:
    assert not probed(SAME_BY_CALLBACKS[name]).differs
