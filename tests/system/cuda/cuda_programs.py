"""Builds the test programs with nvcc, and notes what fails."""
import os
import pathlib
import shutil
import subprocess
import sys

SOURCES = pathlib.Path(__file__).resolve().parent / "programs"
FLAGS = ["-std=c++17", "-arch=sm_80", "-DEXPECTED_CHIP=\"NVIDIA A100-SXM4-80GB\""]
NO_PTX = ["-std=c++17", "-gencode", "arch=compute_80,code=sm_80"]
SKIPPED = 77
failures = []


def check(condition, text):
    if not condition:
        failures.append(text)
        print("FAILED:", text)


def find_nvcc():
    for folder in (os.environ.get("CUDA_HOME", ""), "/usr/local/cuda"):
        path = pathlib.Path(folder, "bin", "nvcc")
        if folder and os.access(path, os.X_OK):
            return str(path)
    return shutil.which("nvcc")


def build(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}:\n{done.stderr}")


class Programs:
    """Those of one test, in a folder of its own. `run(program, *arguments)` is given."""

    def __init__(self, folder, run):
        self.folder, self.run = pathlib.Path(folder), run
        self.folder.mkdir(parents=True, exist_ok=True)
        self.nvcc = find_nvcc()
        if self.nvcc is None:
            print("skipped: there is no nvcc")
            sys.exit(SKIPPED)

    def object_of(self, name, *flags, base=None):
        path = self.folder / f"{name}.o"
        build([self.nvcc, *(base or FLAGS), *flags, "-c", SOURCES / f"{name}.cu", "-o", path])
        return path

    def link(self, name, objects, *flags):
        path = self.folder / name
        build([self.nvcc, *FLAGS, *flags, *objects, "-o", path])
        return path

    def stripped(self, program):
        path = self.folder / f"{program.name}-stripped"
        shutil.copy(program, path)
        build(["strip", path])
        return path

    def toolkit(self):
        return pathlib.Path(os.path.realpath(self.nvcc)).parent.parent

    def stubs(self):
        """The folder of the toolkit's stand-in for libcuda.so, which programs are linked with."""
        for stub in ("lib64/stubs", "targets/x86_64-linux/lib/stubs"):
            if (self.toolkit() / stub / "libcuda.so").exists():
                return self.toolkit() / stub
        return None

    def nvrtc(self, runtime):
        """A program that compiles its kernels; nothing where the toolkit lacks libraries."""
        libraries = self.toolkit() / "lib64"
        if self.stubs() is None or not (libraries / "libnvrtc.so").exists():
            print("without the program of NVRTC: the toolkit has no libnvrtc or stub of libcuda")
            return None
        program = self.folder / f"nvrtc-{runtime}"
        of_runtime = ["-lcudart"] if runtime == "shared" else \
            ["-lcudart_static", "-lrt", "-ldl", "-lpthread"]
        build(["g++", "-std=c++17", f"-I{self.toolkit() / 'include'}", SOURCES / "nvrtc.cpp",
               f"-L{self.stubs()}", "-lcuda", f"-L{libraries}", *of_runtime, "-lnvrtc",
               f"-Wl,-rpath,{libraries}", "-o", program])
        return program

    def static_nvrtc(self):
        """A program that carries NVRTC, or what looks so."""
        if self.stubs() is None:
            return None
        program = self.folder / "nvrtc-inside"
        build(["g++", "-std=c++17", "-O1", f"-I{self.toolkit() / 'include'}",
               SOURCES / "nvrtc_inside.cpp", f"-L{self.stubs()}", "-lcuda", "-o", program])
        return program

    def driver(self):
        """The program of the driver API and its arguments; nothing where it cannot be linked."""
        kernels = SOURCES / "driver_kernels.cu"
        ptx, fat = self.folder / "k.ptx", self.folder / "k.fatbin"
        build([self.nvcc, "-arch=compute_80", "-ptx", kernels, "-o", ptx])
        build([self.nvcc, "-arch=sm_80", "-fatbin", kernels, "-o", fat])
        if self.stubs() is None:
            print("without the driver's program: the toolkit has no stub of libcuda.so")
            return None
        program = self.folder / "driver"
        build(["g++", "-std=c++17", f"-I{self.toolkit() / 'include'}", SOURCES / "driver.cpp",
               f"-L{self.stubs()}", "-lcuda", "-o", program])
        return [program, ptx, fat]

    def expect_fine(self, program, *arguments):
        done = self.run(program, *arguments)
        check(done.returncode == 0 and "all fine" in done.stdout,
              f"{program.name}: status {done.returncode}\n{done.stdout}{done.stderr}")
        return done


def from_command_line(usage):
    """Of GPUSIM FOLDER BACKEND: programs that run under `gpusim cuda`, gpusim, the backend."""
    if len(sys.argv) != 4:
        sys.exit(usage)
    gpusim, folder, backend = sys.argv[1:]

    def command(program, *arguments, options=()):
        return [gpusim, "cuda", "--backend", backend, *options, "--", program, *arguments]

    def run(program, *arguments, options=()):
        return subprocess.run(command(program, *arguments, options=options), capture_output=True,
                              text=True, timeout=120, check=False)

    programs = Programs(folder, run)
    programs.command = command
    return programs, gpusim, backend
