"""Numbers into sentences: why an answer is what it is, the methods, how to repeat it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from binreps._version import __version__
from binreps.decide.loss import Loss, check_loss, decision_words
from binreps.fits.base import Fit, check_one_population
from binreps.model import NAMES, Prior
from binreps.options import kinds_checked
from binreps.run.analysis import Analysis, Estimate, Part, Settings, Source
from binreps.run.methods import METHODS
from binreps.table import Table, format_value
from binreps.tables.roles import PARTS

REFERENCES = (
    "Royer-Carenzi M, Lorenzo G, Pudlo P. Reconciling binary replicates: beyond the average. "
    "Statistics in Medicine, 2026. arXiv:2501.13745.",
    "Hui SL, Walter SD. Estimating the error rates of diagnostic tests. Biometrics, 1980; 36: 167–171.",
)


def percent(share: float) -> str:
    """A share as a person says it: enough digits, and never 0% or 100% for what is neither.

    Examples
    --------
    >>> [percent(share) for share in (0.2917, 0.0123, 0.00012, 1e-9, 0.99999, 0.5, 0.0, float("nan"))]
    ['29.2%', '1.2%', '0.012%', 'below 0.001%', 'above 99.9%', '50.0%', '0%', 'undefined']
    """
    if share != share:
        return "undefined"
    if share in (0, 1):
        return f"{share:.0%}"
    if share > 0.9995:
        return "above 99.9%"
    if share < 1e-5:
        return "below 0.001%"
    return f"{100 * share:.1f}%" if share >= 0.001 else f"{100 * share:.2g}%"


def plural(number: int, noun: str) -> str:
    """A number and its noun: `1 cell`, `1,200 cells`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def with_interval(one: Estimate) -> str:
    """An estimate, and its interval if it has one."""
    if one.lower != one.lower:
        return percent(one.estimate)
    return f"{percent(one.estimate)} ({percent(one.lower)} to {percent(one.upper)})"


def read_words(source: Source) -> list[str]:
    """How the data were read, which columns are not used and why, and the words for no result."""
    if source.guess is None:
        return []
    words = [f"read as {source.guess}"]
    words += [f"not used: {source.guess.unused}"] if source.guess.unused else []
    return words


def missing_words(source: Source) -> str:
    """How many results are missing, and by which words, if they were counted."""
    if source.missing is None:
        return ""
    words = ", ".join(f"{word!r} {number:,}" for word, number in list(source.no_result.items())[:8])
    return plural(source.missing, "missing result") + (f" ({words})" if words else "")


def named_rates(part: Part) -> Table:
    """The rates of all methods, under the names that people read."""
    rates = part.rates()
    columns = {METHODS[name].name if name in METHODS else name: rates[name] for name in rates.columns}
    return Table(columns)


def named_methods(table: Table) -> Table:
    """A table with a column of methods, under the names that people read."""
    return Table({**table.columns, "method": [METHODS[method].name for method in table["method"]]})


def next_words(part: Part) -> str:
    """What to do with the next individual, for the usual number of replicates."""
    groups = part.usual["answers"].items()
    words = [f"{_range(*ends)} positive: {word}" for word, ends in groups]
    return f"of {plural(part.usual['n'], 'replicate')}, " + "; ".join(words)


def _range(first: int, last: int) -> str:
    """Neighbouring whole numbers: 3, or 2 to 5."""
    return str(first) if first == last else f"{first} to {last}"


@kinds_checked
def explain(n: int, s: int, fit: Fit, loss: Loss, *, new: bool = False) -> str:
    """Why an individual with s positives among n replicates is negative, inconclusive or positive.

    Parameters
    ----------
    n, s : int
        Replicates and positives of the individual.
    fit : any fit
    loss : Loss
    new : bool
        Whether the individual is new, rather than one the fit was made from.

    Examples
    --------
    >>> from binreps.counts import CountTable
    >>> from binreps.fits.bayes import fit_bayes
    >>> fit = fit_bayes(CountTable([4, 4, 4, 4, 4], [0, 1, 2, 3, 4], weight=[50, 18, 6, 9, 17]))
    >>> print(explain(2, 1, fit, Loss(inconclusive=0.2), new=True))
    With 1 positive of 2 replicates the probability of being positive is 37.8%. On average the answer negative
    would cost 0.378, inconclusive 0.2, positive 0.622: the cheapest is inconclusive.
    """
    check_one_population(fit)
    check_loss(loss)
    score = float((fit.predict if new else fit.score)(n, s))
    if score != score:
        return f"With {s} positive of {plural(n, 'replicate')} this method gives no probability."
    costs = loss.risks(score)
    answer = decision_words(loss.classify(score))
    negative, inconclusive, positive = (f"{cost:.3g}" for cost in costs)
    probability = f"With {s} positive of {plural(n, 'replicate')} the probability of being positive is"
    expected = f"negative would cost {negative}, inconclusive {inconclusive}, positive {positive}"
    return f"{probability} {percent(score)}. On average the answer {expected}: the cheapest is {answer}."


