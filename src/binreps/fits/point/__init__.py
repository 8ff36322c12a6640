"""Fits that are one point: the average, the median, known statuses, the posterior mode."""
