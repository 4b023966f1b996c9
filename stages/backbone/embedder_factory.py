"""The forward pass of a backbone from its file: a graph that TensorFlow's library runs, or else Keras, with the same
vectors bit by bit.

A graph starts in a third of the time. There are graphs for some architectures, and for models whose description says
that theirs gave the same vectors when they were pushed, on the processor; Keras runs all, and on GPUs. Since the file
and the description alone decide, all that read a backbone compute it in the same way. Knows no layers.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from stages.backbone import tensorflow_import
from stages.backbone.backbone_file import ModelContents, check, read
from stages.backbone.backbone_spec import BackboneSpec
from stages.backbone.embedder import Embedder, passes_at_once, threads_of_each
from stages.backbone.gpu_memory import NO_GPU, gpu_memory
from stages.backbone.graphs.graph_network import GraphNetwork
from stages.backbone.graphs.keras_layers import UnfamiliarLayerError
from stages.backbone.graphs.keras_parity import matches_keras
from stages.backbone.graphs.known_architectures import known_architecture
from stages.backbone.graphs.tensorflow_library import LibraryError
from stages.datum.contract import load


def embedder(file: Path, spec: BackboneSpec, environment: Mapping[str, str], many: bool = False) -> Embedder:
    """The embedder of the backbone that the spec describes, from a seekable .keras file. Prints a line on its device.

    environment: the stage's, with the settings of GPU memory. many: whether many batches follow one another. Then the
    cores compute several at once, which takes less time in all; a single one takes more. Raises StageError if the file
    is damaged, holds another model or cannot be loaded, or if a setting is wrong.
    """
    at_once = passes_at_once() if many else 1
    graph = None
    if matches_keras(os.environ):
        graph = network(read(file, spec), spec, threads=threads_of_each() if many else 0)
    else:
        check(file, spec)
    if graph is None:
        with tensorflow_import.quiet():
            backbones = load("stages.backbone.backbones")
        loaded: Embedder = backbones.embedder(file, spec, environment, at_once)
        return loaded
    gpu_memory(environment)
    print(NO_GPU)
    return Embedder(graph, spec, at_once, small=graph.few, ahead=many)


def network(contents: ModelContents, spec: BackboneSpec, threads: int = 0) -> GraphNetwork | None:
    """The graph of the file of the backbone that the spec describes; None if nothing says that its vectors are those of
    Keras, or if that is not possible here. threads: as in Session."""
    if not (spec.graph or known_architecture(contents.config)):
        return None
    try:
        with tensorflow_import.quiet():
            return GraphNetwork(contents, spec, threads)
    except (UnfamiliarLayerError, LibraryError):
        return None
