"""GitHub events as GH Archive has them: one payload for each type of event."""

from random import Random
from typing import Any

from tests.support.real_data.kind import (
    Kind,
    Record,
    as_lines,
    hexadecimal,
    is_one_in,
    moment,
    word,
    zulu,
)

TYPES = ("Push", "Push", "Push", "Create", "PullRequest")


def records(seed: int, size: int) -> list[Record]:
    random = Random(seed)
    return [_event(random, number) for number in range(size)]


def _event(random: Random, number: int) -> Record:
    kind = random.choice(TYPES)
    login, repository = word(random, 7), f"{word(random, 6)}/{word(random, 9)}"
    event: Record = {
        "id": str(38_000_000_000 + number),
        "type": f"{kind}Event",
        "actor": {**_account(random, login), "display_login": login, "gravatar_id": ""},
        "repo": {
            "id": random.randrange(10**9),
            "name": repository,
            "url": f"https://api.github.com/repos/{repository}",
        },
        "payload": PAYLOADS[kind](random),
        "public": True,
        "created_at": zulu(moment(random)),
    }
    if is_one_in(random, 3):  # only events of organisations have one
        event["org"] = _account(random, repository.partition("/")[0]) | {"gravatar_id": ""}
    return event


def _account(random: Random, login: str) -> Record:
    number = random.randrange(10**8)
    return {
        "id": number,
        "login": login,
        "url": f"https://api.github.com/users/{login}",
        "avatar_url": f"https://avatars.githubusercontent.com/u/{number}?",
    }


def _user(random: Random) -> Record:
    login = word(random, 7)
    return {
        **_account(random, login),
        "node_id": f"MDQ6VXNlc{hexadecimal(random, 8)}",
        "type": random.choice(["User", "User", "Bot"]),
        "site_admin": False,
    }


def _push(random: Random) -> Record:
    commits = [
        {
            "sha": hexadecimal(random, 40),
            "author": {"email": f"{word(random, 5)}@example.com", "name": "José Ñandú"},
            "message": random.choice(["fix: typo\n\nCo-authored-by: x", "初回コミット", "wip 🚧"]),
            "distinct": not is_one_in(random, 5),
            "url": "https://api.github.com/repos/a/b/commits/c",
        }
        for _ in range(random.randrange(4))
    ]
    return {
        "repository_id": random.randrange(10**9),
        "push_id": random.randrange(10**10, 2 * 10**10),
        "size": len(commits),
        "distinct_size": sum(1 for one in commits if one["distinct"]),
        "ref": "refs/heads/main",
        "head": hexadecimal(random, 40),
        "before": hexadecimal(random, 40),
        "commits": commits,
    }


def _create(random: Random) -> Record:
    kind = random.choice(["branch", "tag", "repository"])
    return {
        "ref": None if kind == "repository" else f"v{random.randrange(9)}.0",
        "ref_type": kind,
        "master_branch": "main",
        "description": random.choice([None, "A test — with “quotes”", ""]),
        "pusher_type": "user",
    }


def _pull_request(random: Random) -> Record:
    is_merged = is_one_in(random, 3)
    branch: Any = {"label": "me:topic", "ref": "topic", "sha": hexadecimal(random, 40)}
    return {
        "action": random.choice(["opened", "closed"]),
        "number": random.randrange(5000),
        "pull_request": {
            "id": random.randrange(10**9, 2 * 10**9),
            "title": "Bump x from 1 to 2",
            "user": _user(random),
            "body": None if is_one_in(random, 3) else "Bumps [x](https://example.com).",
            "created_at": zulu(moment(random)),
            "merged_at": zulu(moment(random)) if is_merged else None,
            "merge_commit_sha": hexadecimal(random, 40) if is_merged else None,
            "requested_reviewers": [_user(random)] if is_one_in(random, 4) else [],
            "requested_teams": [],
            "head": branch | {"repo": None if is_one_in(random, 9) else {"id": 1, "fork": True}},
            "base": branch | {"repo": {"id": 2, "fork": False}},
            "auto_merge": None,
            "draft": is_one_in(random, 5),
            "mergeable": random.choice([None, True, False]),
            "additions": random.randrange(2000),
        },
    }


PAYLOADS = {
    "Push": _push,
    "Create": _create,
    "PullRequest": _pull_request,
}

GITHUB = Kind(
    name="github events",
    records=records,
    written=as_lines("2024-05-10-00.json.gz", "2024-05-10-01.json.gz"),
)
