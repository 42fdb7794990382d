"""Every rogue of all galleries, by name: those that verification catches, and those that only a load shows."""

from harness.tests.doubles.rogues import Rogue, cunning
from harness.tests.doubles.rogues.audited import AUDITED
from harness.tests.doubles.rogues.gallery import ROGUES
from harness.tests.doubles.rogues.hidden import HIDDEN

CUNNING = cunning.ROGUES
EVERYONE: dict[str, Rogue] = {**ROGUES, **{rogue.name: rogue for rogue in (*AUDITED, *HIDDEN, *CUNNING)}}
