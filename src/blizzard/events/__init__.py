"""What happens in blizzard, as events: a module for each subject."""

from blizzard.events.batch import *  # noqa: F403
from blizzard.events.compaction import *  # noqa: F403
from blizzard.events.idle import *  # noqa: F403
from blizzard.events.journal import *  # noqa: F403
from blizzard.events.notices import *  # noqa: F403
from blizzard.events.source import *  # noqa: F403
from blizzard.events.spark import *  # noqa: F403
from blizzard.events.units import *  # noqa: F403
