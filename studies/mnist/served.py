"""The test digits classified by the service of the promoted classifier, over HTTP. Knows no training."""

import http.client
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from stages.classify.training.prediction_measures import BINS
from studies.mnist import digits

_AT_ONCE = 16  # pictures of a request
_ADDRESS = re.compile(r"http://([\w.]+:\d+)")


@dataclass(frozen=True)
class TestResult:
    """The digits of n test pictures, those predicted, and the probabilities of these; (n,) each."""

    own: npt.NDArray[np.int64]
    predicted: npt.NDArray[np.int64]
    probabilities: npt.NDArray[np.float64]

    @property
    def right(self) -> int:
        """The number of right predictions."""
        return int((self.own == self.predicted).sum())

    @property
    def calibration_error(self) -> float:
        """The expected calibration error, in 15 bins."""
        bins = np.minimum((self.probabilities * BINS).astype(np.int64), BINS - 1)
        gaps = np.bincount(bins, (self.own == self.predicted) - self.probabilities, BINS)
        return float(np.abs(gaps).sum() / len(self.own))

    def confusions(self, most: int) -> str:
        """The most frequent mistakes in words."""
        wrong = self.own != self.predicted
        pairs, counts = np.unique(np.stack([self.own[wrong], self.predicted[wrong]]), axis=1, return_counts=True)
        order = np.argsort(-counts, kind="stable")[:most]
        return ", ".join(f"{pairs[0, at]} for {pairs[1, at]} {counts[at]}" for at in order)


@contextmanager
def service(address: str) -> Iterator[str]:
    """HOST:PORT of a service of the classifier in production, which ends at the end."""
    command = [sys.executable, "-m", "pipelines.cli", "classify", "serve", "--port", "0", "--no-browser"]
    process = subprocess.Popen(
        [*command, "--address", address], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    try:
        for said in process.stdout:
            print(said, end="", file=sys.stderr)
            if found := _ADDRESS.search(said):
                _wait(found[1])
                yield found[1]
                return
        raise RuntimeError("the service did not start")
    finally:
        process.terminate()
        process.communicate()


def _wait(place: str) -> None:
    """Waits until the classifier is in memory."""
    while True:
        connection = http.client.HTTPConnection(place, timeout=60)
        connection.request("GET", "/ready")
        if connection.getresponse().status == http.client.OK:
            return
        time.sleep(0.5)


def classify(place: str, directory: Path, most: int) -> TestResult:
    """The first test pictures as the service classifies them."""
    own = digits.labels(directory, digits.TEST)[:most].astype(np.int64)
    answers: list[tuple[int, float]] = []
    connection = http.client.HTTPConnection(place, timeout=600)
    for begin in range(0, len(own), _AT_ONCE):
        some = digits.pictures(directory, digits.TEST)[:most][begin : begin + _AT_ONCE]
        body = b"".join(
            b'--line\r\nContent-Disposition: form-data; name="picture"; filename="%d.pgm"\r\n\r\n' % at
            + b"P5 %d %d 255\n" % each.shape
            + each.tobytes()
            + b"\r\n"
            for at, each in enumerate(some)
        )
        headers = {"Content-Type": "multipart/form-data; boundary=line"}
        connection.request("POST", "/classify?top=1", body + b"--line--\r\n", headers)
        answer = connection.getresponse()
        content = json.loads(answer.read())
        if answer.status != http.client.OK:
            raise RuntimeError(f"the service answered {answer.status}: {content}")
        (found,) = content["answers"] if "answers" in content else (content,)
        best = [each["labels"][0] for each in found["pictures"]]
        answers += [(int(each["label"]), each["probability"]) for each in best]
    predicted, probabilities = zip(*answers, strict=True)
    return TestResult(own, np.array(predicted), np.array(probabilities))
