"""fsck finds no contradictions in what a test made; on a localpachd there are none at all."""

from tests.parity.places import FsckReport, MakeInput, Place, commit_of


def test_a_healthy_server_has_no_errors(place: Place, pfs: MakeInput, complaints: FsckReport) -> None:
    repo = place.repo()
    place.put(repo, a="1")
    pipeline = place.pipeline(f"cp /pfs/{repo}/* /pfs/out/", input=pfs(repo))
    place.job(pipeline, place.put(repo, b="2"))
    assert complaints(repo, pipeline) == complaints(repo, pipeline, fix=True) == []


def test_no_output_of_deleted_datums_remains(place: Place, pfs: MakeInput, complaints: FsckReport) -> None:
    repo = place.repo()
    place.put(repo, a="1", b="2")
    pipeline = place.pipeline(f"cp /pfs/{repo}/* /pfs/out/", input=pfs(repo))
    commit = place.put(repo, a=None)
    place.job(pipeline, commit)
    assert complaints(repo, pipeline, zombie_target=commit_of(pipeline, commit)) == []
    assert complaints(repo, pipeline, zombie_all=True) == []
