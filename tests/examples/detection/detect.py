"""Finds bright patches in frames: one process asks for many frames, one after the other."""

import glob
import json
import os

from PIL import Image
from python_pachyderm import batch_all_datums

print("started", flush=True)
model = {"commit": ""}


def load():
    """Reads the model, a pipe that fills when it is opened, unless that commit's model is loaded already."""
    if model["commit"] != os.environ["model_COMMIT"]:
        with open("/pfs/model/detector.json") as file:
            model.update(json.load(file), commit=os.environ["model_COMMIT"])
        print("loaded", model["threshold"], flush=True)
    return model["threshold"]


@batch_all_datums
def detect():
    threshold = load()
    for name in glob.glob("/pfs/frames/*/*"):
        with Image.open(name) as frame:
            box = frame.convert("L").point(lambda value: 255 * (value >= threshold)).getbbox()
        out = name.replace("/pfs/frames", "/pfs/out").replace(".png", ".json")
        os.makedirs(os.path.dirname(out), exist_ok=True)
        with open(out, "w") as file:
            json.dump({"datum": os.environ["PACH_DATUM_ID"], "box": box}, file)


if __name__ == "__main__":
    detect()
