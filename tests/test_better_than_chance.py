"""One switch, everywhere: `better_than_chance` is carried, named, drawn from, elicited, planned and offered.

What the fits make of it is tested beside them; here the oracles are rejection, importance sampling and scipy.
"""

from __future__ import annotations

import json
import shlex
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta

import binreps as br
from binreps import CountTable, Loss, OptionError, Prior, Rates, check, elicit, fit_bayes, fit_map, simulate
from binreps.cli.app import main
from binreps.decide.checks.identifiability import information_gain
from binreps.decide.checks.subject import parts_of
from binreps.fits.mcmc import McmcFit, _extra, fit_mcmc, to_pymc
from binreps.model import NAMES, log_likelihood
from binreps.priors import draws
from binreps.run.save import fit_from_dict, fit_to_dict
from binreps.show.summary import summary
from binreps.show.wording import command_line, methods_paragraph, python_lines

BETTER = Prior(better_than_chance=True)
FLAT = Prior((1, 1), better_than_chance=True)
TRUTH = Rates(0.5, 0.02, 0.7)
SMEARS = simulate(TRUTH, 500, 5, rng=3).counts
FEW = CountTable([4] * 5, range(5), [40, 25, 12, 3, 0])
INFORMED = Prior((2, 3), (1, 20), (6, 4), better_than_chance=True)


def sampled_posterior(counts: CountTable, prior: Prior, size: int = 400_000) -> tuple[Any, Any, float]:
    """Draws from the prior by rejection, their normalised weights, and the log evidence."""
    rng = np.random.default_rng(1)
    drawn = np.stack([rng.beta(a, b, size) for a, b in prior])
    inside = drawn[1] + drawn[2] < 1 if prior.better_than_chance else (drawn[1:] < 0.5).all(axis=0)
    drawn = drawn[:, inside]
    theta, p, q = drawn[:, :, None]
    n, s = counts.n, counts.s
    mixture = theta * (1 - q) ** s * q ** (n - s) + (1 - theta) * p**s * (1 - p) ** (n - s)
    value = np.log(mixture) @ counts.weight
    weight = np.exp(value - value.max())
    return drawn, weight / weight.sum(), float(value.max() + np.log(weight.mean()))


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main([str(word) for word in words])
    out, err = capsys.readouterr()
    return int(stop.value.code or 0), out, err


# --- the fits that take it, by importance sampling --------------------------------------------------------


@pytest.mark.parametrize("prior", [BETTER, INFORMED, Prior()], ids=["usual", "informed", "half"])
def test_the_posterior_and_its_evidence_are_those_of_sampling(prior: Prior) -> None:
    drawn, weight, evidence = sampled_posterior(FEW, prior)
    fit = fit_bayes(FEW, prior)
    worth = 1 / np.sum(weight**2)
    mean = drawn @ weight
    sd = np.sqrt((drawn - mean[:, None]) ** 2 @ weight)
    assert np.all(np.abs(np.array([*fit.rates]) - mean) < 5 * sd / np.sqrt(worth))
    assert fit.log_evidence == pytest.approx(evidence, abs=5 / np.sqrt(worth))


def test_a_test_that_misses_more_than_it_finds_is_understood() -> None:
    half, better = fit_bayes(SMEARS), fit_bayes(SMEARS, BETTER)
    lower, upper = better.interval(0.99)
    for name in NAMES:
        assert getattr(lower, name) < getattr(TRUTH, name) < getattr(upper, name)
    assert half.interval(0.99)[1].prevalence < 0.4
    assert better.log_evidence > half.log_evidence


@pytest.mark.parametrize("method", ["map", "bayes"])
def test_many_tables_and_groups_keep_the_switch(method: Any) -> None:
    prior = FLAT if method == "map" else BETTER
    single = {"map": fit_map, "bayes": fit_bayes}[method](SMEARS, prior)
    many = br.fit_many([SMEARS, FEW, FEW], method=method, prior=prior)
    assert many.rates.false_negative[0] == pytest.approx(single.rates.false_negative, abs=1e-6)
    assert many.fit(0).prior.better_than_chance
    cells = [(n, s) for n, s, w in zip(SMEARS.n, SMEARS.s, SMEARS.weight, strict=True) for _ in range(w)]
    table = br.Table({"assay": ["a"] * len(cells), "n": [n for n, _ in cells], "s": [s for _, s in cells]})
    grouped = br.fit_by(table, by="assay", n="n", s="s", method=method, prior=prior)
    (row,) = grouped
    assert row["false_negative"] == pytest.approx(single.rates.false_negative, abs=1e-6)


