#!/usr/bin/env python3
"""Call frames found from code against the call frame information that GCC wrote for the same code.

  test_caller_rules.py CALLER_RULES BUILD_FOLDER [UNITTEST ARGUMENT]...
"""

import pathlib
import re
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = {"c": HERE / "guests.c", "c++": HERE.parent / "threads" / "crowd.cc"}


class CallerRules(unittest.TestCase):
    def compare(self, compiler, *options, source="c"):
        elf = self.build / f"rules{''.join(options)}.{compiler.split('-')[0]}.{source}.elf"
        language = "g++" if source == "c++" else "gcc"
        subprocess.run([f"{compiler}-linux-gnu-{language}", "-w", "-static", "-pthread", *options,
                        SOURCES[source], "-o", elf], check=True)
        done = subprocess.run([self.check, elf], capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr)
        print(elf.name, done.stdout.splitlines()[-1], flush=True)
        counts = re.search(r"(\d+) functions, (\d+) instructions: (\d+) agree, (\d+) unknown, "
                           r"(\d+) differ\n\Z", done.stdout)
        return tuple(map(int, counts.groups())), done.stdout

    def test_programs(self):
        """What differs is nearly all in code that says more than its instructions do: assembly,
        and functions that return into handlers of exceptions."""
        for compiler, words in (("aarch64", ("-O2", "-g")), ("riscv64", ("-O2", "-g")),
                                ("riscv64", ("-Os", "-g", "-std=c++20"))):
            with self.subTest(f"{compiler} {words}"):
                counts, output = self.compare(compiler, *words,
                                              source="c++" if len(words) == 3 else "c")
                functions, instructions, agree, _, differ = counts
                self.assertGreater(functions, 250)
                self.assertGreater(agree / instructions, 0.975, output)
                self.assertLess(differ / instructions, 0.005, output)


if __name__ == "__main__":
    CallerRules.check, CallerRules.build = sys.argv[1], pathlib.Path(sys.argv[2])
    CallerRules.build.mkdir(parents=True, exist_ok=True)
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
