"""A reference for any table, either region and several populations: nested panels that are split until right.

Nothing here is shared with the engine that it judges: neither code nor rule. There is no box, no lattice, no
chart, no interpolation between nodes and no extrapolation. The log density of (logit θ, y₁, y₂) with

    p = ½ expit y₁, q = ½ expit y₂                    (both rates below ½)
    p = expit y₁,   q = (1 − p) expit y₂              (p + q < 1)

is smooth and has exponential tails. It is integrated over logit θ given (p, q), over y₂ given p, then over
y₁, each time by Gauss–Legendre panels that are halved until the last coefficients of the integrand are
negligible on every one (`_halve`). A ridge is a line of narrow peaks, each found from the slopes beside it:
however thin, it costs no more than the number of halvings that lead there. Large weights are computed in
extended precision.

With p outside and then with q outside (the same table with positive and negative exchanged), the two results
say how far both can be trusted (`agreement`). A probability of an event {logit θ ≤ c(p, q)} is the ratio of
two integrals, the upper one cut at c: so for the marginals and for the law of Y_L there is one way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import betaln, expit, log_expit, logit

from binreps.counts import CountTable
from binreps.model import Prior

Float = NDArray[np.floating[Any]]
Integer = NDArray[np.int64]
Limit = Callable[[Float, Float, Float, Float], Float]
"""The largest logit θ at log p, log(1−p), log q, log(1−q)."""

_AWAY = np.array([3.0, 8, 20, 50, 120, 300, 700, 1800])
_HEAVY = 3e7  # replicates from which the precise stage uses extended precision
_MOST_AT_ONCE = 1_500_000  # numbers in one array
_NOISE = 32 * float(np.finfo(float).eps)  # of sums of logs, relative to their size
_STEEP = 8.0  # a rise beside the largest value that may lead to a peak
_DETAIL = 2.0  # a line's own mass counts in full down to e^−2 of the largest, and less below
_MOST_PANELS = 2_000_000
_LOG_PEAK = 0.5 * math.log(2 * math.pi)


@dataclass(frozen=True)
class Rule:
    """How fine: nodes per panel, the largest neglected coefficient, and the mass e^−cut that is left out."""

    order: int
    tol: float
    cut: float = 40.0


LIGHT, COARSE, FINE = Rule(16, 1e-7, 36.0), Rule(16, 1e-8), Rule(20, 1e-11, 46.0)
_SCOUT = Rule(8, 1e-3, 52.0)


@lru_cache(maxsize=8)
def _gauss(order: int) -> tuple[Float, Float, Float]:
    """Nodes, weights, and the matrix of the two last Legendre coefficients."""
    x, w = legendre.leggauss(order)
    degrees = np.arange(order)[-2:]
    last = (degrees[:, None] + 0.5) * legendre.legvander(x, order - 1).T[-2:] * w
    return x, w, last.T


@dataclass(frozen=True)
class _Panels:
    """Panels of many integrals at once: whose, from where to where, the values there and names of nodes.

    `rest` is, for each integral, the most that is left out: its size where nothing else is kept.
    """

    owner: Integer
    low: Float
    high: Float
    values: Float
    tags: Integer
    rest: Float


def _halve(
    log_f: Callable[[Integer, Float], tuple[Float, Integer]],
    owner: Integer,
    low: Float,
    high: Float,
    rule: Rule,
    floor: Float,
    noise: float = 0.0,
) -> _Panels:
    """The panels on which ∫ exp(log_f) of each owner is resolved, from given ones; `floor`: its least mass.

    A panel is left out if its largest value and the rise beside it promise nothing, kept if the last
    coefficients are small, and halved otherwise: steep slopes lead to a peak that no node has seen yet. No
    coefficient can be smaller than the rounding of the values, `noise` of their size.
    """
    x, w, last = _gauss(rule.order)
    found, rest = floor.copy(), np.full(floor.size, -np.inf)
    kept = []
    while owner.size:
        half = (high - low) / 2
        values, tags = log_f(owner, ((low + high) / 2)[:, None] + half[:, None] * x)
        top = values.max(axis=1)
        if np.isnan(top).any() or owner.size > _MOST_PANELS:
            raise ArithmeticError("the reference cannot follow this density")
        with np.errstate(under="ignore"):
            shape = np.exp((values - top[:, None]).astype(float))
        log_half = np.log(half)
        mass = (top + log_half).astype(float) + np.log(shape @ w)
        np.logaddexp.at(found, owner, np.where(np.isfinite(mass), mass, -np.inf))
        place = values.argmax(axis=1)
        rows = np.arange(owner.size)
        beside = np.stack([values[rows, np.clip(place + k, 0, rule.order - 1)] for k in (-1, 1)])
        rise = np.max(top - beside, axis=0)
        nothing = top + rise + log_half + 0.7 < found[owner] - rule.cut
        with np.errstate(divide="ignore"):
            missed = np.log(np.abs(shape @ last).max(axis=1)) + top + log_half
        narrow = half <= 4e-15 * np.maximum(1.0, np.abs(low))
        small = np.log(np.maximum(rule.tol, noise * np.abs(found[owner])))
        good = ~nothing & (((missed < found[owner] + small) & (rise < _STEEP)) | narrow)
        np.maximum.at(rest, owner[nothing], mass[nothing])
        kept.append((owner[good], low[good], high[good], values[good], tags[good]))
        again = ~nothing & ~good
        # What is about to be halved is counted again, by its halves.
        found = floor.copy()
        for panels in kept:
            np.logaddexp.at(found, panels[0], _log_mass(_Panels(*panels, rest), rule))
        middle = (low[again] + high[again]) / 2
        owner = np.concatenate([owner[again]] * 2)
        low, high = np.concatenate([low[again], middle]), np.concatenate([middle, high[again]])
    return _Panels(*(np.concatenate(parts) for parts in zip(*kept, strict=True)), rest)


def _log_weights(panels: _Panels, rule: Rule) -> Float:
    """Log quadrature weight of every node."""
    return np.log((panels.high - panels.low) / 2)[:, None] + np.log(_gauss(rule.order)[1])


def _log_mass(panels: _Panels, rule: Rule) -> Float:
    """Log integral over every panel."""
    terms = panels.values + _log_weights(panels, rule)
    top = terms.max(axis=1)
    return (top + np.log(np.exp((terms - top[:, None]).astype(float)).sum(axis=1))).astype(float)


def _log_totals(panels: _Panels, rule: Rule, owners: int) -> Float:
    """Log integral of every owner, in the precision of the values."""
    terms = panels.values + _log_weights(panels, rule)
    top = np.full(owners, -np.inf, terms.dtype)
    np.maximum.at(top, panels.owner, terms.max(axis=1))
    total = np.zeros(owners)
    shifted = np.exp((terms - top[panels.owner][:, None]).astype(float)).sum(axis=1)
    np.add.at(total, panels.owner, shifted)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(total > 0, top + np.log(total), panels.rest)


# ---------------------------------------------------------------------------------------------------------
# The density
# ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Population:
    """Cells of unknown status, and the exponents of θ and 1 − θ, those of known status included."""

    s: Float
    misses: Float
    weight: Float
    shapes: tuple[float, float]


class _Density:
    """log of prior × likelihood of (logit θ per population, y₁, y₂), without the prior's constant."""

    def __init__(self, tables: Sequence[CountTable], prior: Prior) -> None:
        self.better = prior.better_than_chance
        (a_t, b_t), fp, fn = prior
        p, q = np.array(fp), np.array(fn)
        self.populations = []
        for table in tables:
            n, s, w = table.n.astype(float), table.s.astype(float), table.weight.astype(float)
            for known, shapes in ((0, p), (1, q)):
                own = table.known == known
                hits, misses = w[own] @ s[own], w[own] @ (n - s)[own]
                shapes += (hits, misses) if known == 0 else (misses, hits)
            ill, healthy = (float(w[table.known == known].sum()) for known in (1, 0))
            own = (table.known < 0) & (n > 0)
            self.populations.append(_Population(s[own], (n - s)[own], w[own], (a_t + ill, b_t + healthy)))
        self.p_shapes, self.q_shapes = p, q
        self.replicates = sum(float(table.replicates) for table in tables)

    def errors(self, y1: Float, y2: Float) -> tuple[Float, Float, Float, Float, Float]:
        """log p, log(1−p), log q, log(1−q), and the log of prior and area there."""
        e1, e2 = -np.logaddexp(0, -y1), -np.logaddexp(0, -y2)
        f1, f2 = -np.logaddexp(0, y1), -np.logaddexp(0, y2)
        if self.better:
            log_p, not_p = e1, f1
            log_q = not_p + e2
            not_q = np.logaddexp(log_p, not_p + f2)
            area = log_p + not_p + log_q + f2
        else:
            log_p, log_q = e1 - math.log(2), e2 - math.log(2)
            not_p, not_q = np.log1p(-np.exp(log_p)), np.log1p(-np.exp(log_q))
            area = log_p + f1 + log_q + f2
        (a, b), (c, d) = self.p_shapes - 1, self.q_shapes - 1
        return log_p, not_p, log_q, not_q, a * log_p + b * not_p + c * log_q + d * not_q + area

    def ends(self, axis: int) -> tuple[float, float]:
        """Where y₁ (axis 0) or y₂ (axis 1) can be, up to a mass of e^−60."""
        left = self.p_shapes[0] if axis == 0 else self.q_shapes[0]
        right = min(1.0, self.p_shapes[1]) if self.better and axis == 0 else 1.0
        return -60 / left - 60, 60 / right + 60


