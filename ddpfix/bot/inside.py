"""What is done with a repository's own files, in the child: it clones, looks, and makes commits in its clone.

It holds a token that can only read, and nothing of the repository is run.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from codemods.analysis.requirement_files import reader_of
from codemods.api.findings import Finding
from codemods.files.text_file import BINARY_KINDS, JSON_KINDS, NOTEBOOK, SHELL_KINDS, YAML_KINDS
from ddpfix import api, decisions, discovery, engine, git, plugins, repository_state, run, summary
from ddpfix.bot import preferences, remarks, setting_edit
from ddpfix.bot.forge import ChangedFile
from ddpfix.bot.planning import Wanted
from ddpfix.bot.preferences import Preferences
from ddpfix.bot.topics import SAFE, UNSAFE, Topic
from ddpfix.discovery import Tree
from ddpfix.results import Failure
from ddpfix.settings import Settings

# looked at, or read for facts: what starts training, and what pins versions
_FACTS = (".py", ".toml", ".cfg", *YAML_KINDS, *SHELL_KINDS)
# searched for words where a codemod asks for them, which most do not
_WORDS = (".md", ".rst", ".txt", ".ini", ".gin", ".job")
MOST_JSON = 200  # where there are more, they are data
MOST_NOTEBOOKS, LARGEST_NOTEBOOK = 100, 8 * 1024 * 1024  # their outputs come along with each clone; more are left out
MOST_ROWS = 20_000  # findings of one repository that a survey gives back

Asked = tuple[Settings, Preferences]


@dataclass(frozen=True)
class Project:
    """A repository at one commit, as the bot reads it. found: what the first topic found; others look only if that is theirs."""

    state: git.Snapshot
    tree: Tree
    read: Callable[[str], bytes | None]
    settings: Settings
    preferences: Preferences
    found: list[Finding] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Reviewed:
    """base: the commit that was looked at. is_wanted: False where the settings turn the bot off. unread: of the changed files."""

    base: str
    is_wanted: bool
    remarks: tuple[remarks.Remark, ...] = ()
    unread: tuple[Failure, ...] = ()


@dataclass(frozen=True, slots=True)
class Surveyed:
    """What is found at a commit. rows: (code, level, path, line, message). files, unread: looked at, and not readable.

    rejected: (code, place, reason) of findings that people rejected in a decisions file of the repository.
    """

    head: str
    files: int
    unread: int
    rows: tuple[tuple[str, str, str, int, str], ...]
    rejected: tuple[tuple[str, str, str], ...] = ()


class Inside:
    """One repository, in the folder that the bot has made for its clone."""

    def __init__(self, root: Path, most: git.Most | None) -> None:
        self._root, self._most = root, most
        self._access: git.Access | None = None
        self._project: Project | None = None
        self._clone: git.Clone | None = None

    def look(self, access: git.Access, branch: str) -> tuple[str, Settings, Preferences]:
        """Clone, and read what the branch holds. Raises GitRefusal, SettingsError."""
        self._project = _look_at(self._cloned(access, branch))
        return self._project.state.base, self._project.settings, self._project.preferences

    def make(
        self,
        access: git.Access,
        topic: Topic,
        *,
        branch: str,
        base_branch: str,
        identity: tuple[str, str],
        here: Sequence[str] = (),
        repo: Sequence[str] = (),
        limit: int = 25_000,
    ) -> Wanted:
        """The commits of a topic, in the clone only. here, repo: codes left out, and left out by the settings from now on.

        Raises UnknownSelector, GitRefusal, SettingsError.
        """
        assert self._project and self._clone, "look comes first"
        self._access = access
        return _made(
            self._project, self._clone, topic, branch=branch, base_branch=base_branch, identity=identity, here=here, repo=repo,
            limit=limit,
        )  # fmt: skip

    def review(self, access: git.Access, base: str, ref: str, changed: Mapping[str, ChangedFile]) -> Reviewed:
        """What there is to say about a pull request onto the branch `base`, whose settings hold. Raises as `look`."""
        clone = self._cloned(access, base)
        names = (*preferences.SETTINGS, *preferences.PLACES)
        read = clone.read(clone.at_head(names), names, largest=engine.LARGEST)
        asked = preferences.read(read)
        if not (asked[0].bot and asked[1].enabled):
            return Reviewed("", is_wanted=False)
        clone.stand_on(ref)
        project = _look_at(clone, asked)
        found, unread = remarks.remarks_on(project.tree, project.settings, project.read, changed)
        return Reviewed(project.state.base, is_wanted=True, remarks=tuple(found), unread=unread)

    def survey(self, access: git.Access, branch: str, *, select: Sequence[str], ignore: Sequence[str]) -> Surveyed:
        """What is found on a branch; nothing is made. select, ignore: for all repositories alike, on top of its own settings.

        Raises GitRefusal, SettingsError, UnknownSelector.
        """
        project = _look_at(self._cloned(access, branch))
        settings = replace(
            project.settings, select=tuple(select) or project.settings.select, ignore=(*project.settings.ignore, *ignore)
        )
        codemods = plugins.chosen(settings, project.tree.root).codemods
        report = api.Project(project.tree, settings, codemods, project.read).check(use_cache=False)
        rows = [(f.code, f.applicability.value, f.path, f.span.line, f.message) for f in report.findings[:MOST_ROWS]]
        return Surveyed(
            project.state.base, report.scanned, len(report.failed), tuple(rows), tuple(_rejected(project.read, report.findings))
        )

    def _cloned(self, access: git.Access, branch: str) -> git.Clone:
        self._access = access

        def way_in() -> git.Access:
            return self._access or access

        self._clone = git.clone_at(self._root, way_in, branch, most=self._most)
        return self._clone


def _rejected(read: Callable[[str], bytes | None], findings: Sequence[Finding]) -> Iterator[tuple[str, str, str]]:
    """What people rejected, of what is found. A decisions file that cannot be read says nothing here."""
    try:
        decided = decisions.from_json((read(decisions.FILE) or b"").decode())
    except (decisions.BadDecisions, UnicodeDecodeError):
        return
    for finding in findings[:MOST_ROWS]:
        if decided.verdict(finding.id) == "reject":
            yield finding.code, f"{finding.path}:{finding.span.line}", decided.of[finding.id].reason


def _look_at(clone: git.Clone, given: Asked | None = None) -> Project:
    """Read what the clone's HEAD holds. given: the settings that hold, if not its own. Raises GitRefusal, SettingsError."""
    clone.check_size()
    state = git.snapshot(clone.root)
    names = state.committed
    json = [p for p in names if p.endswith(JSON_KINDS)]
    few_json = json if len(json) <= MOST_JSON else []
    wanted = [p for p in names if p.endswith(_FACTS) or reader_of(p) is not None]
    texts = [p for p in names if p.endswith(_WORDS)]
    notebooks = [p for p in names if p.endswith(NOTEBOOK)]
    few_notebooks = notebooks if len(notebooks) <= MOST_NOTEBOOKS else []
    clone.fetch(names[p].sha for p in (*wanted, *few_json, *texts, *few_notebooks))  # all in one request
    rest = [p for p in names if not p.endswith(BINARY_KINDS)]
    read_text = clone.read(names, (*wanted, *few_json), largest=engine.LARGEST, soon=texts, rest=rest)
    read_notebook = clone.read(names, few_notebooks, largest=LARGEST_NOTEBOOK) if few_notebooks else read_text

    def read(path: str) -> bytes | None:
        return (read_notebook if path.endswith(NOTEBOOK) else read_text)(path)

    settings, asked = given or preferences.read(read)
    size = (lambda p: len(read(p) or b"")) if few_json else (lambda p: sys.maxsize)
    listed = names if few_notebooks else [p for p in names if not p.endswith(NOTEBOOK)]
    tree = discovery.committed_tree(clone.root, listed, read, size, settings.exclude, copies=settings.check_copies)
    return Project(state, tree, read, settings, asked)


