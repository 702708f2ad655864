// Examples and exit statuses for --help, manual page and completions.
#pragma once
#include <string_view>

namespace gpusim::host {

struct Example {
  std::string_view command;  // "run", "energy estimate"; "" for the program
  std::string_view line;
  std::string_view note;
};

// Every command has at least one, and every option named here exists:
// tests/system/cli/test_help.py.
inline constexpr Example kExamples[] = {
    {"", "gpusim run hello", "one core, as ./hello would"},
    {"", "gpusim run sobel.elf --cores 4096 --stats s.json", "4,096 cores in one address space"},
    {"", "gpusim energy estimate s.json --target all", "its energy on all known targets"},
    {"", "gpusim info", "what this machine can simulate, and on what"},
    {"run", "gpusim run hello", "one core, as ./hello would"},
    {"run", "gpusim run sobel.elf --cores 4096 --stats s.json", "4,096 cores in one address space"},
    {"run", "gpusim run sha256 --cores 1024 --memory private -- input.bin",
     "1,024 processes of their own"},
    {"run", "gpusim run k.ptx --entry k --grid 64 --block 256 --arg 2.5 --arg 'file:x>y'",
     "a CUDA kernel"},
    {"run", "gpusim run kernels.elf --cores 64 --entry saxpy --arg '&x' --arg 2.5 --arg @core",
     "one function on each core"},
    {"run", "gpusim run sobel.elf --cores 512 --energy fermi,et-soc1", "joules on two machines"},
    {"run", "gpusim run sobel.elf --cores 512 --profile=profile.html --timeline run.json",
     "where the instructions go, by function, line and time"},
    {"run", "gpusim run sobel.elf --cores 64 --caches caches.json --stats s.json",
     "hits and misses; memory on and off the chip"},
    {"run", "gpusim run sobel.elf --cores 1024 --chip mesh-1024 --chip-page chip.html",
     "time, traffic and energy on a chip with caches and a network"},
    {"run", "gpusim run sobel.elf --cores 64 --chip mesh-1024,memory.latency_cycles=200",
     "the same with slower memory"},
    {"run", "gpusim run sobel.elf --checkpoint sobel.gsc --checkpoint-every 1000000000",
     "what a crash leaves"},
    {"run", "gpusim run --resume sobel.gsc --backend scalar", "go on from there"},
    {"run", "gpusim run sobel.elf --cores 64 --core-file sobel.core",
     "if it dies: gdb-multiarch sobel.elf sobel.core"},
    {"run", "gpusim run sobel.elf --cores 64 --gdb 1234", "then: gdb-multiarch, target remote ..."},
    {"translate", "gpusim translate sobel.elf -o sobel.gsm", "then: gpusim run sobel.gsm"},
    {"disasm", "gpusim disasm sobel.elf --symbol gpusim_main", "one function"},
    {"disasm", "gpusim disasm sobel.elf --json", "all of it, for programs"},
    {"info", "gpusim info --json", "for programs"},
    {"info", "gpusim info --program sobel.elf --cores 65536", "memory that each core takes"},
    {"doctor", "gpusim doctor", "what this machine has, and what to do about what it lacks"},
    {"doctor", "gpusim doctor --json", "for programs"},
    {"self-test", "gpusim self-test", "whether --backend auto may take the GPUs of this machine"},
    {"energy", "gpusim energy estimate s.json --target fermi,et-soc1", "joules of a run"},
    {"energy", "gpusim energy predict counters.csv", "watts of a GPU's kernels"},
    {"energy estimate", "gpusim energy estimate s.json --target all --json estimate.json",
     "a table, and all figures in a file"},
    {"energy targets", "gpusim energy targets fermi", "where its figures come from"},
    {"energy trace", "gpusim energy trace s.json --per-function -o trace.txt",
     "a kernel per function"},
    {"energy timeline", "gpusim energy timeline schedule.json --target fermi --csv power.csv",
     "power over time"},
    {"energy log", "gpusim energy log psu.csv --idle 101", "energy above 101 W"},
    {"energy validate", "gpusim energy validate sheet.csv --html report.html", "MAPE and charts"},
    {"energy tune", "gpusim energy tune sheet.csv --model gv100/sass-sim --json tuned.json",
     "fit a model"},
    {"energy predict", "gpusim energy predict nsight.csv --html power.html",
     "counters as Nsight Compute exports them"},
    {"power record", "gpusim power record -o trace.csv --after 1 -- ./application",
     "power while a command runs"},
    {"power correct", "gpusim power correct trace.csv --sensor k20 -o true.csv",
     "undo what the sensor does to power"},
    {"power calibrate", "gpusim power calibrate trace.csv --reference meter.csv -o sensor.json",
     "then: gpusim power correct --sensor sensor.json"},
    {"power sensor", "gpusim power sensor --source nvml:0 -o card.json --html card.html -- ./load",
     "period, window, lag of a card's sensor"},
    {"power profile", "gpusim power profile --trace trace.csv --kernel sobel --svg sobel.svg",
     "a short kernel's power from many runs of it"},
    {"power microbench", "gpusim power microbench -o mine.json",
     "then: gpusim energy estimate s.json --target mine.json"},
    {"sweep", "gpusim sweep sobel.elf --cores 1,4..4096 --energy et-soc1 -o study",
     "CSV, JSON and a page with charts in study/"},
    {"sweep",
     "gpusim sweep fft.elf --cores 64 --chip mesh-1024 --vary shared.size=16K..256K -o caches",
     "cycles and energy over the size of a chip's caches"},
    {"sweep", "gpusim sweep study.json -o study --slurm 16 --sbatch=--time=2:00:00",
     "its points over a job array of Slurm; mpirun and mpiexec need no option"},
    {"sweep", "gpusim sweep --compare study-a study-b -o both", "a page with both"},
    {"merge", "gpusim merge part-*.json -o all.json",
     "of `mpirun -n 4 gpusim run ... --memory private --part auto --stats part-{part}.json`"},
    {"daemon", "gpusim daemon --listen /run/vm/gpusim --ram /dev/shm/vm-ram",
     "serve a guest of a stock QEMU"},
#ifdef GPUSIM_HAVE_PTX
    {"cuda", "gpusim cuda -- ./vectorAdd", "a program of nvcc as it is, without a GPU"},
    {"cuda", "gpusim cuda --stats s.json --list-launches -- ./matrixMul -wA=64",
     "instructions of each kernel, by opcode"},
    {"cuda", "gpusim cuda --check -- ./vectorAdd", "what its kernels do wrong, with lines"},
    {"cuda", "gpusim cuda --timeline run.json -- ./simpleStreams",
     "calls, kernels and copies over time, for ui.perfetto.dev"},
#endif
};

// Commands that take what stands after `--`.
inline constexpr std::string_view kTakesRest[] = {
    "run",  "sweep", "power record", "power profile",
#ifdef GPUSIM_HAVE_PTX
    "cuda",
#endif
};

struct ExitStatus {
  std::string_view status;
  std::string_view when;
};

inline constexpr ExitStatus kExitStatuses[] = {
    {"0", "success; of `run`: every core ended with status 0"},
    {"1 to 255",
     "of `run`: the guest's own status, that of core 0 or of the lowest-numbered core that failed"},
    {"2", "an error of the user or of gpusim: one line on standard error, `gpusim: error: ...`"},
    {"66", "--check found something, and the status would have been 0"},
    {"123", "--checkpoint-stop: the run ended with its first checkpoint"},
    {"124", "--max-instructions stopped a core"},
    {"125", "deadlock: every core that is left waits, and none failed before"},
    {"128 + N",
     "a core faulted or ended by signal N: 132 illegal instruction, 133 breakpoint, "
     "134 abort, 135 misaligned access, 139 bad access, 141 closed pipe"},
    {"130", "ended by Ctrl-C, and likewise 143 by SIGTERM, 129 by SIGHUP; files are written"},
};

struct Variable {
  std::string_view name;
  std::string_view meaning;
};

inline constexpr Variable kEnvironment[] = {
    {"NO_COLOR", "if not empty: no terminal control sequences, also where progress is shown"},
    {"TERM", "`dumb`: the same"},
};

}  // namespace gpusim::host
