"""A fit by source as plain values for JSON: who said what, the prior, and draws instead of a second fit.

Sampling again would take as long as the first time, so a part of the draws is kept, in base64, and what is
worth reading beside it in numbers.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from binreps.errors import DataError, OptionError
from binreps.fits.sampled.calibration import Calibration
from binreps.fits.sampled.posterior import SourcesPosterior
from binreps.fits.sampled.prior import SourcePrior
from binreps.fits.sampled.run import Sampled, Side
from binreps.fits.sources import SourcesFit
from binreps.notes import Note
from binreps.people import People, study_of
from binreps.readings import Readings
from binreps.run.save_covariates import covariates_from_list, covariates_to_list

_KEPT = 2**20  # numbers of all draws that a file keeps: 6 MB
_STATISTICS = ("mean", "sd", "error", "rhat", "effective")
_COLUMNS = {"start": "<i8", "code": "<i4", "weight": "<i8", "known": "|i1"}


def sources_to_dict(fit: SourcesFit) -> dict[str, Any]:
    """What a fit by source is made again from, and its results to read."""
    readings, sampled = fit.readings, fit.posterior.sampled
    for name in fit.sources:
        if not isinstance(name, str | int) or isinstance(name, bool):
            raise OptionError(f"sources with names of text or whole numbers can be saved, got {name!r}")
    logs = sampled.logs
    every = -(-logs.size // _KEPT)
    columns: dict[str, Any] = {
        name: _packed(getattr(readings, name), kind) for name, kind in _COLUMNS.items()
    }
    columns["times"] = None if readings.times is None else _packed(readings.times, "<i8")
    people, side = readings.people, sampled.side
    return {
        "prior": asdict(fit.prior),
        "tol": fit.tol,
        "calibration": asdict(fit.calibration),
        "sources": list(fit.sources),
        "merge": [list(group) for group in fit.merge],
        "readings": columns,
        "people": None if people is None else _saved_people(people),
        "notes": [asdict(note) for note in fit.notes],
        "sampled": {
            "draws": _packed(np.maximum(logs[..., ::every], np.finfo(np.float32).min), "<f4"),
            "sweeps": sampled.sweeps,
            "refused": sampled.refused,
            **{name: _finite(getattr(sampled, name)) for name in _STATISTICS},
        },
        "side": None
        if side is None
        else {
            "draws": _packed(side.draws[..., ::every], "<f4"),
            **{name: _finite(getattr(side, name)) for name in _STATISTICS},
        },
        "results": {"prevalence": float(sampled.mean[0]), "sources": _rows(fit)},
    }


def _rows(fit: SourcesFit) -> list[dict[str, Any]]:
    """The estimates of each source, to read."""
    return [
        {"source": name, "false_positive": float(p), "false_negative": float(q)}
        for name, p, q in zip(fit.sources, fit.rates.false_positive, fit.rates.false_negative, strict=True)
    ]


def _finite(values: Any) -> list[float | None]:
    return [float(value) if np.isfinite(value) else None for value in values]


def _saved_people(people: People) -> dict[str, Any]:
    """What else is known of the individuals."""
    if people.study.formula is not None:
        raise OptionError("a fit by source with a formula cannot be saved; name its covariates instead")
    covariates = covariates_to_list(people.study, people.values)
    return {"by_population": people.by_population, "covariates": covariates}


def sources_from_dict(content: Mapping[str, Any]) -> SourcesFit:
    """The fit that `sources_to_dict` described."""
    prior: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in content["prior"].items()
    }
    sources = tuple(content["sources"])
    readings = _readings(sources, content["readings"])
    if content["people"] is not None:
        own = content["people"]
        covariates, values = covariates_from_list(own["covariates"], len(readings))
        study = study_of(readings.weight, covariates, values)
        readings = readings._with(people=People(study, tuple(values), bool(own["by_population"])))
    sampled = _sampled(len(sources), content["sampled"], _side(readings.people, content["side"]))
    fit = SourcesFit(
        readings,
        SourcePrior(**prior),
        SourcesPosterior(sources, sampled, _calibration(content["calibration"])),
        float(content["tol"]),
        tuple(Note(**note) for note in content["notes"]),
        tuple(tuple(group) for group in content["merge"]),
    )
    if content.get("results") != {"prevalence": float(fit.posterior.mean[0]), "sources": _rows(fit)}:
        raise DataError("the results do not follow from the draws: the file was changed")
    return fit


def _calibration(content: Mapping[str, Any]) -> Calibration:
    """As how much each reading counts, and what known statuses change."""
    found = Calibration(**{name: float(value) for name, value in content.items()})
    if not (0 < found.discount <= 1 and found.slope > 0 and np.isfinite([found.shift, found.slope]).all()):
        raise DataError(f"the calibration of the fit must have a discount in (0, 1], got {found}")
    return found


def _readings(sources: tuple[Any, ...], columns: Mapping[str, Any]) -> Readings:
    """Who said what, checked: a file may be damaged."""
    if len(set(sources)) < len(sources):
        raise DataError("two sources have the same name")
    found = {name: _unpacked(name, columns[name], kind) for name, kind in _COLUMNS.items()}
    times = None if columns["times"] is None else _unpacked("times", columns["times"], "<i8")
    start, code = found["start"], found["code"]
    good = (
        start.size == found["weight"].size + 1 == found["known"].size + 1
        and start[0] == 0
        and start[-1] == code.size
        and bool(np.all(np.diff(start) >= 0))
        and bool(np.all((code >= 0) & (code < 2 * len(sources))))
        and bool(np.all(found["weight"] >= 0))
        and bool(np.isin(found["known"], (-1, 0, 1)).all())
        and (times is None or (times.size == code.size and bool(np.all(times > 0))))
    )
    if not good:
        raise DataError("the readings of the fit do not fit together")
    return Readings._of(sources=sources, times=times, **found)


def _side(people: People | None, content: Mapping[str, Any] | None) -> Side | None:
    """What was learned of populations or covariates, of as many coefficients as there are."""
    if people is None or content is None:
        return None
    draws, statistics = _unpacked("draws", content["draws"], "<f4"), _statistics(content)
    size = people.rows.shape[1]
    right = draws.ndim == 3 and len(draws) == size and np.isfinite(draws).all()
    if not right or any(values.shape != (size,) for values in statistics.values()):
        raise DataError(f"the fit must have draws of {size} coefficients, got shape {draws.shape}")
    return Side(draws, **statistics)


def _statistics(content: Mapping[str, Any]) -> dict[str, Any]:
    """Mean, sd and the like of every parameter."""
    return {
        name: np.array([np.nan if value is None else value for value in content[name]], float)
        for name in _STATISTICS
    }


def _sampled(sources: int, content: Mapping[str, Any], side: Side | None) -> Sampled:
    """The draws and their statistics, of as many parameters as there are."""
    logs, statistics = _unpacked("draws", content["draws"], "<f4"), _statistics(content)
    size = 2 * sources + 5
    right = logs.ndim == 4 and logs.shape[:2] == (size, 2) and min(logs.shape[2:]) > 0
    if not right or any(values.shape != (size,) for values in statistics.values()):
        raise DataError(f"the fit must have draws of {size} parameters, got shape {logs.shape}")
    if not np.all(logs <= 0):
        raise DataError("the draws of the fit are no logarithms of rates")
    mean = statistics["mean"]
    if not np.all((mean >= 0) & (mean <= 1)):
        raise DataError("the rates of the fit must be between 0 and 1")
    if side is not None and side.draws.shape[1:] != logs.shape[2:]:
        raise DataError("the fit must have as many draws of coefficients as of rates")
    how: dict[str, Any] = {"sweeps": int(content["sweeps"]), "refused": float(content["refused"])}
    return Sampled(logs, **how, **statistics, side=side)


def _packed(array: NDArray[Any], kind: str) -> dict[str, Any]:
    """An array as its shape and its bytes in base64."""
    data = np.ascontiguousarray(array, kind)
    return {"shape": list(data.shape), "base64": base64.b64encode(data.tobytes()).decode("ascii")}


def _unpacked(name: str, packed: Mapping[str, Any], kind: str) -> NDArray[Any]:
    """The array that `_packed` wrote."""
    try:
        data = np.frombuffer(base64.b64decode(packed["base64"], validate=True), kind)
        shape = [int(each) for each in packed["shape"]]
        return data.reshape(shape).astype(np.dtype(kind).newbyteorder("="))
    except (ValueError, TypeError):
        raise DataError(f"{name} of the fit cannot be read") from None
