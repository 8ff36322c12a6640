"""Random and damaged inputs for every entry point: `python -m fuzz`.

An input passes if the entry point answers with finite scores in [0, 1], or refuses it with one sentence. Any
other exception, NaN, a warning that is not ours, or 20 seconds without an answer is a failure.
"""
