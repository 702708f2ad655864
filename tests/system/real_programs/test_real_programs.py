#!/usr/bin/env python3
"""Static programs from Debian's arm64 packages, unchanged: the same output, status and files as
under qemu-aarch64.

  test_real_programs.py GPUSIM BUILD_FOLDER [UNITTEST ARGUMENT]...

The packages are downloaded once into the build folder, with lists of their own: the machine's
package manager is not touched.
"""

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
TIMEOUT_S = 300
# For tests/isa/a64/coverage.
COVERAGE = (["--isa-coverage", os.environ["GPUSIM_ISA_COVERAGE"]]
            if os.environ.get("GPUSIM_ISA_COVERAGE") else [])
SCRIPT = (HERE / "script.sh").read_text()

# Package -> the static programs in it that are run.
PACKAGES = {
    "busybox-static": ["bin/busybox"],
    "bash-static": ["bin/bash-static"],
    "zsh-static": ["bin/zsh-static"],
    "mksh": ["usr/lib/aarch64-linux-musl/bin/mksh", "usr/lib/diet/bin/mksh",
             "usr/lib/klibc/bin/mksh"],
    "tripwire": ["usr/sbin/siggen"],
    "e2fsck-static": ["sbin/e2fsck.static"],
    # also for test_instruction_counts.py
    "libsqlite3-dev": ["usr/lib/aarch64-linux-gnu/libsqlite3.a"],
}

BUSYBOX = [
    ["echo", "hi"], ["cat", "in.txt"], ["cat"], ["sort", "in.txt"], ["sort", "-k2n", "in.txt"],
    ["uniq", "-c", "in.txt"], ["wc", "sub/n.txt"], ["md5sum", "in.txt", "sub/n.txt"],
    ["sha1sum", "in.txt"], ["sha256sum", "sub/n.txt"], ["sha512sum", "in.txt"],
    ["sha3sum", "in.txt"], ["cksum", "sub/n.txt"], ["sum", "in.txt"], ["crc32", "in.txt"],
    ["awk", "{s += $2; c[$1]++} END {for (k in c) print k, c[k]; printf \"%.3f\\n\", s / 7}",
     "in.txt"],
    ["awk", "BEGIN {for (i = 0; i < 20; i++) print i, sin(i), exp(i / 3), i ^ 3}"],
    ["sed", "s/a/A/g;2d", "in.txt"], ["sed", "-i", "s/1/one/", "sub/n.txt"],
    ["grep", "-n", "apple", "in.txt"], ["grep", "-rE", "^1[0-9]$", "."],
    ["find", ".", "-name", "*.txt"],
    ["find", ".", "-type", "l"], ["ls"], ["ls", "-R"], ["ls", "-ln", "--full-time", "in.txt"],
    ["head", "-3", "sub/n.txt"], ["tail", "-5", "sub/n.txt"], ["tail", "-c", "20", "sub/n.txt"],
    ["tac", "in.txt"], ["rev", "in.txt"], ["nl", "in.txt"], ["fold", "-w", "5", "in.txt"],
    ["paste", "in.txt", "in.txt"], ["cut", "-d", " ", "-f1", "in.txt"], ["tr", "a-z", "A-Z"],
    ["od", "-c", "in.txt"], ["hexdump", "-C", "in.txt"], ["xxd", "in.txt"], ["base64", "in.txt"],
    ["uuencode", "in.txt", "name"], ["comm", "in.txt", "in.txt"], ["cmp", "in.txt", "sub/n.txt"],
    ["diff", "in.txt", "sub/n.txt"], ["bc"], ["dc", "-e", "2 200 ^ p"], ["expr", "6", "*", "7"],
    ["seq", "5", "5", "50"], ["factor", "1234567890", "600851475143"],
    ["printf", "%05d %s %x\\n", "42", "x", "255"], ["date", "-u", "-d", "@1700000000"],
    ["cal", "1", "2020"], ["gzip", "-k", "sub/n.txt"], ["bzip2", "-k", "sub/n.txt"],
    ["gzip", "-dc", "packed.gz"], ["tar", "-cf", "x.tar", "sub"], ["tar", "-tf", "files.tar"],
    ["tar", "-xf", "files.tar"], ["split", "-l", "50", "sub/n.txt"], ["cp", "in.txt", "new"],
    ["cp", "-r", "sub", "copy"], ["mv", "in.txt", "sub/moved"], ["mkdir", "-p", "a/b/c"],
    ["rm", "-r", "sub"], ["rmdir", "sub"], ["touch", "made"], ["chmod", "600", "in.txt"],
    ["dd", "if=sub/n.txt", "of=o", "bs=16", "count=3"], ["truncate", "-s", "10", "in.txt"],
    ["stat", "-c", "%s %n %a %F", "in.txt", "link"], ["readlink", "link"], ["tee", "out.txt"],
    ["strings", "sub/n.txt"], ["xargs", "echo"], ["unexpand", "in.txt"], ["sh", "-c", SCRIPT],
    ["ash", "-c", "echo $((1 << 40)) ${HOME:-none}; exit 7"], ["cat", "missing"], ["true"],
    ["false"], ["nosuchapplet"], ["sleep", "0.01"], ["test", "-d", "sub"], ["du", "-b", "sub"],
]


