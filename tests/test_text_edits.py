"""YAML files: scalars changed by their exact span, comments put above a line, every other byte as it was."""

from __future__ import annotations

import pytest

from codemods.api.findings import AddComment, Edit, ReplaceExpression, SetKeyword
from codemods.files.text_file import TextFile
from codemods.rewriting import text_edits
from codemods.rewriting.rewriter import rewrite_bytes
from codemods.rewriting.runs import RewriteError
from codemods.store.project import Project


def scalar(file: TextFile, word: str, new: str) -> ReplaceExpression:
    at = file.text.index(word)
    return ReplaceExpression(file.path, file.span_between(at, at + len(word)), new)


def edited(text: str, word: str, new: str, *comment: str) -> str:
    file = TextFile("a.yaml", text.encode())
    edit = scalar(file, word, new)
    edits: list[Edit] = [edit, AddComment(file.path, edit.span, comment)] if comment else [edit]
    return rewrite_bytes(file, edits).decode()


@pytest.mark.parametrize(
    ("text", "word", "new", "after"),
    [
        ("a: 1 # one\nflag:   True   # why\n\n", "True", "False", "a: 1 # one\nflag:   False   # why\n\n"),
        ("strategy: 'ddp'\n", "'ddp'", "ddp_x", "strategy: 'ddp_x'\n"),
        ('strategy: "ddp"\r\nb:\r\n- c\r\n', '"ddp"', "ddp_x", 'strategy: "ddp_x"\r\nb:\r\n- c\r\n'),
        ("t: {strategy: ddp, devices: 2}\n", "ddp", "ddp_x", "t: {strategy: ddp_x, devices: 2}\n"),
        ("f: &on true\ng: 2", "true", "false", "f: &on false\ng: 2"),
        ("名前: ぬ\n---\nflag: yes\n", "yes", "false", "名前: ぬ\n---\nflag: false\n"),
    ],
)
def test_only_the_scalar_changes(text: str, word: str, new: str, after: str) -> None:
    assert edited(text, word, new) == after


def test_a_comment_stands_above_the_line_at_its_indentation() -> None:
    text = "trainer:\n  accelerator: gpu\n  strategy: ddp_x  # here\n"
    assert edited(text, "ddp_x", "ddp", "Off.", "Why.") == (
        "trainer:\n  accelerator: gpu\n  # Off.\n  # Why.\n  strategy: ddp  # here\n"
    )


def test_a_separator_of_unicode_is_no_line_of_python() -> None:
    """PyYAML ends a line at U+0085 and U+2028, Python does not: places are counted in characters."""
    assert edited('a: "b\u2028c"\nflag: true\n', "true", "false") == 'a: "b\u2028c"\nflag: false\n'


def test_a_byte_order_mark_stays() -> None:
    file = TextFile("a.yaml", b"\xef\xbb\xbfflag: true\n")
    assert rewrite_bytes(file, [scalar(file, "true", "false")]) == b"\xef\xbb\xbfflag: false\n"


@pytest.mark.parametrize("value", ["a: b", "# c", "[d", "a, b", ""])
def test_what_would_read_as_something_else_is_quoted(value: str) -> None:
    file = TextFile("a.yaml", edited("t: {flag: x, other: 1}\n", "x", value).encode())
    assert file.documents[0].value[0][1].value[0][1].value == value


def test_an_edit_that_would_change_the_meaning_is_an_error() -> None:
    file = TextFile("a.yaml", b"flag: true\nother: 1\n")
    whole = ReplaceExpression(file.path, file.span_between(0, 10), "false")
    with pytest.raises(RewriteError, match=r"same YAML|more than was meant"):
        text_edits.replacements(file, [whole])
    with pytest.raises(RewriteError, match="more than was meant"):  # a piece of a block scalar
        edited("x: |\n  flag: yes\n", "yes", "no")
    with pytest.raises(RewriteError, match="SetKeyword"):
        text_edits.replacements(file, [SetKeyword(file.path, file.span_between(0, 4), "a", "b")])


def test_a_template_is_no_yaml_and_an_unknown_tag_is_no_error() -> None:
    assert TextFile("a.yaml", b"{% if x %}\na: {{ b }}\n{% endif %}\n").documents == ()
    assert len(TextFile("a.yaml", b"a: !include other.yaml\n---\nb: !!python/name:os.system x\n").documents) == 2


def test_a_project_reads_yaml_without_a_syntax_tree() -> None:
    file = Project.of({"conf/a.yml": b"flag: true  # ddpfix: ignore[DDP001] asked\n"}).module("conf/a.yml")
    assert isinstance(file, TextFile) and file.functions == [] and file.nodes(type(file.tree)) == [file.tree]
    assert [(s.line, s.codes, s.reason) for s in file.suppressions] == [(1, ("DDP001",), "asked")]
