"""Side by side with the peers, in one run on one machine: `make bench`, or `python -m benchmarks --help`.

Each family of rows is a module with a function `run(settings)` that returns sections; see `posterior`.
"""

import os

# One core for our arithmetic. Set before NumPy is imported; the samplers start threads of their own kind.
for _library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")
