"""What a fit is about to do: which values it moves from where, and which targets tell about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xpline import dataset
from xpline.cases import Platforms, refusal
from xpline.errors import XplineError
from xpline.fit import quantity
from xpline.fit.members import Members
from xpline.fit.parameters import Parameter
from xpline.fit.search import Vector
from xpline.fit.targets import Target, folds, sample, targets
from xpline.platform import Platform

#: Steps of the search that the usual budget allows: a run for each parameter, and one or two for the step itself.
_STEPS = 5


@dataclass(frozen=True)
class Plan:
    """The parameters of a fit and what they start from; a sample of the targets, and the fold of each."""

    parameters: tuple[Parameter, ...]
    start: Vector
    targets: list[Target]
    folds: list[int]
    #: For each parameter, whether each target tells about it.
    tells: dict[str, list[bool]]
    #: Configurations that the sample was taken from.
    available: int
    notes: list[str]

    @property
    def members(self) -> list[str]:
        """Names of the platforms that the targets run on."""
        return sorted({target.platform for target in self.targets})

    def told(self, parameter: Parameter) -> list[Target | None]:
        """The targets, those that do not tell about the parameter replaced by None."""
        return [
            target if tells else None for target, tells in zip(self.targets, self.tells[parameter.key], strict=True)
        ]


def starts(members: Members, chosen: Sequence[Parameter]) -> dict[Parameter, float]:
    """The chosen parameters that the base has, with the values they start from, which must be within bounds."""
    base = members.base
    entries = {entry.key: entry for entry in base.platform.show()}
    found = {}
    for parameter in chosen:
        if parameter.key not in entries:
            continue
        entry = entries[parameter.key]
        bounds = f"{parameter.text(parameter.low)} to {parameter.text(parameter.high)}"
        start = _number(entry.value, parameter.unit)
        if start is None:
            raise XplineError(
                f"{parameter.key} = {entry.value} ({entry.origin}) is not of the kind of its bounds, {bounds}; "
                "mend the bounds"
            )
        if not parameter.low <= start <= parameter.high:
            raise XplineError(
                f"{parameter.key} = {entry.value} ({entry.origin}) is outside of its bounds for fitting, {bounds}; "
                "start from another value, or give wider bounds with --parameters"
            )
        for value in (parameter.low, parameter.value(0.5), parameter.high):
            try:
                Platform(base.file, set=dict(base.fixed) | {parameter.key: parameter.text(value)})
            except XplineError as error:
                raise XplineError(f"bounds of {parameter.key} for fitting, {bounds}: {error}") from error
        found[parameter] = start
    if not found:
        raise XplineError(
            f"platform {base.file} has none of the parameters to fit: {', '.join(one.key for one in chosen)}; "
            "choose others with --only"
        )
    return found


def make_plan(
    members: Members,
    starts: Mapping[Parameter, float],
    tables: dataset.Tables,
    platforms: Platforms,
    size: int,
    fold_count: int,
    seed: int,
) -> Plan:
    """Sample what tells about at least one of the parameters, and divide it into folds."""
    sharing = {parameter: members.sharing(parameter.key) for parameter in starts}
    involved = set().union(*sharing.values())
    cases = {row.case for row in dataset.plan(tables) if row.case and row.case.platform in involved}
    refused = {case: reason for case in cases if (reason := refusal(case, platforms))}
    found, reasons = targets(tables, refused)

    def tells(parameter: Parameter, target: Target) -> bool:
        given = any(override.split("=")[0] == parameter.key for case in target.cases for override in case.overrides)
        shared = target.platform in sharing[parameter]
        return shared and not given and parameter.told_by(target.file, target.configuration)

    telling = [target for target in found if any(tells(parameter, target) for parameter in starts)]
    sampled = sample(telling, size, seed)
    by_key = {parameter.key: [tells(parameter, target) for target in sampled] for parameter in starts}
    parameters = tuple(parameter for parameter in starts if any(by_key[parameter.key]))
    silent = [parameter.key for parameter in starts if parameter not in parameters]
    fold_of = folds(sampled, fold_count)
    if len(sampled) < 2 * fold_count or len(set(fold_of)) < fold_count:
        raise XplineError(
            f"the data set has {len(telling)} configurations that tell about {', '.join(p.key for p in starts)}, "
            f"and the sample {len(sampled)} of them; {fold_count} folds need at least {2 * fold_count}: "
            "take fewer folds or a larger sample, or fit other parameters"
        )
    notes = [f"{key} is not fitted: no row tells about it" for key in silent]
    notes += [f"{rows} rows are not used: {reason}" for reason, rows in reasons.items()]
    start = tuple(starts[parameter] for parameter in parameters)
    return Plan(parameters, start, sampled, fold_of, by_key, len(telling), notes)


def enough(budget: int | None, plan: Plan) -> int:
    """The budget, or one that allows a few steps; refused where it does not allow one."""
    one_step = len(plan.parameters) + 2
    if budget is None:
        return _STEPS * one_step
    if budget < one_step:
        raise XplineError(
            f"--budget {budget}: one step of a fit of {len(plan.parameters)} parameters takes {one_step} runs of the "
            "sample; allow for several steps, or fit fewer parameters"
        )
    return budget


def _number(text: str, unit: str) -> float | None:
    """A value of a platform as a number of ``unit``; None when it is not of that kind."""
    parsed = quantity.parse(text)
    return parsed and quantity.convert(*parsed, unit)
