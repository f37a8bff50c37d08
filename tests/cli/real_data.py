"""Published tables that the repository does not hold: where they are, and how a test goes without them."""
import os
import pathlib
import sys

ASKED = os.environ.get("FASCICLE_TEST_DATA")
FOLDER = pathlib.Path(ASKED or pathlib.Path(os.environ["SOURCE"]).parent / "shared" / "data")


def missing(*names):
    """What is not there, in words, or None; a failure where FASCICLE_TEST_DATA says that all is."""
    absent = [name for name in names if not (FOLDER / name).exists()]
    if not absent:
        return None
    words = f"{', '.join(absent)} not in {FOLDER}; FASCICLE_TEST_DATA names another folder, tests/data/README.md the origin"
    if ASKED:
        raise SystemExit(words)
    return words


def need(*names):
    """The paths of files; ends the test as skipped where one is missing."""
    words = missing(*names)
    if words:
        print(f"skipped: {words}")
        sys.exit(77)
    return [FOLDER / name for name in names]
