"""The tables of readers: by the class of a model, what reads it, how it is asked, or why it is refused."""

from __future__ import annotations

from mace.errors import UnsupportedModel
from mace.registry import Registry

LINEAR_CLASSIFIERS = (
    "sklearn:LogisticRegression",
    "sklearn:LogisticRegressionCV",
    "sklearn:LinearSVC",
    "sklearn:SGDClassifier",
    "sklearn:RidgeClassifier",
    "sklearn:RidgeClassifierCV",
    "sklearn:Perceptron",
    "sklearn:PassiveAggressiveClassifier",
    "sklearn:LinearDiscriminantAnalysis",
)
LINEAR_REGRESSORS = (
    "sklearn:LinearRegression",
    "sklearn:Ridge",
    "sklearn:RidgeCV",
    "sklearn:Lasso",
    "sklearn:LassoCV",
    "sklearn:ElasticNet",
    "sklearn:ElasticNetCV",
    "sklearn:Lars",
    "sklearn:LarsCV",
    "sklearn:LassoLars",
    "sklearn:LassoLarsCV",
    "sklearn:LassoLarsIC",
    "sklearn:OrthogonalMatchingPursuit",
    "sklearn:OrthogonalMatchingPursuitCV",
    "sklearn:BayesianRidge",
    "sklearn:ARDRegression",
    "sklearn:HuberRegressor",
    "sklearn:QuantileRegressor",
    "sklearn:TheilSenRegressor",
    "sklearn:SGDRegressor",
    "sklearn:PassiveAggressiveRegressor",
    "sklearn:LinearSVR",
)

SEARCHES = (
    "sklearn:GridSearchCV",
    "sklearn:RandomizedSearchCV",
    "sklearn:HalvingGridSearchCV",
    "sklearn:HalvingRandomSearchCV",
    "sklearn:FrozenEstimator",
)

THRESHOLDS = ("sklearn:FixedThresholdClassifier", "sklearn:TunedThresholdClassifierCV")

MODELS = Registry(
    "models",
    {
        "sklearn:DecisionTreeClassifier": "mace.models.trees.forest:read_tree",
        "sklearn:DecisionTreeRegressor": "mace.models.trees.forest:read_tree",
        "sklearn:RandomForestClassifier": "mace.models.trees.forest:read_forest",
        "sklearn:RandomForestRegressor": "mace.models.trees.forest:read_forest",
        "sklearn:ExtraTreesClassifier": "mace.models.trees.forest:read_forest",
        "sklearn:ExtraTreesRegressor": "mace.models.trees.forest:read_forest",
        "sklearn:GradientBoostingClassifier": "mace.models.trees.boosting:read_boosting",
        "sklearn:GradientBoostingRegressor": "mace.models.trees.boosting:read_boosting",
        "sklearn:HistGradientBoostingClassifier": "mace.models.trees.histogram:read_histogram",
        "sklearn:HistGradientBoostingRegressor": "mace.models.trees.histogram:read_histogram",
        "sklearn:IsolationForest": "mace.models.trees.isolation:read_isolation",
        "sklearn:AdaBoostClassifier": "mace.models.trees.adaboost:read_adaboost",
        **dict.fromkeys(LINEAR_CLASSIFIERS, "mace.models.networks.linear:read_linear"),
        **dict.fromkeys(LINEAR_REGRESSORS, "mace.models.networks.linear:read_linear_regressor"),
        "sklearn:MLPClassifier": "mace.models.networks.mlp:read_mlp",
        "sklearn:MLPRegressor": "mace.models.networks.mlp:read_mlp_regressor",
        "sklearn:CalibratedClassifierCV": "mace.models.ensembles.calibrated:read_calibrated",
        **dict.fromkeys(SEARCHES, "mace.models.ensembles.searched:read_search"),
        **dict.fromkeys(THRESHOLDS, "mace.models.ensembles.searched:read_threshold"),
        "sklearn:VotingClassifier": "mace.models.ensembles.votes:read_voting_classifier",
        "sklearn:BaggingClassifier": "mace.models.ensembles.votes:read_bagging_classifier",
        "sklearn:OneVsRestClassifier": "mace.models.ensembles.votes:read_one_vs_rest",
        "sklearn:VotingRegressor": "mace.models.ensembles.averaged:read_voting",
        "sklearn:BaggingRegressor": "mace.models.ensembles.averaged:read_bagging",
        "sklearn:StackingClassifier": "mace.models.ensembles.stacked:read_stacking",
        "sklearn:StackingRegressor": "mace.models.ensembles.stacked:read_stacking",
        "xgboost:XGBClassifier": "mace.models.trees.xgboost:read_estimator",
        "xgboost:XGBRegressor": "mace.models.trees.xgboost:read_estimator",
        "xgboost:Booster": "mace.models.trees.xgboost:read_booster",
        "lightgbm:LGBMClassifier": "mace.models.trees.lightgbm:read_estimator",
        "lightgbm:LGBMRegressor": "mace.models.trees.lightgbm:read_estimator",
        "lightgbm:Booster": "mace.models.trees.lightgbm:read_booster",
        "catboost:CatBoostClassifier": "mace.models.trees.catboost:read_catboost",
        "catboost:CatBoostRegressor": "mace.models.trees.catboost:read_catboost",
        "torch:Sequential": "mace.models.networks.torch:read_sequential",
        "onnx:ModelProto": "mace.models.onnx.reader:read_model",
        "onnxruntime:InferenceSession": "mace.models.onnx.reader:read_session",
    },
    UnsupportedModel,
)

