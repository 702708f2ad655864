"""Programs of others for scripts/bench: fetched, compiled and prepared as programs.toml says.

Everything is kept below the folder that is given to Collection: sources, programs, inputs, logs.
"""
import os
import pathlib
import random
import shutil
import subprocess
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CROSS = "aarch64-linux-gnu-"

# "No n pigeons in m holes": clauses that no search escapes. Arguments: pigeons, holes.
PIGEONS = r"""
import sys
n, m = map(int, sys.argv[1:])
at = lambda p, h: p * m + h + 1
clauses = [[at(p, h) for h in range(m)] for p in range(n)]
clauses += [[-at(p, h), -at(q, h)] for h in range(m) for p in range(n) for q in range(p)]
print("p cnf", n * m, len(clauses))
for clause in clauses: print(*clause, 0)
"""
# Sequences of one family, FASTA. Arguments: how many, how long.
SEQUENCES = r"""
import random, sys
n, length = map(int, sys.argv[1:])
r = random.Random(1)
parents = ["".join(r.choice("ACGT") for _ in range(length))]
while len(parents) < n:
    parents.append("".join(r.choice("ACGT") if r.random() < 0.1 else c for c in r.choice(parents)))
for i, text in enumerate(parents): print(f">s{i}\n{text}")
"""
# The same in PHYLIP's format.
PHYLIP = SEQUENCES.rsplit("for i,", 1)[0] + r"""
print(n, length)
for i, text in enumerate(parents): print(f"s{i:<9}{text}")
"""
# A random graph in DIMACS format. Argument: vertices.
GRAPH = r"""
import random, sys
n = int(sys.argv[1])
r = random.Random(1)
edges = [(a, b) for a in range(1, n + 1) for b in range(1, a) if r.random() < 0.6]
print("p edge", n, len(edges))
for edge in edges: print("e", *edge)
"""


class Unavailable(Exception):
    """A program that cannot be had on this machine, with the reason."""


def read_programs():
    with open(HERE / "programs.toml", "rb") as file:
        return tomllib.load(file)["program"]


class Collection:
    def __init__(self, folder, openmp):
        """`openmp` is the folder for GCC's -B that gpusim's OpenMP run-time is in."""
        self.folder = folder
        self.openmp = openmp
        for name in ("source", "bin", "input", "log"):
            (folder / name).mkdir(parents=True, exist_ok=True)

    def _shell(self, name, commands, cwd, environment):
        log = self.folder / "log" / name
        with open(log, "wb") as out:
            done = subprocess.run(["bash", "-c", commands], cwd=cwd, stdin=subprocess.DEVNULL,
                                  stdout=out, stderr=subprocess.STDOUT, check=False,
                                  env={**os.environ, **environment})
        return done.returncode == 0, log

    def _apt(self):
        """apt's options for lists of sources of our own; the machine's stay as they are."""
        state = self.folder / "apt"
        lists = state / "lists"
        (lists / "partial").mkdir(parents=True, exist_ok=True)
        (state / "cache/archives/partial").mkdir(parents=True, exist_ok=True)
        options = ["-qq", "-o", f"Dir::Etc::sourcelist={state}/list.sources", "-o",
                   "Dir::Etc::sourceparts=/dev/null", "-o", f"Dir::State::lists={lists}", "-o",
                   f"Dir::Cache={state}/cache", "-o", "APT::Sandbox::User=root", "-o",
                   "Acquire::Languages=none"]
        if not (state / "list.sources").exists():
            mirror = subprocess.run([ROOT / "scripts/debian-mirror"], capture_output=True,
                                    text=True,
                                    check=False)
            if mirror.returncode != 0:
                raise Unavailable(mirror.stderr.strip())
            text = (f"Types: deb-src\nURIs: {mirror.stdout.strip()}\nSuites: bookworm\n"
                    "Components: main\n"
                    "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n")
            (state / "new.sources").write_text(text)
            (state / "new.sources").rename(state / "list.sources")
            subprocess.run(["apt-get", *options, "update"], check=False)
        return options

    def source(self, package):
        """The folder of a source package, unpacked and as Debian patches it."""
        target = self.folder / "source" / package
        if not target.is_dir():
            part = target.with_suffix(".part")
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir()
            done = subprocess.run(["apt-get", *self._apt(), "source", "--only-source", package],
                                  cwd=part, capture_output=True, text=True, check=False)
            folders = [path for path in part.iterdir() if path.is_dir()]
            if done.returncode != 0 or not folders:
                why = (done.stderr.strip().splitlines() or ["no reason"])[-1]
                raise Unavailable(f"the source of {package} cannot be fetched: {why}")
            folders[0].rename(target)
            shutil.rmtree(part)
        return target

    def _environment(self):
        openmp = f"-fopenmp -B {self.openmp}/"
        return {"CC": f"{CROSS}gcc -O2 -static", "CXX": f"{CROSS}g++ -O2 -static", "OPENMP": openmp,
                "AR": f"{CROSS}ar", "RANLIB": f"{CROSS}ranlib"}

    def _copy(self, name, package):
        """A copy of a source package of its own, as some build in the source."""
        folder = self.folder / "source" / f"{package}+{name}"
        if not folder.is_dir():
            shutil.copytree(self.source(package), folder, symlinks=True)
        return folder

    def program(self, entry):
        """The program of an entry, and the folder of its source."""
        name, out = entry["name"], self.folder / "bin" / entry["name"]
        folder = self._copy(name, entry["source"])
        if not out.exists():
            environment = {**self._environment(), "OUT": str(out.with_suffix(".part"))}
            for package, commands in entry.get("needs", {}).items():
                place = self._copy(name, package)
                self._build(f"{name}.{package}", commands, place, environment)
                environment[package.upper()] = str(place)
            self._build(name, entry["build"], folder, environment)
            if not out.with_suffix(".part").exists():
                raise Unavailable(f"no program came out: {self.folder / 'log' / name}")
            out.with_suffix(".part").rename(out)
        return out, folder

    def _build(self, name, commands, folder, environment):
        ok, log = self._shell(name, commands, folder, environment)
        if not ok:
            lines = log.read_text(errors="replace").strip().splitlines() or ["no message"]
            raise Unavailable(f"it does not compile: {lines[-1][:160]} ({log})")

    def input(self, entry, source):
        """A folder with the program's input files, made once."""
        folder = self.folder / "input" / entry["name"]
        if folder.is_dir():
            return folder
        words, numbers = self.folder / "words", self.folder / "numbers"
        if not numbers.exists():
            generator = random.Random(1)
            texts = sorted(ROOT.glob("docs/**/*.md")) + sorted(ROOT.glob("translator/**/*.cpp"))
            pieces = [path.read_text(errors="replace") for path in texts]
            generator.shuffle(pieces)
            words.write_text(("".join(pieces) * 8)[:4_000_000])
            numbers.write_bytes(generator.randbytes(2_000_000))
        part = folder.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        ok, log = self._shell(f"{entry['name']}.input", entry["input"], part, {
            "SOURCE": str(source), "WORDS": str(words), "NUMBERS": str(numbers),
            "PIGEONS": PIGEONS, "SEQUENCES": SEQUENCES, "PHYLIP": PHYLIP, "GRAPH": GRAPH})
        if not ok:
            raise Unavailable(f"its input cannot be made: {log}")
        part.rename(folder)
        return folder
