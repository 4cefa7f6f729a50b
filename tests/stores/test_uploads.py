"""Uploads that are left open, connections that are cut, and refusals, on every store."""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from itertools import count
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from blizzard.cli import app as blizzard_cli
from blizzard.cli.surroundings import Surroundings
from lakebed.errors import LakeError, NoExclusiveCreate, StoreUnavailable
from lakebed.layout import TablePath
from lakebed.storage.aws.clients import open_client
from lakebed.storage.options import ObjectFacts
from lakebed.storage.store import AlreadyThere, Created, Store, probe
from lakebed.types import Handoff
from penguin.cli import app as penguin_cli
from penguin.cli.run import PenguinSurroundings
from tests.support.dying import Fate
from tests.support.faulty import Cut, Drop, Fault, LoseAnswer, Proxy, Refuse, Request, times
from tests.support.foreign import name_at
from tests.support.runner import inside
from tests.support.s3 import options
from tests.support.servers import s3rver
from tests.support.servers_lake import Lake
from tests.support.servers_reached import BUCKET, Contestant
from tests.support.waits import Hurry

pytestmark = pytest.mark.stores

MB = 1 << 20
DAY = timedelta(hours=24)
OURS = "date=2024-01-01/018cc4e5-2200-7000-8000-000000000001.parquet"
OTHERS = "date=2024-01-01/part-00000-of-another-program.parquet"


def upload_and(lake: Lake, folder: Path, meanwhile: Callable[[], None]) -> ObjectFacts:
    """Upload a file in parts, and do something before the last of them is sent."""
    body, parts = folder / "body", count(1)
    with body.open("wb") as file:
        file.truncate(11 * MB)

    def part_taken() -> None:
        if next(parts) == 3:
            # In another thread: this one drives the store's library.
            other = Thread(target=meanwhile)
            other.start()
            other.join()

    return lake.store("table").upload(
        OURS, body, part_size=5 * MB, multipart=True, max_parts=1, part_taken=part_taken
    )


def s3_client(place: Contestant) -> Any:
    given = {name.removeprefix("AWS_").lower(): text for name, text in place.options().items()}
    addressing = {"addressing_style": "path"}
    return open_client("s3", given, region=None, endpoint=given["endpoint"], s3=addressing)


def test_a_writer_whose_upload_was_aborted_is_told_so_and_may_try_again(
    s3: Contestant, tmp_path: Path
) -> None:
    """A process that slept for days: a lifecycle rule aborted its upload; no bucket is missing."""
    lake, client = Lake(s3, tmp_path), s3_client(s3)
    store = lake.store("table")

    def abort() -> None:
        (upload,) = client.list_multipart_uploads(Bucket=BUCKET)["Uploads"]
        client.abort_multipart_upload(Bucket=BUCKET, Key=upload["Key"], UploadId=upload["UploadId"])

    with pytest.raises(StoreUnavailable, match="was aborted before it was complete"):
        upload_and(lake, tmp_path, abort)
    assert store.head(OURS) is None
    assert upload_and(lake, tmp_path, lambda: None).size == 11 * MB


BEFORE = (Drop(), Refuse(503), Refuse(429))
AFTER = (LoseAnswer(None), LoseAnswer(500))


def is_write(request: Request) -> bool:
    return request.method == "PUT"


def is_read(request: Request) -> bool:
    return request.method == "GET"


@pytest.mark.parametrize("fault", BEFORE, ids=str)
def test_a_create_that_never_arrived_is_made_once(
    troubled: Store, proxy: Proxy, fault: Fault
) -> None:
    """W01."""
    proxy.rule = times(2, fault, is_write)
    assert troubled.create("a", b"1") == Created()
    assert troubled.create("a", b"2") == AlreadyThere()
    assert troubled.get("a") == b"1"


@pytest.mark.parametrize("fault", AFTER, ids=str)
def test_a_create_whose_answer_is_lost_is_there_with_its_bytes(
    troubled: Store, proxy: Proxy, fault: Fault
) -> None:
    """L24: whoever asks again is told that it is there, and knows it by its bytes."""
    proxy.rule = times(1, fault, is_write)
    with contextlib.suppress(StoreUnavailable):
        assert troubled.create("a", b"1") == AlreadyThere()
    assert troubled.get("a") == b"1"
    assert troubled.create("a", b"2") == AlreadyThere()


@pytest.mark.parametrize("fault", [*BEFORE, *AFTER], ids=str)
def test_moves_and_deletions_end_as_they_were_meant(
    troubled: Store, proxy: Proxy, fault: Fault
) -> None:
    """D02."""
    troubled.create("outbox/a", b"12")
    proxy.rule = times(1, fault, lambda r: r.method in ("PUT", "DELETE"))
    with contextlib.suppress(StoreUnavailable):
        troubled.move("outbox/a", "a", size=2)
    troubled.move("outbox/a", "a", size=2)
    assert [facts.path for facts in troubled.objects()] == ["a"]
    proxy.rule = times(1, fault, lambda r: r.method == "DELETE")
    troubled.delete("a")
    assert list(troubled.objects()) == []


