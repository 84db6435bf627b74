"""Whatever a stranger may have written is put into every template, and read as a forge reads it: nothing of it comes alive."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Evidence, Finding, Fix, Span
from ddpfix import catalog
from ddpfix.bot.body import footer, harmless, pull_body
from ddpfix.bot.marks import Marks, Seal
from ddpfix.bot.publish import GONE, HANDS_OFF, SUPERSEDED
from ddpfix.bot.remarks import Remark
from ddpfix.bot.review import _summary
from ddpfix.results import Failure, Fixed, Report
from ddpfix.summary import Launch, commit_message, render
from ddpfix.summary.markdown import bare, code, prose, table
from tests.bot.conftest import MODULE, World
from tests.bot.githost import git
from tests.bot.test_commands import say
from tests.bot.test_review import pull_request, review, suggestions
from tests.summary.made import context

T = TypeVar("T")
EVIL = (
    "[Session expired](https://evil.test/in) @acme/owners <!-- ddpfix:closed by=bot --> ![i](http://evil.test/i.png) "
    "www.evil.test fixes #12 acme/one#13 GH-14 acme!15 &#64;acme &commat;acme <b onclick=x> </details> | .@acme /@acme (@1x) <https://evil.test>"
)
HOSTILE = [
    EVIL,
    f"` {EVIL}",
    f"a` {EVIL} `b",
    f"`` {EVIL}",
    f"\\` {EVIL} \\`",
    f"``` {EVIL} ~~~",
    f"```\n\n{EVIL}\n\n```",
    f"\n\n# {EVIL}\n\n    {EVIL}\n~~~\n",
    f"`a`{EVIL}`b`",
    f"'{EVIL}' \"{EVIL}\" ({EVIL})",
    f"</summary></details>{EVIL}<details>",
    f"\u202e\x1b[31m\x00{EVIL}",
    "[Session expired]: https://evil.test/in",
    "`@acme`@acme`@acme``#12`#12",
]
TAGS = re.compile(r"</?(?:details|summary|code|sub|br)>")
OWN = re.compile(r"<!-- ddpfix:\w+[^<>]* mac=[0-9a-f]{64} -->\s*\Z")
READER = MarkdownIt("commonmark").enable("table")
SEAL = Seal(b"the key of this installation", "mender[bot]", "GitHub 7")
CALLS = re.compile(r"(?<!\w)@\w|(?<!\w)#\d|\w#\d|(?<!\w)!\d|\bGH-\d|://|www\.|\u202e|\x1b", re.I)


def alive(text: str) -> list[str]:
    """What a forge makes of a text beyond words, code and the templates' own tags."""
    found: list[str] = []
    text = OWN.sub("", text)

    def walk(tokens: list[Token]) -> None:
        for token in tokens:
            if token.type in ("link_open", "image") and "evil" in str(token.attrs):
                found.append(f"{token.type} {token.attrs}")
            elif token.type in ("html_inline", "html_block"):
                rest = TAGS.sub("", re.sub(r"<code>.*?</code>", "", token.content, flags=re.S))
                found.extend(re.findall(r"<[a-z!/][^>]*", rest, re.I))
                found.extend(CALLS.findall(rest))
            elif token.type == "text" and (call := CALLS.search(token.content)):
                found.append(token.content[max(0, call.start() - 20) : call.end() + 20])
            walk(token.children or [])

    walk(READER.parse(text))
    return found


