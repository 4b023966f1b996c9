from hypothesis import given, strategies as st

from localpachd.api.messages.pfs_messages import FileInfos
from localpachd.api.schema.schema import pfs_pb2
from localpachd.pfs.pfs_entities import Commit, CommitInfo, Repo
from localpachd.storage.trees import TreeNode

texts = st.text(st.characters(codec="utf-8"), max_size=300)
nodes = st.builds(
    TreeNode,
    path=texts.map(lambda text: f"/{text}"),
    is_dir=st.booleans(),
    size=st.integers(0, 2**63 - 1),
    hash=st.binary(min_size=32, max_size=32),
    tag=texts,
    content=st.none(),
)


def commit(finishing: int | None) -> CommitInfo:
    named = Commit(Repo("default", "images"), "0123456789ab4def0123456789abcdef", "master")
    return CommitInfo(1, named, "USER", "", None, (), 1, finishing, finishing, (), "", None)


@given(st.none() | st.integers(0, 2**62), st.lists(nodes, min_size=1, max_size=4))
def test_bytes_encoded_by_hand_equal_the_librarys(finishing: int | None, found: list[TreeNode]) -> None:
    infos = FileInfos(commit(finishing))
    for node in found:
        assert infos.encoded(node) == infos.message(node).SerializeToString()
        read = pfs_pb2.FileInfo.FromString(infos.encoded(node))
        assert (read.file.path, read.file.datum, read.size_bytes, read.hash) == (
            node.path, node.tag, node.size, node.hash,
        )  # fmt: skip
