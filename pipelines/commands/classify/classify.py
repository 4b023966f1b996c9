"""The group of commands `classify`: labels, trainings, runs, the promoted classifier, and its service."""

from pipelines.commands.classify import (
    classify_add,
    classify_demo,
    classify_runs,
    classify_serve,
    classify_train,
)
from pipelines.commands.kit.app import App

app = App()
classify_app = App(help="Train classifiers on labelled pictures, compare and serve them.", no_args_is_help=True)
app.add_typer(classify_app, name="classify")
for _module in (classify_add, classify_train, classify_runs, classify_serve, classify_demo):
    classify_app.add_typer(_module.app)
