"""The web service: what it lets in, what it refuses, and the work that comes of it."""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from ddpfix.bot.events import Job
from ddpfix.bot.outcome import Outcome
from ddpfix.bot.webhooks import application
from ddpfix.bot.worker import Worker, do
from tests.bot.conftest import World

SECRET = "a secret of the App"
PUSH = {"ref": "refs/heads/main", "repository": {"full_name": "acme/one", "default_branch": "main"}}


class Service:
    """A client of the service, and what the service was asked to do."""

    def __init__(self, client: TestClient, worker: Worker, done: list[Job]) -> None:
        self.client, self.worker, self.done = client, worker, done
        self.deliveries = 0

    def send(self, event: str, payload: Any, *, raw: bytes = b"", **headers: str) -> int:
        body = raw or json.dumps(payload).encode()
        self.deliveries += 1
        sent = {
            "content-type": "application/json",
            "x-github-event": event,
            "x-github-delivery": f"d-{self.deliveries}",
            "x-hub-signature-256": "sha256=" + hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest(),
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        as_bytes = [(name.encode(), value.encode("latin-1")) for name, value in sent.items()]
        return int(self.client.post("/webhook", content=body, headers=as_bytes).status_code)


@pytest.fixture
def service() -> Iterator[Service]:
    done: list[Job] = []

    def work(job: Job) -> list[Outcome]:
        done.append(job)
        return []

    worker = Worker(work, lambda outcome: None)
    with TestClient(application(worker, SECRET, largest=10_000)) as client:
        yield Service(client, worker, done)


def test_a_push_to_the_default_branch_is_work(service: Service) -> None:
    assert service.send("push", PUSH) == 202
    assert service.worker.wait_until_idle(30)
    assert service.done == [Job("acme/one")]


def test_a_bad_signature_is_refused(service: Service) -> None:
    right = hmac.new(b"another secret", json.dumps(PUSH).encode(), hashlib.sha256).hexdigest()
    for signature in (f"sha256={right}", "sha256=", "", "sha1=abc", "sha256=" + "é" * 64):
        assert service.send("push", PUSH, x_hub_signature_256=signature) == 401
    assert service.done == []


def test_the_signature_is_of_the_very_bytes(service: Service) -> None:
    signature = "sha256=" + hmac.new(SECRET.encode(), json.dumps(PUSH).encode(), hashlib.sha256).hexdigest()
    assert service.send("push", PUSH, raw=json.dumps(PUSH).encode() + b" ", x_hub_signature_256=signature) == 401


def test_what_is_not_signed_is_not_even_parsed(service: Service) -> None:
    assert service.send("push", None, raw=b"{not json", x_hub_signature_256="sha256=0") == 401
    assert service.send("push", None, raw=b"{not json") == 400


def test_a_delivery_that_comes_again_is_not_work_again(service: Service) -> None:
    assert service.send("push", PUSH, x_github_delivery="the same") == 202
    assert service.send("push", PUSH, x_github_delivery="the same") == 200
    assert service.worker.wait_until_idle(30)
    assert service.done == [Job("acme/one")]


def test_a_huge_body_is_refused(service: Service) -> None:
    assert service.send("push", {"padding": "x" * 20_000}) == 413
    # without a length that says so
    body = b'{"padding": "' + b"x" * 20_000 + b'"}'
    parts = iter([body[:9_000], body[9_000:]])
    signed = {"content-type": "application/json", "x-hub-signature-256": f"sha256={'0' * 64}"}
    answer = service.client.post("/webhook", content=parts, headers=signed)
    assert answer.status_code == 413


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "text/plain", "", "application/jsonp"])
def test_another_content_type_is_refused(service: Service, kind: str) -> None:
    assert service.send("push", PUSH, content_type=kind) == 415


def test_another_method_and_another_path_are_refused(service: Service) -> None:
    assert service.client.get("/webhook").status_code == 405
    assert service.client.post("/", content=b"").status_code == 404
    assert service.client.get("/health").text == "well"


def test_a_payload_of_another_shape_is_refused(service: Service) -> None:
    shapes: list[Any] = [{"ref": "refs/heads/main"}, [], {"repository": 3, "ref": ""}, "text"]
    for payload in shapes:
        assert service.send("push", payload) == 400
    assert service.send("push", PUSH, x_github_delivery="") == 400


