"""The pipeline's stages: plain programs, directories in, directory out. Only `contract` knows Pachyderm."""
