"""The events of blizzard, a module for each subject."""

from blizzard.events.batch import *  # noqa: F403
from blizzard.events.source import *  # noqa: F403
from blizzard.events.units import *  # noqa: F403
