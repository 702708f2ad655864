#!/usr/bin/env python3
"""Boots the guest with a daemon that behaves in a certain way and runs a test program in it.

  run_in_guest.py --programs FOLDER --null-daemon FILE PART [--smp N] [--seconds S]

GPUSIM_SEED replays the fuzzer's decisions.
"""
import argparse
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]

# The daemon's arguments; the program with its arguments. "{...}" is replaced.
PARTS = {
    "quick": ([], "driver_test quick"),
    "slow": (["--delay-ms", "300", "--say-pid"], "driver_test slow"),
    "never": (["--never", "--say-pid"], "driver_test never"),
    "dies": (["--die-on-bell"], "driver_test dies"),
    "fuzz": ([], "ioctl_fuzz {seconds} {seed}"),
}

# Processes that end of a signal are the fuzzer's business; the rest is not in order.
SCRIPT = """
dmesg -c > /dev/null
/bin/{command}
status=$?
if dmesg | grep -E 'BUG|WARNING|Oops|Unable to handle|Bad page|INFO: task|slab|refcount_t|not a head'; then
  dmesg | tail -n 80
  status=90
fi
rmmod gpusim || status=91
exit $status
"""


def tool(*words):
    done = subprocess.run([ROOT / "scripts" / words[0], *words[1:]], stdout=subprocess.PIPE,
                          text=True)
    if done.returncode:
        print(f"scripts/{words[0]} ended with status {done.returncode}", file=sys.stderr)
        sys.exit(done.returncode)
    return done.stdout.strip().splitlines()[-1]


def main():
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter,
                                     description=__doc__)
    parser.add_argument("--programs", required=True, type=pathlib.Path)
    parser.add_argument("--null-daemon", required=True, type=pathlib.Path)
    parser.add_argument("--smp", default="2")
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("part", choices=PARTS)
    arguments = parser.parse_args()
    daemon, command = PARTS[arguments.part]
    command = command.format(seconds=arguments.seconds, seed=os.environ.get("GPUSIM_SEED", ""))
    qemu, image = tool("build-qemu"), tool("guest-image")
    with tempfile.NamedTemporaryFile("w", suffix=".sh") as script:
        script.write(SCRIPT.format(command=command))
        script.flush()
        guest = subprocess.Popen(
            [ROOT / "scripts/guest-run", "--qemu", qemu, "--image", image, "--shared",
             "--smp", arguments.smp, "--timeout", str(180 + arguments.seconds),
             "--append", "slub_debug=FZPU" if arguments.part == "fuzz" else "",
             "--add", f"/bin/{command.split()[0]}={arguments.programs / command.split()[0]}",
             script.name, "--", "-semihosting-config",
             "enable=on,gpusim=" + " ".join([str(arguments.null_daemon), "--qemu-fd", "3",
                                             *daemon])],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        pid = None
        for line in guest.stdout:
            print(line, end="", flush=True)
            if found := re.search(r"null_daemon: pid (\d+)", line):
                pid = int(found[1])
            if line.startswith("daemon: kill") and pid:
                os.kill(pid, signal.SIGKILL)
                pid = None
        sys.exit(guest.wait())


if __name__ == "__main__":
    main()
