from random import Random

import numpy as np
from hypothesis import given, strategies as st

from stages.decode.distinct_pictures import DistinctPictures
from stages.decode.perceptual_hash import perceptual_hash
from stages.decode.picture_normaliser import PictureIdentity, picture_id
from stages.record.framing import PAD, Framing, PictureSquare
from stages.record.sources import Source


def picture(shade: int) -> PictureSquare:
    return PictureSquare(np.full((4, 4, 3), shade, np.uint8), (4, 1 + shade % 4))


@given(
    st.lists(st.tuples(st.integers(0, 20), st.text(max_size=2), st.integers(0, 9))),
    st.randoms(),
    st.sampled_from([0, 48 * 5, 10**9]),
)
def test_the_outcome_does_not_depend_on_the_order_of_the_pictures(
    given: list[tuple[int, str, int]], random: Random, in_memory: int
) -> None:
    outcomes = []
    for _ in range(2):
        with DistinctPictures(in_memory) as distinct:
            for shade, path, hash in given:
                distinct.add(Source(path, f"{hash:064x}"), picture(shade), b"coded" * shade, b"jpeg" * hash)
            members = distinct.pictures()
            coded, thumbnails = list(distinct.coded(members)), list(distinct.thumbnails(members))
            outcomes.append((members, coded, list(distinct.by_prefix(1)), thumbnails))
        random.shuffle(given)
    assert outcomes[0] == outcomes[1]
    members, coded, buckets, thumbnails = outcomes[0]
    shades = {picture_id(picture(shade)): shade for shade, *_ in given}
    assert [each.id for each in members] == sorted(shades)
    assert [each.size for each in members] == [picture(shades[each.id]).size for each in members]
    assert coded == [b"coded" * shades[each.id] for each in members]
    assert [each.coded_size for each in members] == list(map(len, coded))
    for each in members:
        assert [(source.path, source.sha256) for source in each.sources] == sorted(
            {(path, f"{hash:064x}") for shade, path, hash in given if shade == shades[each.id]}
        )
    smallest = [min(hash for shade, _, hash in given if shade == shades[each.id]) for each in members]
    assert thumbnails == [b"jpeg" * hash for hash in smallest]
    assert [each.thumbnail_size for each in members] == list(map(len, thumbnails))
    assert [each for _, bucket in buckets for each in bucket] == members
    assert all(each.id[0] == name for name, bucket in buckets for each in bucket)


def test_the_hash_is_that_of_the_picture_without_its_padding() -> None:
    wide = np.random.default_rng(0).integers(0, 256, (20, 64, 3), np.uint8)
    framed = Framing(64, PAD).frame(wide)
    with DistinctPictures() as distinct:
        distinct.add(Source("wide.png", "0" * 64), framed, b"", b"")
        (found,) = distinct.pictures()
    assert found.perceptual_hash == perceptual_hash(wide) != perceptual_hash(framed.pixels)


def test_a_known_identity_is_not_computed_again() -> None:
    with DistinctPictures() as distinct:
        distinct.add(Source("a.png", "0" * 64), picture(0), b"", b"", PictureIdentity("ab" * 32, 7))
        (found,) = distinct.pictures()
    assert (found.id, found.perceptual_hash) == ("ab" * 32, 7)