def methods_paragraph(analysis: Analysis) -> str:
    """What was done, ready to paste into a paper, with the numbers filled in."""
    settings, counts, part = analysis.settings, analysis.counts, analysis.main
    sizes = sorted(set(counts.n.tolist()))
    span = str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}" if sizes else "no"
    each = " each" if counts.individuals > 1 else ""
    data = f"{plural(counts.individuals, 'individual')} had {span} binary replicates{each}"
    total = f"({plural(counts.replicates, 'replicate')}, {counts.positives:,} of them positive)"
    model = (
        "Each individual has a latent status; given it, replicates are independent and err with a common "
        f"false-positive or false-negative rate, {_region_words(settings.prior)} (Royer-Carenzi, Lorenzo & "
        "Pudlo, 2026)."
    )
    estimates = _estimate_sentence(analysis, part)
    decisions, software = _decision_sentence(settings), _software(part)
    return " ".join([f"{data} {total}.", model, *estimates, *_caveats(analysis), decisions, software])


def _caveats(analysis: Analysis) -> list[str]:
    """What must not be left out beside the estimates: the warnings on what the data cannot tell."""
    untold = ("no-", "not-identifiable", "two-replicates", "unlearnt-", "at-half-", "at-chance")
    return [one.sentence for one in analysis.findings.warnings if one.name.startswith(untold)]


def _estimate_sentence(analysis: Analysis, part: Part) -> list[str]:
    """How the rates were estimated, and what came out."""
    settings, found = analysis.settings, part.headline
    sentences = [METHODS[part.deciding].sentence.format(prior=_prior_words(settings.prior))]
    bounded = found["prevalence"].lower == found["prevalence"].lower
    level = f" ({settings.level:.0%} credible interval)" if bounded else ""
    own = with_interval(found["prevalence"])
    if analysis.shared is not None:
        sentences.append(
            f"{len(analysis.parts)} populations share the error rates, each with its own prevalence."
        )
        own = ", ".join(f"{one.name} {with_interval(one.headline['prevalence'])}" for one in analysis.parts)
    quality = ", ".join(f"{name} {with_interval(found[name])}" for name in ("sensitivity", "specificity"))
    return [*sentences, f"The estimated prevalence{level} was {own}; {quality} for one replicate."]


def _decision_sentence(settings: Settings) -> str:
    """How scores became decisions."""
    return f"Decisions minimise the expected cost ({settings.loss})."


def _software(part: Part) -> str:
    """The program, and how exact its numbers are."""
    error = part.fit.error
    exact = "" if not error else f"; numerical error below {error:.0e} of a posterior standard deviation"
    return f"Computed with binreps {__version__}{exact}."


def _prior_words(prior: Prior) -> str:
    """The three priors in symbols."""
    names = ("prevalence", "false-positive rate", "false-negative rate")
    beta = [f"Beta({a:g}, {b:g})" for a, b in prior]
    end = "" if prior.better_than_chance else " on (0, ½)"
    laws = ", ".join(
        f"{name} ~ {law}{each}" for name, law, each in zip(names, beta, ("", end, end), strict=True)
    )
    return (
        f"{laws}, restricted to error rates that are better than chance" if prior.better_than_chance else laws
    )


def _region_words(prior: Prior) -> str:
    """Where the error rates may lie."""
    better = "which are better than chance: they add up to less than one"
    return better if prior.better_than_chance else "both below one half"


def command_line(analysis: Analysis, out: str | None = None) -> str:
    """The command that repeats the analysis."""
    return command_words(analysis.source, analysis.settings, out)


