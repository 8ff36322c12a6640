"""Repeated yes/no measurements into calibrated decisions."""

from binreps._version import __version__
from binreps.counts import CountTable
from binreps.errors import BinrepsError, BinrepsWarning, DataError, FitError, OptionError
from binreps.model import Prior, Rates, likelihood_score
from binreps.table import Table
