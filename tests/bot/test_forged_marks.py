"""Marks that somebody else wrote: in source, in file names, in comments, in the bot's own text; none of them is believed."""

from __future__ import annotations

import re
from dataclasses import replace

from ddpfix.bot.events import Job
from ddpfix.bot.forge import Comment, Pull
from ddpfix.bot.marks import Marks, Seal
from ddpfix.bot.worker import do
from tests.bot.conftest import FIXED, MODULE, STATE, World
from tests.bot.githost import git
from tests.bot.github_forge import Account
from tests.bot.test_commands import say
from tests.bot.test_review import pull_request, review, suggestions

SEAL = Seal(STATE.key, "mender[bot]", "GitHub 7")
OLD = "<!-- ddpfix:pr topic=safe -->\n<!-- ddpfix:state head={0} base={0} tool=0.1.0 run=ab -->".format("a" * 40)


def pull(body: str, **named: object) -> Pull:
    given = {"author": "mender[bot]", "branch": "ddpfix/safe", **named}
    return Pull(1, "open", "t", body, False, "u", tip="1" * 40, base="main", **given)  # type: ignore[arg-type]


def test_only_the_last_mark_of_a_text_of_its_own_counts() -> None:
    marks = Marks("safe", "a" * 40, "b" * 40, "0.1.0", ("DDP101",), (), run="ab")
    block = SEAL.of_pull("ddpfix/safe", marks)
    assert SEAL.left(pull(f"text\n\n{block}\n")) == marks
    assert SEAL.left(pull(f"text\n\n{block}\n\na person's words\n")) == marks
    believed = [
        pull(f"{block}", author="eve"),
        pull(f"{block}", author=""),
        pull(f"{block}", branch="ddpfix/unsafe"),
        pull(block.replace("a" * 40, "c" * 40)),
        pull(block.replace("here=DDP101", "here=DDP101,DDP102")),
        pull(block.replace(" mac=", " closed=bot mac=")),
        pull(re.sub(r" mac=\w+", "", block)),
        pull(f"{block}\n<!-- ddpfix:pr topic=safe mac={'0' * 64} -->"),
        pull(f"{block}\n{SEAL.block('note', '1/')}"),
        pull(OLD),
        pull(""),
    ]
    assert [SEAL.left(p) for p in believed] == [None] * len(believed)
    for other in (Seal(b"another key of somebody", SEAL.account, SEAL.repository), Seal(STATE.key, SEAL.account, "GitHub 8")):
        assert other.left(pull(block)) is None
    assert "key" not in repr(SEAL)


MARKS = (
    "<!-- ddpfix:closed by=bot -->",
    "<!-- ddpfix:ignore here= repo=DDP203 -->",
    "<!-- ddpfix:ignore here=DDP999 repo= -->",
    f"<!-- ddpfix:pr topic=safe closed=bot mac={'0' * 64} -->",
)


def test_marks_in_comments_of_the_source_and_in_file_names_are_not_believed(world: World) -> None:
    comments = "".join(f"        # {mark}\n" for mark in MARKS)
    named = f"{MARKS[0]}/{MARKS[1]}.py"
    world.commit({named: MODULE.replace(b"        loss = F", f"{comments}        loss = F".encode()), "model.py": FIXED})
    assert world.safe().action == "created"
    assert "-->.py" in git(world.git, "diff", "--name-only", "main", "ddpfix/safe")
    assert "ddpfix.toml" not in git(world.git, "diff", "--name-only", "main", "ddpfix/safe")
    assert world.safe().action == "unchanged"
    world.forge.close_pull(world.slug, 1)
    assert world.safe().action == "closed-by-human"


def test_a_true_mark_of_an_earlier_pull_request_in_the_source_is_not_believed(world: World) -> None:
    world.safe()
    world.commit({"model.py": FIXED})
    assert world.safe().action == "closed"
    (true,) = re.findall(r"<!-- ddpfix:pr .* -->", world.pull()["body"])
    assert "closed=bot" in true
    world.commit({"model.py": MODULE.replace(b"        loss = F", f"        # {true}\n        loss = F".encode())})
    assert world.safe().action == "created"
    world.forge.close_pull(world.slug, 2)
    assert world.safe().action == "closed-by-human"


def test_what_an_outsider_pastes_gets_no_report_and_keeps_back_no_suggestion(world: World) -> None:
    pull_request(world, {"model.py": MODULE})
    review(world)
    texts = [*world.notes(), *suggestions(world)]
    world.repo.comments.clear()
    for made in world.repo.reviews:
        for comment in made["comments"]:
            comment["user"] = {"login": "eve", "type": "User"}  # the very text, true marks and all
    mine = world.forge.say(world.slug, 1, "eve", texts[0])
    assert review(world).action == "reviewed"
    assert world.repo.comments[mine]["body"] == texts[0]
    assert len(world.notes()) == 2
    assert len(suggestions(world)) == 2
    assert review(world).action == "unchanged"


def test_a_pull_request_of_an_earlier_version_is_left_alone_until_somebody_says_so(world: World) -> None:
    world.safe()
    world.repo.pulls[1]["body"] = f"No training was run.\n\n---\n\n{OLD}\n"
    tip = world.tip()
    world.commit({"other.py": MODULE.replace(b"Model", b"Other")})
    for _ in range(2):
        assert world.safe().action == "left-to-human"
    assert world.tip() == tip
    assert len(world.notes()) == 1
    assert "/ddpfix rebuild" in world.notes()[0]
    assert say(world, "/ddpfix rebuild")[0].action == "updated"
    assert OLD not in world.pull()["body"]
    assert world.safe().action == "unchanged"


def test_a_code_that_is_gone_does_not_stop_the_topic(world: World) -> None:
    world.safe()
    seal = world.bot().seal(world.bot().forge.repository(world.slug))
    found = seal.cut(pull(world.pull()["body"]))
    assert found is not None
    world.repo.pulls[1]["body"] = found[0] + seal.of_pull("ddpfix/safe", replace(found[1], here=("DDP999",)))
    assert world.safe().action == "updated"


def test_a_token_of_a_workflow_knows_its_account(world: World) -> None:
    world.forge.accounts["workflow"] = Account("github-actions[bot]", workflow=True)
    bot = world.bot(token="workflow", topics=("safe",))
    assert bot.repository(world.slug)[0].action == "created"
    assert bot.forge.account(world.slug) == "github-actions[bot]"
    assert bot.repository(world.slug)[0].action == "unchanged"


def test_an_answer_is_given_once_however_often_the_service_was_ended(world: World) -> None:
    world.safe()
    world.repo.writers.add("ada")
    said = Comment(world.forge.say(world.slug, 1, "ada", "/ddpfix explain DDP101"), "/ddpfix explain DDP101", "ada")
    for _ in range(3):
        do(world.bot(), Job(world.slug, 1, said))
    assert len(world.notes()) == 2
