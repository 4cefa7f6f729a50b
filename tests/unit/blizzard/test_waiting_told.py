"""A pipeline that waits says for what: once in the log, and each time to a terminal."""

import os
from dataclasses import replace

import pytest

from blizzard import events
from blizzard.model.settings import RollingPolicy
from tests.support.builders import Bench, ndjson, put, rows


@pytest.fixture
def watching(bench: Bench) -> Bench:
    sink = replace(bench.settings.sink, rolling=RollingPolicy(rollover=300.0, inactivity=60.0))
    return replace(bench, once=False, settings=replace(bench.settings, sink=sink))


def test_watched_sources_are_named_once(watching: Bench):
    pipeline = watching.pipeline()
    assert [pipeline.step() for _ in range(3)] == [False] * 3

    (told,) = watching.said(events.SourcesWatched)
    root = watching.settings.sources[0].uri
    assert told.sentence() == f"default: watching {root} every 10 s"
    assert len(watching.said(events.NothingNew)) == 3


def test_files_that_gather_are_told_once_for_each_batch(watching: Bench, source):
    def lands(name: str) -> None:
        put(source, name, ndjson(rows(2)))
        at = watching.hands.clock.seconds()
        os.utime(source / name, (at, at))

    pipeline = watching.pipeline()
    lands("a.ndjson")
    for expected in (1, 2):
        assert not pipeline.step()
        watching.hands.at += 20
        assert not pipeline.step()
        assert len(watching.said(events.FilesGather)) == expected
        watching.hands.at += 60
        assert pipeline.step()
        lands(f"b{expected}.ndjson")
        watching.hands.at += 20

    told = watching.said(events.FilesGather)[0]
    assert told.sentence().startswith("default: 1 file waiting, next batch in ")
    assert len(watching.said(events.NextBatchDue)) == 4
