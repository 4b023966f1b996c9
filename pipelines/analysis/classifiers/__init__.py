"""The pipelines that train classifiers, from the command's side: labels and parameters put, runs compared, one
promoted."""