def _made(
    project: Project,
    clone: git.Clone,
    topic: Topic,
    *,
    branch: str,
    base_branch: str,
    identity: tuple[str, str],
    here: Sequence[str],
    repo: Sequence[str],
    limit: int,
) -> Wanted:
    settings = replace(project.settings, ignore=(*project.settings.ignore, *here, *repo))
    codemods = topic.codemods(plugins.chosen(settings, project.tree.root).codemods)
    draft = topic.draft or project.preferences.draft
    wanted = Wanted(topic.name, branch, base_branch, project.state.base, draft)
    codes = {c.code for c in codemods}
    if project.found and not repo and not any(f.code in codes and topic.accepts(f) for f in project.found):
        return wanted
    fixed = api.Project(project.tree, settings, codemods, project.read).fix(topic.accepts)
    if not (here or repo) and topic.name in (SAFE, UNSAFE):
        project.found[:] = fixed.report.findings
    # a safe fix that the unsafe topic leaves to the other one is not left alone
    fixed = replace(fixed, left=tuple(f for f in fixed.left if not (topic.name == UNSAFE and f.applicability.value == "safe")))
    made = run.steps(project.tree, settings, codemods, topic.accepts, fixed, project.read) if fixed.after else []
    commits = [*run.as_commits(made, fixed), *_settings_steps(project, repo)]
    if not commits:
        return wanted
    run_id = secrets.token_hex(8)
    committed = git.commit_steps(project.state, commits, branch=branch, run_id=run_id, sign=False, identity=identity)
    context = replace(
        run.described(topic.command(settings, (*here, *repo))),
        base=project.state.base,
        branch=branch,
        home=base_branch,
        launches=summary.launches(project.tree.files, project.read, fixed.after),
        launched=summary.launched(project.tree.files, project.read),
        notes=repository_state.notes(project.state, sorted(fixed.after)),
        summary_commit=False,
        pull_request=True,
    )
    tip = committed.commits[-1][0]
    return replace(
        wanted,
        tree=clone.tree(tip),
        commit=tip,
        run=run_id,
        title=topic.title(fixed),
        text=summary.render(fixed, context, limit=limit),
    )


def _settings_steps(project: Project, codes: Sequence[str]) -> list[git.Step]:
    """The commit that leaves codes out by the repository's settings, none where they are left out there already."""
    new = [code for code in codes if code not in project.settings.ignore]
    if not new:
        return []
    path, data = setting_edit.with_ignored(project.read, new)
    listed = ", ".join(new)
    return [git.Step(f"Leave {listed} out of ddpfix\n\nAs asked for in a comment.\n\nddpfix-rules: {listed}", {path: data})]
