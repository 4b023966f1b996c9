"""Small archives whose bytes depend on their members alone."""

import io
import tarfile
import zipfile
from collections.abc import Mapping


def zipped(members: Mapping[str, bytes]) -> bytes:
    """A ZIP file; equal members give equal bytes at any time."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return file.getvalue()


def tarred(members: Mapping[str, bytes], dialect: int = tarfile.PAX_FORMAT) -> bytes:
    """A tar file in one of tarfile's formats."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=dialect) as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return file.getvalue()


def unpadded(tar: bytes) -> bytes:
    """A tar file that ends after its two empty blocks, without those that fill it up to 10 KiB."""
    blocks = -(-len(tar.rstrip(b"\0")) // tarfile.BLOCKSIZE) + 2
    return tar[: blocks * tarfile.BLOCKSIZE]
