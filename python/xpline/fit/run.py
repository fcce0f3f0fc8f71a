"""From a data set and a platform to fitted platforms and an account of the fit."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from xpline import dataset
from xpline.cases import Platforms
from xpline.fit import outcome, write
from xpline.fit.members import members
from xpline.fit.objective import Objective, Predicted, misfit
from xpline.fit.parameters import Parameter, read_parameters, select
from xpline.fit.plan import Plan, enough, make_plan, starts
from xpline.fit.search import Found, Vector, probes, search
from xpline.fit.simulate import Simulator, Values
from xpline.fit.targets import Target
from xpline.validate.cache import Cache

#: Configurations that are sampled unless asked otherwise.
SAMPLE = 400

#: A value this close to a bound, as a share of the way between the bounds, is at it.
_AT_BOUND = 0.01


def fit(
    directory: str | Path,
    platforms: Sequence[str],
    out: str | Path,
    *,
    only: Sequence[str] = (),
    parameters: str | Path | None = None,
    sample: int = SAMPLE,
    folds: int = 5,
    budget: int | None = None,
    seed: int = 1,
    jobs: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> outcome.Outcome:
    """Fit values of the first of ``platforms`` to the data set in ``directory``, and write platforms that have them.

    In place of the published layout, ``directory`` may hold results that were measured on a host, or be a file of them.

    ``platforms`` are names or files; further ones stand for their kind of rows (see :mod:`xpline.fit.members`).
    ``only`` are keys or sections to fit; ``parameters`` is a file of what may be fitted in place of xpline's own.
    ``budget`` is how many runs of the sample one fit may take. Runs are kept beside ``out`` (``.cache`` appended), from
    which an interrupted fit goes on. ``on_progress`` is told how many points have run, of about how many.
    """
    out = Path(out)
    of_host = dataset.is_results(Path(directory))
    group = members(platforms, of_host=of_host)
    own = "fit-host.toml" if of_host else "fit.toml"
    chosen = starts(group, select(read_parameters(parameters, own), only))
    runner = Platforms(files={member.name: member.file for member in group.all})
    plan = make_plan(group, chosen, dataset.read_tables(directory), runner, sample, folds, seed)
    budget = enough(budget, plan)
    files = write.paths(out, group, plan.members)
    with Cache(out.with_name(out.name + ".cache"), runner) as cache:
        progress = _Progress(on_progress, folds + 1, budget * len(plan.targets))
        simulator = Simulator(
            group, [parameter.key for parameter in plan.parameters], runner, cache, jobs, progress.ran
        )
        account = _Account(plan, simulator)
        found = []
        for fold in (None, *range(folds)):
            found.append(search(plan.parameters, plan.start, account.deviations(fold), budget))
            progress.fitted()
        result = account.outcome(
            found, dataset=Path(directory).resolve().name, platform=group.base.file, files=list(files.values())
        )
    command = _command(result.dataset, platforms, out, only, parameters, sample, folds, seed, budget)
    values = {
        one.key: write.Value(
            one.after, f"fit: {one.before} before, {one.low} to {one.high} allowed; {result.dataset}; {command}"
        )
        for one in result.parameters
    }
    write.write(files, group, values, result.dataset)
    return result


class _Account:
    """What the searches need to know, and what is to be told of them."""

    def __init__(self, plan: Plan, simulator: Simulator) -> None:
        self._plan = plan
        self._simulator = simulator
        self._objective = Objective(plan.targets)

    def deviations(self, fold: int | None) -> Callable[..., list[np.ndarray]]:
        """Deviations of all targets but those of a fold, as :mod:`xpline.fit.search` asks for them."""
        seen = np.array([fold != one for one in self._plan.folds])
        both = np.concatenate([seen, seen])

        def of(asked: Sequence[tuple[Vector, Parameter | None]]) -> list[np.ndarray]:
            requests = [(self._values(values), self._told(parameter, seen)) for values, parameter in asked]
            return [self._objective.deviations(one)[both] for one in self._simulator.predict(requests)]

        return of

    def outcome(self, found: Sequence[Found], dataset: str, platform: str, files: list[Path]) -> outcome.Outcome:
        """The account of the fit to all targets, the first of ``found``, and of those without a fold each."""
        plan, objective = self._plan, self._objective
        before, *all_found = self._simulator.predict([({}, plan.targets), *self._at(found)])
        # A search ends in the nearest minimum; one without a fold may have come by a deeper one.
        misfits = [misfit(objective.deviations(one)) for one in all_found]
        best = misfits.index(min(misfits))
        after, without = all_found[best], all_found[1:]
        fold_of = np.array(plan.folds)
        bandwidth, ewr = (
            outcome.Sides(fold_of, measure(before), np.array([measure(one) for one in without]))
            for measure in (objective.errors, objective.ewr_errors)
        )
        return outcome.Outcome(
            dataset=dataset,
            platform=platform,
            files=files,
            parameters=self._parameters(found[best].values, found[1:], after),
            available=plan.available,
            before=outcome.errors(bandwidth.before, ewr.before),
            after=outcome.errors(objective.errors(after), objective.ewr_errors(after)),
            misfit_before=misfit(objective.deviations(before)),
            misfit_after=misfits[best],
            folds=[outcome.fold(fold_of == fold, fold, bandwidth, ewr) for fold in range(len(without))],
            fitted=outcome.errors(bandwidth.fitted, ewr.fitted),
            left_out=outcome.errors(bandwidth.left_out, ewr.left_out),
            ratio=outcome.ratio(bandwidth.fitted, bandwidth.left_out),
            runs=[one.runs for one in found],
            converged=[one.converged for one in found],
            notes=plan.notes,
        )

    def _parameters(self, best: Vector, without: Sequence[Found], here: Predicted) -> list[outcome.Fitted]:
        plan = self._plan
        moved = probes(plan.parameters, best)
        requests = [(self._values(values), plan.told(one)) for values, one in zip(moved, plan.parameters, strict=True)]
        fitted = []
        for i, (parameter, there) in enumerate(zip(plan.parameters, self._simulator.predict(requests), strict=True)):
            change = np.nanmean(np.abs(np.log(there.bandwidth / here.bandwidth)))
            relative = abs(math.log(moved[i][i] / best[i])) if min(moved[i][i], best[i]) > 0 else None
            fitted.append(
                outcome.Fitted(
                    key=parameter.key,
                    before=parameter.text(plan.start[i]),
                    after=parameter.text(best[i]),
                    low=parameter.text(parameter.low),
                    high=parameter.text(parameter.high),
                    at_bound=not _AT_BOUND < parameter.position(best[i]) < 1 - _AT_BOUND,
                    sensitivity=float(change / relative) if relative else None,
                    without_fold=[parameter.text(one.values[i]) for one in without],
                )
            )
        return fitted

    def _at(self, found: Sequence[Found]) -> list[tuple[Values, list[Target]]]:
        return [(self._values(one.values), self._plan.targets) for one in found]

    def _values(self, values: Vector) -> Values:
        parameters = zip(self._plan.parameters, values, strict=True)
        return {parameter.key: parameter.text(value) for parameter, value in parameters}

    def _told(self, parameter: Parameter | None, seen: np.ndarray) -> list[Target | None]:
        told = self._plan.told(parameter) if parameter else self._plan.targets
        return [target if one else None for target, one in zip(told, seen, strict=True)]


class _Progress:
    """How many points have run, and about how many will: a fit may end before its budget, as those before it did."""

    def __init__(self, report: Callable[[int, int], None] | None, fits: int, points: int) -> None:
        self._report = report
        self._fits = fits
        self._points = points
        self._done = 0
        self._finished = 0

    def ran(self) -> None:
        """A point has run."""
        self._done += 1
        if self._report:
            each = self._done / self._finished if self._finished else self._points
            self._report(self._done, max(self._done, round(each * self._fits)))

    def fitted(self) -> None:
        """A fit has ended."""
        self._finished += 1


def _command(
    name: str,
    platforms: Sequence[str],
    out: Path,
    only: Sequence[str],
    parameters: str | Path | None,
    sample: int,
    folds: int,
    seed: int,
    budget: int,
) -> str:
    """The command that finds the same values, as seen from the folder of the data set and of the files."""
    words = ["xpline", "fit", "--dataset", name]
    for option, values in (("--platform", platforms), ("--only", only)):
        words += [word for value in values for word in (option, value)]
    words += ["--parameters", str(parameters)] if parameters else []
    numbers = {"--sample": sample, "--folds": folds, "--seed": seed, "--budget": budget}
    words += [word for option, number in numbers.items() for word in (option, str(number))]
    words += ["--out", out.name]
    return shlex.join(words)
