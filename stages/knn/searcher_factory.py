"""Opens searchers: chooses a backend by the settings, the machine and the GPU that this process may use.

The only module that imports backends, by name and only once chosen: a process must not touch a package that is missing,
or would start CUDA, unless it needs it.
"""

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import ModuleType

from stages.datum.contract import StageError
from stages.datum.visible_gpus import gpu_visible, notice
from stages.knn.backend import Backend, BoundsProvider, LibraryCopy, Vectors
from stages.knn.bound_deviation import BoundDeviationError, BoundExamination
from stages.knn.exact_searcher import ExactSearcher
from stages.knn.fallback_backend import FallbackBackend, line
from stages.knn.lazy_gpu import LazyGpuSearcher, ProductAccount
from stages.knn.search_settings import SearchSettings
from stages.knn.top_k import Searcher
from stages.knn.vector_set import PreparedRows, VectorSet


@dataclass(frozen=True)
class SearchMachine:
    """The machine that a search runs on.

    load: imports a backend's module by its name in this package. has: whether a package is installed, which is not
    imported for that. account: what this process has computed on the processor although there is a GPU. examination:
    what it has examined.
    """

    load: Callable[[str], ModuleType]
    has: Callable[[str], bool] = lambda package: importlib.util.find_spec(package) is not None
    account: ProductAccount = field(default_factory=ProductAccount)
    examination: BoundExamination = field(default_factory=BoundExamination)


def load(module: str) -> ModuleType:
    """Imports the backend's module of that name."""
    return importlib.import_module(f"stages.knn.{module}")


MACHINE = SearchMachine(load)


def open_searcher(
    library: VectorSet,
    settings: SearchSettings,
    environment: Mapping[str, str],
    report: Callable[[str], None] = print,
    machine: SearchMachine = MACHINE,
) -> Searcher:
    """An exact searcher of the library (at least one vector) with the backend of the settings; its metric is the
    library's.

    With the backend "auto" it uses a GPU once that pays: see stages.knn.lazy_gpu.
    report takes lines for the log: why a GPU that is there is not used.
    Raises StageError if the requested backend is not available.
    """

    def chosen() -> ExactSearcher:
        return ExactSearcher(library, open_backend(library.prepared, settings, environment, report, machine))

    if settings.backend == "auto" and _has_gpu(environment, machine):
        processor = ExactSearcher(library, _made(machine, "numpy", library.prepared))
        return LazyGpuSearcher(library, processor, chosen, machine.account)
    return chosen()


def open_backend(
    library: Vectors,
    settings: SearchSettings,
    environment: Mapping[str, str],
    report: Callable[[str], None] = print,
    machine: SearchMachine = MACHINE,
) -> Backend:
    """The backend of searches of a library, float32 (n, d), by the settings; report and errors are those of
    `open_searcher`."""
    name = settings.backend
    if name in ("sklearn", "faiss", "numpy"):
        return _made(machine, name, library)
    if name == "cuml":
        if not gpu_visible(environment):
            raise StageError("BACKEND=cuml needs an NVIDIA GPU, and this process has none; use BACKEND=auto or faiss")
        try:
            return _on_gpu(machine, library, None, report)
        except BoundDeviationError:
            raise
        except Exception as failure:
            raise StageError(
                f"BACKEND=cuml does not work here ({line(failure)}); use BACKEND=auto or faiss"
            ) from failure
    processor = partial(_made, machine, "numpy", library)
    if _has_gpu(environment, machine):
        try:
            return _on_gpu(machine, library, processor, report)
        except BoundDeviationError as deviation:
            report(notice(f"it is not used: {deviation}. Searching on the CPU instead"))
        except Exception as failure:
            report(notice(f"cuML does not work with it ({line(failure)}): searching on the CPU instead"))
    return processor()


def bounds_alone(settings: SearchSettings, environment: Mapping[str, str], machine: SearchMachine = MACHINE) -> bool:
    """Whether a library that is held open is searched by bounds alone, for which it needs no vectors in memory."""
    return settings.backend == "numpy" or (settings.backend == "auto" and not _has_gpu(environment, machine))


def open_bounding(library: PreparedRows) -> BoundsProvider:
    """Bounds the distances from a library, float32 (n, d), by products in float32."""
    bounding: BoundsProvider = MACHINE.load("numpy_backend").NumpyBackend(library)
    return bounding


def open_copy(
    library: PreparedRows,
    centre: Vectors | None,
    report: Callable[[str], None] = print,
    machine: SearchMachine = MACHINE,
) -> LibraryCopy | None:
    """A copy of a library, float32 (n, d), in 8-bit integers, made in this thread alone; None if that does not work
    here. Few queries take their time for reading the library, so a copy of a quarter of its size pays on every
    processor. centre: of another copy, or None."""
    if not machine.has("onnxruntime"):
        return None
    try:
        module = machine.load("quantised_copy")
        copy: LibraryCopy = module.QuantisedCopy(library, centre)
    except (ImportError, OSError, RuntimeError, MemoryError) as failure:
        report(f"ONNX Runtime does not work here ({line(failure)}): searching with NumPy alone")
        return None
    return copy


def _has_gpu(environment: Mapping[str, str], machine: SearchMachine) -> bool:
    return gpu_visible(environment) and machine.has("cuml")


def _on_gpu(
    machine: SearchMachine, library: Vectors, processor: Callable[[], Backend] | None, report: Callable[[str], None]
) -> Backend:
    """cuML's backend, examined. Its kernels run here for the first time: those that this GPU lacks fail here."""
    make = partial(_made, machine, "cuml")
    device = make(library)
    return FallbackBackend(device, processor, report, machine.examination.examine(make, device, library))


def _made(machine: SearchMachine, name: str, library: Vectors) -> Backend:
    """The backend of that name: "numpy" is NumpyBackend of numpy_backend."""
    backend: Backend = getattr(machine.load(f"{name}_backend"), f"{name.capitalize()}Backend")(library)
    return backend
