"""Numbers into sentences: why an answer is what it is, the methods, how to repeat it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from binreps._version import __version__
from binreps.counts import UNKNOWN
from binreps.decide.checks.actions import Action
from binreps.decide.compare import Comparison
from binreps.decide.loss import Loss
from binreps.model import NAMES, Prior
from binreps.run.analysis import Analysis, Estimate, Part, Settings, Source
from binreps.run.models import MODELS, WAYS
from binreps.table import Table, format_value
from binreps.tables.roles import PARTS
from binreps.words import chance, listed, percents, plural

_TOLD = 12  # sources that a sentence names

REFERENCES = (
    "Royer-Carenzi M, Lorenzo G, Pudlo P. Reconciling binary replicates: beyond the average. "
    "Statistics in Medicine, 2026. arXiv:2501.13745.",
    "Hui SL, Walter SD. Estimating the error rates of diagnostic tests. Biometrics, 1980; 36: 167–171.",
)


def with_interval(one: Estimate) -> str:
    """An estimate, and its interval if it has one."""
    estimate, interval = percents(*one)
    return f"{estimate} ({interval})" if interval else estimate


def read_words(source: Source) -> list[str]:
    """How the data were read, which columns are not used and why, and the words for no result."""
    if source.guess is None:
        return []
    more = {"population": source.population, "known": source.known, "truth": source.truth}
    own = [f", {part} {name!r}" for part, name in more.items() if name and part not in source.guess.columns]
    words = [f"read as {source.guess}{''.join(own)}"]
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
    columns = {WAYS[name].name if name in WAYS else name: rates[name] for name in rates.columns}
    return Table(columns)


def named_methods(table: Table) -> Table:
    """A table with a column of methods, under the names that people read."""
    return Table({**table.columns, "method": [WAYS[method].name for method in table["method"]]})


def next_words(part: Part) -> str:
    """What to do with the next individual, for the usual number of replicates; nothing by source."""
    if part.usual is None:
        return ""
    groups = part.usual["answers"].items()
    words = [f"{_range(*ends)} positive: {word}" for word, ends in groups]
    return f"of {plural(part.usual['n'], 'replicate')}, " + "; ".join(words)


def _range(first: int, last: int) -> str:
    """Neighbouring whole numbers: 3, or 2 to 5."""
    return str(first) if first == last else f"{first} to {last}"


def methods_paragraph(analysis: Analysis) -> str:
    """What was done, ready to paste into a paper, with the numbers filled in."""
    settings, counts, part = analysis.settings, analysis.counts, analysis.main
    sizes = sorted(set(counts.n.tolist()))
    span = str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}" if sizes else "no"
    each = " each" if counts.individuals > 1 else ""
    data = f"{plural(counts.individuals, 'individual')} had {span} binary replicates{each}"
    total = f"({plural(counts.replicates, 'replicate')}, {counts.positives:,} of them positive)"
    model = _model_sentence(part)
    estimates = _estimate_sentence(analysis, part)
    decisions, software = _decision_sentence(settings), _software(part)
    return " ".join([f"{data} {total}.", model, *estimates, *_caveats(analysis), decisions, software])


def _model_sentence(part: Part) -> str:
    """What is assumed of replicates."""
    if part.sources is not None:
        who = plural(len(part.sources), "source")
        return (
            f"They were given by {who}, each with error rates of its own (Hui & Walter, 1980). Each "
            f"individual has a latent status; {part.fit.calibration}."
        )
    return (
        "Each individual has a latent status; given it, replicates are independent and err with a common "
        f"false-positive or false-negative rate, {_region_words(part.prior)} (Royer-Carenzi, Lorenzo & "
        "Pudlo, 2026)."
    )


def _caveats(analysis: Analysis) -> list[str]:
    """What must not be left out beside the estimates: the warnings on what the data cannot tell."""
    untold = ("no-", "not-identifiable", "two-replicates", "unlearnt-", "at-half-", "at-chance")
    return [one.sentence for one in analysis.findings.warnings if one.name.startswith(untold)]


def _estimate_sentence(analysis: Analysis, part: Part) -> list[str]:
    """How the rates were estimated, and what came out."""
    settings, found = analysis.settings, part.headline
    sentences = [WAYS[part.deciding].sentence.format(prior=_prior_words(part.prior))]
    bounded = found["prevalence"].lower == found["prevalence"].lower
    level = f" ({settings.level:.0%} credible interval)" if bounded else ""
    own = with_interval(found["prevalence"])
    if analysis.shared is not None:
        sentences.append(
            f"{len(analysis.parts)} populations share the error rates, each with its own prevalence."
        )
        own = ", ".join(f"{one.name} {with_interval(one.headline['prevalence'])}" for one in analysis.parts)
    quality = ", ".join(f"{name} {with_interval(found[name])}" for name in ("sensitivity", "specificity"))
    whose = "one replicate" if part.sources is None else "a reading by a source like these"
    return [*sentences, f"The estimated prevalence{level} was {own}; {quality} for {whose}."]


def _decision_sentence(settings: Settings) -> str:
    """How scores became decisions."""
    return f"Decisions minimise the expected cost ({settings.loss})."


def _software(part: Part) -> str:
    """The program, and how exact its numbers are."""
    error = part.fit.error
    if part.fit.has_sources:
        how = f"largest split R̂ of the chains {part.fit.rhat:.3f}, numerical error below {error:.2f}"
        return f"Computed with binreps {__version__}; {how} of a posterior standard deviation."
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
    source, settings = analysis.source, analysis.settings
    words = ["binreps", "analyse", *map(_short, source.paths)]
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


def _short(path: str) -> str:
    """A path from where we are, if it lies below."""
    here, there = Path.cwd(), Path(path).absolute()
    return str(there.relative_to(here)) if there.is_relative_to(here) else path


def _chosen(settings: Settings) -> list[tuple[str, str]]:
    """The options that differ from the usual ones."""
    usual, loss = Settings(), settings.loss
    pairs = [(name, getattr(settings, name)) for name in ("model", "method")]
    chosen = [(name, value) for name, value in pairs if value != getattr(usual, name)]
    if settings.independent:
        chosen.append(("independent", ""))
    chosen += [("merge", listed(group)) for group in settings.merge]
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
    paths = [_short(path) for path in source.paths]
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
    return ", ".join(f"{name} {_plain_value(value)}" for name, value in covariates.items())


def _plain_value(value: Any) -> str:
    """A covariate as people say it: 34, not 34.000."""
    return f"{value:g}" if isinstance(value, float) and value == value else format_value(value)


def changed_words(part: Part) -> str:
    """How many answers covariates or sources change; nothing without them."""
    if "before" not in part.scored.columns:
        return ""
    weight = part.scored["weight"]
    pairs = zip(part.scored["decision"], part.scored["before"], weight, strict=True)
    changed = sum(many for after, before, many in pairs if after != before)
    what = MODELS[part.model].needs or ""
    told = {"source": "Without the sources"}.get(what, "Without the covariates")
    return f"{told} {changed:,} of {sum(weight):,} answers would be different."


def data_words(analysis: Analysis) -> str:
    """Who was measured, how often, and what was known of them."""
    counts, missing = analysis.counts, analysis.source.missing
    sizes = sorted(set(counts.n.tolist()))
    each = f", {_range(sizes[0], sizes[-1])} tests each" if sizes else ""
    lost = f", {plural(missing, 'result')} missing" if missing else ""
    known = int(counts.weight[counts.known != UNKNOWN].sum())
    status = f"The true status of {known:,} informed the fit" if known else "Nobody's true status was used"
    tests = f"{plural(counts.replicates, 'test')} ({counts.positives:,} positive)"
    return f"{plural(counts.individuals, 'individual')}, {tests}{each}{lost}. {status}."


def cost_words(loss: Loss) -> str:
    """What wrong and inconclusive answers cost."""
    both = loss.inconclusive if isinstance(loss.inconclusive, tuple) else (loss.inconclusive,)
    none = " or ".join(f"{cost:g}" for cost in both)
    wrong = f"A false alarm costs {loss.false_positive:g}, a miss {loss.false_negative:g}"
    return f"{wrong}, an inconclusive answer {none}."


def threshold_words(loss: Loss) -> tuple[str, str, str]:
    """At which chances the answer is negative, inconclusive (nothing where it never is) and positive."""
    lower, upper = (chance(value) for value in loss.thresholds)
    between = f"{lower} to {upper}" if loss.allows_inconclusive else ""
    return f"below {lower}", between, f"above {upper}" if between else f"from {upper}"


def method_name(analysis: Analysis) -> str:
    """The name of what decides."""
    return WAYS[analysis.main.deciding].name


def retrain_words(sources: Table) -> str:
    """Which sources to talk to, and why; nothing if all read alike.

    Examples
    --------
    >>> retrain_words(Table({"source": ["ann", "bob"], "verdict": ["", "calls too much"]}))
    'To talk to, or retrain: bob (calls too much).'
    """
    told = [f"{row['source']} ({row['verdict']})" for row in sources if row["verdict"]]
    more = f" and {len(told) - _TOLD:,} more" if len(told) > _TOLD else ""
    return f"To talk to, or retrain: {', '.join(told[:_TOLD])}{more}." if told else ""


def model_rows(comparison: Comparison) -> Table:
    """The models that were tried: how much better each predicts, and what it changes."""
    rows = list(comparison.table())
    columns: dict[str, list[Any]] = {"model": [MODELS[row["model"]].name for row in rows]}
    columns["predicts better by"] = [_better(row, i) for i, row in enumerate(rows)]
    columns["answers changed"] = [row["changed"] for row in rows]
    columns["speaks against it"] = [row["against"] or "–" for row in rows]
    return Table(columns)


def _better(row: dict[str, Any], place: int) -> str:
    """The difference from the simplest model, with its standard error."""
    if not place:
        return "–"
    tie = "" if row["outright"] else " (tie)" if row["difference"] > -max(4, 2 * row["se"]) else " (worse)"
    return f"{round(row['difference'], 1) + 0:.1f} ± {row['se']:.1f}{tie}"


def chosen_words(comparison: Comparison, door: str) -> str:
    """Which model is used, and how to use another."""
    used, first = MODELS[comparison.chosen], comparison.simplest.model
    others = [one for one in comparison.tried if one.model != used.id]
    best = max(others, key=lambda one: one.left_out.total, default=comparison.simplest).model
    wanted = first if used.id != first else best
    said = f"used: {used.name}; another: {Action('model', wanted).words(door)}"
    refused = [f"not tried: {MODELS[model].name}, as {why}" for model, why in comparison.refused.items()]
    return "; ".join([said, *refused])
