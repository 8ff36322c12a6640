"""Beside the road: theory, simulation and example data."""
