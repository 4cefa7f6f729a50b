"""Which source an object belongs to, by its bucket and its key. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from blizzard.model.notices import Hint
from blizzard.model.settings import SourceSettings
from blizzard.notices.messages import Created
from lakebed.locations import place_of
from lakebed.storage.options import bare


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A source, and where its objects are."""

    source: str
    bucket: str
    account: str = ""
    """Azure's, where the source names it."""
    prefix: str
    """What their keys begin with: nothing, or folders and a slash."""

    @classmethod
    def to(cls, source: SourceSettings) -> "Route":
        """Return the route to a source."""
        place = place_of(source.uri, account=_account(source))
        prefix = "".join(f"{folder}/" for folder in place.folders)
        return cls(
            source=source.name,
            bucket=place.bucket,
            account=place.account if place.scheme == "az" else "",
            prefix=prefix,
        )


def hint_for(created: Created, routes: Iterable[Route]) -> Hint | None:
    """Return which file of which source an object is; None where it is in none of their folders.

    No two sources of a pipeline lie in each other's folders, so there is one at most.
    """
    for route in routes:
        path = created.key.removeprefix(route.prefix)
        inside = created.key.startswith(route.prefix) and path
        accounts = {created.account, route.account} - {""}
        if inside and created.bucket == route.bucket and len(accounts) < 2:
            return Hint(
                source=route.source,
                path=path,
                at=created.at,
                size=created.size,
                etag=created.etag,
            )
    return None


def _account(source: SourceSettings) -> str:
    """Return the account that the options of a source name; empty without one."""
    options = source.storage_options.plain().items()
    return next((value for name, value in options if bare(name.lower()) == "account_name"), "")
