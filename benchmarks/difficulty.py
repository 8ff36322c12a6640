"""Difficulty as a model: an effect of each item on the logit of an error, to be tried beside the discount.

    logit P(reading of item i by source j is wrong | T_i) = a_j,T + σ b_i,   b_i ~ N(0, 1),

T_i ~ Bernoulli(θ), θ ~ Beta(½, ½), σ ~ half-normal(½). Skill s_j = −(a_j0 + a_j1)/2 ~ N(m_s, t_s²) and lean
l_j = (a_j0 − a_j1)/2 ~ N(m_l, t_l²); m_s ~ N(1, 1) above 0, which says which class is which, m_l ~ N(0, ½²),
t_s ~ half-normal(1), t_l ~ half-normal(½). One σ for both classes: with two, one class and a continuum of
difficulty fit as well as two classes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from time import process_time
from typing import NamedTuple

import numpy as np
from scipy import sparse

import binreps as br
from binreps.fits.sampled.draws import split_rhat
from binreps.model import Float

SIGMA_SD, SKILL_SD, LEAN_SD = 0.5, 1.0, 0.5  # of the half-normal priors of σ, t_s and t_l
MEAN_SKILL, MEAN_SKILL_SD, MEAN_LEAN_SD = 1.0, 1.0, 0.5
WATCHED = ("prevalence", "difficulty", "mean skill", "mean lean", "spread of skill", "spread of lean")
AGREE = 1.05  # R̂ up to which chains agree
_STEPS = 2  # of σ and of the spreads in each sweep
_NEWTON = 0.75  # share of sweeps that take Newton's steps
_WISHED = 0.44  # share of accepted steps that steps of one number are tuned to


class Data(NamedTuple):
    """Readings one by one: item, source and answer, and the sums over either."""

    of: np.ndarray
    by: np.ndarray
    yes: np.ndarray
    items: sparse.csr_matrix
    sources: sparse.csr_matrix

    @classmethod
    def taken(cls, readings: br.Readings) -> Data:
        """Every individual by itself, as each has a difficulty of its own."""
        of, by, yes = readings.row, readings.code >> 1, (readings.code & 1).astype(float)
        one, at = np.ones(of.size), np.arange(of.size)
        items = sparse.csr_matrix((one, (of, at)), (len(readings), of.size))
        sources = sparse.csr_matrix((one, (by, at)), (len(readings.sources), of.size))
        return cls(of, by, yes[:, None], items, sources)


class Sampled(NamedTuple):
    """Scores, draws of what is watched (its names × chains × draws), their R̂, and what it cost."""

    score: Float
    draws: Float
    rhat: float
    nanoseconds: float


class _Part(NamedTuple):
    """Of every reading: its linear predictor, log likelihood, and the first two derivatives."""

    at: Float
    value: Float
    slope: Float
    bend: Float

    @classmethod
    def of(cls, at: Float, error: Float) -> _Part:
        odds = np.exp(at)
        wrong = odds / (1 + odds)
        return cls(at, error * at - np.log1p(odds), error - wrong, wrong * (1 - wrong))

    def moved(self, there: _Part, taken: Float) -> _Part:
        """There where a step was taken."""
        return _Part(*(np.where(taken, new, old) for new, old in zip(there, self, strict=True)))


@dataclass
class Chains:
    """The state of all chains, the last axis of every array, and the steps that keep the posterior."""

    data: Data
    rng: np.random.Generator
    theta: Float
    sigma: Float
    skill: Float
    lean: Float
    hard: Float
    status: Float
    mean: Float  # of skill and lean
    spread: Float
    # of σ, of σ where σ b stays, of the spreads, and of these where sources are in units of them
    step: Float = field(default_factory=lambda: np.array([0.2, 0.2, 0.5, 0.5, 0.1, 0.1]))
    tuning: bool = True
    drift: float = 1.0  # 0 where steps go without Newton's, which overshoot where the likelihood is flat

    @classmethod
    def started(cls, data: Data, chains: int, rng: np.random.Generator) -> Chains:
        """Dispersed, and on the side on which more readings are right than wrong."""
        people, sources = data.items.shape[0], data.sources.shape[0]
        n, s = np.asarray(data.items.sum(axis=1)), data.items @ data.yes
        share = (s + 0.5) / (n + 1)
        power = rng.uniform(0.5, 4.0, chains)
        status = rng.random((people, chains)) < 1 / (1 + ((1 - share) / share) ** power)
        mean = np.stack([rng.uniform(0.5, 3.0, chains), rng.uniform(-1.0, 1.0, chains)])
        spread = rng.uniform(0.1, 1.0, (2, chains))
        skill, lean = mean[:, None] + spread[:, None] * rng.standard_normal((2, sources, chains))
        theta, sigma = rng.uniform(0.1, 0.9, chains), rng.uniform(0.05, 2.5, chains)
        hard = rng.standard_normal((people, chains))
        return cls(data, rng, theta, sigma, skill, lean, hard, status.astype(float), mean, spread)

    @np.errstate(over="ignore")  # a step so far out that its odds are infinite is not taken
    def sweep(self) -> Float:
        """Everything once; the probability of being positive of each item, before its status is drawn."""
        self.drift = float(self.rng.random() < _NEWTON)
        chance = self._statuses()
        wrong = self._errors()
        part = _Part.of(self._logits() + (self.sigma * self.hard)[self.data.of], wrong)
        part = self._items(part, wrong)
        part = self._sources(part, wrong)
        self._difficulty(*self._spreads(part.at, part.value, wrong), wrong)
        self._scales()
        self._shifts()
        self._population()
        return chance

    def _errors(self) -> Float:
        """Which readings are wrong."""
        return np.abs(self.status[self.data.of] - self.data.yes)

    def _logits(self) -> Float:
        """a_j,T of every reading."""
        by, positive = self.data.by, self.status[self.data.of] > 0
        return np.where(positive, (-self.lean - self.skill)[by], (self.lean - self.skill)[by])

    def _statuses(self) -> Float:
        """Status and sign of the effect together, four states: what all misread may be of the other class."""
        data, effect = self.data, (self.sigma * self.hard)[self.data.of]
        logs = np.empty((2, 2, *self.hard.shape))
        for t, own in enumerate((self.lean - self.skill, -self.lean - self.skill)):
            logit, wrong = own[data.by], np.abs(t - data.yes)
            for sign in (0, 1):
                at = logit - effect if sign else logit + effect
                logs[t, sign] = data.items @ (wrong * at - np.log1p(np.exp(at)))
        logs += np.log([1 - self.theta, self.theta])[:, None, None]
        share = np.exp(logs - logs.max(axis=(0, 1)))
        by_status = share.sum(axis=1)
        chance = by_status[1] / by_status.sum(axis=0)
        positive = self.rng.random(chance.shape) < chance
        own = np.where(positive, share[1], share[0])
        turned = self.rng.random(chance.shape) * (own[0] + own[1]) < own[1]
        self.status, self.hard = positive.astype(float), np.where(turned, -self.hard, self.hard)
        positives = self.status.sum(axis=0)
        self.theta = self.rng.beta(0.5 + positives, 0.5 + len(positive) - positives)
        return np.asarray(chance)

    def _items(self, part: _Part, wrong: Float) -> _Part:
        """Effects of items by a Newton step with noise, all at once: they are independent given the rest."""

        def newton(at: Float, here: _Part) -> tuple[Float, Float, Float]:
            precision = 1 + self.sigma**2 * (self.data.items @ here.bend)
            step = (self.sigma * (self.data.items @ here.slope) - at) / precision
            return self.data.items @ here.value - at**2 / 2, at + self.drift * step, precision

        value, mean, precision = newton(self.hard, part)
        noise = self.rng.standard_normal(mean.shape)
        there = mean + noise / np.sqrt(precision)
        new = _Part.of(part.at + (self.sigma * (there - self.hard))[self.data.of], wrong)
        value_new, back, precision_new = newton(there, new)
        forth = (noise**2 - np.log(precision)) / 2
        back = (precision_new * (self.hard - back) ** 2 - np.log(precision_new)) / 2
        taken = self._taken(value_new - value + forth - back)
        self.hard = np.where(taken, there, self.hard)
        return part.moved(new, taken[self.data.of])

    def _sources(self, part: _Part, wrong: Float) -> _Part:
        """Skill and lean of each source by a Newton step with noise, both together."""
        positive = self.status[self.data.of]
        (m_s, m_l), (w_s, w_l) = self.mean, self.spread**-2.0
        sums = self.data.sources

        def newton(skill: Float, lean: Float, here: _Part) -> tuple[Float, ...]:
            both, ones = sums @ here.slope, sums @ (here.slope * positive)
            bend, bent = sums @ here.bend, sums @ (here.bend * positive)
            slope_s, slope_l = -both - w_s * (skill - m_s), both - 2 * ones - w_l * (lean - m_l)
            a, b, c = bend + w_s, 2 * bent - bend, bend + w_l  # the information about skill and lean
            d = a * c - b * b
            value = sums @ here.value - (w_s * (skill - m_s) ** 2 + w_l * (lean - m_l) ** 2) / 2
            step_s, step_l = (c * slope_s - b * slope_l) / d, (a * slope_l - b * slope_s) / d
            return value, skill + self.drift * step_s, lean + self.drift * step_l, a, b, c, d

        value, mean_s, mean_l, a, b, _, d = newton(self.skill, self.lean, part)
        noise = self.rng.standard_normal((2, *a.shape))
        to_l = noise[0] * np.sqrt(a / d)  # the marginal of the lean, then the skill given it
        to_s = noise[1] / np.sqrt(a) - b / a * to_l
        there = mean_s + to_s, mean_l + to_l
        move_s, move_l = there[0] - self.skill, there[1] - self.lean
        by = self.data.by
        moved = np.where(positive > 0, (-move_l - move_s)[by], (move_l - move_s)[by])
        new = _Part.of(part.at + moved, wrong)
        value_new, back_s, back_l, a2, b2, c2, d2 = newton(*there, new)
        forth = (noise**2).sum(axis=0) / 2 - np.log(d) / 2
        off_s, off_l = self.skill - back_s, self.lean - back_l
        back = (a2 * off_s**2 + 2 * b2 * off_s * off_l + c2 * off_l**2) / 2 - np.log(d2) / 2
        taken = self._taken(value_new - value + forth - back)
        self.skill, self.lean = np.where(taken, there, (self.skill, self.lean))
        return part.moved(new, taken[by])

    def _spreads(self, at: Float, value: Float, wrong: Float) -> tuple[Float, Float]:
        """Spreads of skill and lean with the sources in units of them: what sources of few readings need."""
        turn = 1 - 2 * self.status[self.data.of]  # the lean makes one class of errors likelier
        for i, (values, sd) in enumerate(((self.skill, SKILL_SD), (self.lean, LEAN_SD))):
            now = self.spread[i]
            there = np.abs(now + self.step[4 + i] * self.rng.standard_normal(now.size))
            move = ((there / now - 1) * (values - self.mean[i]))[self.data.by]
            new = at + turn * move if i else at - move
            gain = wrong * new - np.log1p(np.exp(new))
            taken = self._tuned(4 + i, (gain - value).sum(axis=0) - (there**2 - now**2) / (2 * sd**2))
            values += np.where(taken, there / now - 1, 0.0) * (values - self.mean[i])
            at, value = np.where(taken, new, at), np.where(taken, gain, value)
            self.spread[i] = np.where(taken, there, now)
        return at, value

    def _difficulty(self, at: Float, value: Float, wrong: Float) -> None:
        """σ, and every effect with it: in its precision as far from the mean by one Newton step as before."""
        data = self.data
        plain = _Part.of(at - (self.sigma * self.hard)[data.of], wrong)
        slope, bend = data.items @ plain.slope, data.items @ plain.bend
        value = data.items @ value
        for _ in range(_STEPS):
            there = np.abs(self.sigma + self.step[0] * self.rng.standard_normal(self.sigma.size))
            now, then = 1 + self.sigma**2 * bend, 1 + there**2 * bend
            off = (self.hard - self.sigma * slope / now) * np.sqrt(now)
            hard = there * slope / then + off / np.sqrt(then)
            at = plain.at + (there * hard)[data.of]
            new = data.items @ (wrong * at - np.log1p(np.exp(at)))
            gain = new - value - (hard**2 - self.hard**2 + np.log(then / now)) / 2
            taken = self._tuned(0, gain.sum(axis=0) - (there**2 - self.sigma**2) / (2 * SIGMA_SD**2))
            value, self.hard = np.where(taken, new, value), np.where(taken, hard, self.hard)
            self.sigma = np.where(taken, there, self.sigma)

    def _scales(self) -> None:
        """σ with σ b as it is, and the spreads of the sources: the readings do not matter."""
        people, sources = len(self.hard), len(self.skill)
        for _ in range(_STEPS):
            squares = self.sigma**2 * (self.hard**2).sum(axis=0)
            there = self._scale(1, self.sigma, squares, people, SIGMA_SD)
            self.hard, self.sigma = self.hard * (self.sigma / there), there
            off = np.stack([self.skill, self.lean]) - self.mean[:, None]
            for i, sd in enumerate((SKILL_SD, LEAN_SD)):
                own = (off[i] ** 2).sum(axis=0)
                self.spread[i] = self._scale(2 + i, self.spread[i], own, sources, sd)

    def _scale(self, which: int, now: Float, squares: Float, size: int, sd: float) -> Float:
        """A step of a standard deviation with a half-normal prior, of which there are so many values."""
        there = now * np.exp(self.step[which] * self.rng.standard_normal(now.size))

        def value(x: Float) -> Float:
            return np.asarray((1 - size) * np.log(x) - squares / (2 * x**2) - x**2 / (2 * sd**2))

        return np.where(self._tuned(which, value(there) - value(now)), there, now)

    def _shifts(self) -> None:
        """Effects of one class against skill and lean of everyone: no reading becomes more or less likely."""
        for sign, own in ((-1.0, 1 - self.status), (1.0, self.status)):
            rate = np.stack([self.sigma, sign * self.sigma]) / 2
            prior = np.array([MEAN_SKILL, 0.0])[:, None]
            weight = np.array([MEAN_SKILL_SD, MEAN_LEAN_SD])[:, None] ** -2.0
            precision = own.sum(axis=0) + (weight * rate**2).sum(axis=0)
            slope = -(own * self.hard).sum(axis=0) - (weight * rate * (self.mean - prior)).sum(axis=0)
            move = slope / precision + self.rng.standard_normal(slope.size) / np.sqrt(precision)
            move = np.where((self.mean + rate * move)[0] > 0, move, 0.0)
            self.hard = self.hard + own * move
            self.mean = self.mean + rate * move
            self.skill, self.lean = self.skill + rate[0] * move, self.lean + rate[1] * move

    def _population(self) -> None:
        """Mean skill and mean lean, whose laws are normal; the skill's above 0."""
        prior = ((MEAN_SKILL, MEAN_SKILL_SD), (0.0, MEAN_LEAN_SD))
        for i, (values, (centre, sd)) in enumerate(zip((self.skill, self.lean), prior, strict=True)):
            own = self.spread[i] ** -2.0
            precision = len(values) * own + sd**-2.0
            middle = (own * values.sum(axis=0) + centre * sd**-2.0) / precision
            there = middle + self.rng.standard_normal(middle.size) / np.sqrt(precision)
            self.mean[i] = there if i else np.where(there > 0, there, self.mean[i])

    def _taken(self, gain: Float) -> Float:
        """Which of the steps are taken."""
        return np.asarray(np.log(self.rng.random(gain.shape)) < gain)

    def _tuned(self, which: int, gain: Float) -> Float:
        """Which are taken; before draws count, steps grow or shrink until the wished share is."""
        taken = self._taken(gain)
        if self.tuning:
            self.step[which] *= np.exp(0.1 * (taken.mean() - _WISHED))
        return taken


def sampled(
    readings: br.Readings,
    rng: np.random.Generator | int,
    sweeps: int = 1000,
    most: int = 4000,
    chains: int = 8,
) -> Sampled:
    """The posterior from several chains, made longer until they agree; the first third does not count."""
    data, start = Data.taken(readings), process_time()
    state = Chains.started(data, chains, np.random.default_rng(rng))
    scores: list[Float] = []
    draws: list[Float] = []
    while True:
        state.tuning = len(draws) < sweeps // 3
        scores.append(state.sweep().mean(axis=1))
        draws.append(np.stack([state.theta, state.sigma, *state.mean, *state.spread]))
        if len(draws) < sweeps:
            continue
        kept = np.moveaxis(np.array(draws[sweeps // 3 :]), 0, -1)
        rhat = float(split_rhat(kept).max())
        if rhat < AGREE or 2 * sweeps > most:
            took = (process_time() - start) / (data.of.size * chains * sweeps)
            return Sampled(np.mean(scores[sweeps // 3 :], axis=0), kept, rhat, took * 1e9)
        sweeps *= 2
