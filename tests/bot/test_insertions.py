"""Every text that is written on a forge, found in the source: whatever is put into one goes through what makes it harmless."""

from __future__ import annotations

import ast

import pytest

from tests.bot.insertions import ROOT, Source

MAKERS = ("harmless", "code", "prose", "bare", "sentence", "_word")
# A call whose argument is made harmless once more on its way, or is settled already.
TWICE = {
    "bot/body.py": {"code(place)"},
    "bot/commands.py": {"harmless(explain.page(codemod))", "_word(where)", "_word(command.arguments[0])"},
    "bot/review.py": {"harmless('\\n'.join(out))"},
    # what stands above the bot's own text counts as people's words
    "fleet/publish.py": {
        "prose(campaign.name)", "harmless(f'**{prose(campaign.name)}**\\n\\n{campaign.cover.strip()}')",
    },
}
WRITERS = {
    "open_pull(title)", "open_pull(body)", "edit_pull(title)", "edit_pull(body)", "comment(body)", "edit_comment(body)",
    "review(body)", "Suggestion(words)", "Step(message)", "on_top(message)", "commit(message)",
    "open_issue(title)", "open_issue(body)", "edit_issue(body)",
}  # fmt: skip
FORGETFUL = '''
def told(place: Place, pull: Pull) -> None:
    place.forge.comment(place.slug, pull.number, f"Closed {pull.title}.")
'''
NEW_TEMPLATE = '''
def told(place: Place, finding: Finding) -> None:
    """A writer of a new kind, by a template of its own."""
    text = NEWS.format(path=finding.path)
    note(place.forge, place.seal, place.slug, 1, text)

NEWS = "Look at {path}."
'''
WITHOUT_THE_WHOLE = '''
def told(place: Place, finding: Finding) -> None:
    lines = [f"Look at {code(finding.path)}."]
    lines.append(sentence(finding.message))
    place.forge.comment(place.slug, 1, "\\n".join(lines))
'''


def test_every_writer_is_found() -> None:
    found = {writer for _, writer, _ in Source().written()}
    assert found == WRITERS
    # a new method of the forge, or a new text of one, is to be seen here
    said = {f"{name}({text})" for name, (_, texts) in Source().writers().items() for text in texts}
    assert said - found == {"Suggestion(mark)"}  # which `replace` gives, signed


def test_nothing_is_put_into_a_text_as_it_is() -> None:
    assert Source().problems() == []


def added(module: str, text: str) -> list[str]:
    return Source({module: (ROOT / module).read_text(encoding="utf-8") + text}).problems()


def test_a_writer_that_forgets_it_is_told() -> None:
    told = added("bot/publish.py", FORGETFUL)  # a title is what the forge answered
    assert "bot/publish.py:told: comment(body): answer.json(…) in bot/client.py:_content" in told, told
    assert any("finding.path (Finding.path) in bot/notes.py:told" in p for p in added("bot/notes.py", NEW_TEMPLATE))
    told = added("bot/review.py", WITHOUT_THE_WHOLE)
    assert told
    assert all("not through `harmless`" in p for p in told), told


class _Bared(ast.NodeTransformer):
    """Takes the n-th call of a maker away, and leaves its argument."""

    def __init__(self, number: int) -> None:
        self.left, self.taken = number, ""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in MAKERS and node.args:
            self.left -= 1
            if self.left == -1:
                self.taken = ast.unparse(node)
                return node.args[0]
        return node


@pytest.mark.parametrize("module", ["bot/body.py", "bot/commands.py", "bot/notes.py", "bot/publish.py", "bot/remarks.py",
                                    "bot/review.py", "bot/dashboard.py", "fleet/publish.py"])  # fmt: skip
def test_each_place_that_makes_something_harmless_is_needed(module: str) -> None:
    text = (ROOT / module).read_text(encoding="utf-8")
    unseen, number = set(), 0
    while True:
        bared = _Bared(number)
        tree = bared.visit(ast.parse(text))
        if not bared.taken:
            break
        if not Source({module: ast.unparse(tree)}).problems():
            unseen.add(bared.taken)
        number += 1
    assert number
    assert unseen == TWICE.get(module, set())


def test_no_module_writes_on_a_forge_unseen() -> None:
    """The followed modules are all that call a method of the forge which writes."""
    followed = set(Source().trees)
    names = set(Source().writers()) - {"Suggestion", "Step", "on_top", "review", "comment"}
    for path in ROOT.rglob("*.py"):
        if (module := path.relative_to(ROOT).as_posix()) in followed:
            continue
        calls = (node for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, ast.Call))
        assert not {call.func.attr for call in calls if isinstance(call.func, ast.Attribute)} & names, module
