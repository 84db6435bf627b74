"""`/ddpfix …` in comments: who may, what it does, and how the one who asked hears of it."""

from __future__ import annotations

import re

import pytest

from ddpfix import catalog, explain
from ddpfix.bot.body import harmless
from ddpfix.bot.commands import Command, parse
from ddpfix.bot.events import Job
from ddpfix.bot.forge import Comment
from ddpfix.bot.outcome import Outcome
from ddpfix.bot.worker import do
from tests.bot.conftest import FIXED, MODULE, World
from tests.bot.githost import git


def say(world: World, text: str, *, author: str = "ada", number: int = 1) -> list[Outcome]:
    """A comment, as it reaches the bot."""
    world.repo.writers.add("ada")
    comment = world.forge.say(world.slug, number, author, text)
    return do(world.bot(topics=("safe",)), Job(world.slug, number, Comment(comment, text, author)))


def receipts(world: World) -> list[str]:
    return [content for _, content in world.repo.reactions]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("/ddpfix rerun", Command("rerun")),
        ("/ddpfix Ignore DDP101 repo\nbecause", Command("ignore", ("DDP101", "repo"))),
        ("/ddpfix", Command("")),
        ("please /ddpfix rerun", None),
        ("> /ddpfix close", None),
        ("/ddpfixes rerun", None),
        ("", None),
    ],
)
def test_a_command_stands_at_the_very_beginning(text: str, wanted: Command | None) -> None:
    assert parse(text) == wanted


def test_rerun_looks_again(world: World) -> None:
    world.safe()
    world.commit({"other.py": MODULE.replace(b"Model", b"Other")})
    assert [o.action for o in say(world, "/ddpfix rerun")] == ["updated"]
    assert receipts(world) == ["eyes", "rocket"]
    assert len(world.notes()) == 1  # the command itself


def test_rebuild_throws_other_commits_away(world: World) -> None:
    world.safe()
    world.commit({"mine.py": b"x = 1\n"}, branch="ddpfix/safe")
    assert say(world, "/ddpfix rerun")[0].action == "refused-command"
    assert "ada@example.test" in world.notes()[-1]
    assert receipts(world) == ["eyes", "confused"]
    assert say(world, "/ddpfix rebuild")[0].action == "updated"
    assert git(world.git, "rev-list", "--count", "main..ddpfix/safe") == "1"


def test_rebuild_brings_back_what_a_person_closed(world: World) -> None:
    world.safe()
    world.forge.close_pull(world.slug, 1)
    assert say(world, "/ddpfix rebuild")[0].action == "created"
    assert world.repo.pulls[2]["state"] == "open"


def test_ignore_leaves_a_codemod_out_of_this_pull_request(world: World) -> None:
    world.commit({"log.py": WRITER})
    world.safe()
    assert b"sync_dist" in world.file("model.py")
    assert say(world, "/ddpfix ignore DDP101")[0].action == "updated"
    assert world.file("model.py") == MODULE
    assert world.file("log.py") != WRITER
    assert world.safe().action == "unchanged"  # it is remembered


def test_ignore_repo_changes_the_settings_in_the_same_pull_request(world: World) -> None:
    world.commit({"pyproject.toml": b'[tool.ddpfix]\nignore = [\n    "DDP203",  # prints are wanted\n]\n\n[tool.other]\nx = 1\n'})
    world.safe()
    assert say(world, "/ddpfix ignore DDP101 repo")[0].action == "updated"
    assert world.file("pyproject.toml") == (
        b'[tool.ddpfix]\nignore = [\n    "DDP203",  # prints are wanted\n    "DDP101",\n]\n\n[tool.other]\nx = 1\n'
    )
    assert world.file("model.py") == MODULE
    assert world.safe().action == "unchanged"


def test_nobody_is_called_by_an_explanation() -> None:
    for codemod in catalog.all_codemods():
        page = harmless(explain.page(codemod))
        prose = re.sub(r"```.*?```|^    .*?$|`[^`\n]*`", "", page, flags=re.S | re.M)
        assert not re.search(r"#\d|(?<!\w)@\w", prose), codemod.code
    assert "`pytorch/pytorch#97030`" in harmless(explain.page(catalog.lookup("DDP003")))
    trusted = "see [it](https://x.test/a/b/issues/1), a@b.test, &#39;"
    assert harmless(trusted) == trusted