def test_a_body_that_breaks_off_is_read_to_its_end_and_never_short(
    troubled: Store, proxy: Proxy
) -> None:
    """L14."""
    body = os.urandom(3 * MB)
    troubled.create("a", body)
    facts = troubled.head("a")
    assert facts is not None
    proxy.rule = times(1, Cut(after=MB + 7), is_read)
    assert b"".join(troubled.stream("a", size=len(body), etag=facts.etag)) == body
    proxy.rule = lambda request: Cut(after=1000) if is_read(request) else None
    with pytest.raises(LakeError):
        b"".join(troubled.stream("a", size=len(body), etag=facts.etag))


def test_a_listing_that_breaks_off_is_an_error_and_never_short(
    troubled: Store, proxy: Proxy
) -> None:
    """L10."""
    for name in ("a", "b", "c"):
        troubled.create(name, b"1")
    faults: tuple[Fault, ...] = (Refuse(500), Drop(), Cut(after=200))
    for fault in faults:
        proxy.rule = times(100, fault, is_read)
        with pytest.raises(LakeError):
            list(troubled.objects())


def every(number: int, faults: Sequence[Fault]) -> Callable[[Request], Fault | None]:
    """Let one thing after the other go wrong, with every so manieth request."""
    seen = count(1)

    def rule(_request: Request) -> Fault | None:
        at = next(seen)
        return faults[at // number % len(faults)] if at % number == 0 else None

    return rule


@pytest.mark.parametrize("handoff", Handoff)
def test_the_programs_go_on_through_a_bad_connection(
    remote: Contestant, proxy: Proxy, tmp_path: Path, handoff: Handoff
) -> None:
    """W01, L24: throttled, cut before and cut after; every row is in the table once."""
    lake = Lake(remote, tmp_path, handoff, address=proxy.address)
    proxy.rule = every(13, (Refuse(503), Drop(), LoseAnswer(None)))
    lake.land("date=2024-01-01/a.ndjson", "date=2024-01-02/b.ndjson")
    for _attempt in range(3):
        with contextlib.suppress(StoreUnavailable):
            lake.life(Fate.none())
            break
    proxy.rule = lambda _request: None
    lake.life(Fate.none())
    lake.balances()


@pytest.fixture(scope="module")
def careless() -> Iterator[Contestant]:
    """Run an S3 that takes a create-only write for any other."""

    def access(address: str) -> dict[str, str]:
        return options(address, AWS_ACCESS_KEY_ID="S3RVER", AWS_SECRET_ACCESS_KEY="S3RVER")

    with s3rver(BUCKET) as address:
        yield Contestant("s3rver", "s3", address, access, f"s3://{BUCKET}")


def test_a_store_without_create_only_writes_is_found_out(careless: Contestant) -> None:
    store = careless.open(careless.fresh())
    assert [store.create("a", body) for body in (b"1", b"2")] == [Created(), Created()]
    with pytest.raises(NoExclusiveCreate):
        probe(store, TablePath("a"))


def test_blizzard_refuses_a_store_without_create_only_writes(
    careless: Contestant, tmp_path: Path
) -> None:
    """D07: before the first file is written."""
    lake = Lake(careless, tmp_path)
    lake.land("date=2024-01-01/a.ndjson")
    around = Surroundings(make_runner=inside, stop=Hurry(), listen=lambda *_given: None)
    command = ["-c", str(lake.config()), "--once"]
    done = CliRunner().invoke(blizzard_cli.app, command, obj=around)

    assert done.exit_code != 0
    assert "no_exclusive_create" in done.output
    assert "use one that supports conditional writes" in " ".join(done.output.split())
    assert not [each for each in lake.store("table").objects() if each.path.endswith(".parquet")]


def test_penguin_refuses_to_make_a_table_of_other_programs_files_there(
    careless: Contestant, tmp_path: Path
) -> None:
    """D07: nothing is there to try it with, so it writes a document of its own, and removes it."""
    lake = Lake(careless, tmp_path)
    file = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": [1]}), file)
    name = f"date=2024-01-01/{name_at(1_704_067_200_000)}"
    lake.store("table").create(name, file.getvalue().to_pybytes())
    around = PenguinSurroundings(stop=Hurry())
    done = CliRunner().invoke(penguin_cli.app, ["-c", str(lake.config()), "--once"], obj=around)
    assert done.exit_code != 0
    assert "no_exclusive_create" in done.output
    assert [each.path for each in lake.store("table").objects()] == [name]