def download(folder):
    """Unpacks each package into a folder of its name."""
    missing = [name for name in PACKAGES if not (folder / name).is_dir()]
    if not missing:
        return
    state = folder / "apt"
    for sub in ("lists/partial", "cache/archives/partial"):
        (state / sub).mkdir(parents=True, exist_ok=True)
    options = ["-o", "APT::Architecture=arm64", "-o", "APT::Architectures::=arm64",
               "-o", f"Dir::State::lists={state}/lists", "-o", f"Dir::Cache={state}/cache",
               "-o", "Dir::State::status=/dev/null", "-o", "APT::Sandbox::User=root",
               "-o", "APT::Install-Recommends=false"]
    subprocess.run(["apt-get", *options, "-q", "update"], check=True, stdout=subprocess.DEVNULL)
    for name in missing:
        subprocess.run(["apt-get", *options, "-q", "download", name], check=True, cwd=state,
                       stdout=subprocess.DEVNULL)
        (package,) = state.glob(f"{name}_*.deb")
        part = folder / f"{name}.part"
        shutil.rmtree(part, ignore_errors=True)
        subprocess.run(["dpkg-deb", "-x", package, part], check=True)
        package.unlink()
        part.rename(folder / name)
    shutil.rmtree(state)


class RealPrograms(unittest.TestCase):
    gpusim: pathlib.Path
    build: pathlib.Path

    @classmethod
    def setUpClass(cls):
        cls.build.mkdir(parents=True, exist_ok=True)
        download(cls.build)

    def fill(self, folder):
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "sub").mkdir(parents=True)
        (folder / "in.txt").write_text("banana 3\napple 10\ncherry 7\napple 2\n")
        (folder / "sub" / "n.txt").write_text("".join(f"{i}\n" for i in range(1, 201)))
        (folder / "link").symlink_to("in.txt")
        for path in folder.rglob("*"):
            os.utime(path, (1600000000, 1600000000), follow_symlinks=False)
        subprocess.run("gzip -nc sub/n.txt > packed.gz; tar --owner=0 --group=0 -cf files.tar "
                       "in.txt sub",
                       shell=True, cwd=folder, check=True)
        for path in folder.glob("*"):
            os.utime(path, (1600000000, 1600000000), follow_symlinks=False)

    def run_in(self, folder, command, stdin):
        done = subprocess.run(list(map(str, command)), input=stdin, capture_output=True, cwd=folder,
                              timeout=TIMEOUT_S, env={})
        status = 128 - done.returncode if done.returncode < 0 else done.returncode
        files = {}
        for path in sorted(folder.rglob("*")):
            name = str(path.relative_to(folder))
            if path.is_symlink():
                files[name] = f"-> {os.readlink(path)}"
            elif path.is_file():
                data = path.read_bytes()
                # A compressed file's header has the time.
                files[name] = (len(data) if name.endswith(".tar") else
                               hashlib.sha256(data).hexdigest()), path.stat().st_mode
            else:
                files[name] = "folder"
        return {"status": status, "stdout": done.stdout, "files": files}, done.stderr

    def check(self, program, arguments, stdin=b"one 1\ntwo 2\n", prepare=None,
              backends=("simd", "scalar")):
        folder = self.build / "work"
        results = []
        for command in ([["/usr/bin/qemu-aarch64", program, *arguments]] +
                        [[self.gpusim, "run", *COVERAGE, "--root", ".", "--root", "/etc:ro",
                          "--backend", backend, program, "--", *arguments]
                         for backend in backends]):
            self.fill(folder)
            if prepare:
                prepare(folder)
            results.append(self.run_in(folder, command, stdin))
        (expected, _), *others = results
        for got, stderr in others:
            with self.subTest(f"{pathlib.Path(program).name} {' '.join(map(str, arguments))[:60]}"):
                self.assertEqual(got, expected, stderr[:1000])

    def program(self, package, index=0):
        return self.build / package / PACKAGES[package][index]

    def test_busybox_applets(self):
        stdin = {"bc": b"2^64\nscale=20\n4*a(1)\n1/7\n", "xargs": b"a b\nc\n"}
        for applet in BUSYBOX:
            with self.subTest(" ".join(applet)[:60]):
                options = ["-l"] if applet == ["bc"] else []
                self.check(self.program("busybox-static"), applet + options,
                           stdin.get(applet[0], b"one 1\ntwo 2\n"), backends=["simd"])

    def test_shells_run_a_script(self):
        for package, index in (("bash-static", 0), ("zsh-static", 0)):
            self.check(self.program(package, index), ["-c", SCRIPT])

    def test_bash_own_features(self):
        self.check(self.program("bash-static"), ["-c", r"""
            declare -A m=([x]=1 [y]=2); for k in x y; do echo $k ${m[$k]}; done
            a=(1 2 3); echo ${a[@]/2/z} ${#a[@]}; [[ abc =~ ^a(.)c ]] && echo ${BASH_REMATCH[1]}
            printf -v q %q 'a b'; echo $q; mapfile -t L < in.txt; echo ${#L[@]} ${L[1]^^}
            printf '%(%F)T %.3f\n' 0 3.14159; echo {1..5} {a..e}; kill -TERM $$"""])

    def test_zsh_own_features(self):
        self.check(self.program("zsh-static"), ["-fc", r"""
            typeset -A h; h=(a 1 b 2); for k in ${(ok)h}; do echo $k $h[$k]; done
            echo $((2**40 + 3.5)); print -r ${(U)x:-abc}; print -l **/*.txt; print ${(j:,:)${(s: :)${:-a b c}}}
            f() { return 5 }; f; exit $?"""])

    def test_mksh_with_three_libraries(self):
        for index in range(3):
            self.check(self.program("mksh", index), ["-c", r"""
                set -A a one two; print ${a[1]} ${#a[*]}; integer i=0
                while (( i < 300 )); do (( i += 1 )); done; print $i; typeset -Z5 z=42; print $z
                while read -r x y; do print "$y-$x"; done; trap 'print bye' EXIT; print $((0x7fff * 3)); exit 4"""])

    def test_siggen_of_tripwire(self):
        self.check(self.program("tripwire"), ["in.txt", "sub/n.txt"])
        self.check(self.program("tripwire"), ["-a", "-h", "sub/n.txt"])

    def test_e2fsck_on_an_image(self):
        mke2fs = shutil.which("mke2fs", path="/usr/sbin:/sbin:/usr/bin")
        image = self.build / "image"
        image.unlink(missing_ok=True)
        subprocess.run([mke2fs, "-q", "-t", "ext4", "-U", "clear", "-d", self.build / "mksh", image,
                        "8M"],
                       check=True, capture_output=True)
        self.check(self.program("e2fsck-static"), ["-fn", "image"],
                   prepare=lambda folder: shutil.copy(image, folder / "image"))

    def test_sqlite_on_a_file(self):
        program = self.build / "sql.elf"
        subprocess.run(["aarch64-linux-gnu-gcc", "-O1", "-static", "-w", "-I",
                        self.build / "libsqlite3-dev" / "usr" / "include", HERE / "sql.c", "-o",
                        program,
                        self.program("libsqlite3-dev"), "-lpthread", "-ldl", "-lm"], check=True,
                       stderr=subprocess.DEVNULL)
        # Not "persist": what is left in that journal has a random number.
        for journal in ("delete", "truncate", "memory"):
            self.check(program, ["data.db", f"""
                PRAGMA journal_mode={journal}; CREATE TABLE a(i INTEGER PRIMARY KEY, t TEXT, x REAL);
                CREATE INDEX by_t ON a(t); BEGIN;
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
                  INSERT INTO a SELECT i, 'text ' || (i * 7919 % 500), i / 8.0 FROM n;
                COMMIT; BEGIN; DELETE FROM a WHERE i % 3 = 0; SELECT count(*) FROM a; ROLLBACK;
                UPDATE a SET x = -x WHERE t LIKE 'text 1%'; SELECT count(*), sum(x), max(t) FROM a;
                SELECT * FROM a WHERE t > 'text 49' ORDER BY t LIMIT 5; VACUUM;
                PRAGMA integrity_check"""])

    def test_what_is_not_provided_is_named(self):
        done = subprocess.run([self.gpusim, "run", *COVERAGE, self.program("busybox-static"), "--",
                               "chroot", "/", "true"], capture_output=True, text=True,
                              timeout=TIMEOUT_S)
        self.assertIn("system call 51 (chroot) is not provided", done.stderr)
        self.assertNotEqual(done.returncode, 0)

    def test_a_shell_runs_processes(self):
        done = subprocess.run([self.gpusim, "run", "--quiet", self.program("busybox-static"), "--",
                               "sh", "-c", "echo a | cat; false || exit 3"], capture_output=True,
                              text=True, timeout=TIMEOUT_S)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (3, "a\n", ""))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    RealPrograms.gpusim = pathlib.Path(sys.argv.pop(1)).resolve()
    RealPrograms.build = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
