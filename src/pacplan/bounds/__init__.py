"""Confidence intervals, and the exploration functions that size them."""

from pacplan.bounds.bernoulli import bernoulli_kl, kl_lower, kl_upper
from pacplan.bounds.simplex import kl_ball_max, kl_ball_min
from pacplan.bounds.thresholds import Thresholds

__all__ = ["Thresholds", "bernoulli_kl", "kl_ball_max", "kl_ball_min", "kl_lower", "kl_upper"]
