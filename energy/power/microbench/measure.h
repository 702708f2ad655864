// Equation 1 of Arafa et al. on a GPU: the energy of an instruction is that of a kernel that
// executes it, less that of the same kernel without it, by the number of instructions. Power is
// read while launches follow each other without a gap, so sensors may be slow; idle power is
// subtracted, as energy targets want it.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "energy/power/microbench/gpu.h"
#include "energy/power/microbench/ptx.h"
#include "energy/power/source.h"

namespace gpusim::power {

struct BenchOptions {
  std::vector<const Instruction*> instructions;
  std::vector<unsigned> optimizations = {3, 0};  // of the driver's assembler
  Seconds seconds{1.5};  // that power is averaged over, for each kernel and repetition
  Seconds settle{0.6};   // before: clocks, sensor's window and lag
  Seconds launch{0.04};  // of one launch: iterations are chosen for it
  Seconds poll{0.002};   // between readings
  unsigned repeats = 3;
  uint32_t unroll = 0;            // 0: default_shape()
  bool is_single_thread = false;  // one thread on the whole GPU, as in the paper
  double sensor_error = 0.05;     // relative: of the sensor's gain, which no repetition shows
};

// Something for people while it runs; may be empty.
using Progress = std::function<void(const std::string&)>;

// A kernel in the steady state, or nothing running.
struct SteadyPower {
  Watts power;  // mean
  Seconds per_launch;
  Hertz clock;  // mean of what the source says; zero if it says nothing
  double temperature_c = 0;
  bool is_throttled = false;
  bool had_gaps = false;  // the GPU had nothing to do meanwhile
  Watts resolution;       // least step between readings; zero if they never differed
  uint64_t readings = 0;
};

struct EnergyFigure {
  Joules energy, low, high;  // per instruction of one thread, above idle; bounds: 95 %
  Joules with_idle;          // Equation 1 as printed: the idle power of the time that it adds is in
  Joules spread;             // standard deviation between repetitions
  double cycles = 0;         // of a multiprocessor, for an instruction of one thread
  Watts power, overhead_power;
  Seconds per_launch, overhead_per_launch;
  double instructions_per_launch = 0;
  bool is_resolved = false;  // the statistical part of the bounds excludes zero
  std::vector<std::string> doubts;
};

struct InstructionResult {
  const Instruction* instruction;
  std::map<unsigned, EnergyFigure> by_optimization;
};

struct BenchResults {
  GpuInfo gpu;
  std::string source;  // PowerSource::name()
  BenchOptions options;
  Watts idle, idle_low, idle_high;  // with a context, clocks still up, between kernels
  Watts idle_before;                // before anything ran
  Hertz clock;
  double temperature_low_c = 0, temperature_high_c = 0;
  std::vector<InstructionResult> instructions;
  std::vector<std::string> notes;
};

// What both the benchmarks and the sweeps do.
class Bench {
 public:
  Bench(Gpu& gpu, PowerSource& source, const BenchOptions& options);
  ~Bench();

  struct Kernel {
    KernelSpec spec;
    unsigned optimization = 3;
    LaunchShape shape;
    uint32_t lanes = 32;
    uint32_t iterations = 0;  // 0: chosen for BenchOptions::launch
  };
  LaunchShape busy_shape(const KernelSpec& spec) const;
  // Chooses the iterations of both so that the longer launch takes BenchOptions::launch.
  uint32_t choose_iterations(const Kernel& kernel);
  SteadyPower run(const Kernel& kernel);
  SteadyPower idle(Seconds settle);

 private:
  cuda::Function function_of(const Kernel& kernel);
  KernelParameters parameters_of(const Kernel& kernel);
  SteadyPower run_once(cuda::Function function, LaunchShape shape, KernelParameters& parameters);
  SteadyPower watch(Seconds settle, Seconds seconds, const std::function<void()>& keep_busy);

  Gpu& gpu_;
  PowerSource& source_;
  BenchOptions options_;
  cuda::DevicePointer out_ = 0, buffer_ = 0;
  uint64_t buffer_bytes_ = 0;
  std::map<std::string, cuda::Function> functions_;  // by optimization and PTX
};

// Throws Error; `done` is called with what is there after each instruction, so that a long
// run that breaks off has not been for nothing.
BenchResults run_benchmarks(Gpu& gpu, PowerSource& source, const BenchOptions& options,
                            const Progress& progress = {},
                            const std::function<void(const BenchResults&)>& done = {});

}  // namespace gpusim::power
