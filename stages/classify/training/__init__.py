"""From labelled pictures to a trained network: the dataset, heads, fine-tuning, and their validation."""
