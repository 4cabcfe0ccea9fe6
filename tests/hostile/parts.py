"""All parts, in the order in which they are run."""

from .bombs import Bombs
from .flips import Flips
from .kills import Kills
from .trust import Trust

PARTS = {part.name: part for part in (Trust, Flips, Kills, Bombs)}
