"""Files grouped into datums by a part of their names: of one repo, of several, and of joined pairs."""

from tests.examples.example import Example

RESULTS = {
    "/T1-LIPID-PATID1-CLIA24.txt": "a\n",
    "/T2-BASIC-PATID1-CLIA24.txt": "b\n",
    "/T3-LIPID-PATID2-CLIA24.txt": "c\n",
    "/T4-LIPID-PATID1-CLIA33.txt": "d\n",
}


def test_results_by_hospital_and_by_patient(example: Example) -> None:
    example.repo("labresults")
    example.put("labresults", RESULTS)
    example.create("group_by_hospital.json")
    example.render("by_patient.jsonnet", suffix="v1")
    assert example.went("group_by_hospital") == ("JOB_SUCCESS", {"processed": 2, "total": 2})
    assert [*example.files("group_by_hospital")] == [
        "/24/T1-LIPID-PATID1-CLIA24.txt", "/24/T2-BASIC-PATID1-CLIA24.txt", "/24/T3-LIPID-PATID2-CLIA24.txt",
        "/33/T4-LIPID-PATID1-CLIA33.txt",
    ]  # fmt: skip
    assert example.went("group_by_patient_v1") == ("JOB_SUCCESS", {"processed": 2, "total": 2})
    assert example.went("reduce_group_by_patient_v1") == ("JOB_SUCCESS", {"processed": 2, "total": 2})
    assert example.files("reduce_group_by_patient_v1") == {"/1.txt": "a\nb\nd\n", "/2.txt": "c\n"}

    # One more file makes another datum, for a datum's identity is that of all its files.
    more = example.put("labresults", {"/T5-BASIC-PATID2-CLIA33.txt": "e\n"})
    assert example.went("group_by_hospital", more) == ("JOB_SUCCESS", {"processed": 1, "skipped": 1, "total": 2})
    assert example.went("reduce_group_by_patient_v1", more) == (
        "JOB_SUCCESS", {"processed": 1, "skipped": 1, "total": 2},
    )  # fmt: skip
    assert example.files("reduce_group_by_patient_v1") == {"/1.txt": "a\nb\nd\n", "/2.txt": "c\ne\n"}


def test_groups_over_three_repos(example: Example) -> None:
    example.repo("stores", "purchases", "returns")
    example.put("stores", {"/STOREID1.txt": "North", "/STOREID2.txt": "South"})
    example.put("purchases", {"/ORDER1_STOREID1.txt": "10\n", "/ORDER2_STOREID1.txt": "5\n"})
    example.put("returns", {"/ODD_STOREID7.txt": "2\n", "/ORDER2_STOREID1.txt": "5\n"})
    example.create("revenue.yaml")
    assert example.went("group_store_revenue") == ("JOB_SUCCESS", {"processed": 3, "total": 3})
    # A key without a store leaves the variable of stores unset.
    assert example.files("group_store_revenue") == {
        "/0.txt": " 0 - 2\n",
        "/1.txt": "North 15 - 5\n",
        "/2.txt": "South 0 - 0\n",
    }
    late = example.put("purchases", {"/ORDER3_STOREID2.txt": "8\n"})
    assert example.went("group_store_revenue", late) == ("JOB_SUCCESS", {"processed": 1, "skipped": 2, "total": 3})
    assert example.files("group_store_revenue")["/2.txt"] == "South 8 - 0\n"


def test_a_join_within_a_group(example: Example) -> None:
    example.repo("purchases", "payments", "lorries")
    example.put("purchases", {f"/ORDER{n}_STOREID{store}.txt": "" for n, store in ((1, 1), (2, 1), (3, 2))})
    example.put("payments", {f"/ORDER{n}_STOREID{store}.txt": "" for n, store in ((1, 1), (2, 1), (4, 2))})
    example.put("lorries", {"/red-STOREID1": "", "/blue-STOREID1": ""})
    example.create("deliveries.yaml")
    # Orders 3 and 4 have no counterpart; the pairs of orders 1 and 2 go with the two lorries of their store.
    assert example.went("deliveries") == ("JOB_SUCCESS", {"processed": 1, "total": 1})
    assert example.files("deliveries")["/1"].split() == [
        "lorry/blue-STOREID1", "lorry/red-STOREID1", "payment/ORDER1_STOREID1.txt", "payment/ORDER2_STOREID1.txt",
        "purchase/ORDER1_STOREID1.txt", "purchase/ORDER2_STOREID1.txt",
    ]  # fmt: skip
    (datum,) = example.client.list_datum("deliveries", example.job("deliveries").job.id, project_name=example.project)
    names = [each.file.commit.repo.name for each in datum.data]
    assert names == ["lorries", "lorries", *["payments", "purchases"] * 2]
    (said,) = example.log("deliveries")
    last = datum.data[-1].file.path
    assert said.split() == ["1", last[6], datum.data[1].file.path[1:]]  # of several files the last one's value counts
