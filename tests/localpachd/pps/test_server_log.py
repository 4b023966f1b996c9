"""The server's own log, which a query without a pipeline or job returns."""

import logging
import threading

from localpachd.pfs.changes import ChangeNotifier
from localpachd.pps.pps_entities import PipelineActivity
from localpachd.pps.server_log import ServerLog


def _logged(changes: ChangeNotifier) -> tuple[logging.Logger, ServerLog]:
    log = ServerLog(changes)
    logger = logging.Logger("localpachd.tested")
    logger.addHandler(log)
    return logger, log


def test_lines_come_once_and_then_the_new_ones() -> None:
    logger, log = _logged(ChangeNotifier())
    logger.warning("first\nsecond")
    tail = log.tail(0)
    first, second = [line.message for line in tail.lines()]
    assert first.endswith("WARNING localpachd.tested: first")
    assert second == "second"
    assert list(tail.lines()) == []
    logger.error("third")
    (third,) = tail.lines()
    assert third.message.endswith("ERROR localpachd.tested: third")
    assert (third.user, third.master, third.pipeline) == (False, False, None)
    assert list(log.tail(third.ts + 1).lines()) == []


def test_a_follower_is_woken() -> None:
    changes = ChangeNotifier()
    logger, log = _logged(changes)
    tail = log.tail(0)
    with changes.feed(PipelineActivity(None)) as feed:
        speaker = threading.Thread(target=logger.warning, args=("said",))
        speaker.start()
        feed.wait(timeout=30)
    assert [line.message.rpartition(" ")[2] for line in tail.lines()] == ["said"]
    speaker.join()


def test_only_the_newest_lines_are_kept() -> None:
    logger, log = _logged(ChangeNotifier())
    for number in range(10_050):
        logger.warning("%d", number)
    kept = [line.message.rpartition(" ")[2] for line in log.tail(0).lines()]
    assert kept == [str(number) for number in range(50, 10_050)]
