"""Pictures of questions: files that crash their decoders."""

import signal
from functools import partial
from pathlib import Path

import pytest

from stages.record.framing import PAD, Framing
from stages.serving.answer import uploads
from stages.serving.answer.decoding import Decoding, File, View, turns
from stages.serving.answer.fetching import Limits
from stages.serving.answer.questions import AskedPicture
from stages.serving.follow.failures import Refusal
from tests.loops import completed
from tests.stages.faultydecoders import FAULTY, program
from tests.stages.serving.services import made

VIEW = View(Framing(32, PAD), None)
CRASHING = made(1) + b"SIGNAL=" + bytes([signal.SIGSEGV])


def test_a_file_that_crashes_its_decoder_is_refused_and_others_are_decoded() -> None:
    contents = [CRASHING, made(2), CRASHING, made(3)]
    files = [File(f"{number}.png", partial(bytes, content)) for number, content in enumerate(contents)]

    async def ask() -> None:
        decoding = Decoding(Limits(), program(FAULTY, Path()))
        try:
            for number, content in enumerate(contents):
                asked = AskedPicture(upload=number)
                if content == CRASHING:
                    with pytest.raises(Refusal) as refused:
                        await decoding.picture(VIEW, asked, files, turns())
                    assert (refused.value.status, refused.value.code) == (422, "not-a-picture")
                    assert f"{number}.png: damaged PNG picture: its decoder ended with SIGSEGV" in str(refused.value)
                else:
                    picture, _ = await decoding.picture(VIEW, asked, files, turns())
                    assert picture.id == uploads.seen("", content, VIEW.framing).id
        finally:
            await decoding.close()

    completed(ask())
