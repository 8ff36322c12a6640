"""A fit as JSON: cells, prior, method and results. Loading fits again, in milliseconds, and compares.

No pickle and no grids: the file can be read by a person, a database or another program, and cannot run code.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from binreps._version import __version__
from binreps.counts import UNKNOWN, CountTable, entries
from binreps.covariates import CovariateTable
from binreps.errors import BinrepsError, DataError, OptionError
from binreps.fits.base import check_fit
from binreps.model import NAMES, Prior
from binreps.options import kinds_checked
from binreps.run.models import WAYS
from binreps.run.save_covariates import (
    agree,
    check_columns,
    covariates_from_list,
    covariates_to_list,
    formula_from_dict,
    formula_to_dict,
)
from binreps.run.save_sources import sources_from_dict, sources_to_dict
from binreps.tables.files import PathLike
from binreps.tables.write import replacing

_MOST_CELLS = 10_000  # of a posterior that is integrated again; beyond, loading takes minutes
SCHEMA, VERSION = "binreps fit", 2  # 2: the prior says whether it is better than chance


@kinds_checked
def save_fit(fit: Any, path: PathLike) -> Path:
    """Write a fit as JSON; the file appears whole or not at all.

    Loading fits again: a posterior of more than 10,000 cells (n, s), which takes minutes, is refused.

    Examples
    --------
    >>> import tempfile
    >>> from binreps.fits.bayes import fit_bayes
    >>> fit = fit_bayes(CountTable([3, 3, 3], [0, 1, 3], [60, 9, 31]))
    >>> load_fit(save_fit(fit, Path(tempfile.mkdtemp(), "fit.json"))) == fit
    True
    """
    content = fit_to_dict(fit)
    _check_size(content)
    write_json(content, path)
    return Path(path)


@kinds_checked
def load_fit(path: PathLike) -> Any:
    """The fit that `save_fit` wrote, or that `summary.json` of an analysis holds, fitted again.

    Raises
    ------
    DataError
        If the file is not such a file, comes from a newer version, or holds results that do not follow from
        its own counts and prior.
    """
    content = read_json(path)
    if isinstance(content, dict) and isinstance(content.get("fit"), dict):
        content = content["fit"]
    try:
        return fit_from_dict(content)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


def fit_to_dict(fit: Any) -> dict[str, Any]:
    """A fit as plain values, ready for JSON."""
    check_fit(fit)
    method = WAYS.get(fit.kind)
    if method is None:
        known = ", ".join(WAYS)
        raise OptionError(f"fits by the methods {known} can be saved, got {type(fit).__name__}")
    content: dict[str, Any] = {
        "schema": SCHEMA,
        "version": VERSION,
        "binreps": __version__,
        "method": method.id,
        **method.extras(fit),
    }
    if fit.has_sources:
        return {**content, **sources_to_dict(fit)}
    if method.takes_prior:
        content["prior"] = prior_to_dict(fit.prior)
    parts = fit.parts
    if fit.records is not None:
        content["records"] = _saved_records(fit.records)
    elif None in parts:
        content["cells"] = _cells(fit.counts)
    else:
        content["populations"] = [
            {"name": _population_name(name), **_cells(one.counts)} for name, one in parts.items()
        ]
    return {**content, "results": _results(fit)}


def prior_to_dict(prior: Prior) -> dict[str, Any]:
    """A prior as plain values: the keywords of `Prior`."""
    shapes = {name: list(each) for name, each in zip(NAMES, prior, strict=True)}
    return {**shapes, "better_than_chance": prior.better_than_chance}


def fit_from_dict(content: Any) -> Any:
    """The fit that `fit_to_dict` described, made again and compared."""
    _check_schema(content)
    method = WAYS[content["method"]]
    try:
        _check_size(content)
        if method.id == "sources":
            return sources_from_dict(content)
        how: dict[str, Any] = {"prior": Prior(**content["prior"])} if method.takes_prior else {}
        how |= {name: tuple(content[name]) for name in content.keys() & {"intraclass"}}
        how |= {name: content[name] for name in content.keys() & {"slope_sd", "tol"}}
        fit = method.fit(_data(content), **how)
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise DataError(f"the fit is incomplete or damaged ({type(error).__name__}: {error})") from None
    except BinrepsError as error:
        raise DataError(f"the fit cannot be made again: {error}") from None
    _compare(content.get("results"), _results(fit))
    return fit


def _check_schema(content: Any) -> None:
    """Refuse what is no fit, or one of a version that this program does not know."""
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        raise DataError("this is not a fit saved by binreps")
    version = content.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise DataError(f"version must be a whole number ≥ 1, got {version!r}")
    if version > VERSION:
        made = content.get("binreps", "a newer version")
        newer = f"the fit was saved by binreps {made} in format {version}"
        raise DataError(f"{newer}, and this version reads up to format {VERSION}; upgrade binreps")
    method = content.get("method")
    if not isinstance(method, str) or method not in WAYS:
        raise DataError(f"method must be one of {', '.join(WAYS)}, got {method!r}")


def _check_size(content: dict[str, Any]) -> None:
    """Refuse a posterior that would be long in the making."""
    if not WAYS[content["method"]].takes_prior:
        return
    cells = sum(len(one["n"]) for one in content.get("populations") or [content.get("cells") or {"n": ()}])
    if cells > _MOST_CELLS:
        rule = f"a saved fit has at most {_MOST_CELLS:,} cells (n, s), as loading it fits again"
        raise DataError(f"{rule}, got {cells:,}; keep the data and fit them anew")


def _cells(counts: CountTable) -> dict[str, list[Any]]:
    """The columns of a count table."""
    columns = {name: getattr(counts, name).tolist() for name in ("n", "s", "weight")}
    if counts.has_known:
        columns["known"] = [None if status == UNKNOWN else status for status in counts.known.tolist()]
    return columns


def _data(content: dict[str, Any]) -> Any:
    """The counts of a saved fit, or those of its populations."""
    if content["method"] == "covariates":
        return _loaded_records(content["records"])
    if content["method"] != "populations":
        return _count_table(content["cells"])
    populations = {one["name"]: _count_table(one) for one in content["populations"]}
    if len(populations) < len(content["populations"]):
        raise DataError("two populations have the same name")
    return populations


def _saved_records(records: CovariateTable) -> dict[str, Any]:
    """The rows of individuals with covariates, and what each covariate is."""
    covariates = covariates_to_list(records, records.values)
    columns = {name: getattr(records, name).tolist() for name in ("n", "s", "weight")}
    if np.any(records.known != UNKNOWN):
        columns["known"] = [None if status == UNKNOWN else status for status in records.known.tolist()]
    content = {**columns, "covariates": covariates}
    return content if records.formula is None else content | {"formula": formula_to_dict(records)}


def _loaded_records(content: dict[str, Any]) -> CovariateTable:
    """The individuals with covariates that were saved."""
    known = None if content.get("known") is None else np.array(content["known"], object)
    rows = entries(content["n"], content["s"], content["weight"], known)
    covariates = covariates_from_list(content["covariates"], rows[0].size)
    formula = content.get("formula")
    found = CovariateTable.encoded(rows, *covariates, formula_from_dict(formula))
    check_columns(found, formula)
    return found


def _count_table(cells: dict[str, Any]) -> CountTable:
    """The counts from their columns."""
    known = None if cells.get("known") is None else np.array(cells["known"], object)
    return CountTable(cells["n"], cells["s"], cells["weight"], known)


def _population_name(name: object) -> str | int:
    """A name that JSON can hold."""
    if not isinstance(name, str | int) or isinstance(name, bool):
        raise OptionError(f"populations with names of text or whole numbers can be saved, got {name!r}")
    return name


def _results(fit: Any) -> dict[str, Any]:
    """The numbers that a fit made again must give."""
    results = {name: _plain(rate) for name, rate in zip(NAMES, fit.rates, strict=True)}
    if not math.isnan(fit.log_evidence):
        results["log_evidence"] = fit.log_evidence
    return results


def _plain(value: Any) -> Any:
    """Floats, alone or in lists, with None for NaN."""
    if np.ndim(value):
        return [_plain(each) for each in value]
    return None if math.isnan(value) else float(value)


def _compare(saved: Any, found: dict[str, Any]) -> None:
    """Refuse results that do not follow from the counts and the prior beside them."""
    if not isinstance(saved, dict):
        raise DataError("the fit has no results")
    for name, value in found.items():
        old, new = (np.array(each, dtype=object).ravel().tolist() for each in (saved.get(name), value))
        if len(old) != len(new) or not all(map(agree, old, new)):
            rule = "its results must follow from its counts and prior"
            found_now = f"{name} = {saved.get(name)} where fitting gives {value}"
            raise DataError(f"{rule}, got {found_now}; the file was changed")


def write_json(content: Any, path: PathLike) -> None:
    """Write JSON with full precision, whole or not at all."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1)
    with replacing(path) as part:
        part.write_text(text + "\n", encoding="utf-8")


def read_json(path: PathLike) -> Any:
    """The content of a JSON file, or of summary.json in a folder of results."""
    if (Path(path) / "summary.json").is_file():
        path = Path(path) / "summary.json"
    if Path(path).exists() and not Path(path).is_file():  # reading a pipe or a device may never end
        raise DataError(f"{path} is not a file that can be read")
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"), parse_constant=_no_constant)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not JSON ({error})") from None


def _no_constant(name: str) -> Any:
    """Refuse NaN and Infinity, which JSON does not have."""
    raise ValueError(f"{name} is no JSON number")
