"""What a codemod is, told from its docstring: for the terminal, as JSON, and as the pages under docs/."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from codemods.api.codemod import SECTIONS, TOPICS, DdpCodemod
from ddpfix.catalog import all_codemods, is_plugged_in

FORMATS = ("text", "json", "markdown")


def facts(codemod: DdpCodemod) -> dict[str, Any]:
    """Everything that is known of a codemod, in plain values."""
    return {
        "code": codemod.code,
        "name": codemod.rule_name(),
        "topic": codemod.topic().replace("_", "-"),
        "summary": codemod.summary(),
        "opt_in": codemod.opt_in,
        "sections": codemod.sections(),
    }


def one(codemod: DdpCodemod, output_format: str) -> str:
    """The whole story of one codemod."""
    if output_format == "json":
        return json.dumps(facts(codemod), ensure_ascii=False, indent=1) + "\n"
    return re.sub(r"^```\w*\n", "", page(codemod), flags=re.M)  # fences are for pages


def page(codemod: DdpCodemod, more: Mapping[str, tuple[str, str]] = MappingProxyType({})) -> str:
    """The codemod's page in Markdown. more: a heading -> heading and text of a section that goes in front of it."""
    sections = codemod.sections()
    out = [f"# {codemod.code} {codemod.rule_name()}", "", codemod.summary(), ""]
    out += [f"Topic: {codemod.topic().replace('_', '-')}." + (" Only where it is asked for." if codemod.opt_in else ""), ""]
    for heading in SECTIONS:
        if heading in more:
            out += [f"## {more[heading][0]}", "", more[heading][1], ""]
        if text := sections.get(heading):
            out += [f"## {heading}", "", text, ""]
    if appendix := codemod.appendix():
        out += [appendix, ""]
    silence = (
        f"`# ddpfix: ignore[{codemod.code}] why` on the line or above it, "
        f"`# ddpfix: ignore-file[{codemod.code}] why` for a file, "
        f'`ignore = ["{codemod.code}"]` under `[tool.ddpfix]` for a project.'
    )
    out += ["## How to silence it", "", silence]
    return "\n".join(out).rstrip() + "\n"


def topic(word: str) -> tuple[DdpCodemod, ...]:
    """The codemods of a topic; none where no topic is called so."""
    plain = word.strip().lower().replace("-", "_")
    return tuple(c for c in all_codemods() if c.topic() == plain)


def several(codemods: Sequence[DdpCodemod], output_format: str) -> str:
    """Codemods in a line each, under the word for what they have in common."""
    if output_format == "json":
        return json.dumps([facts(c) for c in codemods], ensure_ascii=False, indent=1) + "\n"
    return f"{rows(codemods)}\n`ddpfix explain {codemods[0].code}` says all about one.\n"


def rules(output_format: str, more: Sequence[DdpCodemod] = ()) -> str:
    """The list of all codemods. more: those of a project's renames and plug-ins."""
    codemods = (*all_codemods(), *more)
    if output_format == "json":
        return json.dumps([facts(c) for c in codemods], ensure_ascii=False, indent=1) + "\n"
    if output_format == "markdown":
        return table(all_codemods())
    return rows(codemods)


def rows(codemods: Sequence[DdpCodemod]) -> str:
    """A line for each codemod; a plug-in is called one."""
    width = max(len(c.rule_name()) for c in codemods)
    mark = {c.code: " (plug-in)" for c in codemods if is_plugged_in(c)}
    return "".join(f"{c.code}  {c.rule_name().ljust(width)}  {c.summary()}{mark.get(c.code, '')}\n" for c in codemods)


def table(codemods: tuple[DdpCodemod, ...]) -> str:
    """A Markdown table for each topic that has codemods."""
    out = ["# The codemods", ""]
    for topic in TOPICS:
        here = [c for c in codemods if c.topic() == topic]
        if not here:
            continue
        out += [f"## {topic.replace('_', '-')}", "", "| code | name | what it finds |", "| --- | --- | --- |"]
        out += [f"| [{c.code}](codemods/{c.rule_name()}.md) | {c.rule_name()} | {_cell(c.summary())} |" for c in here]
        out.append("")
    return "\n".join(out).rstrip() + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def pages() -> dict[str, str]:
    """docs-relative path -> text, for the pages that are made from the product alone."""
    from ddpfix import argument_page, rank_page

    out = {"codemods.md": table(all_codemods())}
    out["ranks.md"] = rank_page.page()
    out["training-arguments.md"] = argument_page.page()
    return out
