"""Confidence intervals, and the exploration functions that size them."""

from pacplan.bounds.intervals import expectation_interval, mean_interval
from pacplan.bounds.thresholds import Thresholds

__all__ = ["Thresholds", "expectation_interval", "mean_interval"]
