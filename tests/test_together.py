"""Sources beside populations and covariates: each side reduces to its own model; tables carry both."""

from __future__ import annotations

from functools import cache, partial

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import expit

import binreps as br
from binreps import CountTable, CovariateTable, Prior, Readings, SourcePrior, fit_sources
from engines import ENGINES, rows_of
from test_sources import ALIKE

LONG = {"individual": "item", "result": "vote", "source": "worker"}
WIDE_PRIOR = Prior(better_than_chance=True)


def of_one_source(n: np.ndarray, s: np.ndarray, known: np.ndarray | None = None) -> Readings:
    """Replicates by one source."""
    rows, one = np.arange(n.size), np.zeros(n.size, int)
    status = np.full(n.size, -1, np.int8) if known is None else known
    return Readings.counted(["x"], rows, one, s, n - s, status)


def aged(size: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Age, and replicates n and s, of people of whom the old are more often positive."""
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 80, size).astype(float)
    positive, n = rng.random(size) < expit((age - 55) / 10), rng.integers(2, 5, size)
    return age, n, rng.binomial(n, np.where(positive, 0.8, 0.15))


@cache
def votes() -> pa.Table:
    """Votes on people of two sites and all ages, with their ages also as text."""
    rng, rows = np.random.default_rng(1), []
    for i in range(60):
        age, site = int(rng.integers(20, 80)), ["north", "south"][i % 2]
        positive = rng.random() < expit((age - 50) / 10)
        readers = rng.choice(6, 4, replace=False)
        rows += [(f"i{i}", f"w{j}", int(positive ^ (rng.random() < 0.15)), age, site) for j in readers]
    names = ("item", "worker", "vote", "age", "site")
    return pa.table({name: list(own) for name, own in zip(names, zip(*rows, strict=True), strict=True)})


def test_without_columns_it_is_the_model_of_sources_alone() -> None:
    readings = Readings.wide([[1, 1, 0], [0, 0, 0], [1, 1, 1]], weight=[5, 20, 9])
    plain = fit_sources(readings, rng=1, sweeps=60)
    assert fit_sources(readings.with_covariates({}), rng=1, sweeps=60) == plain
    same = fit_sources(readings.in_populations(["all"] * 3), rng=1)
    wanted = fit_sources(readings, rng=2)
    bound = (same.error + wanted.error + 0.02) * wanted.posterior.sd
    assert np.all(np.abs(same.posterior.mean - wanted.posterior.mean) <= bound)
    assert same.prevalence_table()["estimate"][0] == pytest.approx(same.rates.prevalence, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("gold", [False, True])
def test_one_source_with_covariates_is_the_fit_with_covariates(gold: bool) -> None:
    age, n, s = aged(150, seed=3)
    known = np.where(np.arange(150) < 30, age > 55, -1).astype(np.int8) if gold else None
    status = None if known is None else [None if x < 0 else int(x) for x in known]
    exact = br.fit_covariates(CovariateTable(n, s, {"age": age}, known=status), WIDE_PRIOR)
    readings = of_one_source(n, s, known).with_covariates({"age": age})
    fit = fit_sources(readings, ALIKE, rng=3, tol=0.03, independent=True)
    for name in ("prevalence", "false_positive", "false_negative"):
        off = np.ravel(getattr(fit.rates, name))[0] - getattr(exact.rates, name)
        assert abs(off) <= 0.05 * getattr(exact.sd, name)
    mine, theirs = fit.odds_ratios(per={"age": 10}), exact.odds_ratios(per={"age": 10})
    assert mine["log_odds"][0] == pytest.approx(theirs["log_odds"][0], abs=0.05 * theirs["sd"][0])
    assert mine["sd"][0] == pytest.approx(theirs["sd"][0], rel=0.06)
    about = {"covariates": {"age": [30.0, 60.0]}}
    asked = [{"x": (3, 2)}] * 2
    assert fit.score(asked, **about) == pytest.approx(exact.score(3, 2, **about), abs=0.01)
    assert fit.predict(asked, **about) == pytest.approx(exact.predict(3, 2, **about), abs=0.01)


def test_a_class_with_nobody_in_it_is_sampled_without_an_error() -> None:
    """The intercept then runs far off, where the statuses say nothing of it."""
    readings = Readings.wide([[0, 0, 0]] * 40).with_covariates({"x": np.linspace(-1, 1, 40)})
    fit = fit_sources(readings, SourcePrior(prevalence=(0.1, 0.1)), rng=1, sweeps=300, chains=16)
    assert fit.rates.prevalence < 0.3
    assert np.all(np.isfinite(fit.posterior.sampled.side.draws))


@pytest.mark.slow
def test_one_source_in_populations_is_the_fit_of_populations() -> None:
    tables = {
        "north": CountTable([3, 3, 3, 3], [0, 1, 2, 3], [40, 8, 5, 12]),
        "south": CountTable([3, 3, 3, 3], [0, 1, 2, 3], [10, 6, 9, 30]),
    }
    exact = br.fit_populations(tables, WIDE_PRIOR)
    n, s, names = [], [], []
    for name, own in tables.items():
        n += np.repeat(own.n, own.weight).tolist()
        s += np.repeat(own.s, own.weight).tolist()
        names += [name] * own.individuals
    readings = of_one_source(np.array(n), np.array(s)).in_populations(names)
    fit = fit_sources(readings, ALIKE, rng=1, tol=0.03, independent=True)
    found = fit.prevalence_table()
    assert np.all(np.abs(np.array(found["estimate"]) - exact.rates.prevalence) <= 0.05 * exact.sd.prevalence)
    assert np.allclose(found["sd"], exact.sd.prevalence, rtol=0.05)
    assert abs(fit.rates.false_positive[0] - exact.rates.false_positive) <= 0.05 * exact.sd.false_positive
    for name in tables:
        assert fit.score({"x": (3, 1)}, population=name) == pytest.approx(exact[name].score(3, 1), abs=0.01)


@pytest.mark.slow
def test_two_tests_in_two_populations_are_identified() -> None:
    """Hui and Walter (1980): the truth lies within three sds."""
    rng, rows, names = np.random.default_rng(1), [], []
    p, q = np.array([0.05, 0.10]), np.array([0.15, 0.30])
    for name, prevalence in (("north", 0.1), ("south", 0.6)):
        positive = rng.random((3000, 1)) < prevalence
        rows.append(np.where(positive, rng.random((3000, 2)) >= q, rng.random((3000, 2)) < p).astype(int))
        names += [name] * 3000
    readings = Readings.wide(np.vstack(rows), ["a", "b"])
    fit = fit_sources(readings.in_populations(names), rng=1)
    assert fit.identifiable
    assert not fit_sources(readings, rng=1, sweeps=40).identifiable
    assert np.all(np.abs(fit.rates.false_positive - p) <= 3 * fit.sd.false_positive)
    assert np.all(np.abs(fit.rates.false_negative - q) <= 3 * fit.sd.false_negative)
    found = fit.prevalence_table()
    assert np.all(np.abs(np.array(found["estimate"]) - [0.1, 0.6]) <= 3 * np.array(found["sd"]))
    assert len(fit.readings) == 8  # patterns by population, however many people


@pytest.mark.slow
@pytest.mark.parametrize("more", [{"covariates": ["age", "site"]}, {"population": "site"}])
def test_tables_carry_both_into_a_fit_and_back(more: dict, tmp_path) -> None:
    table = votes()
    fit = br.fit(table, rng=1, tol=0.5, **LONG, **more)
    first = {row["item"]: row for row in reversed(table.to_pylist())}
    people = list(dict.fromkeys(table["item"].to_pylist()))
    about = {"population": [first[i]["site"] for i in people]}
    if "covariates" in more:
        about = {"covariates": {name: [first[i][name] for i in people] for name in more["covariates"]}}
    own = Readings(*(table[name].to_pylist() for name in ("item", "worker", "vote")))
    for new in (False, True):
        wanted = dict(zip(people, (fit.predict if new else fit.score)(own, **about), strict=True))
        for engine in ("pandas", "polars-lazy", "duckdb", "ibis"):
            rows = rows_of(br.attach(ENGINES[engine](table), fit, br.Loss(), new=new, **LONG, **more))
            assert len(rows) == 60
            assert max(abs(row["score"] - wanted[row["item"]]) for row in rows) < 0.03
    again = br.load_fit(br.save_fit(fit, tmp_path / "fit.json"))
    assert again.readings == fit.readings
    assert np.allclose(again.score(), fit.score(), atol=0.01)
    assert str(again.summary()) == str(fit.summary())


def test_wide_tables_carry_both_too() -> None:
    columns = {"a": [1, 0, 1, 0], "b": [1, 0, 0, 0], "c": [1, 0, 0, None], "k": [30, 40, 5, 9]}
    table = pa.table({**columns, "site": ["n", "s", "n", "n"]})
    wide = {"replicates": ["a", "b", "c"], "weight": "k", "population": "site"}
    fit = br.fit(table, model="sources", tol=0.5, **wide)
    assert set(fit.readings.people.populations) == {"n", "s"}
    rows = rows_of(br.attach(table, fit, **wide))
    own = Readings.wide(list(zip(columns["a"], columns["b"], columns["c"], strict=True)), "abc")
    assert [row["score"] for row in rows] == pytest.approx(
        list(fit.score(own, population=["n", "s", "n", "n"]))
    )


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda fit: fit.score({"w1": 1}), "give population="),
        (lambda fit: fit.score({"w1": 1}, population="west"), "must be one of the levels"),
        (lambda fit: fit.score({"w1": 1}, covariates={"age": 3}), "population"),
        (lambda fit: fit.odds_ratios(), "made without covariates"),
        (lambda fit: br.attach(votes(), fit, **LONG), "goes with a fit of several"),
        (lambda fit: fit_sources(fit.readings.forget_known()._with(people=None), rng=1, sweeps=20).score(
            {"w1": 1}, population="north"), "made without"),
        (lambda _: Readings.wide([[1]]).in_populations(["a", "b"]), "one name per record"),
        (lambda _: Readings.wide([[1]]).in_populations([None]), "must not be missing"),
        (lambda _: SourcePrior(slope_sd=0), "slope_sd must be"),
        (lambda _: br.fit(votes(), population="site", covariates="age", **LONG), "population cannot be"),
    ],
)  # fmt: skip
def test_what_is_not_known_of_someone_is_asked_for(ask, sentence: str) -> None:
    fit = _quick()
    with pytest.raises(br.BinrepsError, match=sentence):
        ask(fit)


@cache
def _quick():
    return br.fit(votes(), rng=1, tol=0.9, population="site", **LONG)


# Other tools -------------------------------------------------------------------------------------------

SAID = [[1, 1, 0], [0, None, 0], [1, 0, 1], [1, 1, 1], [0, 0, 0]]
SITES, AGES = ["n", "s", "n", "s", "s"], np.array([30.0, 40.0, 50.0, 60.0, 70.0])


def sided(side: str) -> Readings:
    """A few readings in populations, or with an age."""
    readings = Readings.wide(SAID, list("abc"), [3, 4, 2, 5, 1], [None, 0, 1, None, None])
    return (
        readings.in_populations(SITES) if side == "populations" else readings.with_covariates({"age": AGES})
    )


def density_by_hand(readings: Readings, chances: np.ndarray, p: np.ndarray, q: np.ndarray) -> float:
    """Log likelihood of readings at given chances of being positive, and of error rates ~ Beta(2, 2)."""
    total = np.log(p * (1 - p)).sum() + np.log(q * (1 - q)).sum()
    for row, weight, known, chance in zip(SAID, [3, 4, 2, 5, 1], readings.known, chances, strict=True):
        both = [1 - chance, chance]
        for j, said in enumerate(row):
            if said is not None:
                both[0] *= p[j] if said else 1 - p[j]
                both[1] *= 1 - q[j] if said else q[j]
        total += weight * np.log(sum(both) if known == -1 else both[known])
    return float(total)


@pytest.mark.slow
@pytest.mark.parametrize("side", ["populations", "covariates"])
def test_pymc_has_the_same_density_with_both_sides(side: str) -> None:
    """Up to a constant, at random points."""
    readings, rng, differences = sided(side), np.random.default_rng(1), []
    model = br.interop.to_pymc(readings, ALIKE)
    compiled = model.compile_logp(jacobian=False)
    for _ in range(4):
        p, q = rng.uniform(0.05, 0.45, (2, 3))
        theta, slope = rng.uniform(0.2, 0.8, 2), rng.normal()
        prior = -0.5 * np.log(theta * (1 - theta)).sum()
        chances = theta[[0, 1, 0, 1, 1]]
        values = {"prevalence": theta, "false_positive": p, "false_negative": q}
        if side == "covariates":
            values["prevalence"], weight = theta[0], readings.weight
            mean = np.average(AGES, weights=weight)
            sd = np.sqrt(np.average((AGES - mean) ** 2, weights=weight))
            prior = -0.5 * np.log(theta[0] * (1 - theta[0])) - slope**2 / (2 * ALIKE.slope_sd**2)
            chances = expit(np.log(theta[0] / (1 - theta[0])) + slope * (AGES - mean) / sd)
        point = {f"{name}_logodds__": np.log(x) - np.log1p(-x) for name, x in values.items()}
        point |= {"slopes": np.array([slope])} if side == "covariates" else {}
        there = {variable.name: np.asarray(point[variable.name]) for variable in model.value_vars}
        differences.append(float(compiled(there)) - prior - density_by_hand(readings, chances, p, q))
    assert np.ptp(differences) < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("side", ["populations", "covariates"])
def test_arviz_reads_both_sides(side: str) -> None:
    fit = fit_sources(sided(side), rng=1, tol=0.5)
    posterior = br.interop.to_arviz(fit, rng=1).posterior
    if side == "populations":
        assert list(posterior["population"].to_numpy()) == ["n", "s"]
        means = posterior["prevalence_of"].mean(("chain", "draw")).to_numpy()
        assert means == pytest.approx(fit.prevalence_table()["estimate"], abs=0.02)
        return
    slopes = posterior["log_odds"].to_numpy()
    assert np.median(slopes) == pytest.approx(np.log(fit.odds_ratios()["estimate"][0]), abs=1e-3)
    assert posterior["intercept"].shape == slopes.shape[:2]


def test_readings_are_simulated_with_covariates() -> None:
    """The log odds are those that were asked for, and the readings know them."""
    site = np.tile(["a", "b"], 10_000)
    how = {"covariates": {"site": site}, "log_odds": {"site=b": 2.0}}
    made = br.simulate(br.Rates(0.3, [0.1, 0.2, 0.3], [0.1, 0.2, 0.3]), 20_000, 2, 1, **how)
    share = [made.truth[site == name].mean() for name in ("a", "b")]
    assert np.diff(np.log(share) - np.log1p(-np.array(share)))[0] == pytest.approx(2.0, abs=0.1)
    assert made.readings.people.terms == ("site=b",)
    assert made.table()["site"][:4] == ("a", "a", "b", "b")
    with pytest.raises(br.OptionError, match="log_odds are those of covariates, and there are none"):
        br.simulate(br.Rates(0.3, 0.1, 0.1), 10, 2, 1, log_odds={"age": 1.0})
    with pytest.raises(br.OptionError, match="prevalences that differ are those of covariates"):
        br.simulate(br.Rates([0.3, 0.4], [0.1, 0.2], [0.1, 0.2]), 10, 2, 1)


def test_populations_may_be_an_array() -> None:
    readings = Readings.wide(SAID)
    assert readings.in_populations(np.array(SITES)) == readings.in_populations(SITES)
    with pytest.raises(br.DataError, match="one name per record"):
        readings.in_populations("nsnss")


@pytest.mark.slow
def test_scikit_learn_takes_sources_and_covariates() -> None:
    """The fit is that of the readings with the last columns as covariates."""
    pd = pytest.importorskip("pandas")
    age, _, s = aged(100, 3)
    said = np.array([[i < k for i in range(2)] for k in np.minimum(s, 2)], float)
    X = pd.DataFrame({"a": said[:, 0], "b": said[:, 1], "age": age, "site": np.where(age > 50, "x", "y")})
    quick = partial(fit_sources, rng=1, tol=0.9)
    classifier = br.interop.SourceClassifier(method=quick, covariates=2).fit(X)
    readings = Readings.wide(said).with_covariates({"age": age, "site": list(X["site"])})
    own = quick(readings)
    assert classifier.fit_.readings == own.readings
    asked = {"age": age[:5], "site": list(X["site"][:5])}
    expected = own.predict(Readings.wide(said[:5]), covariates=asked)
    assert classifier.predict_proba(X[:5])[:, 1] == pytest.approx(expected)
    for wrong, rule in (
        (X.iloc[:, :2], "a column for each source, then 2"),
        (X.iloc[:, 1:], "4 columns as in"),
    ):
        with pytest.raises(br.DataError, match=rule):
            classifier.predict_proba(wrong)
