"""The answer to `--why-not` as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from codemods.api.codemod import DdpCodemod
from ddpfix.told_elsewhere import LIGHT
from ddpfix.why_not import FEW, MOST, Looked, Passed, WhyNot

MOST_STATED = 12


def page(answer: WhyNot) -> str:
    lines = [f"{answer.path}:{answer.line}: {answer.source}", ""]
    if answer.copy:
        lines += [f"A check of the project leaves the file alone: {answer.copy}. Asked for by its name, it is looked at:", ""]
    if answer.unread:
        return "\n".join([*lines, f"The file is not read: {answer.unread}", ""])
    chosen = [*(one.codemod for one in answer.looked), *(one.codemod for one in answer.passed), *answer.closed]
    lines += _in_short(answer, chosen)
    lines += _told_elsewhere(answer)
    lines += _stated(answer)
    lines += _near(answer, chosen)
    if answer.facts:
        lines += ["How the place is read:", *(f"    {fact}" for fact in answer.facts), ""]
    for looked in sorted(answer.looked, key=_rank):
        lines += _of_codemod(looked)
    nothing = "look at the file, and ask nothing of the line: what they look for does not stand there"
    lines += _listed(nothing, [s.codemod for s in answer.looked if s.is_silent])
    lines += _left_out(answer.passed)
    lines += _listed("find none of their words in the file", answer.closed)
    return "\n".join(lines) + "\n"


def _rank(looked: Looked) -> int:
    """Those that tell most of the line come first."""
    tells = (looked.found, looked.beside, looked.recognised and looked.reasons, looked.judged)
    return next((at for at, told in enumerate(tells) if told), len(tells))


def _in_short(answer: WhyNot, chosen: Sequence[DdpCodemod]) -> Iterator[str]:
    """The sentence that stands first where the place may be covered by no rule."""
    looked = answer.looked
    if any(one.found or one.beside or one.recognised for one in looked) or any(s.is_here for s in answer.stated):
        return
    asked = any(one.asks for one in looked)
    if len(chosen) > FEW:
        yield f"No codemod {'found in this statement what it looks for' if asked else 'looks for anything in this statement'}."
        yield "The error may be one that no rule covers, or one that is judged at another line."
    elif asked:
        return
    else:
        yield f"Nothing in this statement is what {' or '.join(c.code for c in chosen)} looks for."
    yield ""


def _told_elsewhere(answer: WhyNot) -> Iterator[str]:
    """Findings of other lines that may be the same fault."""
    if not answer.elsewhere:
        return
    yield "What is reported of this function, and where that is called, may be the same fault:"
    for f in answer.elsewhere:
        place = f"line {f.span.line}" if f.path == answer.path else f"{f.path}:{f.span.line}"
        yield f"    {f.code} {f.name}, {place} ({f.applicability.value}): {f.message}"
    yield ""


def _stated(answer: WhyNot) -> Iterator[str]:
    """What the code said that left the place alone."""
    if not answer.stated:
        return
    yield "Left alone here, in this function or in the whole file, for this reason:"
    near = {codemod.code for codemod, _ in answer.nearest}
    ordered = sorted(answer.stated, key=lambda one: (not one.is_here, not near.intersection(one.codes)))
    yield from (f"    {', '.join(one.codes)}: {one.text(answer.path)}" for one in ordered[:MOST_STATED])
    yield ""


def _near(answer: WhyNot, chosen: Sequence[DdpCodemod]) -> Iterator[str]:
    """The rules that speak of what stands there, where none has something to say of it."""
    tells = {one.codemod.code: one for one in answer.looked}
    if len(chosen) <= FEW or not answer.nearest or any(
        f.severity not in LIGHT for one in answer.looked for f in (*one.found, *one.beside)
    ):
        return
    yield "The rules nearest to this statement, by what they speak of; a fault that is none of these has no rule:"
    for codemod, missing in answer.nearest:
        yield f"    {codemod.code} {codemod.rule_name()}: {codemod.summary()}"
        if missing:
            yield f"        does not look at the file, which holds no {missing}"
        elif codemod.code not in tells:
            yield "        leaves the file out"
        elif tells[codemod.code].is_silent:
            told = any(codemod.code in one.codes for one in answer.stated)
            nothing = "looks at the file, and finds nothing in the line that it looks for"
            yield f"        {'says above what it left alone' if told else nothing}"
    yield ""


def _of_codemod(looked: Looked) -> Iterator[str]:
    codemod = looked.codemod
    head = f"{codemod.code} {codemod.rule_name()}"
    for finding in looked.found:
        yield f"{head} reports it ({finding.applicability.value}): {finding.message}"
        if finding.reason:
            yield f"    {finding.reason}"
    if not looked.found and looked.beside:
        yield f"{head} reports nothing here, and names this line in what it reports elsewhere:"
        yield from (f"    line {f.span.line} ({f.applicability.value}): {f.message}" for f in looked.beside[:MOST])
    elif not looked.found and (looked.reasons or looked.judged):
        yield _heading(head, looked)
        yield from (f"    judged line {one.line} of this function: {one.reason}" for one in looked.judged)
        yield from (f"    {reason}" for reason in looked.reasons)
    if not looked.is_silent:
        yield ""


def _heading(head: str, looked: Looked) -> str:
    if looked.asks:
        return f"{head} looked at it, and reports nothing here. What decided, then what that rests on:"
    if looked.judged:
        return f"{head} asks nothing of this line, and judges another one:"
    return f"{head} asks nothing of this line, and reports nothing here. What it asked of what stands round it, or of the file:"


def _left_out(passed: Sequence[Passed]) -> Iterator[str]:
    """Each reason once, with the codemods that have it."""
    if not passed:
        return
    yield f"{len(passed)} leave the file out: its kind, or what the project holds, is not theirs:"
    grouped: dict[str, list[str]] = {}
    for one in passed:
        grouped.setdefault("; ".join(one.reasons[:MOST]), []).append(one.codemod.code)
    for reason, codes in sorted(grouped.items(), key=lambda group: not group[0]):
        yield f"    {', '.join(codes)}{': ' if reason else ''}{reason}"
    yield ""


def _listed(what: str, those: Sequence[DdpCodemod]) -> list[str]:
    if not those:
        return []
    return [f"{len(those)} {what}:", f"    {', '.join(c.code for c in those)}", ""]
