#!/usr/bin/env python3
"""scripts/test fails on a skip that tests/expected_skips does not allow on this machine.

  test_skips.py CHECK_SKIPS [UNITTEST ARGUMENT]...
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

PROJECT = """cmake_minimum_required(VERSION 3.25)
project(skips NONE)
enable_testing()
add_test(NAME passes COMMAND sh -c "exit 0")
add_test(NAME system.isa_names COMMAND sh -c "exit @STATUS@")
add_test(NAME unit.native_code COMMAND sh -c "exit 77")
set_tests_properties(system.isa_names unit.native_code PROPERTIES SKIP_RETURN_CODE 77)
"""


class Skips(unittest.TestCase):
    check_skips: pathlib.Path

    def checked(self, status):
        """check_skips on what ctest itself writes."""
        with tempfile.TemporaryDirectory() as folder:
            text = PROJECT.replace("@STATUS@", str(status))
            pathlib.Path(folder, "CMakeLists.txt").write_text(text)
            report = pathlib.Path(folder, "tests.xml")
            for command in (["cmake", "-S", folder, "-B", folder + "/build"],
                            ["ctest", "--test-dir", folder + "/build", "--output-junit", report]):
                subprocess.run(command, check=True, capture_output=True)
            return subprocess.run([sys.executable, "-B", self.check_skips, report], check=False,
                                  capture_output=True, text=True)

    def test_a_skip_that_is_not_expected_fails(self):
        done = self.checked(77)
        self.assertEqual(done.returncode, 1)
        self.assertIn("skipped: system.isa_names: not expected on this machine", done.stdout)
        self.assertIn("skips are not expected here", done.stderr)

    def test_where_a_test_may_be_skipped_is_asked_of_the_machine(self):
        done = self.checked(0)
        has_avx512 = "avx512bw" in pathlib.Path("/proc/cpuinfo").read_text()
        why = "not expected on this machine" if has_avx512 else "no processor with AVX-512"
        self.assertEqual(done.stdout, f"skipped: unit.native_code: {why}\n")
        self.assertEqual(done.returncode, int(has_avx512))


if __name__ == "__main__":
    Skips.check_skips = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
