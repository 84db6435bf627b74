"""What goes wrong on the way: lost answers, servers that fail, limits, two bots at once, rules, tokens that end."""

from __future__ import annotations

import base64
import random
import threading

import pytest

from ddpfix.bot.client import Client, ForgeError, Pace
from ddpfix.git import Clone, Pushed
from tests.bot.conftest import FIXED, MODULE, TOKEN, World
from tests.bot.githost import git
from tests.bot.github_forge import Account, Fault


def open_pulls(world: World) -> list[int]:
    return [n for n, p in world.repo.pulls.items() if p["state"] == "open"]


def test_a_lost_answer_makes_no_second_pull_request(world: World) -> None:
    world.forge.faults.append(Fault("POST", r"/pulls$", lost=True))
    assert world.safe(labels=("bot",)).action == "created"
    assert open_pulls(world) == [1]
    assert world.pull()["labels"] == ["bot"]
    assert world.safe().action == "unchanged"


@pytest.mark.parametrize("status", [500, 502])
def test_a_server_that_fails_while_opening_makes_no_second_pull_request(world: World, status: int) -> None:
    world.forge.faults.append(Fault("POST", r"/pulls$", status))
    assert world.safe().action == "created"
    assert open_pulls(world) == [1]


def test_a_server_that_fails_is_asked_again_where_that_is_safe(world: World) -> None:
    world.run()
    world.commit({"model.py": MODULE.replace(b"Model", b"Other")})
    world.forge.faults += [Fault("GET", r"/pulls$", 502), Fault("PATCH", r"/pulls/1$", 500), Fault("PATCH", r"/pulls/1$", 503)]
    assert world.safe().action == "updated"
    assert world.forge.faults == []
    assert world.clock.slept[:3] == [1.0, 1.0, 2.0]


def test_a_push_whose_pull_request_was_never_opened_is_taken_up_again(world: World) -> None:
    world.forge.faults += [Fault("POST", r"/pulls$", 403, message="Resource not accessible by integration")]
    assert world.safe().action == "failed"
    tip = world.tip()
    assert tip
    assert world.clock.slept == []  # a plain refusal is not asked again
    assert world.safe().action == "created"
    assert world.tip() == tip


def test_a_push_whose_text_was_never_written_is_no_foreign_commit(world: World) -> None:
    world.run()
    world.commit({"other.py": MODULE.replace(b"Model", b"Other")})
    world.forge.faults += [Fault("PATCH", r"/pulls/1$", 403, message="no")]
    assert world.safe().action == "failed"
    assert world.safe().action == "updated"
    assert world.pull()["title"] == "ddpfix: 2 safe fixes in 2 files"
    assert world.tip() in world.pull()["body"]


def test_the_secondary_limit_is_waited_for(world: World) -> None:
    limit = "You have exceeded a secondary rate limit"
    world.forge.faults.append(Fault("POST", r"/pulls$", 403, {"Retry-After": "7"}, limit))
    world.forge.faults.append(Fault("POST", r"/pulls$", 403, {}, limit))
    assert world.safe().action == "created"
    assert world.clock.slept == [7.0, 120.0]
    assert open_pulls(world) == [1]


def test_the_primary_limit_is_waited_for_until_it_ends(world: World) -> None:
    until = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(world.clock.now()) + 90)}
    world.forge.faults.append(Fault("GET", r"/pulls$", 403, until, "API rate limit exceeded"))
    assert world.safe().action == "created"
    assert 90 <= world.clock.slept[0] <= 93


def test_a_wait_of_an_hour_is_told_instead(world: World) -> None:
    until = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(world.clock.now()) + 3500)}
    world.forge.faults.append(Fault("GET", r"/pulls$", 429, until, "API rate limit exceeded"))
    outcome = world.safe()
    assert outcome.action == "failed"
    assert "rate limit" in outcome.why
    assert world.clock.slept == []


def test_writes_keep_their_distance(world: World) -> None:
    client = Client(world.forge.api, lambda renew: {"Authorization": f"Bearer {TOKEN}"}, clock=world.clock, pace=Pace(gap=1.0))
    world.run()
    for _ in range(3):
        client.write("POST", f"/repos/{world.slug}/issues/1/comments", {"body": "x"})
    assert world.clock.slept == [1.0, 1.0]


def test_every_page_of_a_list_is_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.run()
    for number in range(7):
        world.forge.say(world.slug, 1, "ada", f"comment {number}")
    monkeypatch.setattr(world.forge, "page_size", 3)
    found = world.bot().forge.comments(world.slug, 1)
    assert [c.body for c in found] == [f"comment {n}" for n in range(7)]


