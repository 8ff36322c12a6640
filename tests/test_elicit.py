from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import binreps as br
from binreps.decide import elicit

COMPLEMENT = {"sensitivity": "false_negative", "specificity": "false_positive"}


def chance_below(belief: elicit.Belief, x: float) -> float:
    """P(rate ≤ x) by SciPy's distribution, cut by hand."""
    law = stats.beta(*belief.shapes)
    if belief.rate == "prevalence":
        return law.cdf(x)
    if belief.rate in COMPLEMENT:
        return 1 - law.cdf(1 - x) / law.cdf(0.5)
    return law.cdf(x) / law.cdf(0.5)


@pytest.mark.parametrize(
    ("rate", "expect", "above"),
    [
        ("prevalence", 0.05, 0.2),
        ("prevalence", 0.5, 0.9),
        ("prevalence", 1e-4, 0.01),
        ("prevalence", 0.98, 0.99),
        ("false_positive", 0.05, 0.2),
        ("false_negative", 0.3, 0.4),
        ("specificity", 0.9, 0.95),
    ],
)
@pytest.mark.parametrize("chance", [0.05, 0.01, 0.25])
def test_a_guess_is_the_median_and_the_surprise_has_its_chance(rate, expect, above, chance) -> None:
    belief = elicit.guess(rate, expect, surprised_above=above, chance=chance)
    assert chance_below(belief, expect) == pytest.approx(0.5, abs=1e-6)
    assert 1 - chance_below(belief, above) == pytest.approx(chance, abs=1e-6)
    mirrored = {"prevalence": "prevalence", "false_positive": "specificity", "false_negative": "sensitivity"}
    if rate in mirrored:
        turned = elicit.guess(mirrored[rate], 1 - expect, surprised_below=1 - above, chance=chance)
        shapes = turned.shapes[::-1] if rate == "prevalence" else turned.shapes
        assert belief.shapes == pytest.approx(shapes, rel=1e-6)


@pytest.mark.parametrize(
    ("rate", "low", "high", "level"),
    [
        ("prevalence", 0.1, 0.3, 0.9),
        ("prevalence", 0.001, 0.999, 0.9),
        ("prevalence", 0.3, 0.301, 0.95),
        ("sensitivity", 0.7, 0.95, 0.9),
        ("specificity", 0.9, 0.99, 0.5),
        ("false_positive", 0.45, 0.49, 0.9),
        ("false_negative", 0.001, 0.01, 0.99),
    ],
)
def test_a_range_is_missed_equally_on_both_sides(rate, low, high, level) -> None:
    belief = elicit.between(rate, low, high, level=level)
    assert chance_below(belief, low) == pytest.approx((1 - level) / 2, abs=1e-6)
    assert chance_below(belief, high) == pytest.approx((1 + level) / 2, abs=1e-6)


@given(
    a=st.floats(0.3, 60),
    b=st.floats(0.3, 60),
    rate=st.sampled_from(["prevalence", "false_positive", "sensitivity"]),
    level=st.floats(0.3, 0.98),
)
def test_two_quantiles_give_the_distribution_back(a: float, b: float, rate: str, level: float) -> None:
    original = elicit.Belief(rate, (a, b), "")
    ends = original.quantile([(1 - level) / 2, (1 + level) / 2])
    belief = elicit.between(rate, *ends, level=level)
    others = [0.02, 0.2, 0.5, 0.7, 0.97]
    assert belief.quantile(others) == pytest.approx(original.quantile(others), abs=1e-5)


@pytest.mark.parametrize("rate", elicit.RATES)
def test_quantiles_are_those_of_the_cut_distribution(rate: str) -> None:
    belief = elicit.Belief(rate, (2.5, 7), "")
    for u in (0.01, 0.05, 0.5, 0.95, 0.999):
        assert chance_below(belief, belief.quantile(u)) == pytest.approx(u, abs=1e-9)
    ends = (0, 1) if rate == "prevalence" else (0.5, 1) if rate in COMPLEMENT else (0, 0.5)
    assert tuple(belief.quantile([0.0, 1.0])) == pytest.approx(ends)