def test_the_reader_of_this_test_sees_what_a_forge_would() -> None:
    assert len(alive(f"{EVIL}\n\n<i>x</i>")) >= 6
    assert alive("`@acme` and [ours](#there) <sub>`/ddpfix`</sub>") == []


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_what_is_put_in_comes_alive_nowhere(text: str) -> None:
    for put in (code(text), prose(text), f"- {prose(text)}: {prose(text)} {code(text)}", f"a{prose(text)}`b`"):
        assert alive(put) == []
        assert alive(harmless(put)) == []
    assert alive("\n".join(table(("a", "b"), [(prose(text), code(text))]))) == []
    assert alive("\n".join(f"{prose(half)} {prose(half)}" for half in (text[: len(text) // 2], text[len(text) // 2 :]))) == []
    assert not re.search(r"(?<!\w)@\w|[#!]\d|\n", bare(text))


def finding(codemod: DdpCodemod, text: str, level: Applicability | None, line: int = 1) -> Finding:
    path = f"{text.replace(chr(0), '')}.py"
    fix = Fix(level, ()) if level else None
    kinds = ("static", "way", "log", "version", "text")
    evidence = tuple(filled(Evidence, text, kind=kind, path=path, line=row, strength="weak") for row, kind in enumerate(kinds))
    span = Span(line, 0, line, 5)
    own: dict[str, Any] = {"code": codemod.code, "name": codemod.rule_name(), "path": path, "span": span}
    return filled(Finding, text, **own, evidence=evidence, fix=fix, id=f"{codemod.code}{line}")


def filled(cls: type[T], text: str, /, **own: Any) -> T:
    """A value with `text` in every field that is a text, so that a new one is put to the test, too."""
    given: dict[str, Any] = {name: text for name, said in get_type_hints(cls).items() if said is str}
    return cls(**{**given, **own})


@pytest.mark.parametrize("codemod", catalog.all_codemods(), ids=lambda c: c.code)
def test_every_codemods_part_of_a_pull_request_and_of_a_commit(codemod: DdpCodemod) -> None:
    text = HOSTILE[int(codemod.code[-2:]) % len(HOSTILE)]
    safe, unsafe = finding(codemod, text, Applicability.SAFE), finding(codemod, text, Applicability.UNSAFE, 2)
    told, failed = finding(codemod, text, None, 3), finding(codemod, text, Applicability.SAFE, 4)
    before = {safe.path: f"# {EVIL}\nx = 1\n# ```\n".encode()}
    after = {safe.path: f"# {EVIL}\nx = 2\n# ```\n".encode()}
    report = Report(Path(), (safe, unsafe, told, failed), 1, 1, (filled(Failure, text),))
    fixed = Fixed(report, before, after, (safe, unsafe), (told, failed), ((failed, text),))
    flat = " ".join(text.split())
    launches = (filled(Launch, flat, line=1),)
    about = context(branch=flat, home=flat, notes=(text,), launches=launches, pull_request=True, summary_commit=False)
    body = pull_body(render(fixed, about), footer(text), Marks("safe"), partial(SEAL.of_pull, "ddpfix/safe"))
    assert alive(body) == [], body
    assert OWN.search(body)
    message = commit_message(codemod, [safe, unsafe])
    assert "@acme" not in message
    assert "#12" not in message
    assert not re.search(r"^(?:ddpfix-run|fixes)", message, re.M)
    assert alive(_summary([Remark(told, None), Remark(safe, None)])) == []


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_the_bots_own_templates(text: str) -> None:
    for written in (HANDS_OFF.format(why=prose(text)), GONE.format(base=code(text)), footer(text)):
        assert alive(harmless(written)) == []
    assert alive(harmless(SUPERSEDED.format(successor="https://forge.test/acme/one/pull/3"))) in ([], ["://"])


def test_a_hostile_repository_writes_nothing_alive_on_the_forge(world: World) -> None:
    name = "fixes #12 `@acme` [x](https:␣evil.test) <!-- x -->.py".replace("␣", "")
    key = "`[Session expired](https://evil.test) @acme/owners` <!-- ddpfix:closed by=bot -->"
    module = MODULE.replace(b"val/loss", key.encode())
    pull_request(world, {name: module, "log.py": module}, before={"a.py": b"x = 1\n"})
    review(world)
    world.commit({name: module})
    world.run()
    say(world, f"/ddpfix `@acme/owners` {EVIL}", number=2)
    say(world, f"/ddpfix ignore {EVIL}", number=2)
    world.commit({"ddpfix.toml": f"'{EVIL}' = 1\n".encode()})
    say(world, "/ddpfix rerun", number=2)
    assert "Session expired" in world.notes(2)[-1]
    answers = [n for n in world.notes(2) if not n.startswith("/ddpfix")]
    texts = [*world.notes(1), *answers, world.pull(2)["body"], *suggestions(world)]
    assert len(texts) >= 6
    assert [alive(text) for text in texts] == [[]] * len(texts)
    message = git(world.git, "log", "-1", "--format=%B", "ddpfix/safe")
    assert "fixes # 12" in message
    assert world.pull(2)["title"] == "ddpfix: 2 safe fixes in 2 files"
