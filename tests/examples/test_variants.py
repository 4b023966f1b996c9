"""Samples, a directory each, compared with a reference: paths from variables, a working directory, links and copies."""

from tests.examples.example import Example


def test_likelihoods_and_joint_call(example: Example) -> None:
    example.repo("reference", "samples")
    example.put("reference", {"/ref.fasta": "a\nb\n", "/ref.dict": "x\n"})
    example.put("samples", {"/mother/mother.bam": "a\nc\n", "/mother/notes/today": "well\n"})
    example.create("likelihoods.json", "joint-call.json")
    assert example.went("likelihoods") == ("JOB_SUCCESS", {"processed": 1, "total": 1})
    child = example.put("samples", {"/child/child.bam": "b\nd\n", "/child/notes/a/b": "ill\n"})
    assert example.went("likelihoods", child) == ("JOB_SUCCESS", {"processed": 1, "skipped": 1, "total": 2})
    likelihoods = {
        "/child-notes/a/b": "ill\n", "/child.g.vcf": "d\n", "/child.of": "b\nd\n",
        "/mother-notes/today": "well\n", "/mother.g.vcf": "c\n", "/mother.of": "a\nc\n",
    }  # fmt: skip
    assert example.files("likelihoods") == likelihoods
    assert example.went("joint_call", child) == ("JOB_SUCCESS", {"processed": 1, "total": 1})
    assert example.files("joint_call") == {
        **{f"/all{path}": text for path, text in likelihoods.items()},
        "/joint.vcf": "c\nd\n", "/reference/ref.dict": "x\n", "/reference/ref.fasta": "a\nb\n",
    }  # fmt: skip
    # The commits that it read: of the child's commit set, or the branch's head where the set has none.
    *_, said = example.log("joint_call")
    (reference,) = example.client.list_commit("reference", project_name=example.project)
    assert said == f"{child} {reference.commit.id}"
