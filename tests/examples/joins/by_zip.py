"""by_zip.py REPO: puts a store and a file of REPO, where they exist, below the store's zip code."""

import glob
import json
import os
import sys

store = os.environ.get("PACH_DATUM_stores_JOIN_ON")
found = glob.glob(f"/pfs/{sys.argv[1]}/*.txt")
zipcode, line = "UNKNOWN", "no such store\n"
if store is not None:
    with open(f"/pfs/stores/STOREID{store}.txt") as file:
        known = json.load(file)
    zipcode, line = known["address"]["zipcode"], f"{known['name']}\n"
os.makedirs(f"/pfs/out/{zipcode}", exist_ok=True)
name = os.path.basename(found[0]) if found else f"STOREID{store}.txt"
with open(f"/pfs/out/{zipcode}/{name}", "w") as out:
    out.write(line)
    for each in found:
        with open(each) as file:
            out.write(file.read())
