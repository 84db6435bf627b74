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


def pull(state: PullState = "open", marked: Marks | None = None, number: int = 1) -> Pull:
    return Pull(number, state, "t", (marked or Marks("safe")).text(), False, "u", "bot", "ddpfix/safe", "1" * 40, "main")


def branch(*commits: RemoteCommit) -> Branch:
    return Branch(commits[0].sha, commits)


FOREIGN = branch(commit("2", "1" * 40, by=ADA), commit("1"))
OURS = branch(commit("1"), commit("b", "a" * 40, by=ADA))


def action(wanted: Wanted, seen: Seen, **policy: object) -> str:
    return decide(wanted, seen, Policy(**policy)).action  # type: ignore[arg-type]


def test_the_whole_table() -> None:
    rows = [
        (WANTED, Seen(None, ()), "create"),
        (WANTED, Seen(OURS, ()), "create"),  # pushed, and the pull request was never opened
        (WANTED, Seen(OURS, (pull(),)), "unchanged"),
        (WANTED, Seen(None, (pull(),)), "left-to-human"),  # somebody deleted the branch, and the forge let it open
        (EMPTY, Seen(None, (pull(),)), "left-to-human"),
        (WANTED, Seen(OURS, (replace(pull(), base="release"),)), "left-to-human"),
        (WANTED, Seen(OURS, (replace(pull(), body="my own words"),)), "left-to-human"),
        (WANTED, Seen(branch(commit("1", tree="o" * 40)), (pull(),)), "update"),
        (WANTED, Seen(branch(commit("1", "9" * 40)), (pull(),)), "update"),  # the base has moved
        (WANTED, Seen(FOREIGN, (pull(),)), "left-to-human"),
        (WANTED, Seen(FOREIGN, ()), "left-to-human"),
        (WANTED, Seen(None, (pull("closed"),)), "closed-by-human"),
        (WANTED, Seen(None, (pull("closed", Marks("safe", closed=True)),)), "create"),
        (WANTED, Seen(None, (pull("merged"),)), "create"),
        (WANTED, Seen(None, (pull("merged", number=2), pull("closed"))), "create"),  # the last one counts
        (WANTED, Seen(None, (), others_open=2), "deferred"),
        (WANTED, Seen(OURS, (pull(),), others_open=9), "unchanged"),  # it is open already
        (EMPTY, Seen(None, ()), "nothing"),
        (EMPTY, Seen(OURS, (pull(),)), "close-empty"),
        (EMPTY, Seen(OURS, (pull("merged"),)), "delete-branch"),
        (EMPTY, Seen(OURS, (pull("closed"),)), "nothing"),  # somebody may still want to look at it
        (EMPTY, Seen(FOREIGN, (pull(),)), "left-to-human"),
    ]
    assert [action(wanted, seen) for wanted, seen, _ in rows] == [said for _, _, said in rows]


def test_rebuild_goes_over_people() -> None:
    assert action(WANTED, Seen(FOREIGN, (pull(),)), rebuild=True) == "update"
    assert action(WANTED, Seen(None, (pull("closed"),)), rebuild=True) == "create"


def test_what_is_on_top_decides_whose_a_branch_is() -> None:
    formatter = "fmt@example.test"
    formatted = branch(commit("2", "1" * 40, by=formatter, tree="f" * 40), commit("1"))
    assert formatted.foreign() is not None
    assert formatted.foreign([formatter.upper()]) is None
    assert action(WANTED, Seen(formatted, (pull(),)), ignored_authors=(formatter,)) == "update"
    # below a formatter's commit must be one of the bot's, not just anybody's
    assert branch(commit("2", "1" * 40, by=formatter), commit("1", by=ADA)).foreign([formatter]) is not None
    assert branch(commit("1", by=formatter)).foreign([formatter]) is not None


def test_a_merge_of_the_base_by_a_person_is_a_persons_commit() -> None:
    merge = RemoteCommit("3" * 40, ("1" * 40, BASE), TREE, ADA, ADA, "Merge branch 'main'", False)
    assert action(WANTED, Seen(branch(merge, commit("1")), (pull(),))) == "left-to-human"


def test_several_commits_stand_on_the_base_as_one_does() -> None:
    two = branch(commit("2", "1" * 40), commit("1", tree="i" * 40), commit("b", "a" * 40, by=ADA))
    assert action(WANTED, Seen(two, (pull(),))) == "unchanged"
