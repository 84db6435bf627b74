"""One repository from beginning to end: may the bot work here, what is there to do, and each topic in its turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial

from ddpfix import git
from ddpfix.bot import child, dashboard, fixes
from ddpfix.bot.budget import Budget
from ddpfix.bot.child import RUN, Limits, Worker
from ddpfix.bot.client import Clock, ForgeError
from ddpfix.bot.forge import Forge, Repository
from ddpfix.bot.login import NoLogin, hidden
from ddpfix.bot.marks import Seal
from ddpfix.bot.outcome import Outcome
from ddpfix.bot.place import Place
from ddpfix.bot.preferences import OPT_OUT_TOPIC
from ddpfix.bot.publish import Asked, settle, supersede
from ddpfix.bot.state import State, passing
from ddpfix.bot.topics import Topic, expand
from ddpfix.catalog import UnknownSelector
from ddpfix.git import GitRefusal, OverLimit
from ddpfix.settings import SettingsError

FORESEEN = (ForgeError, GitRefusal, SettingsError, UnknownSelector, NoLogin)


@dataclass(frozen=True, slots=True)
class BotOptions:
    """What the one who runs the bot decides. topics: instead of the repository's own. blocked: owners and repositories that
    are left alone. reopen: make again what people closed. per_hour: pull requests opened within an hour. confined: what strangers
    wrote is worked on in a child process with limits; False is for tests. cover: Markdown above the text of a new pull request.
    signed: the forge makes the commits, and signs them. dashboard: keep an issue that says what is open and what was closed.
    """

    prefix: str = "ddpfix"
    topics: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    forks: bool = False
    reopen: bool = False
    dry_run: bool = False
    per_hour: int = 50
    confined: bool = True
    cover: str = ""
    signed: bool = False
    dashboard: bool = False


def failure(error: Exception) -> str:
    """What is said of something foreseen: what is beyond the limits is refused, since it would be so the next time."""
    return "refused" if isinstance(error, OverLimit) else "failed"


def guarded(forge: Forge, slug: str, work: Callable[[], list[Outcome]], number: int | None = None) -> list[Outcome]:
    """What came of some work. Never raises: whatever happens is an outcome, and the next repository has its turn."""
    try:
        return work()
    except FORESEEN as error:
        return [Outcome(slug, "", failure(error), hidden(str(error), forge.secrets()), number)]
    except Exception as error:
        why = hidden(f"{type(error).__name__}: {error}", forge.secrets())
        return [Outcome(slug, "", "failed", f"{why} (a defect of ddpfix)", number)]


class Bot:
    """The bot at one forge. It works on one repository at a time. state: what outlives it; without one nothing does.

    Raises NoLogin where the state cannot be used.
    """

    def __init__(self, forge: Forge, options: BotOptions, clock: Clock, state: State | None = None) -> None:
        self.forge, self.options, self.clock = forge, options, clock
        self.strangers: dict[tuple[str, str], float] = {}  # who may not push where, and until when that is believed
        self.state = state or passing()
        self.database = self.state.database()
        self._budget = Budget(options.per_hour, clock, self.database)

        self.reviewing = forge.narrowed()

    def worker(self, limits: Limits) -> AbstractContextManager[Worker]:
        """The process that works on one repository, ended and its clone removed at the end."""
        return child.started(limits) if self.options.confined else child.here()

    def run(self, slugs: Sequence[str], tell: Callable[[Outcome], None] | None = None) -> list[Outcome]:
        """Every repository in its turn; `tell` hears of each outcome at once. A failure of one stops no other."""
        out: list[Outcome] = []
        for slug in slugs:
            for outcome in guarded(self.forge, slug, partial(self.repository, slug)):
                out.append(outcome)
                if tell:
                    tell(outcome)
        return out

    def repository(self, slug: str, *, only: str = "", asked: Asked | None = None) -> list[Outcome]:
        """One repository; `only`: that topic. Never raises for what was foreseen: it is an outcome."""
        try:
            return self._repository(slug, only, asked or Asked(rebuild=self.options.reopen))
        except FORESEEN as error:
            return [Outcome(slug, only, failure(error), hidden(str(error), self.forge.secrets()))]

    def _repository(self, slug: str, only: str, asked: Asked) -> list[Outcome]:
        repository = self.forge.repository(slug)
        if why := why_not(repository, self.options, asked_as=slug):
            return [Outcome(slug, "", "skipped", why)]
        base = repository.default_branch
        prefix = self.options.prefix
        tips = git.tips(self.forge.access(slug), [base, prefix, f"{prefix}/*"])
        if base not in tips:
            return [Outcome(slug, "", "skipped", "it is empty")]
        if prefix in tips:
            why = f"a branch called {prefix} stands where git wants a folder for {prefix}/...: delete it, or give --branch-prefix"
            return [Outcome(slug, "", "refused", why)]
        with self.worker(RUN) as worker:
            project = fixes.look_at(worker, lambda: self.reviewing.access(slug), base)
            clone = fixes.clone_of(worker, lambda: self.forge.access(slug))
            if not (project.settings.bot and project.preferences.enabled):
                return [Outcome(slug, "", "skipped", "its settings turn the bot off")]
            place = Place(
                self.forge, repository, clone, project, self.forge.identity(), self._budget, self.seal(repository), prefix,
                self.options.dry_run, self.options.labels,
                branches=frozenset(n for n in tips if n.startswith(f"{prefix}/")), cover=self.options.cover,
                signed=self.options.signed or project.preferences.signed,
            )  # fmt: skip
            topics = expand(self.options.topics or project.preferences.topics, project.settings)
            place.wanted = frozenset(place.branch_of(t.name) for t in topics)
            return self._topics(place, topics, only, asked)

    def _topics(self, place: Place, topics: Sequence[Topic], only: str, asked: Asked) -> list[Outcome]:
        place.pulls = {name: tuple(self.forge.pulls(place.slug, name)) for name in sorted(place.branches)}
        work = [topic for topic in topics if only in ("", topic.name)]
        if only and not work:
            return [Outcome(place.slug, only, "skipped", "this topic is no longer asked for")]
        board = self._board(place)
        again = board.asked if isinstance(board, dashboard.Board) else ()
        out = [self._settled(place, t, Asked(rebuild=True) if t.name in again else asked) for t in work]
        # the old ones stay as long as there is nothing in their place
        if not only and not any(o.is_error or o.action == "deferred" for o in out):
            open_ones = (p for t in topics for p in place.pulls.get(place.branch_of(t.name), ()) if p.state == "open")
            successor = next(open_ones, None)
            old = [supersede(place, name, successor) for name in sorted(place.branches) if name not in place.wanted]
            out += [outcome for outcome in old if outcome]
        if board and (kept := self._board_kept(place, board, topics, out)):
            out.append(kept)
        return out

    def _board(self, place: Place) -> dashboard.Board | Outcome | None:
        """The dashboard where one is kept, or why it cannot be read."""
        if place.dry_run or not (self.options.dashboard or place.project.preferences.dashboard):
            return None
        try:
            return dashboard.read(place)
        except ForgeError as error:
            return place.outcome(dashboard.KIND, "failed", why=hidden(str(error), self.forge.secrets()))

    def _board_kept(
        self, place: Place, board: dashboard.Board | Outcome, topics: Sequence[Topic], out: list[Outcome]
    ) -> Outcome | None:
        """Without its dashboard a pull request is none the worse."""
        if isinstance(board, Outcome):
            return board
        try:
            return dashboard.write(place, board, [topic.name for topic in topics], out)
        except ForgeError as error:
            return place.outcome(dashboard.KIND, "failed", why=hidden(str(error), self.forge.secrets()))

    def _settled(self, place: Place, topic: Topic, asked: Asked) -> Outcome:
        try:
            return settle(place, topic, asked)
        except FORESEEN as error:
            return place.outcome(topic.name, failure(error), why=hidden(str(error), self.forge.secrets()))

    def seal(self, repository: Repository) -> Seal:
        """What signs and checks the bot's marks in a repository. Raises ForgeError."""
        return Seal(self.state.key, self.forge.account(repository.slug), f"{self.forge.name} {repository.id}")


def why_not(repository: Repository, options: BotOptions, *, asked_as: str = "") -> str:
    """Why the bot leaves a repository alone before it has looked inside, "" where it does not. asked_as: a name from before."""
    names = {name.lower() for name in (repository.slug, asked_as) if name}
    owners = {name.partition("/")[0] for name in names}
    if (names | owners) & {name.lower() for name in options.blocked}:
        return "it is on the list of those to be left alone"
    if OPT_OUT_TOPIC in repository.topics:
        return f"it has the topic {OPT_OUT_TOPIC}"
    if repository.archived:
        return "it is archived"
    if repository.fork and not options.forks:
        return "it is a fork"
    if not repository.pulls:
        return "it takes no pull requests"
    if not repository.may_push:
        return "the token may not push to it"
    if repository.default_branch.startswith(f"{options.prefix}/"):
        return f"its default branch is one that begins with {options.prefix}/"
    return ""
