"""Compares what ctest skipped with tests/expected_skips: check_skips.py JUNIT.xml

Prints every skip with its reason. Status 1 if one is not expected on this machine: what is never
run there has not been tested.
"""
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree

HERE = pathlib.Path(__file__).resolve().parent

# What WHERE may call beside the shell's own commands.
FUNCTIONS = """
mirror_answers() {
  local mirror
  mirror=$(scripts/debian-mirror) && timeout 60 python3 -c 'import sys, urllib.request
urllib.request.urlopen(sys.argv[1], timeout=20)' "${mirror%/}/dists/bookworm/Release"
}
"""


def rules():
    for line in (HERE / "expected_skips").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        # A command may have bars of its own.
        names, rest = line.split(" | ", 1)
        where, why = rest.rsplit(" | ", 1)
        yield re.compile(names), where, why


def is_so(command):
    return subprocess.run(["bash", "-c", FUNCTIONS + command], cwd=HERE.parent,
                          stdin=subprocess.DEVNULL,
                          capture_output=True, check=False).returncode == 0


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    cases = xml.etree.ElementTree.parse(sys.argv[1]).getroot().iter("testcase")
    skipped = [case.get("name") for case in cases if case.find("skipped") is not None]
    unexpected = 0
    table = list(rules()) if skipped else []
    for name in skipped:
        fitting = [(where, why) for names, where, why in table if names.fullmatch(name)]
        why = next((why for where, why in fitting if is_so(where)), None)
        print(f"skipped: {name}: {why or 'not expected on this machine'}")
        unexpected += why is None
    if unexpected:
        print(f"check_skips: {unexpected} skips are not expected here; run them with ctest -V, "
              f"or write down in tests/expected_skips where they are", file=sys.stderr)
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
