"""Pictures of plans and searches. They need Matplotlib and Plotly: `pip install pacplan[viz]`."""

from pacplan.views.explorer import explore
from pacplan.views.intervals import intervals
from pacplan.views.trace import Trace, convergence

__all__ = ["Trace", "convergence", "explore", "intervals"]
