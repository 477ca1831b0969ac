"""Pictures of plans. They need Matplotlib: `pip install pacplan[viz]`."""

from pacplan.views.pictures import convergence, intervals

__all__ = ["convergence", "intervals"]
