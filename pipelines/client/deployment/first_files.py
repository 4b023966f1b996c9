"""The first file of each repo that is read in a cross: with an empty one a cross has no datum. Each states nothing:
labels that name no picture, a schema without attributes, and a training with the default parameters."""

from stages.classify.training import training_parameters
from stages.classify.training.training_parameters import TrainingParameters
from stages.record import attribute_schema

LABELS = "labels"
LABELS_FILE = "/labels.csv"
LABELS_HEADER = b"source,label,name\n"

ATTRIBUTES = "attributes"

VECTORS = "vectors"

PARAMETERS = "parameters"
DEFAULT_RUN = "linear"

FIRST_FILES = {
    LABELS: (LABELS_FILE, LABELS_HEADER),
    ATTRIBUTES: (f"/{attribute_schema.SCHEMA}", attribute_schema.format_schema({})),
    PARAMETERS: (
        f"/{DEFAULT_RUN}{training_parameters.SUFFIX}",
        training_parameters.format_parameters(TrainingParameters(DEFAULT_RUN)),
    ),
}
"""The path and the content of the file by repo."""