def test_events_ask_for_their_work() -> None:
    from ddpfix.bot.events import jobs

    def asked(event: str, **payload: Any) -> list[Job]:
        return jobs(event, {"repository": {"full_name": "acme/one", "default_branch": "main"}, **payload}, "ddpfix")

    def pull(ref: str, source: str = "acme/one") -> dict[str, Any]:
        return {"number": 3, "head": {"ref": ref, "repo": {"full_name": source}}}

    def comment(body: str, kind: str = "User", of: str = "MEMBER", **issue: Any) -> list[Job]:
        said = {"id": 9, "body": body, "user": {"login": "ada", "type": kind}, "author_association": of}
        return asked("issue_comment", action="created", issue={"number": 3, **issue}, comment=said)

    assert asked("push", ref="refs/heads/main") == [Job("acme/one")]
    assert asked("push", ref="refs/heads/other") == []
    assert asked("push", ref="refs/heads/main", deleted=True) == []
    assert asked("installation", action="created", repositories=[{"full_name": "acme/two"}]) == [Job("acme/two")]
    assert asked("installation", action="deleted", repositories=[{"full_name": "acme/two"}]) == []
    assert asked("installation_repositories", action="added", repositories_added=[{"full_name": "a/b"}]) == [Job("a/b")]
    assert asked("pull_request", action="opened", pull_request=pull("mine")) == [Job("acme/one", 3)]
    assert asked("pull_request", action="synchronize", pull_request=pull("ddpfix/safe", "eve/one")) == [Job("acme/one", 3)]
    assert asked("pull_request", action="synchronize", pull_request=pull("ddpfix/safe")) == []
    assert asked("pull_request", action="labeled", pull_request=pull("mine")) == []
    assert [job.number for job in comment("/ddpfix rerun", pull_request={})] == [3]
    assert comment("/ddpfix rerun") == []  # on an issue
    assert comment("hello", pull_request={}) == []
    assert comment("/ddpfix rerun", kind="Bot", pull_request={}) == []
    for stranger in ("NONE", "FIRST_TIMER", "FIRST_TIME_CONTRIBUTOR", "MANNEQUIN"):
        assert comment("/ddpfix rerun", of=stranger, pull_request={}) == []
    heard = [comment("/ddpfix rerun", of=of, pull_request={})[0].comment for of in ("OWNER", "COLLABORATOR", "CONTRIBUTOR")]
    assert [said.belongs for said in heard if said] == [True, True, False]
    assert asked("ping", zen="x") == []


def test_work_waits_in_order_and_once(world: World) -> None:
    gate, begun = threading.Event(), threading.Event()
    done: list[str] = []

    def work(job: Job) -> list[Outcome]:
        begun.set()
        gate.wait(30)
        done.append(job.slug)
        return []

    worker = Worker(work, lambda outcome: None)
    worker.start()
    worker.accept("1", [Job("a/first")])
    assert begun.wait(30)
    for name in ("a/second", "a/third", "a/second"):
        worker.accept(f"of {name} {len(done)}", [Job(name)])
    left: list[int] = []
    stopping = threading.Thread(target=lambda: left.append(worker.stop()))
    stopping.start()
    while not worker._stopping:
        pass
    gate.set()
    stopping.join(30)
    assert done == ["a/first"]  # the job in hand was finished, the others left
    assert left == [2]


def test_a_signed_push_ends_in_a_pull_request(world: World) -> None:
    told: list[Outcome] = []
    bot = world.bot(topics=("safe",))
    worker = Worker(lambda job: do(bot, job), told.append)
    with TestClient(application(worker, SECRET)) as client:
        service = Service(client, worker, [])
        payload = {"ref": "refs/heads/main", "repository": {"full_name": world.slug, "default_branch": "main"}}
        assert service.send("push", payload) == 202
        assert worker.wait_until_idle(60)
    assert [o.action for o in told] == ["created"]
    assert world.pull()["state"] == "open"


def test_a_defect_in_one_job_does_not_end_the_service(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    bot = world.bot()

    def broken(slug: str) -> list[Outcome]:
        raise RuntimeError(f"token {next(iter(bot.forge.secrets()))} is in here")

    monkeypatch.setattr(bot, "repository", broken)
    (outcome,) = do(bot, Job(world.slug))
    assert outcome.action == "failed"
    assert outcome.why == "RuntimeError: token *** is in here (a defect of ddpfix)"


def test_names_and_depths_that_no_forge_sends_are_refused(service: Service) -> None:
    for name in ("../one", "acme/one\n", "acme", "acme/one/two", "-x/one", "acme/\ud800", "https://evil.test/a"):
        payload = {"ref": "refs/heads/main", "repository": {"full_name": name, "default_branch": "main"}}
        assert service.send("push", payload) == 400, name
    assert service.send("push", None, raw=b"[" * 9_000) == 400
    assert service.send("push", PUSH) == 202
    assert service.worker.wait_until_idle(30)
    assert service.done == [Job("acme/one")]


def test_a_log_that_nobody_reads_does_not_end_the_work() -> None:
    done: list[str] = []

    def work(job: Job) -> list[Outcome]:
        done.append(job.slug)
        return [Outcome(job.slug, "", "nothing")]

    def tell(outcome: Outcome) -> None:
        raise BrokenPipeError

    worker = Worker(work, tell)
    worker.start()
    for name in ("first", "second"):
        worker.accept(name, [Job(name)])
    assert worker.wait_until_idle(30)
    worker.stop()
    assert done == ["first", "second"]
