"""All parts, in the order in which they are run: those that end by themselves come first."""

from .bombs import Bombs
from .crafted import Crafted
from .disks import Disks
from .findings import Findings
from .flips import Flips
from .kills import Kills
from .traffic import Requests
from .trust import Trust

PARTS = {part.name: part for part in (Findings, Trust, Disks, Crafted, Flips, Kills, Requests, Bombs)}