class _Lines:
    """Points (p, q), and the line of logit θ through each, of one population."""

    def __init__(self, population: _Population, errors: tuple[Float, ...]) -> None:
        log_p, not_p, log_q, not_q, *_ = errors
        self.errors = errors[:4]
        s, misses = population.s, population.misses
        positive = s * not_q[:, None] + misses * log_q[:, None]
        negative = s * log_p[:, None] + misses * not_p[:, None]
        self.shift = positive - negative  # of the log odds of θ, by each cell
        self.weight = population.weight.astype(log_p.dtype)
        self.constant = negative @ self.weight
        self.a, self.b = population.shapes
        self.total = self.weight.sum() + self.a + self.b
        self.height: Float | None = None
        self.small = np.abs(self.shift).max(initial=0) < 300
        self.factor = np.exp(self.shift) if self.small else self.shift

    def about_modes(self) -> None:
        """From now on values are those at the modes, in extended precision, and differences from them."""
        self.centre, _ = self.mode()
        self.height = self.log_density(
            np.arange(self.centre.size), self.centre[:, None].astype(np.longdouble)
        )
        odds = self.centre[:, None] + self.shift.astype(float)
        self.share = np.stack([expit(odds), expit(-odds)])
        self.theta = np.stack([expit(self.centre), expit(-self.centre)])[..., None]

    def _beside_modes(self, point: Integer, u: Float) -> Float:
        """log(1 + e^(u + λ)) less its value at m is log1p(y expm1(u − m)), y = expit(m + λ)."""
        away = u - self.centre[point][:, None]
        value = self.a * away - float(self.total) * _log_mixed(self.theta[:, point], away[..., None])[..., 0]
        value += _log_mixed(self.share[:, point], away[..., None]) @ self.weight.astype(float)
        return self.height[point] + value

    def log_density(self, point: Integer, u: Float) -> Float:
        """Of logit θ, at (…, nodes) for the points (…)."""
        if self.height is not None and np.abs(u).max(initial=0) < 300:
            return self._beside_modes(point, u.astype(float))
        value = self.constant[point][:, None] + self.a * u - self.total * _softplus(u)
        if self.small and np.abs(u).max(initial=0) < 300:
            x = np.exp(u)[..., None] * self.factor[point][:, None, :]
            x += 1
            return value + np.log(x, out=x) @ self.weight
        return value + _softplus(u[..., None] + self.shift[point][:, None, :]) @ self.weight

    def mode(self) -> tuple[Float, Float]:
        """The one stationary point of every line, nearly, and the curvature there."""
        size = self.constant.size
        u = np.zeros(size)
        low, high = np.full(size, -60 / min(self.a, 1) - 700), np.full(size, 60 / min(self.b, 1) + 700)
        shift, weight = self.shift.astype(float), self.weight.astype(float)
        curve = np.ones(size)
        open_ = np.arange(size)
        for _ in range(80):
            v = u[open_]
            share, theta = expit(v[:, None] + shift[open_]), expit(v)
            slope = share @ weight - float(self.total) * theta + self.a
            bend = (share * (1 - share)) @ weight - float(self.total) * theta * (1 - theta)
            low[open_], high[open_] = np.where(slope > 0, v, low[open_]), np.where(slope > 0, high[open_], v)
            with np.errstate(divide="ignore", invalid="ignore"):
                step = v - slope / bend
            inside = (bend < 0) & (step > low[open_]) & (step < high[open_])
            u[open_] = np.where(inside, step, (low[open_] + high[open_]) / 2)
            curve[open_] = -bend
            arrived = (inside & (slope**2 < 1e-4 * -bend)) | (high[open_] - low[open_] < 1e-9)
            open_ = open_[~arrived]
            if not open_.size:
                break
        return u, np.maximum(curve, 1e-12)

    def laplace(self) -> Float:
        """log ∫ along every line, roughly."""
        u, curve = self.mode()
        height = self.log_density(np.arange(u.size), u[:, None].astype(self.shift.dtype))[:, 0]
        return height.astype(float) + _LOG_PEAK - np.log(curve) / 2

    def panels(self, rule: Rule, limit: Limit | None, floor: Float) -> _Panels:
        """The resolved lines, cut at a limit; `floor`: the log mass beside which far less does not matter."""
        u, curve = self.mode()
        if self.shift.dtype == np.longdouble:
            self.about_modes()
        sd = 1 / np.sqrt(curve)
        reach = 1.0 + 60 / np.array([self.a, self.b])
        steps = np.array([-9.0, -4.5, 0.0, 4.5, 9.0])
        inner = u[:, None] + sd[:, None] * steps
        breaks = np.concatenate([inner[:, :1] - reach[0], inner, inner[:, -1:] + reach[1]], axis=1)
        if limit is not None:
            most = np.asarray(limit(*self.errors), float)[:, None]
            breaks = np.minimum(breaks, most)
            breaks[:, 0] = np.minimum(breaks[:, 0], most[:, 0] - reach[0])
        low, high = breaks[:, :-1].ravel(), breaks[:, 1:].ravel()
        owner = np.repeat(np.arange(u.size), breaks.shape[1] - 1)
        wide = high > low
        kind = self.shift.dtype
        height = self.log_density(np.arange(u.size), u[:, None].astype(kind))[:, 0]

        def log_f(points: Integer, nodes: Float) -> tuple[Float, Integer]:
            return self.log_density(points, nodes.astype(kind)), np.zeros(nodes.shape, np.int64)

        floor = np.maximum(floor, height.astype(float) - np.log(curve) / 2)
        strict = Rule(rule.order, rule.tol / 100, rule.cut)
        return _halve(log_f, owner[wide], low[wide], high[wide], strict, floor)


