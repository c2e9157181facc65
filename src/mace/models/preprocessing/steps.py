"""Preprocessing steps of scikit-learn: for each, which input every output column reads, and what is known of it.

One rule a class, one line in ``STEPS``. A rule is given the fitted step and returns its output columns; the values
always come from the fitted step itself. ``REFUSED_STEPS`` says of well-known steps why they are refused.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from mace.exact import Floats, product
from mace.models.networks.rows import Tensor
from mace.models.preprocessing.of_dates import OF_DATES, of_dates
from mace.models.preprocessing.products import polynomial_features
from mace.models.preprocessing.traced import MONOTONE, Error, Lower, Shape, Step, Traced, floats_of
from mace.space import Categorical, Ordinal

Rule = Callable[[Step], list[Traced]]

INEXACT = 16
"""In units of roundoff: a generous bound on the relative error of a function of numpy or scipy (they promise four units in the last place
or better)."""


BOUNDS = 1e-7
"""How near to the ends of the quantiles a QuantileTransformer takes a value for the end."""


# ---- affine steps


def _affine(step: Step, lower: Callable[[int, Lower], Lower]) -> list[Traced]:
    """Return outputs that are factor·input + shift, by correctly rounded operations."""
    return [
        step.output(i, i, source.name, shape=MONOTONE, lower=lower(i, _below(source)))
        for i, source in enumerate(step.inputs)
    ]


def _below(source: Traced) -> Lower:
    return lambda ground: ground.of(source)


def _centred(step: Step, centre: Any, scale: Any) -> list[Traced]:
    """Return (x - centre) / scale; either may be absent."""

    def lower(i: int, below: Lower) -> Lower:
        def made(ground: Any) -> Tensor:
            tensor = below(ground)
            if centre is not None:
                tensor = ground.lowering.offset(tensor, -centre[i])
            return tensor if scale is None else ground.lowering.divide(tensor, scale[i])

        return made

    return _affine(step, lower)


def standard_scaler(step: Step) -> list[Traced]:
    """StandardScaler: (x - mean) / scale."""
    return _centred(step, step.fitted.mean_ if step.fitted.with_mean else None, step.fitted.scale_)


def robust_scaler(step: Step) -> list[Traced]:
    """RobustScaler: (x - center) / scale."""
    fitted = step.fitted
    return _centred(
        step, fitted.center_ if fitted.with_centering else None, fitted.scale_ if fitted.with_scaling else None
    )


def max_abs_scaler(step: Step) -> list[Traced]:
    """MaxAbsScaler: x / scale, clipped where it says so."""
    outputs = _centred(step, None, step.fitted.scale_)
    return [_clipped(output, -1.0, 1.0) for output in outputs] if getattr(step.fitted, "clip", False) else outputs


def min_max_scaler(step: Step) -> list[Traced]:
    """MinMaxScaler: x * scale + min, clipped where it says so."""
    fitted = step.fitted

    def lower(i: int, below: Lower) -> Lower:
        return lambda ground: ground.lowering.offset(
            ground.lowering.scale(below(ground), fitted.scale_[i]), fitted.min_[i]
        )

    outputs = _affine(step, lower)
    if not fitted.clip:
        return outputs
    return [
        _clipped(output, *(step.as_held(i, end) for end in fitted.feature_range)) for i, output in enumerate(outputs)
    ]


def _clipped(output: Traced, low: float, high: float) -> Traced:
    inner = output.lower
    assert inner is not None
    return replace(output, lower=lambda ground: ground.lowering.clip(inner(ground), low, high))


def identity(step: Step) -> list[Traced]:
    """Return the inputs as they are."""
    return list(step.inputs)


# ---- steps and levels


FLAT = Shape(is_flat=True)
"""A column that has the same value everywhere."""


def _points(points: Any, *, is_flat: bool = False) -> Shape:
    """Return the shape of a column that may jump or turn at these numbers only."""
    ends = {end for point in points for end in (math.nextafter(point, -math.inf), float(point))}
    return Shape(cuts=tuple(sorted(ends)), is_flat=is_flat)


def binarizer(step: Step) -> list[Traced]:
    """Binarizer: whether x is above a threshold."""
    return _shaped(step, lambda i: Shape(cuts=(step.as_held(i, step.fitted.threshold),), is_flat=True))


def discretizer(step: Step) -> list[Traced]:
    """KBinsDiscretizer: the number of edges that are at most x, as it is or one-hot."""
    outputs: list[Traced] = []
    for i, source in enumerate(step.inputs):
        edges = [math.nextafter(float(edge), -math.inf) for edge in step.fitted.bin_edges_[i][1:-1]]
        cut = Shape(cuts=tuple(sorted(set(edges))), is_flat=True)
        if step.fitted.encode == "ordinal":
            outputs.append(step.output(i, i, source.name, shape=cut))
            continue
        for k in range(int(step.fitted.n_bins_[i])):
            outputs.append(step.output(len(outputs), i, f"{source.name}_{k}", shape=cut))
    return outputs


def _categories(step: Step, i: int) -> Shape:
    """Return the shape of a column that knows some values of its source by name."""
    known = np.asarray(step.fitted.categories_[i])
    if known.dtype.kind not in "fiub":
        return Shape(unknown="its categories are not numbers")
    return _points([float(value) for value in known if value == value], is_flat=True)


def one_hot_encoder(step: Step) -> list[Traced]:
    """OneHotEncoder: a column a category (infrequent ones share one), less those dropped."""
    outputs: list[Traced] = []
    for i, count in enumerate(step.fitted._n_features_outs):
        shape = _categories(step, i)
        for k in range(count):
            outputs.append(step.output(len(outputs), i, f"{step.inputs[i].name}_{k}", shape=shape))
    return outputs


def ordinal_encoder(step: Step) -> list[Traced]:
    """OrdinalEncoder: the position of a category."""
    return _shaped(step, lambda i: _categories(step, i))


def target_encoder(step: Step) -> list[Traced]:
    """TargetEncoder: a number a category, or one a class of the target."""
    each = len(step.fitted.classes_) if step.fitted.target_type_ == "multiclass" else 1
    return [
        step.output(i * each + k, i, source.name, shape=_categories(step, i))
        for i, source in enumerate(step.inputs)
        for k in range(each)
    ]


def imputer(step: Step) -> list[Traced]:
    """SimpleImputer: x, or a number where it is missing; then an indicator of that, where it says so."""
    fitted = step.fitted
    kept = [i for i in range(len(step.inputs)) if fitted.keep_empty_features or not _is_nan(fitted.statistics_[i])]
    outputs = [_imputed(step, k, i) for k, i in enumerate(kept)]
    if fitted.indicator_ is not None:
        flagged = [int(i) for i in fitted.indicator_.features_]
        outputs += [_flag(step, len(kept) + k, i) for k, i in enumerate(flagged)]
    return outputs


def missing_indicator(step: Step) -> list[Traced]:
    """MissingIndicator: whether x is missing."""
    return [_flag(step, k, int(i)) for k, i in enumerate(step.fitted.features_)]


def _is_nan(value: Any) -> bool:
    return bool(value != value)


def _marks_missing(step: Step) -> tuple[float, ...]:
    """Return the number that stands for a missing value, where it is one."""
    marker = step.fitted.missing_values
    is_number = isinstance(marker, int | float | np.number) and not _is_nan(marker)
    return (float(marker),) if is_number else ()


def _imputed(step: Step, k: int, i: int) -> Traced:
    source, marker = step.inputs[i], _marks_missing(step)
    if not marker:
        return step.output(k, i, source.name, shape=MONOTONE, lower=_below(source))
    return step.output(k, i, source.name, shape=_points(marker))


def _flag(step: Step, k: int, i: int) -> Traced:
    source, marker = step.inputs[i], _marks_missing(step)
    return step.output(
        k,
        i,
        f"{source.name} is missing",
        shape=_points(marker, is_flat=True) if marker else FLAT,
        lower=None if marker else lambda ground: ground.lowering.constant(np.zeros((1, 1))),
    )


# ---- steps that are computed with more than one rounding


def power_transformer(step: Step) -> list[Traced]:
    """PowerTransformer: a power of each column, then a StandardScaler of its own where it says so."""
    fitted = step.fitted
    if not fitted.standardize:
        return _shaped(step, lambda i: Shape(_power_error(step, i)))
    plain = copy.copy(fitted)
    plain.standardize = False
    sample = plain.transform(step.sample)
    made = power_transformer(replace(step, fitted=plain))
    powers = [replace(column, floats=floats) for column, floats in zip(made, floats_of(sample), strict=True)]
    return standard_scaler(Step(fitted._scaler, tuple(powers), sample, step.space, step.where))


def _power_error(step: Step, i: int) -> Error:
    """Return a bound on the error of expm1(λ log1p(x)) / λ and its like near a value.

    With z = λ log1p(x) the value y is good to its own size times 1 + |z| times a few roundings, and z is log(1 + λ y). An older
    formula subtracts 1 from a power, which is good to (|λ y| + 1) / |λ|; a small value tells which one is used.
    """
    fitted, power = step.fitted, float(step.fitted.lambdas_[i])
    powers = [power] if fitted.method == "box-cox" else [power, 2 - power]
    steepest = max(map(abs, powers))
    inverse = max((1 / abs(each) for each in powers if abs(each) > 1e-15), default=1.0)
    if fitted.method == "box-cox":
        is_relative = True
    else:
        tiny = step.ask({i: np.array([1e-13, -1e-13])})[:, i]
        is_relative = bool(np.allclose(tiny, [1e-13, -1e-13], rtol=max(1e-9, 64 * step.roundoff(i)), atol=0))
    inexact = INEXACT * step.roundoff(i)

    def error(y: Floats) -> Floats:
        size: Floats = np.abs(y) * (2 + np.abs(_log_of_power(y, powers)))
        return inexact * (size if is_relative else size + (steepest * np.abs(y) + 1) * inverse)

    return error


def _log_of_power(y: Floats, powers: list[float]) -> Floats:
    """Return log(1 + λ y), which is λ times the logarithm of what was raised to the power."""
    inner = 1 + powers[0] * y if len(powers) == 1 else np.where(y >= 0, 1 + powers[0] * y, 1 - powers[1] * y)
    logarithm: Floats = np.log(np.maximum(inner, 1e-300))
    return logarithm


def quantile_transformer(step: Step) -> list[Traced]:
    """QuantileTransformer: the mean of two interpolations, then the normal's quantile where it says so.

    Between two quantiles an interpolation is a difference, a product and a sum, each correctly rounded: monotone. The normal's
    quantile function is good to a few units in the last place.
    """
    return [_quantile(step, i) for i in range(len(step.inputs))]


def _quantile(step: Step, i: int) -> Traced:
    fitted, source = step.fitted, step.inputs[i]
    quantiles = np.asarray(fitted.quantiles_[:, i], dtype=np.float64)
    shape = _points(quantiles)
    if fitted.output_distribution == "uniform":
        line = quantiles, np.asarray(fitted.references_, dtype=np.float64)
        return replace(step.output(i, i, source.name, shape=shape), line=line)
    uniform = copy.copy(fitted)
    uniform.output_distribution = "uniform"
    whole, between = step.output(i, i, source.name, shape=MONOTONE), replace(step, fitted=uniform)
    floats = step.floats_out[i]

    def chance(x: Any) -> Any:
        found = between.ask({i: x})[:, i]
        x = np.asarray(x, dtype=np.float64).astype(floats)
        found[x + BOUNDS > quantiles[-1]] = 1.0
        found[x - BOUNDS < quantiles[0]] = 0.0
        return found

    from scipy.stats import norm

    first = replace(whole, local=chance, values=lambda x: chance(source.values(x)), shape=shape, floats=floats)
    inexact = INEXACT * step.roundoff(i)
    least, most = (float(norm.ppf(end)) for end in (BOUNDS - np.spacing(1), 1 - (BOUNDS - np.spacing(1))))
    return replace(
        whole,
        local=lambda p: np.clip(norm.ppf(np.asarray(p, dtype=np.float64)), least, most).astype(floats),
        shape=Shape(lambda t: inexact * np.abs(t) + 1e-300),
        parents=(first,),
    )


EXACT_FUNCTIONS = ("sqrt", "negative", "positive", "floor", "ceil", "rint", "trunc")
TURNING_FUNCTIONS = ("absolute", "fabs", "square")
INEXACT_FUNCTIONS = (
    "log", "log2", "log10", "log1p", "exp", "exp2", "expm1", "cbrt", "arcsinh", "sinh", "tanh", "arctan",
)  # fmt: skip


def function_transformer(step: Step) -> list[Traced]:
    """FunctionTransformer of a function of numpy whose course is known."""
    fitted = step.fitted
    if fitted.func is None:
        return identity(step)
    if fitted.func in OF_DATES and not fitted.kw_args:
        return of_dates(step)
    name = getattr(fitted.func, "__name__", "")
    if fitted.kw_args or not isinstance(fitted.func, np.ufunc) or getattr(np, name, None) is not fitted.func:
        known = ", ".join((*EXACT_FUNCTIONS, "sign", *TURNING_FUNCTIONS, *INEXACT_FUNCTIONS))
        raise step.refuse(
            f"func={fitted.func!r:.80}{' with kw_args' if fitted.kw_args else ''} is code of its own. Known functions of numpy: {known}."
        )
    if name == "negative":
        return _affine(step, _negated)
    if name == "positive":
        return identity(step)
    if name in ("absolute", "fabs"):
        return [replace(made, lower=_size_of(made)) for made in _shaped(step, lambda _: _COURSES[name])]
    if name in INEXACT_FUNCTIONS:
        return _shaped(step, lambda i: _inexact(step.roundoff(i), step.least(i)))
    shape = _COURSES.get(name)
    if shape is None:
        raise step.refuse(f"np.{name} is not known to be monotone.")
    return _shaped(step, lambda _: shape)


def _inexact(roundoff: float, least: float) -> Shape:
    """Return the shape of a function that is monotone but for its error."""
    return Shape(lambda t: INEXACT * roundoff * np.abs(t) + least)


def _shaped(step: Step, shape: Callable[[int], Shape]) -> list[Traced]:
    """Return an output of each input alone, by what is known of it."""
    return [step.output(i, i, source.name, shape=shape(i)) for i, source in enumerate(step.inputs)]


def _size_of(made: Traced) -> Lower:
    """Return the greater of a column and its negative, which no library rounds."""

    def lower(ground: Any) -> Tensor:
        tensor = ground.of(made.parents[0])
        size: Tensor = ground.lowering.maximum(tensor, ground.lowering.scale(tensor, -1.0))
        return size

    return lower


def _negated(i: int, below: Lower) -> Lower:
    return lambda ground: ground.lowering.scale(below(ground), -1.0)


_COURSES = {
    **dict.fromkeys(EXACT_FUNCTIONS, MONOTONE),
    "sign": _points([0.0], is_flat=True),
    **dict.fromkeys(TURNING_FUNCTIONS, _points([0.0])),
}


# ---- selections and mixtures


def selector(step: Step) -> list[Traced]:
    """Return the chosen columns."""
    return [step.inputs[int(i)] for i in step.fitted.get_support(indices=True)]


def projection(step: Step) -> list[Traced]:
    """PCA, TruncatedSVD, random projections: inner products of the inputs."""
    fitted = step.fitted
    components = fitted.components_.toarray() if hasattr(fitted.components_, "toarray") else fitted.components_
    matrix = np.asarray(components, dtype=np.float64).T
    mean = getattr(fitted, "mean_", None)
    scale = None
    if getattr(fitted, "whiten", False):
        scale = np.maximum(np.sqrt(fitted.explained_variance_), np.finfo(fitted.explained_variance_.dtype).eps)

    def group(ground: Any) -> Tensor:
        inputs = ground.lowering.concatenate([ground.of(source) for source in step.inputs], 1)
        if mean is None:
            made: Tensor = ground.lowering.dense(inputs, matrix)
        else:
            # The mean's own projection is an inner product, which is rounded too.
            further = product(np.abs(mean), np.abs(matrix))
            made = ground.lowering.dense(inputs, matrix, -product(mean, matrix), steps=len(mean) + 2)
            made = Tensor(made.shape, made.weights, made.shift, made.size + further, made.steps)
        return made if scale is None else ground.lowering.divide(made, scale)

    return [
        Traced(
            f"component {k}",
            step.inputs[0].feature,
            (-1.0, 1.0),
            lower=lambda ground, k=k: ground.grouped(step, group).arranged(np.array([[k]])),  # type: ignore[misc]
            parents=step.inputs,
            where=step.where,
            is_mixed=True,
        )
        for k in range(matrix.shape[1])
    ]


def encoder(step: Step) -> list[Traced]:
    """mace.Encoder: numbers as they are, levels by tables."""
    own = step.fitted.space_
    names = list(step.sample.columns) if hasattr(step.sample, "columns") else list(own)
    outputs = []
    for k, column in enumerate(step.fitted.columns_):
        i = names.index(own.names[column.feature])
        is_number = not isinstance(own[own.names[column.feature]], Ordinal | Categorical)
        lower = _below(step.inputs[i]) if is_number else None
        shape = MONOTONE if is_number else Shape(unknown="it encodes levels")
        outputs.append(step.output(k, i, column.name, shape=shape, lower=lower))
    return outputs


STEPS: dict[str, Rule] = {
    "sklearn:StandardScaler": standard_scaler,
    "sklearn:MinMaxScaler": min_max_scaler,
    "sklearn:MaxAbsScaler": max_abs_scaler,
    "sklearn:RobustScaler": robust_scaler,
    "sklearn:Binarizer": binarizer,
    "sklearn:KBinsDiscretizer": discretizer,
    "sklearn:OneHotEncoder": one_hot_encoder,
    "sklearn:OrdinalEncoder": ordinal_encoder,
    "sklearn:TargetEncoder": target_encoder,
    "sklearn:SimpleImputer": imputer,
    "sklearn:MissingIndicator": missing_indicator,
    "sklearn:PowerTransformer": power_transformer,
    "sklearn:QuantileTransformer": quantile_transformer,
    "sklearn:FunctionTransformer": function_transformer,
    "sklearn:PolynomialFeatures": polynomial_features,
    "sklearn:VarianceThreshold": selector,
    "sklearn:SelectKBest": selector,
    "sklearn:SelectPercentile": selector,
    "sklearn:SelectFpr": selector,
    "sklearn:SelectFdr": selector,
    "sklearn:SelectFwe": selector,
    "sklearn:GenericUnivariateSelect": selector,
    "sklearn:SelectFromModel": selector,
    "sklearn:RFE": selector,
    "sklearn:RFECV": selector,
    "sklearn:SequentialFeatureSelector": selector,
    "sklearn:PCA": projection,
    "sklearn:IncrementalPCA": projection,
    "sklearn:TruncatedSVD": projection,
    "sklearn:GaussianRandomProjection": projection,
    "sklearn:SparseRandomProjection": projection,
    "mace:Encoder": encoder,
}

REFUSED_STEPS = {
    "Normalizer": "it divides each row by its norm, which is not piecewise linear. Leave it out, or scale the columns",
    "KNNImputer": "it fills a missing value from the nearest rows. Use SimpleImputer",
    "IterativeImputer": "it fills a missing value from a model of the other columns. Use SimpleImputer",
    "SplineTransformer": "splines are not piecewise linear. Use KBinsDiscretizer, or trees without it",
    "KernelPCA": "a kernel is not piecewise linear. Use PCA",
    "NMF": "it solves a problem for every row. Use TruncatedSVD",
    "FactorAnalysis": "it is not read by this version. Use PCA",
    "FastICA": "it is not read by this version. Use PCA",
    "TfidfVectorizer": "text is not a feature of a space",
    "CountVectorizer": "text is not a feature of a space",
    "HashingVectorizer": "text is not a feature of a space",
    "FeatureHasher": "a hash is not read. Use OneHotEncoder",
}
"""Why well-known steps are refused, and what to do instead."""
