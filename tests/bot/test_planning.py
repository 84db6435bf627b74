"""What is to be done, as a function of what stands there: the cases that are hard to bring about from outside."""

from __future__ import annotations

from dataclasses import replace

from ddpfix.bot.forge import Pull, PullState
from ddpfix.bot.marks import Marks
from ddpfix.bot.planning import Branch, Policy, Seen, Wanted, decide
from ddpfix.git import RemoteCommit

BASE, TREE = "b" * 40, "t" * 40
BOT, ADA = "bot@example.test", "ada@example.test"
WANTED = Wanted("safe", "ddpfix/safe", "main", BASE, draft=False, tree=TREE, commit="c" * 40, title="t", text="x")
EMPTY = replace(WANTED, tree=None, commit=None)


def commit(name: str, parent: str = BASE, *, by: str = BOT, tree: str = TREE) -> RemoteCommit:
    return RemoteCommit(name * 40, (parent,), tree, by, by, "subject", by == BOT)


def pull(state: PullState = "open", number: int = 1) -> Pull:
    return Pull(number, state, "t", "text", False, "u", "bot", "ddpfix/safe", "1" * 40, "main")


def seen(branch: Branch | None, pulls: tuple[Pull, ...], others_open: int = 0, *, closed: bool = False) -> Seen:
    """With marks that are believed in each pull request."""
    return Seen(branch, pulls, others_open, {p.number: Marks("safe", closed=closed) for p in pulls})


def branch(*commits: RemoteCommit) -> Branch:
    return Branch(commits[0].sha, commits)


FOREIGN = branch(commit("2", "1" * 40, by=ADA), commit("1"))
OURS = branch(commit("1"), commit("b", "a" * 40, by=ADA))


def action(wanted: Wanted, stands: Seen, **policy: object) -> str:
    return decide(wanted, stands, Policy(**policy)).action  # type: ignore[arg-type]


def test_the_whole_table() -> None:
    rows = [
        (WANTED, seen(None, ()), "create"),
        (WANTED, seen(OURS, ()), "create"),  # pushed, and the pull request was never opened
        (WANTED, seen(OURS, (pull(),)), "unchanged"),
        (WANTED, seen(None, (pull(),)), "left-to-human"),  # somebody deleted the branch, and the forge let it open
        (EMPTY, seen(None, (pull(),)), "left-to-human"),
        (WANTED, seen(OURS, (replace(pull(), base="release"),)), "left-to-human"),
        (WANTED, Seen(OURS, (pull(),)), "left-to-human"),  # no mark in it that is believed
        (WANTED, seen(branch(commit("1", tree="o" * 40)), (pull(),)), "update"),
        (WANTED, seen(branch(commit("1", "9" * 40)), (pull(),)), "update"),  # the base has moved
        (WANTED, seen(FOREIGN, (pull(),)), "left-to-human"),
        (WANTED, seen(FOREIGN, ()), "left-to-human"),
        (WANTED, seen(None, (pull("closed"),)), "closed-by-human"),
        (WANTED, seen(None, (pull("closed"),), closed=True), "create"),
        (WANTED, seen(None, (pull("merged"),)), "create"),
        (WANTED, seen(None, (pull("merged", number=2), pull("closed"))), "create"),  # the last one counts
        (WANTED, seen(None, (), others_open=2), "deferred"),
        (WANTED, seen(OURS, (pull(),), others_open=9), "unchanged"),  # it is open already
        (EMPTY, seen(None, ()), "nothing"),
        (EMPTY, seen(OURS, (pull(),)), "close-empty"),
        (EMPTY, seen(OURS, (pull("merged"),)), "delete-branch"),
        (EMPTY, seen(OURS, (pull("closed"),)), "nothing"),  # somebody may still want to look at it
        (EMPTY, seen(FOREIGN, (pull(),)), "left-to-human"),
    ]
    assert [action(wanted, stands) for wanted, stands, _ in rows] == [said for _, _, said in rows]


def test_rebuild_goes_over_people() -> None:
    assert action(WANTED, seen(FOREIGN, (pull(),)), rebuild=True) == "update"
    assert action(WANTED, seen(None, (pull("closed"),)), rebuild=True) == "create"


def test_what_is_on_top_decides_whose_a_branch_is() -> None:
    formatter = "fmt@example.test"
    formatted = branch(commit("2", "1" * 40, by=formatter, tree="f" * 40), commit("1"))
    assert formatted.foreign() is not None
    assert formatted.foreign([formatter.upper()]) is None
    assert action(WANTED, seen(formatted, (pull(),)), ignored_authors=(formatter,)) == "update"
    # below a formatter's commit must be one of the bot's, not just anybody's
    assert branch(commit("2", "1" * 40, by=formatter), commit("1", by=ADA)).foreign([formatter]) is not None
    assert branch(commit("1", by=formatter)).foreign([formatter]) is not None


def test_a_merge_of_the_base_by_a_person_is_a_persons_commit() -> None:
    merge = RemoteCommit("3" * 40, ("1" * 40, BASE), TREE, ADA, ADA, "Merge branch 'main'", False)
    assert action(WANTED, seen(branch(merge, commit("1")), (pull(),))) == "left-to-human"


def test_several_commits_stand_on_the_base_as_one_does() -> None:
    two = branch(commit("2", "1" * 40), commit("1", tree="i" * 40), commit("b", "a" * 40, by=ADA))
    assert action(WANTED, seen(two, (pull(),))) == "unchanged"
