"""What a ``.skops`` file may hold: the exact types, functions and constructors that the models which are read are made of.

Each hides nothing behind its name: the classes keep data only, the functions compute and do nothing else. ``tests/support/saved_models.py``
fits a model of every family and with every step, and a test loads them all with nothing but these names.
"""

from __future__ import annotations


def _names(text: str) -> frozenset[str]:
    """Return full names, from lines of ``module: name name ...``."""
    lines = (line.partition(": ") for line in text.strip().splitlines())
    return frozenset(f"{module.strip()}.{name}" for module, _, names in lines for name in names.split())


_OBJECTS = """
    mace.space.columns: Column
    mace.space.dates: Date
    mace.space.dtypes: Category
    mace.space.encoder: Encoder
    mace.space.features: Integer Ordinal Real
    mace.space.space: FeatureSpace
    sklearn._loss.link: HalfLogitLink IdentityLink Interval LogLink LogitLink MultinomialLogit
    sklearn._loss.loss: AbsoluteError ExponentialLoss HalfBinomialLoss HalfGammaLoss HalfMultinomialLoss HalfPoissonLoss
    sklearn._loss.loss: HalfSquaredError HuberLoss PinballLoss
    sklearn.calibration: CalibratedClassifierCV _CalibratedClassifier _SigmoidCalibration
    sklearn.compose._column_transformer: ColumnTransformer make_column_selector
    sklearn.decomposition._incremental_pca: IncrementalPCA
    sklearn.decomposition._pca: PCA
    sklearn.decomposition._truncated_svd: TruncatedSVD
    sklearn.discriminant_analysis: LinearDiscriminantAnalysis
    sklearn.dummy: DummyClassifier DummyRegressor
    sklearn.ensemble._bagging: BaggingClassifier BaggingRegressor
    sklearn.ensemble._forest: ExtraTreesClassifier ExtraTreesRegressor RandomForestClassifier RandomForestRegressor
    sklearn.ensemble._gb: GradientBoostingClassifier GradientBoostingRegressor
    sklearn.ensemble._hist_gradient_boosting.binning: _BinMapper
    sklearn.ensemble._hist_gradient_boosting.gradient_boosting: HistGradientBoostingClassifier HistGradientBoostingRegressor
    sklearn.ensemble._hist_gradient_boosting.predictor: TreePredictor
    sklearn.ensemble._iforest: IsolationForest
    sklearn.ensemble._stacking: StackingClassifier StackingRegressor
    sklearn.ensemble._voting: VotingClassifier VotingRegressor
    sklearn.ensemble._weight_boosting: AdaBoostClassifier
    sklearn.feature_selection._from_model: SelectFromModel
    sklearn.feature_selection._rfe: RFE RFECV
    sklearn.feature_selection._sequential: SequentialFeatureSelector
    sklearn.feature_selection._univariate_selection: GenericUnivariateSelect SelectFdr SelectFpr SelectFwe SelectKBest SelectPercentile
    sklearn.feature_selection._variance_threshold: VarianceThreshold
    sklearn.frozen._frozen: FrozenEstimator
    sklearn.impute._base: MissingIndicator SimpleImputer
    sklearn.isotonic: IsotonicRegression
    sklearn.linear_model._base: LinearRegression
    sklearn.linear_model._bayes: ARDRegression BayesianRidge
    sklearn.linear_model._coordinate_descent: ElasticNet ElasticNetCV Lasso LassoCV
    sklearn.linear_model._huber: HuberRegressor
    sklearn.linear_model._least_angle: Lars LarsCV LassoLars LassoLarsCV LassoLarsIC
    sklearn.linear_model._logistic: LogisticRegression LogisticRegressionCV
    sklearn.linear_model._omp: OrthogonalMatchingPursuit OrthogonalMatchingPursuitCV
    sklearn.linear_model._passive_aggressive: PassiveAggressiveClassifier PassiveAggressiveRegressor
    sklearn.linear_model._perceptron: Perceptron
    sklearn.linear_model._quantile: QuantileRegressor
    sklearn.linear_model._ridge: Ridge RidgeCV RidgeClassifier RidgeClassifierCV
    sklearn.linear_model._stochastic_gradient: SGDClassifier SGDRegressor
    sklearn.linear_model._theil_sen: TheilSenRegressor
    sklearn.metrics._scorer: _CurveScorer _MultimetricScorer _PassthroughScorer _Scorer
    sklearn.model_selection._classification_threshold: FixedThresholdClassifier TunedThresholdClassifierCV
    sklearn.model_selection._search: GridSearchCV RandomizedSearchCV
    sklearn.model_selection._search_successive_halving: HalvingGridSearchCV HalvingRandomSearchCV
    sklearn.model_selection._split: GroupKFold GroupShuffleSplit KFold LeaveOneGroupOut LeaveOneOut LeavePGroupsOut LeavePOut
    sklearn.model_selection._split: PredefinedSplit RepeatedKFold RepeatedStratifiedKFold ShuffleSplit StratifiedGroupKFold
    sklearn.model_selection._split: StratifiedKFold StratifiedShuffleSplit TimeSeriesSplit _CVIterableWrapper
    sklearn.multiclass: OneVsRestClassifier _ConstantPredictor
    sklearn.neural_network._multilayer_perceptron: MLPClassifier MLPRegressor
    sklearn.neural_network._stochastic_optimizers: AdamOptimizer SGDOptimizer
    sklearn.pipeline: FeatureUnion Pipeline
    sklearn.preprocessing._data: Binarizer MaxAbsScaler MinMaxScaler PowerTransformer QuantileTransformer RobustScaler StandardScaler
    sklearn.preprocessing._discretization: KBinsDiscretizer
    sklearn.preprocessing._encoders: OneHotEncoder OrdinalEncoder
    sklearn.preprocessing._function_transformer: FunctionTransformer
    sklearn.preprocessing._label: LabelBinarizer LabelEncoder
    sklearn.preprocessing._polynomial: PolynomialFeatures
    sklearn.preprocessing._target_encoder: TargetEncoder
    sklearn.random_projection: GaussianRandomProjection
    sklearn.svm._classes: LinearSVC LinearSVR
    sklearn.tree._classes: DecisionTreeClassifier DecisionTreeRegressor ExtraTreeClassifier ExtraTreeRegressor
    sklearn.utils._metadata_requests: MetadataRequest MethodMetadataRequest
"""

