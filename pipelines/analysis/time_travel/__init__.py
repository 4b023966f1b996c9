"""Questions to the library as it was: the stages run here, on the files of an earlier commit."""
