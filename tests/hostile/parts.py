"""All parts, in the order in which they are run."""

from .bombs import Bombs
from .disks import Disks
from .flips import Flips
from .kills import Kills
from .traffic import Requests
from .trust import Trust

PARTS = {part.name: part for part in (Trust, Disks, Flips, Kills, Requests, Bombs)}
