"""What tests share in which several processes work on one study."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "sweep"))
from studies import SweepCase, main  # noqa: E402,F401

RESULTS = ("results.csv", "results.json", "results.tex", "index.html")
# What is measured of a run, and which process it was.
MEASURED = {"wall_seconds": 1, "cpu_seconds": 1, "max_rss_bytes": 1, "load": 1, "others": 0,
            "started": "then", "session": "", "claim": 0}


class SharedStudyCase(SweepCase):
    def study(self, steps=20000000, cores="1,2,3,4,5,6,7,8,9,10"):
        """Ten points of a fifth of a second each."""
        return [self.guest, "--entry", "each", "--arg", "@core", "--arg", "@cores", "--arg", steps,
                "--scaling", "weak", "--cores", cores, "--run-option=--no-native", "--energy",
                "et-soc1"]

    def points(self, folder=None):
        return sorted(((folder or self.out) / "points").glob("*.json"))

    def cards(self, folder=None):
        """What the processes that work on a study say of themselves."""
        cards = []
        for path in sorted(((folder or self.out) / "workers").glob("*.json")):
            try:
                cards.append(json.loads(path.read_text()))
            except (OSError, ValueError):  # just being replaced
                continue
        return cards

    def wait_until(self, condition, what, seconds=60):
        deadline = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), deadline, f"waited in vain: {what}")
            time.sleep(0.01)

    def kill_while_it_runs(self, *numbers, at_least=1):
        """SIGKILL for the processes of these numbers, once points are finished and each runs one.

        All are stopped before anyone looks: however slow the machine is, no other process ends the
        study between the look and the kill.
        """
        def send(card, which):
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                os.kill(card["pid"], which)

        deadline = time.monotonic() + 60
        while True:
            cards = {c["number"]: c for c in self.cards() if "status" not in c}
            if len(self.points()) >= at_least and cards.keys() >= set(numbers):
                for card in cards.values():
                    send(card, signal.SIGSTOP)
                if all(list((self.out / "running").glob(f"{cards[n]['session']}-{n}-*/"))
                       for n in numbers):
                    break
                for card in cards.values():
                    send(card, signal.SIGCONT)
            self.assertLess(time.monotonic(), deadline, f"no point that each of {numbers} runs")
            time.sleep(0.01)
        for number, card in cards.items():
            send(card, signal.SIGKILL if number in numbers else signal.SIGCONT)

    def same_as_on_one_machine(self, *words):
        """All result files, byte for byte, but for what was measured."""
        local = self.folder / "local"
        self.sweep(*words, "-o", local)
        self.assertEqual([p.name for p in self.points()], [p.name for p in self.points(local)])
        # What the processes wrote is what a report finds.
        written = [(self.out / name).read_bytes() for name in RESULTS]
        self.sweep("--report", self.out)
        self.assertEqual(written, [(self.out / name).read_bytes() for name in RESULTS])
        for folder in (self.out, local):
            still = self.folder / f"{folder.name}-still"
            shutil.copytree(folder, still)
            study = json.loads((still / "study.json").read_text())
            study["begun"] = "then"
            study["machine"]["host_threads"] = 1
            (still / "study.json").write_text(json.dumps(study))
            for path in self.points(still):
                point = json.loads(path.read_text())
                point.update(MEASURED)
                point["machine"]["host_threads"] = 1
                point["stats"].update(seconds=1, mips=1)
                path.write_text(json.dumps(point))
            self.sweep("--report", still)
        for name in RESULTS:
            ours, theirs = (self.folder / f"{f.name}-still" / name for f in (self.out, local))
            self.assertGreater(ours.stat().st_size, 100)
            self.assertEqual(ours.read_bytes(), theirs.read_bytes(), name)

    def assert_kept(self, before):
        """`before`: {path: time} of points that must not have been run again."""
        self.assertEqual({p: p.stat().st_mtime_ns for p in before}, before)

    def stamps(self):
        return {p: p.stat().st_mtime_ns for p in self.points()}