def command_words(source: Source, settings: Settings, out: str | None = None) -> str:
    """The command that analyses a source by these settings."""
    words = ["binreps", "analyse", *source.paths]
    for name, value in (source.guess.columns if source.guess else {}).items():
        if name == "known" or value is None:
            continue
        several = value if isinstance(value, list | tuple) else [value]
        option = PARTS[name].option or name
        words += [part for each in several for part in (f"--{option}", str(each))]
    for name in ("known", "truth", "population", "sheet"):
        if getattr(source, name) is not None:
            words += [f"--{name}", getattr(source, name)]
    words += [part for option, value in _chosen(settings) for part in (f"--{option}", value) if part]
    return shlex.join(words + (["--out", out] if out else []))


def _chosen(settings: Settings) -> list[tuple[str, str]]:
    """The options that differ from the usual ones."""
    usual, loss = Settings(), settings.loss
    chosen: list[tuple[str, str]] = []
    if settings.method != usual.method:
        chosen.append(("method", settings.method))
    for name, shapes, other in zip(NAMES, settings.prior, usual.prior, strict=True):
        if shapes != other:
            chosen.append(_prior_option(name, shapes))
    if settings.prior.better_than_chance:
        chosen.append(("better-than-chance", ""))
    for name in ("false_positive", "false_negative", "inconclusive"):
        value: Any = getattr(loss, name)
        if value != getattr(usual.loss, name):
            both = ",".join(map(_number, value)) if isinstance(value, tuple) else _number(value)
            chosen.append((f"cost-{name.replace('_', '-')}", both))
    if settings.level != usual.level:
        chosen.append(("level", _number(settings.level)))
    if settings.replicates is not None:
        chosen.append(("up-to", str(settings.replicates)))
    return chosen


def _prior_option(name: str, shapes: tuple[float, float]) -> tuple[str, str]:
    """The option for the prior of a rate, and its value."""
    return f"prior-{name.replace('_', '-')}", f"{_number(shapes[0])},{_number(shapes[1])}"


def command_options(name: str, shapes: tuple[float, float]) -> str:
    """The words on the command line that set the prior of a rate."""
    option, value = _prior_option(name, shapes)
    return f"--{option} {value}"


def _number(value: float) -> str:
    """A number in full, without a trailing .0."""
    return repr(float(value)).removesuffix(".0")


def python_lines(analysis: Analysis) -> str:
    """The lines of Python that repeat the analysis."""
    source, settings = analysis.source, analysis.settings
    options = {name: getattr(settings, name) for name in Settings.__dataclass_fields__}
    changed = [f"{k}={_value(v)}" for k, v in options.items() if v != getattr(Settings(), k)]
    chosen = f"br.Settings({', '.join(changed)})" if changed else "br.Settings()"
    if source.guess is None:
        cells = analysis.counts
        data = f"br.CountTable({cells.n.tolist()}, {cells.s.tolist()}, {cells.weight.tolist()})"
        return f"import binreps as br\n\nanalysis = br.analyse({data}, {chosen})"
    columns: dict[str, Any] = dict(source.guess.columns)
    columns |= {name: getattr(source, name) for name in ("known", "truth", "population", "sheet")}
    keywords = "".join(f", {name}={value!r}" for name, value in columns.items() if value is not None)
    paths = list(source.paths)
    table = "table" if not paths else repr(paths[0] if len(paths) == 1 else paths)
    return f"import binreps as br\n\nanalysis = br.analyse({table}, {chosen}{keywords})"


def _value(value: Any) -> str:
    """A setting as Python writes it, with the package's short name."""
    return f"br.{value!r}" if isinstance(value, Prior | Loss) else repr(value)


def named_odds(part: Part) -> Table | None:
    """The odds ratios as a reader wants them; None without covariates."""
    ratios = part.odds_ratios
    if ratios is None or not len(ratios):
        return None
    names = ("covariate", "per", "estimate", "lower", "upper", "log_odds", "sd")
    return Table({name.replace("estimate", "odds_ratio"): ratios[name] for name in names})


def profile_words(covariates: Mapping[str, Any]) -> str:
    """Someone's covariates in a line."""
    return ", ".join(f"{name} {format_value(value)}" for name, value in covariates.items())


def changed_words(part: Part) -> str:
    """How many answers the covariates change; nothing without covariates."""
    if "before" not in part.cells.columns:
        return ""
    weight = part.cells["weight"]
    pairs = zip(part.cells["decision"], part.cells["before"], weight, strict=True)
    changed = sum(many for after, before, many in pairs if after != before)
    return f"Without the covariates {changed:,} of {sum(weight):,} answers would be different."


def method_name(analysis: Analysis) -> str:
    """The name of the method that decides."""
    return METHODS[analysis.main.deciding].name