def _log_mixed(share: Float, away: Float) -> Float:
    """log(y e^d + 1 − y) of y and 1 − y at (2, points, cells) and d at (points, nodes, 1)."""
    y, rest = share[:, :, None, :]
    rise = y * np.expm1(away)
    near = np.abs(rise) < 0.5
    return np.where(near, np.log1p(np.where(near, rise, 0.0)), np.log(rest + y * np.exp(away)))


def _softplus(x: Float) -> Float:
    """log(1 + e^x)."""
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


# ---------------------------------------------------------------------------------------------------------
# The three nested integrals
# ---------------------------------------------------------------------------------------------------------


class _Nest:
    """∫ over y₁, of ∫ over y₂, of the product over populations of ∫ over logit θ."""

    def __init__(self, density: _Density, rule: Rule, limit: tuple[int, Limit] | None = None) -> None:
        self.density, self.rule, self.limit = density, rule, limit
        heavy = density.replicates > _HEAVY or max(*density.p_shapes, *density.q_shapes) > _HEAVY
        self.kind = np.longdouble if heavy else np.float64
        self.noise = 8 * float(np.finfo(self.kind).eps)
        self.cells = sum(one.weight.size + 2 for one in density.populations)
        self.rows: list[tuple[Float, Float]] = []  # y₁ of every y₁-node, log weight
        self.points: list[dict[str, Any]] = []
        self.row_count = self.point_count = 0
        self.best_row = self.best_point = -np.inf

    def run(self) -> None:
        """The panels of y₁, first roughly, then as they should be."""
        low, high = self._starts(0)
        nobody = np.full(1, -np.inf)
        rough = _halve(self._rough_rows, np.zeros(low.size, int), low, high, _SCOUT, nobody, _NOISE)
        self.panels = _halve(
            self._rows, np.zeros(rough.low.size, int), rough.low, rough.high, self.rule, nobody, self.noise
        )
        self.log_integral = _log_totals(self.panels, self.rule, 1)[0]

    def _starts(self, axis: int) -> tuple[Float, Float]:
        """Panels that cover an axis, short in the middle."""
        left, right = self.density.ends(axis)
        breaks = np.concatenate([-_AWAY[::-1], [0.0], _AWAY])
        breaks = np.concatenate([[left], breaks[(breaks > left) & (breaks < right)], [right]])
        return breaks[:-1], breaks[1:]

    def _columns(self, y1: Float, log_f: Any, rule: Rule, floor: Float) -> _Panels:
        """Roughly resolved panels of y₂ at each of some y₁."""
        low, high = self._starts(1)
        owner = np.repeat(np.arange(y1.size), low.size)
        return _halve(log_f, owner, np.tile(low, y1.size), np.tile(high, y1.size), rule, floor, _NOISE)

    def _rough_rows(self, owner: Integer, y1: Float) -> tuple[Float, Integer]:
        """log ∫ over y₂ and logit θ, by Laplace's formula along θ."""
        del owner
        flat = y1.ravel()
        found = np.empty(flat.size)
        for part in _parts(flat.size, 300 * self.cells):
            panels = self._rough_columns(flat[part])
            found[part] = _log_totals(panels, _SCOUT, flat[part].size)
        self.best_row = max(self.best_row, float(found.max()))
        return found.reshape(y1.shape), np.zeros(y1.shape, np.int64)

    def _rough_columns(self, y1: Float) -> _Panels:
        def log_f(rows: Integer, y2: Float) -> tuple[Float, Integer]:
            first = np.broadcast_to(y1[rows][:, None], y2.shape).ravel()
            value = np.empty(first.size)
            for part in _parts(first.size, 2 * self.cells):
                errors = self.density.errors(first[part], y2.ravel()[part])
                value[part] = errors[4]
                for population in self.density.populations:
                    value[part] += _Lines(population, errors).laplace()
            self.best_point = max(self.best_point, float(value.max()))
            return value.reshape(y2.shape), np.zeros(y2.shape, np.int64)

        return self._columns(y1, log_f, _SCOUT, np.full(y1.size, -np.inf))

    def _rows(self, owner: Integer, y1: Float) -> tuple[Float, Integer]:
        """log ∫ over y₂ and logit θ."""
        del owner
        flat = y1.ravel()
        found = np.empty(flat.size, self.kind)
        tags = np.arange(flat.size) + self.row_count
        self.row_count += flat.size
        for part in _parts(flat.size, 300 * self.cells):
            rough = self._rough_columns(flat[part])
            names = tags[part]
            here = flat[part]

            def log_f(rows: Integer, y2: Float, here: Float = here, names: Integer = names) -> Any:
                return self._points(names[rows], here[rows], y2)

            floor = np.full(here.size, self.best_row - _DETAIL)
            panels = _halve(log_f, rough.owner, rough.low, rough.high, self.rule, floor, self.noise)
            found[part] = _log_totals(panels, self.rule, here.size)
            self._remember(panels)
        return found.reshape(y1.shape), tags.reshape(y1.shape)

    def _remember(self, panels: _Panels) -> None:
        """The weights of the points on panels of y₂ that are kept."""
        weights = _log_weights(panels, self.rule)
        self.rows.append((panels.tags.ravel(), weights.ravel()))

    def _points(self, row: Integer, y1: Float, y2: Float) -> tuple[Float, Integer]:
        """log ∫ over logit θ."""
        first, second = np.broadcast_to(y1[:, None], y2.shape).ravel(), y2.ravel()
        row = np.broadcast_to(row[:, None], y2.shape).ravel()
        value = np.empty(first.size, self.kind)
        tags = np.arange(first.size) + self.point_count
        self.point_count += first.size
        for part in _parts(first.size, 100 * self.cells):
            errors = self.density.errors(first[part].astype(self.kind), second[part].astype(self.kind))
            value[part] = errors[4]
            size = first[part].size
            lines = []
            each = [_Lines(population, errors) for population in self.density.populations]
            rough = [one.laplace() for one in each]
            for i, one in enumerate(each):
                limit = self.limit[1] if self.limit and self.limit[0] == i else None
                others = errors[4] + sum(rough) - rough[i]
                panels = one.panels(self.rule, limit, (self.best_point - _DETAIL - others).astype(float))
                total = _log_totals(panels, self.rule, size)
                value[part] += total
                mass = (panels.values - total[panels.owner][:, None]).astype(float)
                mass = mass + _log_weights(panels, self.rule)
                middle, half = (panels.low + panels.high) / 2, (panels.high - panels.low) / 2
                u = middle[:, None] + half[:, None] * _gauss(self.rule.order)[0]
                own = np.repeat(panels.owner, self.rule.order)
                lines.append((own, u.ravel(), np.exp(mass).ravel()))
            known = {"row": row[part], "errors": [e.astype(float) for e in errors[:4]], "lines": lines}
            self.points.append(known | {"tag": tags[part], "value": value[part]})
        return value.reshape(y2.shape), tags.reshape(y2.shape)


