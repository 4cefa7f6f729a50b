"""Events as log lines."""

import io
import json
import threading

import pytest

from lakebed.telemetry.events import Event, Level, StepFailed, StopRequested
from lakebed.telemetry.logs import log_events
from lakebed.types import LogFormat, LogLevel

FAILED = StepFailed(who="events", code="store_full", error="no space\nis left", next_try_secs=1.5)


def lines(event: Event, shape: LogFormat, least: LogLevel = LogLevel.INFO) -> list[str]:
    stream = io.StringIO()
    log_events(least, shape, stream)(event)
    return stream.getvalue().splitlines()


def test_one_event_is_one_line_whatever_its_message_holds():
    evil = StepFailed(
        who="p", code="c", error="a\nb\r\nc\x0bd\u2028e\x85f INFO forged", next_try_secs=None
    )
    assert len(lines(evil, LogFormat.TEXT)) == 1


def test_a_text_line_names_the_level_and_says_the_sentence():
    (line,) = lines(FAILED, LogFormat.TEXT)
    assert " ERROR events: no space\\nis left [store_full]; trying again in 1.5 s" in line


def test_a_json_line_is_an_object_with_the_facts():
    stream = io.StringIO()
    log_events(LogLevel.INFO, LogFormat.JSON, stream)(FAILED)
    assert stream.getvalue().count("\n") == 1
    document = json.loads(stream.getvalue())
    assert document.pop("time").endswith("Z")
    assert document == {
        "level": "error",
        "event": "StepFailed",
        "message": FAILED.sentence(),
        "who": "events",
        "code": "store_full",
        "error": "no space\nis left",
        "next_try_secs": 1.5,
        "kind": "pipeline",
    }


@pytest.mark.parametrize("shape", LogFormat)
def test_an_event_below_the_level_is_not_shown(shape):
    assert lines(StopRequested(signal="SIGTERM"), shape, LogLevel.WARN) == []
    assert len(lines(StopRequested(signal="SIGTERM"), shape, LogLevel.INFO)) == 1
    assert len(lines(FAILED, shape, LogLevel.ERROR)) == 1


def test_every_name_on_the_command_line_is_a_level():
    assert [name.level for name in LogLevel] == sorted(Level)


class Odd(Event):
    """An event with a fact that JSON does not know."""

    what: object

    def sentence(self) -> str:
        """Return it."""
        return "odd"


def test_a_fact_that_json_does_not_know_is_shown_as_text():
    (line,) = lines(Odd(what={1}), LogFormat.JSON)
    assert json.loads(line)["what"] == "{1}"


def test_lines_of_several_threads_never_mix():
    class Slow(io.StringIO):
        def write(self, text: str) -> int:
            return sum(super(Slow, self).write(char) for char in text)

    stream = Slow()
    emit = log_events(LogLevel.INFO, LogFormat.JSON, stream)
    threads = [threading.Thread(target=lambda: [emit(FAILED) for _ in range(20)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([json.loads(line) for line in stream.getvalue().splitlines()]) == 80
