"""Pictures of questions: files that crash their decoders."""

import signal
from functools import partial
from pathlib import Path

import pytest

from stages.files.url_fetcher import FetchLimits
from stages.record.framing import PAD, Framing
from stages.serving.answer import upload_decoder
from stages.serving.answer.query_decoder import DecodeContext, PictureUpload, QueryDecoder, decode_slots
from stages.serving.answer.request_schema import PictureReference
from stages.serving.follow.refusals import Refusal
from tests.event_loops import run_coroutine
from tests.stages.faulty_decoders import FAULTY, program
from tests.stages.serving.services import made

VIEW = DecodeContext(Framing(32, PAD), None)
CRASHING = made(1) + b"SIGNAL=" + bytes([signal.SIGSEGV])


def test_a_file_that_crashes_its_decoder_is_refused_and_others_are_decoded() -> None:
    contents = [CRASHING, made(2), CRASHING, made(3)]
    files = [PictureUpload(f"{number}.png", partial(bytes, content)) for number, content in enumerate(contents)]

    async def ask() -> None:
        decoding = QueryDecoder(FetchLimits(), program(FAULTY, Path()))
        try:
            for number, content in enumerate(contents):
                asked = PictureReference(upload=number)
                if content == CRASHING:
                    with pytest.raises(Refusal) as refused:
                        await decoding.picture(VIEW, asked, files, decode_slots())
                    assert (refused.value.status, refused.value.code) == (422, "not-a-picture")
                    assert f"{number}.png: damaged PNG picture: its decoder ended with SIGSEGV" in str(refused.value)
                else:
                    picture, _ = await decoding.picture(VIEW, asked, files, decode_slots())
                    assert picture.id == upload_decoder.decode_upload("", content, VIEW.framing)[0].id
        finally:
            await decoding.close()

    run_coroutine(ask())
