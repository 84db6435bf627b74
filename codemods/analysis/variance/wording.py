"""The words for a place where the ranks part: who does what, what the user sees, and the chain that shows it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.variance.mismatches import Form, Mismatch
from codemods.analysis.variance.state import STEP
from codemods.analysis.variance.values import Cause, How, Proof, Value
from codemods.api.findings import Evidence
from codemods.files.source import SourceModule

_WORD: dict[type[ast.stmt], str] = {ast.Continue: "continue", ast.Break: "break", ast.Return: "return"}
_OWN = {
    Cause.DATA: "each rank's own data decide",
    Cause.PLACE: "each process decides on its own",
    Cause.RANK: "the rank decides",
}
_AFTER_ERROR = "an error on one rank decides"


def message(found: Mismatch, text: str) -> str:
    """text: the statement that decides, as it is written, in one line."""
    who = _who(found.value)
    met = f"{found.meeting.text} (line {found.meeting.steps[0].line})" if found.meeting is not None else "the next collective"
    told = _of_framework(found, who, text) or _of_meeting(found, who, text, met)
    if told:
        return told
    if found.form is Form.ENDS and found.value.cause is Cause.RANK and isinstance(found.node, ast.Expr):
        return (
            "rank 0 alone ends here, as if all were done: the launcher lets the others go on, and they wait in the next "
            "collective"
        )
    if found.form is Form.ENDS and found.value.cause is Cause.PLACE and isinstance(found.node, ast.Expr):
        return (
            f"a rank that comes to `{text}` after an exception ends as if all were done: the launcher lets the others go on, and "
            f"they wait in {met}"
        )
    if found.form is Form.ENDS:
        return f"{who} over `{text}`, and the rank that ends here leaves the others waiting in {met}"
    if found.form is Form.ROUNDS and isinstance(found.node, (ast.Break, ast.Return)):
        return (
            f"each rank has its own number of items, and leaves by `{text}` when it has no more: the ranks with more rounds wait "
            f"for it in {met}"
        )
    if found.form is Form.ROUNDS:
        return (
            f"{_rounds(found.value, text)} `{text}` runs, and each round calls {met}: the ranks with more rounds wait for those "
            "that are done"
        )
    if found.form is Form.RAISES:
        return (
            f"an exception on one rank is caught in line {found.node.lineno}, and this rank goes on without {met}: the others "
            "wait there until the time-out"
        )
    if found.form is Form.WAITS:
        return (
            f"an exception on one rank is caught in line {found.node.lineno}, and this rank alone calls {met}: it is taken for "
            "a later call of the others, and from there on each rank waits for another collective than its peers"
        )
    if found.form is Form.LEAVES:
        line = found.leaving.lineno if found.leaving is not None else found.node.lineno
        return (
            f"{who} over `{text}`: a rank that leaves in line {line} does not call {met}, where the others wait until the "
            "time-out"
        )
    return f"{who} over `{text}`: not every rank calls {met}; those that do wait for the others until the time-out"


def after_an_error(found: Mismatch) -> str:
    """What to do about a call that the rank alone makes which has caught an error: in the handler, or by a flag that it sets."""
    behind = found.meeting.steps[0].line if found.meeting is not None else 0
    if isinstance(found.node, ast.ExceptHandler) and behind > (found.node.body[-1].end_lineno or behind):
        return "let all ranks agree by a reduced flag that one of them has failed, and then make the call on all of them"
    return "take the call out of the handler: the others make it once, where all ranks come, or not at all"


def where_to_call(found: Mismatch) -> str:
    """What to do about a call that only some ranks come to."""
    if found.meeting is not None and found.meeting.name == "forward":
        return "run the module inside (`model.module`) there, or make the call on every rank and use its output under the test"
    return "make the call on every rank, and keep only the output under the test"


def _of_framework(found: Mismatch, who: str, text: str) -> str:
    """Where the framework has the collectives; "" for the other forms."""
    if found.form is Form.STOPS:
        return (
            f"{who} over `{text}`: a rank that stops leaves the others in the next backward, where they wait until the "
            "time-out"
        )
    if found.form is Form.NO_LOSS:
        return f"{who} over `{text}`: a rank without a loss skips the backward that the others wait in"
    if found.form is Form.PLATEAU:
        return (
            f"`{text}` is given each rank's own number: the ranks lower the learning rate at different times, and their "
            "weights part"
        )
    if found.form is Form.RATE:
        return (
            f"{who} over `{text}`: the ranks change the learning rate at different times, and step the same gradients by it, so "
            "their weights part"
        )
    return ""


def _of_meeting(found: Mismatch, who: str, text: str, met: str) -> str:
    """Where what is missed is no collective by its name; "" for the others."""
    if found.meeting is not None and found.meeting.name == "forward" and found.value.cause is Cause.RANK:
        return (
            f"by `{text}` only some ranks come to {met}: with buffers (BatchNorm, position ids) or shards each forward of the "
            "wrapper waits for all ranks"
        )
    if found.meeting is not None and found.meeting.name == STEP:
        return (
            f"{who} over `{text}`: not every rank makes {met}; the gradients are the same on all ranks, the weights are not "
            "from here on"
        )
    return ""


def head(module: SourceModule, node: ast.stmt | ast.ExceptHandler) -> str:
    """The first line of a statement, as far as it is read at a look."""
    line = module.text_of(node).splitlines()[0]
    text = " ".join(re.sub(r"\s\s#.*$", "", line).split()).rstrip(":")
    return text if len(text) <= 70 else text[:67] + "..."


def _who(value: Value) -> str:
    if any(link.how is How.GIVEN_UP for link in value.chain):
        return _AFTER_ERROR
    return _OWN.get(value.cause, "what differs between the ranks decides")


def _rounds(value: Value, text: str) -> str:
    counts = "range(" in text or (value.chain and "range(" in value.chain[0].text)
    if not value.sized or (counts and value.cause is Cause.RANK):
        return f"{_who(value)} how often"
    if value.keyed:
        return "each rank may have its own keys, so it may differ how often"
    return "each rank has its own number of items, so it may differ how often"


def chain(found: Mismatch) -> Iterator[Evidence]:
    """The way of the deciding value, nearest first, then the way to the collective."""
    strength = "strong" if found.value.proof is Proof.PROVEN else "weak"
    for link in found.value.chain:
        yield Evidence("way", link.text, link.path, link.line, strength)
    if found.form is Form.RAISES and isinstance(found.leaving, (ast.Continue, ast.Break, ast.Return)):
        yield Evidence("static", f"goes on by `{_WORD[type(found.leaving)]}`", found.value.chain[0].path, found.leaving.lineno)
    for step in found.meeting.steps if found.meeting is not None else ():
        yield Evidence("static", step.text, step.path, step.line)
