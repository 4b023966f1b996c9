"""The files that the stages write for each other: packs, vectors, thumbnails, entries. Knows no stage."""
