"""The route of searches, and what the index says of the service."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI, Request, Response

from stages.files.question import DEFAULT_K
from stages.knn.search_settings import LARGEST_K, METRICS
from stages.serving.answer import search_answer
from stages.serving.answer.metrics import ServiceMetrics
from stages.serving.answer.query_embedder import QueryEmbedder
from stages.serving.answer.search_handler import SearchHandler
from stages.serving.follow.configuration import ServiceConfiguration
from stages.serving.follow.snapshots import Snapshot, SnapshotState
from stages.serving.http import api_docs
from stages.serving.http.copy_routes import CopyRoutes
from stages.serving.http.edit_door import EditDoor, LibraryEditor
from stages.serving.http.filter_routes import FilterRoutes
from stages.serving.http.label_routes import LabelRoutes
from stages.serving.http.library_routes import LibraryRoutes
from stages.serving.http.map_routes import MapRoutes
from stages.serving.http.request_parser import SEARCH
from stages.serving.http.response_models import SearchBody, SearchesBody
from stages.serving.http.response_writer import ResponseWriter
from stages.serving.http.stored_zip import MOST_BYTES, MOST_MEMBERS
from stages.serving.http.trace_renderer import TraceRenderer


class SearchRoutes:
    """Answers from the snapshot of the moment, with the routes of what the library holds, and of its changes. Raises
    StageError for an editor without a token."""

    def __init__(
        self,
        state: Callable[[], SnapshotState[Snapshot]],
        metrics: ServiceMetrics,
        seeing: QueryEmbedder,
        answered: ResponseWriter,
        tracer: TraceRenderer | None,
        configuration: ServiceConfiguration,
        editor: LibraryEditor | None,
    ) -> None:
        self.state = state
        self._metrics = metrics
        self._answered = answered
        self._ask = SearchHandler(state, metrics, seeing)
        self._door = EditDoor(configuration, editor)
        self._labels = LabelRoutes(self._ask.snapshot, self._door)
        self._others = (
            self._door,
            LibraryRoutes(self._ask.snapshot, seeing, tracer),
            FilterRoutes(self._ask.snapshot),
            MapRoutes(self._ask.snapshot),
            CopyRoutes(self._ask.snapshot, self._door),
        )

    async def close(self) -> None:
        """Ends the threads."""
        for each in self._others:
            each.close()
        await self._ask.close()

    def add_to(self, app: FastAPI) -> None:
        extra = api_docs.request_openapi(SEARCH)
        app.post("/search", tags=["search"], openapi_extra=extra, response_model=SearchBody | SearchesBody)(self.search)
        for each in (*self._others, self._labels):
            each.add_to(app)

    async def search(self, request: Request) -> Response:
        """The nearest pictures to a picture, to a region of one, or to several together; several searches in one
        call."""
        self._ask.snapshot()  # before a body is read for nothing
        return await self._answered.response(request, SEARCH, self._ask.answer)

    def status(self) -> dict[str, Any]:
        """The library in the status of the service."""
        snapshot = self.state().snapshot
        return {
            "pictures": 0 if snapshot is None else len(snapshot.library),
            "edit": self._door.open,
            "copies": snapshot is not None and snapshot.copies is not None,
            "map": snapshot is not None and snapshot.maps is not None,
            "metric": None,
            "calibrated": False,
            "text": snapshot is not None and snapshot.words is not None,
            "embeds": snapshot is not None and snapshot.embedder is not None,
            "metrics": METRICS,
            **(_described(snapshot) if snapshot is not None else {}),
            "k": {"default": DEFAULT_K, "most": LARGEST_K},
            "zip": {"files": MOST_MEMBERS, "bytes": MOST_BYTES},
        }

    def measure(self) -> None:
        """Sets the metrics of the moment."""
        held = self.state().snapshot
        commits = None if held is None else (held.commits.index, held.commits.library, held.commits.model)
        self._metrics.serving(commits, 0 if held is None else len(held.library))
        self._metrics.waiting.labels("search").set(len(self._ask.searches))


def _described(snapshot: Snapshot) -> dict[str, Any]:
    """metrics: those that give different orders. Of vectors of length 1 the nearest are the same in both."""
    metric = snapshot.library.metric
    return {
        **search_answer.origin(snapshot),
        "metric": metric,
        "metrics": [metric] if snapshot.scale is not None and snapshot.scale.unit else METRICS,
        "calibrated": snapshot.similarity is not None,
    }
