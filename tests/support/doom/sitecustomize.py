"""Death at a chosen moment, for real processes: loaded by Python itself at its start.

The environment variable DOOM holds JSON: which method of ours is the moment
(`module:Class.method`), what its first argument must contain, whether to die before or after the
call, and who dies: this process (`self`) or the process whose id stands in a file. A `spent` file,
made exclusively, lets it happen once over all processes, so that a retry lives; with `always` it
happens each time. `until` holds the moment until that file is there: a process stops a little
after the signal that stops it, and a thread may have gone on by then. `constants` (`module:NAME`)
are given other values first, so that nobody has to wait. Production code has no hook for this.
"""

import functools
import importlib
import json
import os
import signal
import sys
import time
from pathlib import Path


def change(constants):
    for place, value in constants.items():
        module_name, _, name = place.partition(":")
        setattr(importlib.import_module(module_name), name, value)


def arm(doom):
    if "method" not in doom:
        return
    module_name, _, dotted = doom["method"].partition(":")
    owner = importlib.import_module(module_name)
    *path, name = dotted.split(".")
    for part in path:
        owner = getattr(owner, part)
    original = getattr(owner, name)

    @functools.wraps(original)
    def doomed(self, *arguments, **named):
        ours = doom.get("match", "") in str(arguments[0] if arguments else "")
        if ours and doom["when"] == "before":
            strike(doom)
        answer = original(self, *arguments, **named)
        if ours and doom["when"] == "after":
            strike(doom)
        return answer

    setattr(owner, name, doomed)


def strike(doom):
    if not doom.get("always"):
        try:
            os.close(os.open(doom["spent"], os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
    victim = os.getpid() if doom["victim"] == "self" else int(Path(doom["victim"]).read_text())
    target = os.killpg if doom.get("group") else os.kill
    number = getattr(signal, doom.get("signal", "SIGKILL"))
    target(victim, number)
    while doom.get("insist"):
        # Hold this moment, and go on asking, until the victim is gone.
        time.sleep(0.2)
        target(victim, number)
    while "until" in doom and not Path(doom["until"]).exists():
        time.sleep(0.05)


if "DOOM" in os.environ and not sys.argv[0].endswith("find_spark_home.py"):
    DOOM = json.loads(os.environ["DOOM"])
    change(DOOM.get("constants", {}))
    arm(DOOM)
