"""The pipeline's stages: plain programs that read directories and write one. Only `contract` knows Pachyderm."""
