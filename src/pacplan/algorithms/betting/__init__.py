"""Bets that prove bounds on means: below on returns of episodes, above on values of sampled trees."""