def test_a_study_counts_as_a_flat_prior_updated_by_its_individuals() -> None:
    assert elicit.study("prevalence", count=3, of=50).shapes == (4, 48)
    leaflet = elicit.study("sensitivity", share=0.95, of=200)
    assert leaflet.shapes == pytest.approx((11, 191))
    assert leaflet.shapes == pytest.approx(elicit.study("false_negative", count=10, of=200).shapes)
    half = elicit.study("specificity", count=198, of=200, discount=0.5)
    assert half.shapes == (2, 100)
    grid = np.linspace(0.5, 1, 100_001)[:-1]
    assert grid[np.argmax(stats.beta(*leaflet.shapes).pdf(1 - grid))] == pytest.approx(0.95, abs=1e-4)
    assert elicit.study("false_positive", count=0, of=30).shapes == (1, 31)


def test_a_study_as_prior_is_the_same_study_as_known_data() -> None:
    flat = br.Prior((1, 1), (1, 1), (1, 1))
    known = br.CountTable([1, 1], [1, 0], [190, 10], known=[1, 1])
    tests = br.CountTable([3] * 4, range(4), [30, 4, 2, 9])
    together = br.fit_bayes(tests + known, flat)
    belief = elicit.study("sensitivity", share=0.95, of=200)
    apart = br.fit_bayes(
        tests + br.CountTable([0], [0], [200], known=[1]),
        elicit.prior(
            belief, elicit.Belief("prevalence", (1, 1), ""), elicit.Belief("false_positive", (1, 1), "")
        ),
    )  # the 200 with their status but without their tests
    assert tuple(apart.rates) == pytest.approx(tuple(together.rates), abs=1e-8)


def test_an_earlier_fit_without_data_gives_its_own_prior_back() -> None:
    own = br.Prior((1.5, 4), (2, 9), (3, 3))
    beliefs = elicit.earlier(br.fit_bayes(br.CountTable([], []), own))
    for belief, shapes in zip(beliefs, own, strict=True):
        assert belief.shapes == pytest.approx(shapes, rel=1e-4)


def test_an_earlier_fit_keeps_its_intervals_and_a_discount_widens_them() -> None:
    fit = br.fit_bayes(br.CountTable([4] * 5, range(5), [50, 18, 6, 9, 17]))
    lower, upper = fit.interval(0.9)
    weak = elicit.earlier(fit, discount=0.25)
    for belief, low, high, less in zip(elicit.earlier(fit), lower, upper, weak, strict=True):
        assert belief.quantile([0.05, 0.95]) == pytest.approx([low, high], abs=1e-6)
        assert np.diff(less.quantile([0.05, 0.95])) > 1.5 * (high - low)
        a, b = belief.shapes
        assert less.shapes == pytest.approx((1 + 0.25 * (a - 1), 1 + 0.25 * (b - 1)))
        assert "not for the same data again" in belief.said
    for rate, prior_sd in zip(
        fit.sd, br.fit_bayes(br.CountTable([], []), elicit.prior(*weak)).sd, strict=True
    ):
        assert prior_sd > 1.4 * rate


def test_a_fit_without_a_posterior_is_no_prior() -> None:
    counts = br.CountTable([4, 4], [0, 4], [5, 5])
    with pytest.raises(br.FitError, match="posterior of one population, got"):
        elicit.earlier(br.fit_map(counts))
    with pytest.raises(br.OptionError, match=r"of the fit of several populations choose one"):
        elicit.earlier(br.fit_populations({"a": counts, "b": counts}))


def test_beliefs_become_a_prior() -> None:
    prior = elicit.prior(
        elicit.study("specificity", count=99, of=100), elicit.study("prevalence", count=1, of=4)
    )
    assert prior == br.Prior(prevalence=(2, 4), false_positive=(2, 100))
    with pytest.raises(br.OptionError, match="one belief for each rate, got two for false_positive"):
        elicit.prior(elicit.between("specificity", 0.8, 0.9), elicit.between("false_positive", 0.1, 0.2))
    with pytest.raises(br.OptionError, match=r"prior takes beliefs.*got \(1, 2\)"):
        elicit.prior((1, 2))


def test_a_prior_shown_back_is_that_of_a_fit_without_data() -> None:
    prior = br.Prior((1, 9), (2, 30), (3, 12))
    shown = elicit.implied(prior, [0.1, 0.5])
    fit = br.fit_bayes(br.CountTable([], []), prior)
    for name, u in (("10%", 0.1), ("50%", 0.5)):
        rates, turned = fit.quantile(u), fit.quantile(1 - u)
        expected = [*rates, turned.sensitivity, turned.specificity]
        assert shown[name] == pytest.approx(expected, abs=1e-8)