def test_the_front_door_and_analyses_keep_the_switch() -> None:
    assert br.fit(SMEARS, prior=FLAT, method="map") == fit_map(SMEARS, FLAT)
    analysis = br.analyse(SMEARS, br.Settings(prior=BETTER))
    assert analysis.fit.prior == BETTER
    assert analysis.parts[0].fits["map"] == fit_map(SMEARS, FLAT)
    assert analysis.parts[0].fits["map"].rates.false_negative > 0.5


def test_a_classifier_takes_it() -> None:
    X = np.repeat(np.stack([SMEARS.n, SMEARS.s], axis=1), SMEARS.weight, axis=0)
    classifier = br.interop.ReplicateClassifier(method=partial(fit_map, prior=FLAT)).fit(X)
    assert classifier.fit_ == fit_map(SMEARS, FLAT)


# --- sampling ---------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_pymc_model_is_the_likelihood_times_the_prior_over_the_region() -> None:
    counts = FEW + CountTable([4, 4], [0, 3], weight=[5, 6], known=[0, 1])
    prior = Prior((2, 6), (1.5, 12), (3, 0.5), better_than_chance=True)
    density = to_pymc(counts, prior).compile_logp(jacobian=False, mode="FAST_COMPILE")
    points = [Rates(0.3, 0.1, 0.8), Rates(0.9, 0.45, 0.01), Rates(1e-6, 0.7, 0.2)]

    def found(rates: Rates) -> float:
        theta, p, q = rates
        square = {
            "prevalence_logodds__": theta,
            "false_positive_interval__": p,
            "false_negative_share_interval__": q / (1 - p),
        }
        value = density({name: np.array(np.log(x / (1 - x))) for name, x in square.items()})
        return float(value) - np.log1p(
            -p
        )  # the area of the square's image is no part of the density of (p, q)

    def expected(rates: Rates) -> float:
        laws = (beta(*shapes).logpdf(rate) for shapes, rate in zip(prior, rates, strict=True))
        return log_likelihood(counts, rates) + sum(laws)

    differences = np.diff([expected(rates) for rates in points])
    assert np.diff([found(rates) for rates in points]) == pytest.approx(differences, rel=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("prior", [BETTER, INFORMED], ids=["usual", "informed"])
def test_nuts_agrees_with_importance_sampling(prior: Prior) -> None:
    drawn, weight, _ = sampled_posterior(FEW, prior)
    fit = fit_mcmc(FEW, prior, rng=1)
    mean = drawn @ weight
    sd = np.sqrt((drawn - mean[:, None]) ** 2 @ weight)
    error = 5 * (np.array([*fit.mcse]) + sd * np.sqrt(np.sum(weight**2)))
    assert np.all(np.abs(np.array([*fit.rates]) - mean) < error)
    assert np.all(fit.chains.false_positive + fit.chains.false_negative < 1)
    assert fit.prior == prior


@pytest.mark.slow
def test_without_data_nuts_draws_the_prior() -> None:
    fit = fit_mcmc(CountTable([], []), INFORMED, rng=1)
    reference = draws(INFORMED, 20_000, np.random.default_rng(1)).mean(axis=1)
    assert np.array([*fit.rates]) == pytest.approx(reference, abs=0.02)
    _extra("test", "pymc")


@pytest.mark.slow
def test_the_prior_that_arviz_gets_is_the_restricted_one() -> None:
    tree = br.interop.to_arviz(fit_bayes(FEW, BETTER), rng=1)
    p, q = (np.asarray(tree.prior[name]) for name in NAMES[1:])
    assert np.all(p + q < 1)
    assert np.mean(q > 0.5) == pytest.approx(0.25, abs=0.04)  # of Beta(2, 2)², cut: P(q > ½ | p + q < 1)


# --- files and words --------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [partial(fit_map, prior=FLAT), partial(fit_bayes, prior=BETTER)])
def test_a_saved_fit_keeps_the_switch(make: Any, tmp_path: Path) -> None:
    fit = make(SMEARS)
    path = br.save_fit(fit, tmp_path / "fit.json")
    assert json.loads(path.read_text(encoding="utf-8"))["prior"]["better_than_chance"] is True
    assert br.load_fit(path) == fit


def test_a_fit_of_the_first_format_is_read() -> None:
    content = fit_to_dict(fit_map(FEW))
    content["version"] = 1
    del content["prior"]["better_than_chance"]
    assert fit_from_dict(content) == fit_map(FEW)


def test_a_switch_that_was_turned_in_the_file_is_noticed() -> None:
    content = fit_to_dict(fit_map(SMEARS, FLAT))
    content["prior"]["better_than_chance"] = False
    with pytest.raises(br.DataError, match="its results must follow from its counts and prior"):
        fit_from_dict(content)


def test_report_and_json_name_the_region_in_words() -> None:
    better = br.analyse(SMEARS, br.Settings(prior=BETTER))
    options = summary(better)["options"]["prior"]
    assert options["better_than_chance"] is True
    assert options["region"] == "the two error rates add up to less than 1"
    words = methods_paragraph(better)
    assert "which are better than chance: they add up to less than one" in words
    assert "Beta(2, 2), restricted to error rates that are better than chance" in words
    assert "½" not in words.split("Decisions")[0] or "pressed" in words
    half = br.analyse(SMEARS, br.Settings(model="common"))
    assert summary(half)["options"]["prior"]["better_than_chance"] is False
    assert "both below one half" in methods_paragraph(half)
    assert "better than chance: they add up to less than one" in better.report()


def test_the_lines_that_repeat_an_analysis_have_the_switch() -> None:
    counted = br.analyse(SMEARS, br.Settings(method="map", prior=FLAT))
    place: dict[str, Any] = {}
    exec(python_lines(counted), place)
    assert place["analysis"].settings == counted.settings
    words = shlex.split(command_line(counted))
    assert "--better-than-chance" in words
    assert "" not in words


# --- figures ----------------------------------------------------------------------------------------------


def test_the_figure_of_the_rates_reaches_as_far_as_the_rates() -> None:
    chart = br.plot.rates(fit_bayes(SMEARS, BETTER), {"mode": fit_map(SMEARS, FLAT)}).to_dict()
    low, high = chart["hconcat"][2]["layer"][0]["encoding"]["x"]["scale"]["domain"]
    assert low < 0.7 < high


# --- the command line -------------------------------------------------------------------------------------


def test_the_command_line_has_one_switch(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    data = tmp_path / "smears.csv"
    rows = [f"{n},{s},{w}" for n, s, w in zip(SMEARS.n, SMEARS.s, SMEARS.weight, strict=True)]
    data.write_text("n,s,weight\n" + "\n".join(rows) + "\n", encoding="utf-8")
    switch = "--better-than-chance"
    words = (
        "analyse",
        data,
        "--n",
        "n",
        "--s",
        "s",
        "--weight",
        "weight",
        "--method",
        "map",
        switch,
        "--json",
    )
    code, out, _ = run(capsys, *words)
    content = json.loads(out)
    assert code == 0
    assert content["options"]["prior"]["better_than_chance"] is True
    assert switch in content["command"]
    again = json.loads(run(capsys, *shlex.split(content["command"])[1:], "--json")[1])
    assert again["fit"]["results"] == content["fit"]["results"]
    grouped = data.with_name("grouped.csv")
    grouped.write_text("lab,n,s,weight\n" + "".join(f"a,{row}\n" for row in rows), encoding="utf-8")
    by = ("analyse", grouped, "--by", "lab", *words[2:])
    (row,) = json.loads(run(capsys, *by)[1])
    assert row["false_negative"] == pytest.approx(fit_map(SMEARS, FLAT).rates.false_negative)


def test_a_prior_of_a_poor_test_is_made_from_words(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("prior", "sensitivity", "--between", "0.2,0.6")
    code, _, err = run(capsys, *words)
    assert code == 2
    assert "low must be between 0.5 and 1 for sensitivity, got 0.2; better_than_chance=True takes" in err
    _, out, _ = run(capsys, *words, "--better-than-chance")
    assert out.splitlines()[-1].endswith(" --better-than-chance")
    shapes = json.loads(run(capsys, *words, "--better-than-chance", "--json")[1])["shapes"]
    assert 1 - beta(*shapes).ppf([0.95, 0.05]) == pytest.approx([0.2, 0.6], abs=1e-6)


# --- from words to a prior --------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", ["sensitivity", "specificity", "false_positive", "false_negative"])
def test_what_was_said_is_met_by_a_beta_distribution_on_the_whole_interval(rate: str) -> None:
    belief = elicit.between(rate, 0.2, 0.6, better_than_chance=True)
    assert belief.quantile([0.05, 0.95]) == pytest.approx([0.2, 0.6], abs=1e-6)
    law = beta(*belief.shapes)
    expected = 1 - law.ppf([0.95, 0.05]) if rate in elicit.COMPLEMENTS else law.ppf([0.05, 0.95])
    assert expected == pytest.approx([0.2, 0.6], abs=1e-6)
    guessed = elicit.guess(rate, 0.4, surprised_below=0.1, better_than_chance=True)
    assert guessed.quantile([0.05, 0.5]) == pytest.approx([0.1, 0.4], abs=1e-6)


def test_a_prior_of_beliefs_shows_what_the_restriction_leaves() -> None:
    smear = elicit.between("sensitivity", 0.2, 0.6, better_than_chance=True)
    prior = elicit.prior(smear)
    assert prior.better_than_chance
    rng = np.random.default_rng(1)
    p, q = rng.beta(*prior.false_positive, 10**6), rng.beta(*prior.false_negative, 10**6)
    kept = p + q < 1
    table = elicit.implied(prior)
    row = {row["rate"]: row for row in table}["sensitivity"]
    assert [row["5%"], row["95%"]] == pytest.approx(np.quantile(1 - q[kept], [0.05, 0.95]), abs=3e-3)
    share = elicit.percent(float(np.mean(~kept)))
    assert f": {share[:2]}" in str(smear)  # of it is cut off
    both = elicit.prior(smear, elicit.between("specificity", 0.95, 0.99, better_than_chance=True))
    row = {row["rate"]: row for row in elicit.implied(both)}["sensitivity"]
    assert [row["5%"], row["95%"]] == pytest.approx([0.2, 0.6], abs=1e-3)


def test_beliefs_of_the_two_error_rates_agree_on_the_region() -> None:
    smear = elicit.between("sensitivity", 0.2, 0.6, better_than_chance=True)
    with pytest.raises(
        OptionError, match=r"^better_than_chance must be the same for both error rates, got True"
    ):
        elicit.prior(smear, elicit.between("specificity", 0.95, 0.99))
    prior = elicit.prior(smear, elicit.between("prevalence", 0.1, 0.4))
    assert prior.better_than_chance


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            partial(elicit.guess, "sensitivity", 0.4, surprised_below=0.2),
            "expect must be between 0.5 and 1 for sensitivity, got 0.4; better_than_chance=True takes",
        ),
        (
            partial(elicit.study, "sensitivity", count=30, of=100),
            "the false_negative rate must be at most ½ in this model, got 70 of 100; better_than_chance=True",
        ),
        (
            partial(elicit.between, "sensitivity", 0.2, 1.6, better_than_chance=True),
            "high must be between 0 and 1 for sensitivity, got 1.6$",
        ),
        (
            partial(elicit.between, "sensitivity", 0.2, 0.6, better_than_chance="yes"),
            "better_than_chance must be True or False, got 'yes'",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_the_way_out(call: Any, sentence: str) -> None:
    with pytest.raises(OptionError, match=sentence):
        call()


def test_a_study_of_a_poor_test_is_a_flat_prior_updated() -> None:
    belief = elicit.study("sensitivity", count=30, of=100, better_than_chance=True)
    assert belief.shapes == (71, 31)


def test_an_earlier_fit_hands_on_its_region() -> None:
    beliefs = elicit.earlier(fit_bayes(SMEARS, BETTER))
    prior = elicit.prior(*beliefs)
    assert prior.better_than_chance
    assert prior.false_negative[0] > prior.false_negative[1]


# --- plans ------------------------------------------------------------------------------------------------


def test_a_plan_draws_its_truth_from_the_region_and_analyses_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from binreps.decide import plan as module

    seen: list[Any] = []

    def integrate(table: CountTable, prior: Prior, **how: Any) -> Any:
        seen.append(prior)
        return real(table, prior, **how)

    real = module.integrate
    monkeypatch.setattr(module, "integrate", integrate)
    found = br.plan(
        INFORMED, error_margin=0.45, individuals=[30], replicates=[3], data_sets=50, rng=1
    )  # a margin that no rate below ½ could have
    assert len(seen) >= 20  # until the answer is clear
    assert all(prior == INFORMED for prior in seen)
    assert found.designs[0].reached == "yes"
    with pytest.raises(OptionError, match=r"error_margin must be between 0 and 0.25, got 0.45"):
        br.plan(TRUTH, error_margin=0.45, individuals=[30], replicates=[3], data_sets=50, rng=1)


@pytest.mark.slow
def test_a_study_of_a_poor_test_is_planned() -> None:
    how: Any = {"prevalence_width": 0.15, "individuals": [400], "replicates": [8], "data_sets": 50, "rng": 1}
    found = br.plan(Rates(0.5, 0.02, 0.7), prior=BETTER, **how)
    tables = [simulate(Rates(0.5, 0.02, 0.7), 400, 8, rng=seed).counts for seed in range(50)]
    fits = br.fit_many(tables, prior=BETTER)
    kept = float(np.mean(fits.upper.prevalence - fits.lower.prevalence <= 0.15))
    assert found.designs[0].probability == pytest.approx(kept, abs=0.25)
    assert np.mean((fits.lower.prevalence < 0.5) & (fits.upper.prevalence > 0.5)) > 0.75


# --- checks -----------------------------------------------------------------------------------------------


def test_a_rate_pressed_against_half_is_offered_the_way_out() -> None:
    loss = Loss(inconclusive=0.2)
    half, better = fit_bayes(SMEARS), fit_bayes(SMEARS, BETTER)
    (finding,) = [one for one in check(half, loss) if one.name == "at-half-false-negative"]
    gain = better.log_evidence - half.log_evidence
    assert f"(log evidence {gain:+.1f})" in finding.advice
    assert "the data speak for it" in finding.advice
    answers = [loss.classify(fit.score(SMEARS.n, SMEARS.s)) for fit in (half, better)]
    changed = int(SMEARS.weight[answers[0] != answers[1]].sum())
    assert f"{changed} of 500 decisions would change" in finding.advice
    assert "better than chance" in finding.advice
    assert "decisions" not in next(one for one in check(half) if one.name == finding.name).advice


def test_the_evidence_in_the_offer_is_that_of_sampling() -> None:
    counts = CountTable([6] * 7, range(7), [30, 22, 24, 14, 5, 1, 0])
    (finding,) = [one for one in check(fit_bayes(counts)) if one.name == "at-half-false-negative"]
    gain = sampled_posterior(counts, BETTER, 10**6)[2] - sampled_posterior(counts, Prior(), 10**6)[2]
    said = float(finding.advice.split("log evidence ")[1].split(")")[0])
    assert said == pytest.approx(gain, abs=0.3)


def test_a_mode_is_offered_the_way_out_without_evidence() -> None:
    found = check(fit_map(SMEARS))
    (finding,) = [one for one in found if one.name == "at-half-false-negative"]
    assert "the model better than chance lets either error rate be above ½." in finding.advice
    assert not [one for one in check(fit_map(SMEARS, FLAT)) if one.name.startswith("at-")]


def test_in_the_wider_region_the_limit_is_where_replicates_say_nothing() -> None:
    coin = CountTable([5] * 6, range(6), [2, 8, 16, 16, 8, 2])
    strict = Prior((1, 1), (20, 20), (20, 20), better_than_chance=True)
    (finding,) = [one for one in check(fit_map(coin, strict)) if one.name == "at-chance"]
    assert "the replicates say nothing" in finding.sentence
    assert "at-chance" not in check(fit_map(SMEARS, FLAT))


def test_a_posterior_that_is_its_prior_is_recognised_in_the_region() -> None:
    """Draws from the restricted prior itself carry no information."""
    chains = Rates(*draws(INFORMED, 4000, np.random.default_rng(2)).reshape(3, 4, -1))
    fit = McmcFit.of(FEW, INFORMED, chains, np.zeros((4, 1000), bool))
    part = parts_of(fit)[0]
    assert max(information_gain(part, INFORMED, name) for name in NAMES) < 0.05
    assert information_gain(part, BETTER, "false_positive") > 0.5


@pytest.mark.parametrize("prior", [Prior((0.5, 0.5), (0.5, 0.5), (2, 0.5), better_than_chance=True), BETTER])
def test_checks_find_modes_also_where_a_prior_has_none(prior: Prior) -> None:
    assert check(fit_bayes(FEW, prior)) is not None
