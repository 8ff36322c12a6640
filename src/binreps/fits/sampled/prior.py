"""The prior of a model with sources: the prevalence, and the population that sources come from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import betainc, betaincinv, betaln, expit, logit

from binreps.errors import OptionError
from binreps.model import Float, checked_shapes
from binreps.options import real, shown

_POPULATION = (
    "mean_false_positive",
    "spread_false_positive",
    "mean_false_negative",
    "spread_false_negative",
)
_FARTHEST = 16.0  # of a logit: a uniform prior has 10⁻⁷ of its mass beyond


@dataclass(frozen=True)
class SourcePrior:
    """Priors of the prevalence, and of the population that the sources' error rates come from.

    A source's false-positive rate is Beta(mκ, (1−m)κ), with mean m and spread ρ = 1/(1+κ): 0 if all sources
    are alike, towards 1 if each is always or never wrong. Mean and spread have Beta priors, or are held
    fixed. The same for false negatives. The two means add up to less than 1 (unless both are held fixed);
    single sources may be worse than chance.

    Parameters
    ----------
    prevalence : pair of shapes
    mean_false_positive, mean_false_negative : pair of shapes, or a number that is held fixed
    spread_false_positive, spread_false_negative : pair of shapes, or a number that is held fixed
    slope_sd : float
        Prior standard deviation of the slope of each standardised covariate, where there are any. The prior
        of the prevalence is then that at average covariates; of populations, that of each.

    Examples
    --------
    >>> SourcePrior(prevalence=(1, 9)).mean_false_positive
    (2.0, 2.0)
    >>> SourcePrior(mean_false_positive=0.1, spread_false_positive=0.2).mean_false_positive
    0.1
    """

    prevalence: tuple[float, float] = (0.5, 0.5)
    mean_false_positive: tuple[float, float] | float = (2.0, 2.0)
    spread_false_positive: tuple[float, float] | float = (1.0, 1.0)
    mean_false_negative: tuple[float, float] | float = (2.0, 2.0)
    spread_false_negative: tuple[float, float] | float = (1.0, 1.0)
    slope_sd: float = 1.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "prevalence", checked_shapes("prevalence", self.prevalence))
        if not 0 < real(self.slope_sd) < np.inf:
            raise OptionError(f"slope_sd must be a finite number > 0, got {shown(self.slope_sd)}")
        for name in _POPULATION:
            value = getattr(self, name)
            number = real(value)
            if number == number and not 0 < number < 1:
                raise OptionError(f"{name} must be between 0 and 1 to be held fixed, got {shown(value)}")
            object.__setattr__(self, name, number if number == number else checked_shapes(name, value))

    @property
    def means_fixed(self) -> bool:
        """Whether both means are held fixed."""
        return isinstance(self.mean_false_positive, float) and isinstance(self.mean_false_negative, float)

    @property
    def all_learned(self) -> bool:
        """Whether nothing is held fixed."""
        return all(bool(side.free.all()) for side in self.sides)

    @cached_property
    def sides(self) -> tuple[Side, Side]:
        """The prior of mean and spread, for false positives and for false negatives."""
        p = Side(self.mean_false_positive, self.spread_false_positive)
        return p, Side(self.mean_false_negative, self.spread_false_negative)


class Side:
    """The prior of one mean and spread, on their logits.

    Attributes
    ----------
    free : ndarray of bool
        Whether mean and spread are to be learned.
    """

    def __init__(self, mean: Any, spread: Any) -> None:
        self._held = [value if isinstance(value, float) else None for value in (mean, spread)]
        self._shapes = [(1.0, 1.0) if isinstance(value, float) else value for value in (mean, spread)]
        self.free = np.array([value is None for value in self._held])

    def start(self, rng: np.random.Generator, chains: int) -> Float:
        """Logits to start from, in every chain others: good sources that differ."""
        drawn = logit(rng.uniform(0.1, 0.4, (2, chains)))
        held = [0.5 if value is None else value for value in self._held]
        return np.where(self.free[:, None], drawn, logit(held)[:, None])

    def below(self, limit: Float, rng: np.random.Generator) -> Float:
        """Logits of mean and spread drawn from the prior, the mean's below a limit."""
        (a, b), (c, d) = self._shapes
        mean = betaincinv(a, b, rng.random(limit.size) * betainc(a, b, expit(limit)))
        spread = rng.beta(c, d, limit.size)
        return np.stack([np.clip(logit(each), -700, 700) for each in (mean, spread)])

    def log_mass_below(self, limit: Float) -> Float:
        """The log of the prior mass of means whose logit is below a limit."""
        a, b = self._shapes[0]
        return np.log(np.maximum(betainc(a, b, expit(limit)), 1e-300))

    def natural(self, place: Float) -> Float:
        """The log density of mean and spread themselves, at their logits."""
        up, down = -np.logaddexp(0, -place), -np.logaddexp(0, place)
        return np.asarray(
            sum((a - 1) * up[i] + (b - 1) * down[i] - betaln(a, b) for i, (a, b) in enumerate(self._shapes))
        )

    def log_density(self, place: Float, limit: Any) -> Float:
        """The log density of the logits, −∞ where the mean's is above a limit."""
        with np.errstate(over="ignore"):
            logs = np.log(expit(place)), np.log(expit(-place))
        total = sum(a * logs[0][i] + b * logs[1][i] for i, (a, b) in enumerate(self._shapes) if self.free[i])
        inside = np.abs(place[1]) < _FARTHEST
        return np.where(inside & ((place[0] < limit) | ~self.free[0]), total, -np.inf)