REFUSED_MODELS = {
    "sklearn:SVC": "a kernel is not piecewise linear, and a linear one is computed over support vectors. "
    "Use LinearSVC, or explain a surrogate",
    "sklearn:GaussianProcessClassifier": "a kernel is not piecewise linear. Explain a surrogate",
    "sklearn:PoissonRegressor": "its prediction is the exponential of a linear score. Fit a linear model to the logarithm",
    "sklearn:GammaRegressor": "its prediction is the exponential of a linear score. Fit a linear model to the logarithm",
    "torch:Module": "its forward is Python code of its own. Write it as nn.Sequential, or export it with torch.onnx.export and "
    "explain that file",
    "mace:Endpoint": "it is a function that is only asked",
    "sklearn:TweedieRegressor": "its prediction may be the exponential of a linear score. Use a linear model",
}
"""Why well-known models have no reader, and what to do instead."""

DEPLOYED = {
    "sklearn:IsolationForest": "mace.models.trees.isolation:deployed",
    "sklearn:HistGradientBoostingClassifier": "mace.models.trees.histogram:deployed",
    "sklearn:HistGradientBoostingRegressor": "mace.models.trees.histogram:deployed",
    "xgboost:XGBClassifier": "mace.models.trees.xgboost:deployed_estimator",
    "xgboost:XGBRegressor": "mace.models.trees.xgboost:deployed_estimator",
    "xgboost:Booster": "mace.models.trees.xgboost:deployed_booster",
    "lightgbm:LGBMClassifier": "mace.models.trees.lightgbm:deployed_estimator",
    "lightgbm:LGBMRegressor": "mace.models.trees.lightgbm:deployed_estimator",
    "lightgbm:Booster": "mace.models.trees.lightgbm:deployed_booster",
    "catboost:CatBoostClassifier": "mace.models.trees.catboost:deployed",
    "catboost:CatBoostRegressor": "mace.models.trees.catboost:deployed",
    "torch:Sequential": "mace.models.networks.torch:deployed",
    "onnx:ModelProto": "mace.models.onnx.reader:deployed_model",
    "onnxruntime:InferenceSession": "mace.models.onnx.reader:deployed_session",
}
"""How a model is asked, where it is not simply ``predict`` of numeric columns."""

DECIDING = (
    "predict",
    "predict_proba",
    "decision_function",
    "_forward_pass_fast",
    "_validate_X_predict",
    "apply",
    "inplace_predict",
    "_raw_predict",
    "_raw_predict_init",
    "_predict_iterations",
    "_preprocess_X",
    "_check_X",
    "_get_iteration_range",
    "_predict",
    "_decision_function",
    "forward",
    "__call__",
    "run",
    "_predict_proba_lr",
    "score_samples",
    "_score_samples",
    "_compute_score_samples",
    "_compute_chunked_score_samples",
)
"""Methods that a subclass must not override to be read as its base."""
