"""What an error shows."""

from lakebed.errors import LakeError
from lakebed.telemetry.events import FaultFound
from lakebed.telemetry.levels import LogFormat, LogLevel
from lakebed.telemetry.logs import log_events
from lakebed.terminal.console import print_text


def test_every_code_is_used_once():
    def family(kind: type[LakeError]) -> list[type[LakeError]]:
        return [kind, *(each for below in kind.__subclasses__() for each in family(below))]

    ours = [kind for kind in family(LakeError) if kind.__module__ == "lakebed.errors"]
    codes = [kind.code for kind in ours]
    assert len(codes) == len(set(codes)) > 10


def test_a_name_takes_hold_of_no_terminal(capsys):
    """W23: it could clear the screen, or pass for another line of the log."""
    name = "a\x1b[2J\nERROR forged\x9b1m\ud800\u2028"
    error = LakeError("gone", path=name)
    log_events(LogLevel.INFO, LogFormat.TEXT)(FaultFound(code="x", error=f"gone: {name}"))
    print_text([name.replace("\n", "")])
    out, err = capsys.readouterr()
    for text in (str(error), out, err):
        assert not set(text.rstrip("\n")) & set("\x1b\n\x9b\ud800\u2028")
        assert "\\x1b[2J" in text