IMPOSSIBLE = [
    (
        elicit.guess,
        ("precision", 0.1),
        {"surprised_above": 0.2},
        "rate must be one of prevalence, .*'precision'",
    ),
    (elicit.guess, ("prevalence", 0.1), {}, "guess needs one of surprised_above and surprised_below"),
    (elicit.guess, ("prevalence", 0.1), {"surprised_above": 0.2, "surprised_below": 0.1}, "needs one of"),
    (elicit.guess, ("prevalence", 0.3), {"surprised_above": 0.2}, "must be above expect, 0.3, got 0.2"),
    (elicit.guess, ("prevalence", 0.1), {"surprised_below": 0.2}, "must be below expect, 0.1, got 0.2"),
    (elicit.guess, ("prevalence", 0.1), {"surprised_below": 0.1}, "must be below expect, 0.1, got 0.1"),
    (
        elicit.guess,
        ("prevalence", 1.5),
        {"surprised_above": 2},
        "expect must be between 0 and 1 for prevalence",
    ),
    (elicit.guess, ("prevalence", float("nan")), {"surprised_above": 0.2}, "expect must be between 0 and 1"),
    (elicit.guess, ("sensitivity", 0.4), {"surprised_below": 0.3}, "0.5 and 1 for sensitivity, got 0.4"),
    (
        elicit.guess,
        ("false_positive", 0.2),
        {"surprised_above": 0.6},
        "surprised_above must be between 0 and 0.5",
    ),
    (
        elicit.guess,
        ("prevalence", 0.1),
        {"surprised_above": 0.2, "chance": 0.5},
        "chance must be between 0 and ½",
    ),
    (elicit.between, ("prevalence", 0.3, 0.3), {}, "low must be below high, got 0.3 and 0.3"),
    (elicit.between, ("prevalence", 0.0, 0.3), {}, "low must be between 0 and 1 for prevalence, got 0"),
    (elicit.between, ("prevalence", 0.1, 0.3), {"level": 1}, "level must be between 0 and 1"),
    (elicit.between, ("false_positive", 0.01, 0.49), {}, "no Beta .* cut at ½.*: 90% between 0.01 and 0.49"),
    (elicit.study, ("prevalence",), {"of": 10}, "study needs one of count and share"),
    (elicit.study, ("prevalence",), {"of": 10, "count": 1, "share": 0.1}, "study needs one of"),
    (elicit.study, ("prevalence",), {"of": 10, "count": 11}, "count must be from 0 to of, 10, got 11"),
    (elicit.study, ("prevalence",), {"of": 0, "count": 0}, "of must be a finite number > 0"),
    (elicit.study, ("prevalence",), {"of": 10, "share": 1.1}, "share must be from 0 to 1"),
    (
        elicit.study,
        ("prevalence",),
        {"of": 9, "count": 1, "discount": 2},
        "discount must be above 0 and at most 1",
    ),
    (
        elicit.study,
        ("sensitivity",),
        {"of": 10, "count": 4},
        "false_negative rate must be at most ½.*6 of 10",
    ),
    (elicit.Belief("prevalence", (1, 1), "").quantile, (2,), {}, "probability must be between 0 and 1"),
]


@pytest.mark.parametrize(("function", "values", "options", "sentence"), IMPOSSIBLE)
def test_what_cannot_be_is_refused_in_one_sentence(function, values, options, sentence: str) -> None:
    with pytest.raises(br.OptionError, match=sentence):
        function(*values, **options)


def test_words() -> None:
    belief = elicit.guess("sensitivity", 0.95, surprised_below=0.8)
    lines = str(belief).splitlines()
    assert lines[0] == "expect 0.95, surprised (5%) below 0.8"
    assert lines[1].split() == ["rate", "a", "b", "5%", "25%", "50%", "75%", "95%"]
    row = lines[2].split()
    assert (row[0], row[3], row[5]) == ("sensitivity", "0.800", "0.950")
    assert lines[3] == "a, b: Beta shapes of the false_negative rate, cut to (0, ½); then quantiles"
    assert belief._repr_html_().startswith("<table>")