def _parts(size: int, each: int) -> list[slice]:
    """Slices that keep an array of `each` numbers per item small."""
    step = max(1, _MOST_AT_ONCE // max(each, 1))
    return [slice(start, min(size, start + step)) for start in range(0, size, step)]


# ---------------------------------------------------------------------------------------------------------
# One side: p outside
# ---------------------------------------------------------------------------------------------------------


class _Side:
    """The posterior with p outside: points (p, q) with masses, and lines of θ through them."""

    def __init__(self, tables: Sequence[CountTable], prior: Prior, rule: Rule) -> None:
        self.tables, self.prior, self.rule = tables, prior, rule
        self.density = _Density(tables, prior)
        self.nest = nest = _Nest(self.density, rule)
        nest.run()
        row_weight = np.full(nest.row_count, -np.inf)
        panels = nest.panels
        row_weight[panels.tags.ravel()] = _log_weights(panels, rule).ravel()
        point_weight = np.full(nest.point_count, -np.inf)
        for tags, weights in nest.rows:
            point_weight[tags] = weights
        self.errors, self.mass, self.lines = [], [], [[] for _ in tables]
        offset = 0
        for one in nest.points:
            weight = row_weight[one["row"]] + point_weight[one["tag"]]
            mass = np.exp((one["value"] - nest.log_integral).astype(float) + weight)
            kept = mass > 0  # and every line has mass: that of one that was left out is only a bound
            for own, *_ in one["lines"]:
                kept &= np.bincount(own, minlength=mass.size) > 0
            place = np.cumsum(kept) - 1 + offset
            self.errors.append(np.stack(one["errors"])[:, kept])
            self.mass.append(mass[kept])
            for lines, (own, u, share) in zip(self.lines, one["lines"], strict=True):
                of_kept = kept[own]
                lines.append((place[own[of_kept]], u[of_kept], share[of_kept]))
            offset += int(kept.sum())
        self.errors, self.mass = np.concatenate(self.errors, axis=1), np.concatenate(self.mass)
        self.mass = self.mass / self.mass.sum()
        self.lines = [
            self._normalised(*map(np.concatenate, zip(*lines, strict=True))) for lines in self.lines
        ]
        del nest.points, nest.rows

    def _normalised(self, own: Integer, u: Float, share: Float) -> tuple[Integer, Float, Float]:
        """Lines whose masses add up to 1, which rounding of large logarithms prevents."""
        total = np.bincount(own, share, self.mass.size)
        return own, u, share / total[own]

    @cached_property
    def moments(self) -> tuple[Float, Float]:
        """Means and covariance of the prevalences, p and q."""
        p, q = np.exp(self.errors[0]), np.exp(self.errors[2])
        size = self.mass.size
        given, spread = [], []
        for own, u, share in self.lines:
            theta = expit(u)
            centre = np.bincount(own, share * theta, size)
            given.append(centre)
            spread.append(float(self.mass @ np.bincount(own, share * (theta - centre[own]) ** 2, size)))
        columns = np.stack([*given, p, q])
        mean = columns @ self.mass
        away = columns - mean[:, None]
        covariance = (away * self.mass) @ away.T
        covariance[np.arange(len(given)), np.arange(len(given))] += spread
        return mean, covariance

    def score(self, n: int, s: int, population: int = 0) -> float:
        """E[Y_L(n, s)]."""
        own, u, share = self.lines[population]
        return float((self.mass[own] * share) @ expit(u + self._shift(n, s)[own]))

    def predict(self, n: int, s: int, population: int = 0) -> float:
        """E[θ P(s | 1)] / E[θ P(s | 1) + (1 − θ) P(s | 0)]."""
        own, u, share = self.lines[population]
        log_p, not_p, log_q, not_q = self.errors
        positive = (s * not_q + (n - s) * log_q)[own] + log_expit(u)
        negative = (s * log_p + (n - s) * not_p)[own] + log_expit(-u)
        top = max(positive.max(), negative.max())
        mass = self.mass[own] * share
        up, down = mass @ np.exp(positive - top), mass @ np.exp(negative - top)
        return float(up / (up + down))

    def _shift(self, n: int, s: int) -> Float:
        log_p, not_p, log_q, not_q = self.errors
        return s * (not_q - log_p) + (n - s) * (log_q - not_p)

    def outer(self, p: float) -> tuple[float, float]:
        """P(false-positive rate ≤ p) and its density there."""
        y = logit(p) if self.density.better else logit(2 * p)
        panels = self.nest.panels
        log_half = np.log((panels.high - panels.low) / 2)
        x, w, _ = _gauss(self.rule.order)
        shape = np.exp((panels.values - self.nest.log_integral).astype(float) + log_half[:, None])
        terms = (np.arange(x.size) + 0.5) * ((shape * w) @ legendre.legvander(x, x.size - 1))
        place = np.clip((2 * y - panels.low - panels.high) / (panels.high - panels.low), -1, 1)
        below = sum(
            legendre.legval(one, legendre.legint(row, lbnd=-1)) for one, row in zip(place, terms, strict=True)
        )
        inside = np.abs(place) < 1
        density = sum(
            legendre.legval(one, row) / math.exp(log)
            for one, row, log in zip(place[inside], terms[inside], log_half[inside], strict=True)
        )
        slope = p * (1 - p) if self.density.better else p * (1 - 2 * p)
        return float(below), float(density / slope)

    def below(self, limit: Limit, population: int = 0) -> float:
        """P(logit θ ≤ limit)."""
        cut = _Nest(self.density, self.rule, (population, limit))
        cut.run()
        return float(np.exp(np.float64(cut.log_integral - self.nest.log_integral)))


def _mirrored(table: CountTable) -> CountTable:
    """Positive and negative exchanged: p and q change places, and θ becomes 1 − θ."""
    known = np.where(table.known < 0, -1, 1 - table.known)
    status = [None if one < 0 else int(one) for one in known]
    return CountTable(table.n, table.n - table.s, table.weight, status)


def _mirrored_prior(prior: Prior) -> Prior:
    return Prior(prior.prevalence[::-1], prior.false_negative, prior.false_positive, prior.better_than_chance)


# ---------------------------------------------------------------------------------------------------------
# Both sides
# ---------------------------------------------------------------------------------------------------------


class Reference:
    """The posterior of one table, or of several that share p and q, in either region.

    Parameters
    ----------
    tables : CountTable or mapping of name to CountTable
    prior : Prior
    rule : Rule
        `LIGHT` (1e-8 of an sd, half a second), `COARSE` (1e-10 where logarithms are not large) or `FINE`.
    both : bool
        Whether q comes outside too, which tells the `agreement`, and is needed for quantiles of q.
    """

    def __init__(
        self,
        tables: CountTable | Mapping[Any, CountTable],
        prior: Prior | None = None,
        rule: Rule = COARSE,
        both: bool = True,
    ) -> None:
        self.tables = [tables] if isinstance(tables, CountTable) else list(tables.values())
        self.prior = prior or Prior()
        self.rule = rule
        self.side = _Side(self.tables, self.prior, rule)
        self.mean, self.covariance = self.side.moments
        self.sd = np.sqrt(np.diag(self.covariance))
        (a, b) = self.prior.prevalence
        constant = log_prior_mass(self.prior) + len(self.tables) * float(betaln(a, b))
        self.log_evidence = float(self.side.nest.log_integral - constant)
        self.agreement = math.nan
        if both:
            mean, covariance = self.mirror.moments
            last = len(self.tables)
            mean = np.concatenate([1 - mean[:last], mean[[-1, -2]]])
            sd = np.sqrt(np.diag(covariance))[[*range(last), last + 1, last]]
            evidence = abs(float(self.mirror.nest.log_integral - self.side.nest.log_integral))
            self.agreement = max(
                float(np.max(np.abs(mean - self.mean) / self.sd)),
                float(np.max(np.abs(sd / self.sd - 1))),
                evidence / max(1.0, abs(self.log_evidence)),
            )

    @cached_property
    def mirror(self) -> _Side:
        """The same with q outside."""
        return _Side([_mirrored(table) for table in self.tables], _mirrored_prior(self.prior), self.rule)

    def score(self, n: int, s: int, population: int = 0) -> tuple[float, float]:
        """E[Y_L(n, s)], and its error: how far p outside and q outside differ."""
        one, other = self.side.score(n, s, population), 1 - self.mirror.score(n, n - s, population)
        return one, abs(one - other)

    def predict(self, n: int, s: int, population: int = 0) -> tuple[float, float]:
        """The prediction of a new individual, and its error."""
        one, other = self.side.predict(n, s, population), 1 - self.mirror.predict(n, n - s, population)
        return one, abs(one - other)

    def cdf(self, parameter: int, x: float) -> float:
        """P(parameter ≤ x), parameters in the order of `mean`."""
        if parameter >= len(self.tables):
            return (self.side if parameter == len(self.tables) else self.mirror).outer(x)[0]
        u = float(logit(x))
        return self.side.below(lambda *_: np.array([u]), parameter)

    def density(self, parameter: int, x: float) -> float:
        """Density of a parameter at x; that of a prevalence to two digits, from a difference of logits."""
        if parameter >= len(self.tables):
            return (self.side if parameter == len(self.tables) else self.mirror).outer(x)[1]
        u, step = float(logit(x)), 0.01
        rise = self.cdf(parameter, float(expit(u + step))) - self.cdf(parameter, float(expit(u - step)))
        return rise / (2 * step * x * (1 - x))

    def score_density(self, n: int, s: int, y: float, width: float) -> float:
        """Density of Y_L(n, s), roughly: the mass of the nodes that are near y."""
        own, u, share = self.side.lines[0]
        score = expit(u + self.side._shift(n, s)[own])
        low, high = max(y - width, 0.0), min(y + width, 1.0)
        return float((self.side.mass[own] * share)[(score > low) & (score < high)].sum()) / (high - low)

    def quantile(self, parameter: int, probability: float) -> float:
        """By bisection and secants on the CDF."""
        return float(
            expit(_root(lambda u: self.cdf(parameter, float(expit(u))), probability, self._end(parameter)))
        )

    def _end(self, parameter: int) -> float:
        """logit of the largest value of a parameter."""
        return 700.0 if parameter < len(self.tables) or self.prior.better_than_chance else -1e-15

    def score_cdf(self, n: int, s: int, y: float, population: int = 0) -> float:
        """P(Y_L(n, s) ≤ y | data)."""
        z = float(logit(y))

        def limit(log_p: Float, not_p: Float, log_q: Float, not_q: Float) -> Float:
            return z - s * (not_q - log_p) - (n - s) * (log_q - not_p)

        return self.side.below(limit, population)

    def score_quantile(self, n: int, s: int, probability: float, population: int = 0) -> float:
        """The quantile that belongs to `score_cdf`."""
        return float(
            expit(_root(lambda z: self.score_cdf(n, s, float(expit(z)), population), probability, 700.0))
        )

    def with_new(self, n: int, s: int, population: int = 0) -> Reference:
        """The posterior of the data and a new individual: its scores' law is that of a prediction."""
        tables = dict(enumerate(self.tables))
        tables[population] = tables[population] + CountTable([n], [s])
        return Reference(tables, self.prior, self.rule, both=False)


def _root(cdf: Callable[[float], float], probability: float, end: float) -> float:
    """Where an increasing function takes a value, from brackets that double."""
    low, high = min(-1.0, end - 2.0), min(1.0, end)
    while cdf(low) > probability:
        low *= 2
    while cdf(high) < probability and high < end:
        high = min(end, high * 2)
    return float(brentq(lambda u: cdf(u) - probability, low, high, xtol=1e-11))


@lru_cache(maxsize=512)
def log_prior_mass(prior: Prior) -> float:
    """log ∫ of the two Beta kernels over the region, by the same panels over (y₁, y₂)."""
    density = _Density([], Prior((1, 1), *list(prior)[1:], prior.better_than_chance))
    nest = _Nest(density, FINE)
    nest.run()
    return float(nest.log_integral)
