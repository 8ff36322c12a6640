"""Numbers into sentences: the headline, why an answer is what it is, the methods, how to repeat it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from binreps._version import __version__
from binreps.decide.loss import Loss, decision_words
from binreps.fits.base import Fit
from binreps.model import NAMES, Prior
from binreps.run.analysis import METHODS, Analysis, Part, Settings

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


def with_interval(estimate: float, lower: float | None, upper: float | None) -> str:
    """An estimate, and its interval if it has one."""
    if lower is None or upper is None:
        return percent(estimate)
    return f"{percent(estimate)} ({percent(lower)} to {percent(upper)})"


def headline(analysis: Analysis, part: Part | None = None) -> dict[str, str]:
    """What everyone asks for first: the prevalence, the quality of the test, the next individual."""
    part = part or analysis.main
    rates = part.fit.rates
    lower, upper = _interval(part, analysis.settings.level)
    prevalence = with_interval(rates.prevalence, lower.get(NAMES[0]), upper.get(NAMES[0]))
    sensitivity = with_interval(
        rates.sensitivity, _complement(upper.get(NAMES[2])), _complement(lower.get(NAMES[2]))
    )
    specificity = with_interval(
        rates.specificity, _complement(upper.get(NAMES[1])), _complement(lower.get(NAMES[1]))
    )
    return {
        "prevalence": prevalence,
        "sensitivity": sensitivity,
        "specificity": specificity,
        "next": _next_words(part),
    }


def _interval(part: Part, level: float) -> tuple[dict[str, float], dict[str, float]]:
    """Lower and upper ends by name; empty where the method has none."""
    if not hasattr(part.fit, "interval"):
        return {}, {}
    lower, upper = part.fit.interval(level)
    return dict(zip(NAMES, lower, strict=True)), dict(zip(NAMES, upper, strict=True))


def _complement(share: float | None) -> float | None:
    """1 − a share, if there is one."""
    return None if share is None else 1 - share


def _next_words(part: Part) -> str:
    """What to do with the next individual, for the usual number of replicates."""
    sizes = part.counts.weight @ (part.counts.n[:, None] == sorted(set(part.counts.n.tolist())))
    usual = sorted(set(part.counts.n.tolist()))[int(sizes.argmax())] if len(part.counts) else 1
    listed = sorted(set(part.decisions["n"]))
    n = max((size for size in listed if size <= max(usual, 1)), default=listed[0])
    rows = [row for row in part.decisions if row["n"] == n]
    groups: dict[str, list[int]] = {}
    for row in rows:
        groups.setdefault(row["decision"] or "undecided", []).append(row["s"])
    words = [f"{_range(positives)} positive: {word}" for word, positives in groups.items()]
    return f"of {plural(n, 'replicate')}, " + "; ".join(words)


def _range(numbers: Sequence[int]) -> str:
    """Neighbouring whole numbers: 3, or 2 to 5."""
    return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"


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
        "false-positive or false-negative rate, both below one half (Royer-Carenzi, Lorenzo & Pudlo, 2026)."
    )
    estimates = _estimate_sentence(analysis, part)
    decisions, software = _decision_sentence(settings), _software(part)
    return " ".join([f"{data} {total}.", model, *estimates, *_caveats(analysis), decisions, software])


def _caveats(analysis: Analysis) -> list[str]:
    """What must not be left out beside the estimates: the warnings on what the data cannot tell."""
    untold = ("no-", "not-identifiable", "two-replicates", "unlearnt-", "at-half-")
    return [one.sentence for one in analysis.findings.warnings if one.name.startswith(untold)]


def _estimate_sentence(analysis: Analysis, part: Part) -> list[str]:
    """How the rates were estimated, and what came out."""
    settings, words = analysis.settings, headline(analysis, part)
    sentences = []
    if settings.method in ("bayes", "overdispersed"):
        priors = _prior_words(settings.prior)
        sentences.append(f"The posterior was integrated deterministically under the priors {priors}.")
    elif settings.method == "map":
        sentences.append("The rates are the mode of their joint posterior density.")
    else:
        sentences.append(f"The rates follow from the {settings.method} score of each individual.")
    if settings.method == "overdispersed":
        sentences.append("Replicates of one individual may be correlated (beta-binomial, one correlation).")
    level = f" ({settings.level:.0%} credible interval)" if hasattr(part.fit, "interval") else ""
    if analysis.shared is not None:
        sentences.append(
            f"{len(analysis.parts)} populations share the error rates, each with its own prevalence."
        )
        own = (f"{one.name} {headline(analysis, one)['prevalence']}" for one in analysis.parts)
        prevalence = "The estimated prevalence" + level + " was " + ", ".join(own)
    else:
        prevalence = f"The estimated prevalence{level} was {words['prevalence']}"
    quality = f"sensitivity {words['sensitivity']}, specificity {words['specificity']}"
    return [*sentences, f"{prevalence}; {quality} for one replicate."]


def _decision_sentence(settings: Settings) -> str:
    """How scores became decisions."""
    return f"Decisions minimise the expected cost ({settings.loss})."


def _software(part: Part) -> str:
    """The program, and how exact its numbers are."""
    error = getattr(part.fit, "error", None)
    exact = "" if error is None else f"; numerical error below {error:.0e} of a posterior standard deviation"
    return f"Computed with binreps {__version__}{exact}."


def _prior_words(prior: Prior) -> str:
    """The three priors in symbols."""
    names = ("prevalence", "false-positive rate", "false-negative rate")
    beta = [f"Beta({a:g}, {b:g})" for a, b in prior]
    ends = ("", " on (0, ½)", " on (0, ½)")
    return ", ".join(f"{name} ~ {law}{end}" for name, law, end in zip(names, beta, ends, strict=True))


def command_line(analysis: Analysis, out: str | None = None) -> str:
    """The command that repeats the analysis."""
    source, settings = analysis.source, analysis.settings
    words = ["binreps", "analyse", *source.paths]
    for name, value in (source.guess.columns if source.guess else {}).items():
        if name in ("known", "rater") or value is None:
            continue
        several = value if isinstance(value, list | tuple) else [value]
        option = {"replicates": "replicate"}.get(name, name)
        words += [part for each in several for part in (f"--{option}", str(each))]
    for name in ("known", "truth", "population"):
        if getattr(source, name) is not None:
            words += [f"--{name}", getattr(source, name)]
    words += [part for option, value in _chosen(settings) for part in (f"--{option}", value)]
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
    columns = dict(source.guess.columns) if source.guess else {}
    columns |= {name: getattr(source, name) for name in ("known", "truth", "population")}
    keywords = "".join(f", {name}={value!r}" for name, value in columns.items() if value is not None)
    if not source.paths:
        cells = analysis.counts
        data = f"br.CountTable({cells.n.tolist()}, {cells.s.tolist()}, {cells.weight.tolist()})"
        return f"import binreps as br\n\nanalysis = br.analyse({data}, {chosen})"
    path = repr(source.paths[0]) if len(source.paths) == 1 else repr(list(source.paths))
    return f"import binreps as br\n\nanalysis = br.analyse_file({path}, {chosen}{keywords})"


def _value(value: Any) -> str:
    """A setting as Python writes it, with the package's short name."""
    return f"br.{value!r}" if isinstance(value, Prior | Loss) else repr(value)


def method_name(analysis: Analysis) -> str:
    """The name of the method that decides."""
    return METHODS[analysis.settings.method]
