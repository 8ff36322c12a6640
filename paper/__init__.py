"""Every table and figure of the paper, regenerated and compared with what it prints: `python -m paper`."""

import os

for name in ("OPENBLAS", "OMP", "MKL"):  # before NumPy: several data sets at a time already use all cores
    os.environ.setdefault(f"{name}_NUM_THREADS", "1")
