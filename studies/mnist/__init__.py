"""All 70,000 digits of MNIST through the pipelines, beside plain Keras."""
