"""The pipeline's stages: plain programs that read directories and write one. Only `contract` knows Pachyderm."""

import os

# TensorFlow reads this when it is imported. Its own kernels sum in an order that depends on the number of threads;
# oneDNN's do not, and are twice as fast. By default it uses the latter only on processors with AVX-512.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