def test_what_the_description_does_not_allow_is_refused(world: World) -> None:
    client = Client(world.forge.api, lambda renew: {"Authorization": f"Bearer {TOKEN}"}, clock=world.clock, pace=Pace(gap=0))
    for body in ({"title": "t", "head": "x"}, {"title": "t", "head": "x", "base": "main", "lables": []}):
        with pytest.raises(ForgeError, match="OpenAPI") as error:
            client.write("POST", f"/repos/{world.slug}/pulls", body)
        assert error.value.status == 422


def test_an_address_that_is_no_interface_is_told(world: World) -> None:
    client = Client(world.forge.url, lambda renew: {"Authorization": f"Bearer {TOKEN}"}, clock=world.clock, pace=Pace(gap=0))
    with pytest.raises(ForgeError, match="is --api-url right"):
        client.get(f"/{world.slug}.git/info/refs", {"service": "git-upload-pack"})


def test_two_bots_at_once_make_one_pull_request(world: World) -> None:
    # both have looked before either pushes, and both have pushed or lost before either opens
    meet = threading.Barrier(2, timeout=60)

    def before(verb: str, path: str) -> None:
        if verb == "GET" and path.endswith(f"{world.slug}/pulls") and not meet.broken:
            try:
                meet.wait()
            finally:
                meet.abort()

    world.forge.before = before
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(world.safe().action)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert open_pulls(world) == [1]
    assert world.file("model.py") == FIXED
    assert set(found) <= {"created", "unchanged", "updated"}
    assert "created" in found
    assert world.safe().action == "unchanged"


def test_a_commit_that_arrives_while_the_bot_works_is_not_overwritten(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.run()
    world.commit({"other.py": MODULE.replace(b"Model", b"Other")})
    late: list[str] = []
    push = Clone.push

    def slow(clone: Clone, branch: str, commit: str, tip: str | None, *, force: bool = True) -> Pushed:
        if not late:
            late.append(world.commit({"mine.py": b"x = 1\n"}, branch="ddpfix/safe"))
        return push(clone, branch, commit, tip, force=force)

    monkeypatch.setattr(Clone, "push", slow)
    assert world.safe().action == "left-to-human"
    assert world.tip() == late[0]


def test_a_server_that_takes_no_forced_push_gets_an_added_commit(world: World) -> None:
    world.run()
    first = world.tip()
    git(world.git, "config", "receive.denyNonFastForwards", "true")
    world.commit({"other.py": MODULE.replace(b"Model", b"Other")})
    outcome = world.safe()
    assert outcome.action == "updated"
    assert "no forced push" in outcome.why
    assert git(world.git, "merge-base", "--is-ancestor", first, "ddpfix/safe") == ""
    assert git(world.git, "diff", "--name-only", "main...ddpfix/safe").split() == ["model.py", "other.py"]
    assert world.safe().action == "unchanged"


def test_a_branch_bound_by_rules_is_reported_with_them(world: World) -> None:
    world.repo.rules = [{"type": "creation"}, {"type": "required_signatures"}]
    hook = world.git / "hooks" / "pre-receive"
    hook.parent.mkdir()
    hook.write_text("#!/bin/sh\necho 'error: GH013: Repository rule violations found' >&2\nexit 1\n")
    hook.chmod(0o755)
    outcome = world.safe()
    assert outcome.action == "refused"
    assert "GH013" in outcome.why
    assert "creation, required_signatures" in outcome.why
    assert world.repo.pulls == {}


def test_a_token_that_may_only_read_pushes_nothing(world: World) -> None:
    world.forge.accounts["read-only-token"] = Account("reader", write=False)
    assert world.safe(token="read-only-token").action == "skipped"
    world.repo.about = {"permissions": {}}  # the forge does not say
    outcome = world.safe(token="read-only-token")
    assert outcome.action in ("refused", "failed")
    assert "403" in outcome.why
    assert world.tip() == ""


def test_a_push_of_four_megabytes_goes_through(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    # without deltas the whole file travels, in chunks, since it is more than git's http.postBuffer
    for name, value in (("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_KEY_0", "pack.window"), ("GIT_CONFIG_VALUE_0", "0")):
        monkeypatch.setenv(name, value)
    drawn = random.Random(7)  # several files: a Python file of more than two megabytes is taken for data
    noise = [base64.b85encode(drawn.randbytes(1_400_000)) for _ in range(3)]
    names = ("model.py", "first.py", "second.py")
    world.commit({name: MODULE + b"\n# " + text + b"\n" for name, text in zip(names, noise, strict=True)})
    assert world.safe().action == "created"
    assert max(world.forge.sizes) > 4_000_000
    assert b"sync_dist=True" in world.file("model.py")