def test_explain_answers_with_the_page(world: World) -> None:
    world.safe()
    say(world, "/ddpfix explain ddp101")
    assert "# DDP101 unsynced-metric" in world.notes()[-1]
    assert "## Safety" in world.notes()[-1]


def test_close_counts_as_a_persons_no(world: World) -> None:
    world.safe()
    assert say(world, "/ddpfix close")[0].action == "closed"
    assert world.pull()["state"] == "closed"
    assert world.safe().action == "closed-by-human"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("/ddpfix dance", "`/ddpfix rebuild`"),
        ("/ddpfix", "`/ddpfix rebuild`"),
        ("/ddpfix ignore", "say which codemod"),
        ("/ddpfix ignore DDP999", "no codemod `DDP999`"),
        ("/ddpfix ignore DDP101 everywhere", "`here` or `repo`"),
        ("/ddpfix explain @everyone<b>", "no codemod `everyoneb`"),
    ],
)
def test_what_is_not_understood_is_answered_with_the_reason(world: World, text: str, words: str) -> None:
    world.safe()
    tip = world.tip()
    assert say(world, text)[0].action == "refused-command"
    assert words in world.notes()[-1]
    assert receipts(world) == ["eyes", "confused"]
    assert world.tip() == tip


def test_a_comment_of_someone_who_may_not_write_does_nothing(world: World) -> None:
    world.safe()
    before = world.pull().copy()
    assert [o.action for o in say(world, "/ddpfix close", author="mallory")] == ["ignored"]
    assert receipts(world) == []
    assert world.notes() == ["/ddpfix close"]  # no reply: nobody can make the bot talk
    assert world.pull() == before


def test_thirty_comments_of_a_stranger_cost_one_question_and_no_writing(world: World) -> None:
    world.safe()
    bot, before, log = world.bot(), len(world.forge.writes(world.slug)), len(world.forge.log)
    for number in range(30):
        said = Comment(5000 + number, "/ddpfix rebuild", "mallory", belongs=False)
        assert do(bot, Job(world.slug, 1, said))[0].action == "ignored"
    assert world.forge.writes(world.slug)[before:] == []
    assert len(world.forge.log) == log + 1
    world.repo.writers.add("mallory")  # who may push from now on is heard, if not at once
    world.clock.time += 601
    assert do(bot, Job(world.slug, 1, Comment(6000, "/ddpfix explain DDP101", "mallory", belongs=False)))[0].action == "explained"


def test_a_command_on_somebody_elses_pull_request_does_not_touch_it(world: World) -> None:
    world.commit({"mine.py": b"x = 1\n"})
    git(world.git, "update-ref", "refs/heads/mine", "main")
    git(world.git, "update-ref", "refs/heads/main", "main~1")
    number = world.forge.open_by_hand(world.slug, "mine")
    for word in ("rebuild", "close", "ignore DDP101"):
        assert say(world, f"/ddpfix {word}", number=number)[0].action == "refused-command"
    assert "not one that ddpfix opened" in world.notes(number)[-1]
    assert world.repo.pulls[number]["state"] == "open"


def test_marks_that_somebody_pasted_do_not_make_a_pull_request_the_bots(world: World) -> None:
    world.safe()
    git(world.git, "update-ref", "refs/heads/mine", world.commit({"mine.py": b"x = 1\n"}))
    git(world.git, "update-ref", "refs/heads/main", "main~1")
    number = world.forge.open_by_hand(world.slug, "mine")
    world.repo.pulls[number]["body"] = world.pull()["body"]
    assert say(world, "/ddpfix close", number=number)[0].action == "refused-command"
    assert world.repo.pulls[number]["state"] == "open"
    assert world.file("model.py") == FIXED


WRITER = b"""\
import lightning.pytorch as pl


class Log(pl.Callback):
    def on_train_epoch_end(self, trainer, pl_module):
        with open("log.txt", "a") as file:
            file.write("epoch")
"""
