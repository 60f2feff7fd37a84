"""The estimators, and the problem that they all solve."""
