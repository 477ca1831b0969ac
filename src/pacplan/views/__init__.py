"""Pictures of plans and searches. Those of Matplotlib need `pip install pacplan[viz]`."""

from pacplan.views.intervals import intervals
from pacplan.views.trace import Trace, convergence

__all__ = ["Trace", "convergence", "intervals"]
