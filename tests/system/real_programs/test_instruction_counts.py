#!/usr/bin/env python3
"""SQLite and a shell execute exactly as many instructions as under qemu-aarch64.

  test_instruction_counts.py GPUSIM BUILD_FOLDER [UNITTEST ARGUMENT]...

Their system calls have the same outcomes: the shell runs in namespaces of its own, in which its
process number, its parent's and the host's name are those that gpusim tells its guests. Exit status
77: the packages cannot be had.
"""

import json
import pathlib
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parents[1] / "differential" / "qemu"))
import harness  # noqa: E402
import test_real_programs as real  # noqa: E402

TIMEOUT_S = 300
SQL = """
create table t(a integer primary key, b text, c real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 1000)
  insert into t select i, hex(i * 7919), i / 3.0 from n;
create index x on t(b);
select count(*), sum(a), round(avg(c), 4) from t;
select b from t where b like '3%' order by b limit 5;
select substr(b, 1, 2) k, count(*) from t group by k having count(*) > 60;
explain query plan select * from t where b = 'x';
update t set c = c * 2 where a % 3 = 0;
delete from t where a > 700;
vacuum;
pragma integrity_check;
select * from missing;
"""
# As gpusim has it: process 1000, child of 999, on a host of this name.
NAMESPACES = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--uts"]
AS_GUEST = ("hostname gpusim && echo 998 > /proc/sys/kernel/ns_last_pid && "
            "bash -c '\"$@\"; exit $?' shell \"$@\"; exit $?")


def can_be_guest():
    script = AS_GUEST.replace('"$@"; exit $?\'', 'echo $$ $(hostname)\'')
    done = subprocess.run([*NAMESPACES, "bash", "-c", script, "shell"], capture_output=True,
                          text=True)
    return done.stdout == "999 gpusim\n"


class InstructionCounts(unittest.TestCase):
    gpusim: pathlib.Path
    build: pathlib.Path

    @classmethod
    def setUpClass(cls):
        cls.build.mkdir(parents=True, exist_ok=True)
        try:
            real.download(cls.build)
            cls.plugin = harness.build_plugin(cls.build / "plugin")
        except subprocess.CalledProcessError as error:
            print(f"skipped: packages cannot be had: {error}")
            sys.exit(77)

    def compare(self, program, arguments, wrapper=()):
        folder = self.build / "counts"
        real.RealPrograms.fill(self, folder)
        count = self.build / "count.json"
        plugin = f"{self.plugin},out={count}"
        expected = subprocess.run(
            [*wrapper, "/usr/bin/env", "-i", "/usr/bin/qemu-aarch64", "-cpu", harness.ORACLE_CPU,
             "-plugin", plugin, program, *arguments],
            stdin=subprocess.DEVNULL, capture_output=True, cwd=folder, timeout=TIMEOUT_S)
        counts = [json.loads(count.read_text())["guest_instructions"]]
        for backend in ("simd", "scalar"):
            real.RealPrograms.fill(self, folder)
            got = subprocess.run(
                [self.gpusim, "run", "--quiet", "--backend", backend, "--root", ".", "--stats",
                 count,
                 program, "--", *arguments],
                stdin=subprocess.DEVNULL, capture_output=True, cwd=folder, timeout=TIMEOUT_S)
            self.assertEqual((got.returncode, got.stdout), (expected.returncode, expected.stdout),
                             got.stderr)
            counts.append(json.loads(count.read_text())["guest_instructions"])
        self.assertGreater(counts[0], 1_000_000)
        self.assertEqual(counts[1:], counts[:1] * 2)

    def test_sqlite(self):
        package = self.build / "libsqlite3-dev" / "usr"
        program = self.build / "sql.elf"
        subprocess.run(["/usr/bin/aarch64-linux-gnu-gcc", "-O1", "-static", "-w",
                        "-I", package / "include", HERE / "sql.c", "-o", program,
                        package / "lib" / "aarch64-linux-gnu" / "libsqlite3.a", "-lpthread", "-ldl",
                        "-lm"],
                       check=True, stderr=subprocess.DEVNULL)
        self.compare(program, [":memory:", SQL])

    def test_a_shell(self):
        if not can_be_guest():
            self.skipTest("no namespaces here, in which a process can have the number 1000")
        self.compare(self.build / "busybox-static" / "bin" / "busybox", ["sh", "-c", real.SCRIPT],
                     [*NAMESPACES, "bash", "-c", AS_GUEST, "shell"])


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    InstructionCounts.gpusim = pathlib.Path(sys.argv.pop(1)).resolve()
    InstructionCounts.build = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
