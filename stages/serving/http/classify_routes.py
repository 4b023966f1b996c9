"""The routes of the promoted model: its labels, and the labels of pictures."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request, Response

from stages.serving.answer.classify_handler import ClassifyHandler
from stages.serving.answer.metrics import ServiceMetrics
from stages.serving.answer.request_schema import DEFAULT_TOP, MOST_TOP
from stages.serving.http import api_docs
from stages.serving.http.json_responses import AsciiJSONResponse
from stages.serving.http.request_parser import CLASSIFY
from stages.serving.http.response_models import ClassificationsBody, ClassifyBody
from stages.serving.http.response_writer import ResponseWriter


class ClassifyRoutes:
    """Answers from the promoted model of the moment."""

    def __init__(self, classifying: ClassifyHandler, metrics: ServiceMetrics, answered: ResponseWriter) -> None:
        self.state = classifying.state
        self._metrics = metrics
        self._answered = answered
        self._classifying = classifying

    async def close(self) -> None:
        """Ends its thread."""
        await self._classifying.close()

    def add_to(self, app: FastAPI) -> None:
        extra, made = api_docs.request_openapi(CLASSIFY), ClassifyBody | ClassificationsBody
        app.post("/classify", tags=["classify"], openapi_extra=extra, response_model=made)(self.classify)
        app.get("/classes", tags=["classify"])(self.classes)

    async def classify(self, request: Request) -> Response:
        """The likeliest labels of a picture, of a region of one, or of each of several; several questions in one
        call."""
        self._classifying.promoted()  # before a body is read for nothing
        return await self._answered.response(request, CLASSIFY, self._classifying.answer)

    async def classes(self) -> Response:
        """The labels of the promoted model, how well it knows them, and where it comes from."""
        return AsciiJSONResponse(self._classifying.promoted().card())

    def status(self) -> dict[str, Any] | None:
        """The promoted model in the status of the service; None where nothing is promoted."""
        state = self.state()
        if state.kind == "empty":
            return None
        known = {"commits": None, "model": None, "devices": None}
        if state.snapshot is not None:
            known |= state.snapshot.origin()
        top = {"default": DEFAULT_TOP, "most": MOST_TOP}
        return {"state": state.kind, "message": state.message, **known, "top": top}

    def measure(self) -> None:
        """Sets the metrics of the moment."""
        held = self.state().snapshot
        commits = None if held is None else (held.commits.select, held.commits.labelled, held.commits.model)
        self._metrics.classifying(commits, 0 if held is None else len(held.classifier.chosen.labels))
        self._metrics.waiting.labels("classify").set(len(self._classifying.passes))
