"""A ranker in MLflow: logged as a model of its own file and of this code, loaded anywhere, scored with its queries.

python examples/mlflow_model.py        (pip install mlflow)

MLflow keeps a copy of this file and runs it where the model is loaded (models from code): nothing is pickled.
"""

import tempfile
from pathlib import Path

import mlflow
import numpy as np
import pandas as pd

from rankopt.data import load_sample
from rankopt.rankers import LargeMarginRanker, load_model, save_model


class Served(mlflow.pyfunc.PythonModel):
    """A table with a column `qid` and the features goes in, scores come out."""

    def load_context(self, context):
        self.ranker = load_model(context.artifacts["ranker"])

    def predict(self, context, model_input: pd.DataFrame, params=None):
        return self.ranker.predict(model_input.drop(columns="qid"), qid=model_input["qid"])


mlflow.models.set_model(Served())  # what MLflow takes of this file


def logged_and_loaded():
    sample = load_sample("les-miserables")
    ranker = LargeMarginRanker("nDCG@10", normalize="zscore").fit(sample.train)
    test = pd.DataFrame(sample.test.features, columns=sample.test.feature_names)
    test["qid"] = sample.test.qid
    with tempfile.TemporaryDirectory() as folder:
        mlflow.set_tracking_uri(f"sqlite:///{folder}/runs.db")
        save_model(ranker, Path(folder) / "ranker.rankopt")
        with mlflow.start_run():
            mlflow.log_params({"measure": ranker.measure, "lam": ranker.lam})
            mlflow.log_metrics({"objective": ranker.certificate_.primal, "gap": ranker.certificate_.gap})
            artifacts = {"ranker": str(Path(folder) / "ranker.rankopt")}
            logged = mlflow.pyfunc.log_model(name="ranker", python_model=__file__, artifacts=artifacts)
        kept = Path(mlflow.artifacts.download_artifacts(logged.model_uri))
        print("pickles among its files:", len([*kept.rglob("*.pkl")]))
        scores = mlflow.pyfunc.load_model(logged.model_uri).predict(test)
        same = np.array_equal(scores, ranker.predict(sample.test))
        print(f"{len(scores)} scores through MLflow, equal to the ranker's: {same}")


if __name__ == "__main__":
    logged_and_loaded()
