"""A training in a loop that only an option ends which nothing gives is ended from outside: it comes to no end of its own."""

from __future__ import annotations

import textwrap

import pytest

from codemods.sync.missing_destroy_process_group import MissingDestroyProcessGroup
from ddpfix.testing import findings_of

LOOP = """class Learner:
    def fit(self, limit=None, epochs=None):
        {above}
        while {test}:
            for rows in self.loader:
                {leaves}
                self.train_step(rows)
"""
MAIN = """import argparse
import torch.distributed as dist
from learner import Learner


def run(args):
    learner = Learner()
    {call}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default={default})
    args = parser.parse_args()
    dist.init_process_group("nccl")
    run(args)


if __name__ == "__main__":
    main()
"""
RUN = {"run.sh": "torchrun --nproc_per_node=4 main.py --rate 0.1\n"}
RETURNS = "if limit is not None and self.step >= limit:\n    return"
CALL = "learner.fit(limit=args.steps)"


@pytest.mark.parametrize(
    "leaves", [RETURNS, "if limit and self.step >= limit:\n    return", "if bad(rows):\n    raise ValueError"]
)
@pytest.mark.parametrize("test", ["True", "1"])
@pytest.mark.parametrize("call", [CALL, "learner.fit(args.steps)", "learner.fit()", "learner.fit(None)"])
def test_a_loop_that_nothing_ends(leaves: str, test: str, call: str) -> None:
    assert _found(leaves, test, call) == 0


@pytest.mark.parametrize(
    ("leaves", "test", "call", "default", "more"),
    [
        pytest.param(RETURNS, "True", CALL, "9000", {}, id="a default"),
        pytest.param(RETURNS, "True", CALL, "None", {"go.sh": "torchrun main.py --steps 9\n"}, id="given in a command"),
        pytest.param(RETURNS, "True", CALL, "None", {"README.md": "End it by `--steps 9`.\n"}, id="given on a page"),
        pytest.param(RETURNS, "True", CALL, "None", {"steps.yaml": "steps: 9\n"}, id="given in settings"),
        pytest.param(RETURNS, "True", "learner.fit(9)", "None", {}, id="given in the call"),
        pytest.param(RETURNS, "True", f"{CALL}\n    report(learner)", "None", {}, id="not the last thing"),
        pytest.param(RETURNS, "self.on", CALL, "None", {}, id="a loop with a test"),
        pytest.param("if self.step > 9:\n    return", "True", CALL, "None", {}, id="left by another test"),
        pytest.param("if limit is None or self.step > limit:\n    return", "True", CALL, "None", {}, id="left without one"),
        pytest.param("if epochs is None:\n    return", "True", CALL, "None", {}, id="left where it is None"),
    ],
)
def test_a_loop_that_comes_to_an_end(leaves: str, test: str, call: str, default: str, more: dict[str, str]) -> None:
    assert _found(leaves, test, call, default, more) == 1


def test_a_loop_that_is_left_by_a_break() -> None:
    source = "class Learner:\n    def fit(self, limit=None):\n        while True:\n            self.train_step()\n"
    main = MAIN.format(call=CALL, default="None")
    for left, number in (("", 0), ("            if self.on:\n                break\n", 1)):
        files = RUN | {"learner.py": source + left}
        assert len(findings_of(MissingDestroyProcessGroup, main, files, path="main.py")) == number


def _found(leaves: str, test: str, call: str, default: str = "None", more: dict[str, str] | None = None) -> int:
    loop = LOOP.format(above="pass", test=test, leaves=textwrap.indent(leaves, " " * 16).lstrip())
    files = RUN | {"learner.py": loop} | (more or {})
    return len(findings_of(MissingDestroyProcessGroup, MAIN.format(call=call, default=default), files, path="main.py"))