_FUNCTIONS = """
    mace.space.dates: days months weekdays years
    numpy: absolute arccos arccosh arcsin arcsinh arctan arctanh cbrt ceil cos cosh deg2rad degrees exp exp2 expm1 fabs floor log log10
    numpy: log1p log2 logical_not negative positive rad2deg radians reciprocal rint sign sin sinh sqrt square tan tanh trunc
    scipy.special: expit logit
    scipy.special._ufuncs: expit logit
    sklearn.feature_selection._mutual_info: mutual_info_classif mutual_info_regression
    sklearn.feature_selection._univariate_selection: chi2 f_classif f_oneway f_regression r_regression
    sklearn.metrics._classification: accuracy_score balanced_accuracy_score brier_score_loss class_likelihood_ratios cohen_kappa_score
    sklearn.metrics._classification: d2_log_loss_score f1_score fbeta_score hamming_loss hinge_loss jaccard_score log_loss
    sklearn.metrics._classification: matthews_corrcoef precision_score recall_score zero_one_loss
    sklearn.metrics._ranking: average_precision_score coverage_error dcg_score label_ranking_average_precision_score
    sklearn.metrics._ranking: label_ranking_loss ndcg_score roc_auc_score top_k_accuracy_score
    sklearn.metrics._regression: d2_absolute_error_score d2_pinball_score d2_tweedie_score explained_variance_score max_error
    sklearn.metrics._regression: mean_absolute_error mean_absolute_percentage_error mean_gamma_deviance mean_pinball_loss
    sklearn.metrics._regression: mean_poisson_deviance mean_squared_error mean_squared_log_error mean_tweedie_deviance
    sklearn.metrics._regression: median_absolute_error r2_score root_mean_squared_error root_mean_squared_log_error
    sklearn.metrics._scorer: negative_likelihood_ratio positive_likelihood_ratio
    sklearn.utils.validation: check_array
"""

_LOSSES = """
    sklearn._loss._loss: CyAbsoluteError CyExponentialLoss CyHalfBinomialLoss CyHalfGammaLoss CyHalfMultinomialLoss CyHalfPoissonLoss
    sklearn._loss._loss: CyHalfSquaredError CyHuberLoss CyPinballLoss
    sklearn.linear_model._sgd_fast: EpsilonInsensitive Hinge Huber Log ModifiedHuber SquaredEpsilonInsensitive SquaredHinge SquaredLoss
"""

_SCALARS = """
    numpy: bool bool_ float16 float32 float64 int8 int16 int32 int64 str_ uint8 uint16 uint32 uint64
"""

_TYPES = """
    builtins: bool float int object str
    numpy: floating integer number object_
    sklearn.model_selection._split: KFold StratifiedKFold
"""

ALLOWED_NODES: dict[str, frozenset[str]] = {
    "ConstructorFromReduceNode": _names("mace.space.features: Categorical"),
    "DTypeNode": _names("numpy: dtype"),
    "DictNode": _names("builtins: dict\ncollections: OrderedDict\nsklearn.utils._bunch: Bunch"),
    "FunctionNode": _names(_FUNCTIONS),
    "JsonNode": _names("builtins: str"),
    "ListNode": _names("builtins: list"),
    "LossNode": _names(_LOSSES),
    "MaskedArrayNode": _names("numpy.ma: MaskedArray\nnumpy.ma.core: MaskedArray"),
    "NdArrayNode": _names("numpy: ndarray") | _names(_SCALARS),
    "ObjectNode": _names(_OBJECTS),
    "PartialNode": _names("functools: partial"),
    "RandomGeneratorNode": _names("numpy.random._generator: Generator"),
    "RandomStateNode": _names("numpy.random.mtrand: RandomState"),
    "SliceNode": _names("builtins: slice"),
    "TreeNode": _names("sklearn.tree._tree: Tree"),
    "TupleNode": _names("builtins: tuple"),
    "TypeNode": _names(_TYPES) | _names(_SCALARS),
}
"""What each kind of node in a ``.skops`` file may name. Nodes of other kinds (methods, operators, bytes, references) are in no model."""

BIT_GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")
