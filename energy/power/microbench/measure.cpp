#include "energy/power/microbench/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <deque>
#include <limits>

#include "device_sim/base/error.h"

namespace gpusim::power {
namespace {

constexpr uint64_t kMiB = 1u << 20;
constexpr unsigned kThreadsPerBlock = 256;
constexpr uint32_t kMostIterations = 1u << 30;
constexpr size_t kLaunchesAhead = 8;
constexpr int kAttempts = 3;

// Two-sided 95 % of Student's t for n - 1 degrees of freedom.
double student(size_t n) {
  static constexpr std::array<double, 11> kTable = {0,    0,    12.71, 4.30, 3.18, 2.78,
                                                    2.57, 2.45, 2.36,  2.31, 2.26};
  return n < kTable.size() ? kTable[n] : 2.0;
}

struct Mean {
  double value = 0, deviation = 0;  // of a single one
};
Mean mean_of(const std::vector<double>& values) {
  Mean m;
  for (double v : values) m.value += v / static_cast<double>(values.size());
  for (double v : values) m.deviation += (v - m.value) * (v - m.value);
  m.deviation =
      values.size() > 1 ? std::sqrt(m.deviation / static_cast<double>(values.size() - 1)) : 0;
  return m;
}

MemoryUse memory_of(const KernelSpec& spec) {
  MemoryUse use = MemoryUse::kNone;
  for (const Instruction* i : spec.instructions)
    if (i->memory != MemoryUse::kNone) use = i->memory;
  return use;
}

}  // namespace

Bench::Bench(Gpu& gpu, PowerSource& source, const BenchOptions& options)
    : gpu_(gpu), source_(source), options_(options) {
  const uint64_t threads =
      uint64_t{gpu.info().multiprocessors} * gpu.info().threads_per_multiprocessor;
  out_ = gpu_.allocate(8 * threads);
}

Bench::~Bench() {
  // Only on the way out: an error here would hide the first one.
  try {
    gpu_.synchronize();
    for (auto& [key, function] : functions_) gpu_.unload(function);
    gpu_.release(out_);
    gpu_.release(buffer_);
  } catch (const Error&) {
  }
}

LaunchShape Bench::busy_shape(const KernelSpec&) const {
  if (options_.is_single_thread) return {1, 1};
  const unsigned per_sm = std::max(1u, gpu_.info().threads_per_multiprocessor / kThreadsPerBlock);
  return {gpu_.info().multiprocessors * per_sm, kThreadsPerBlock};
}

cuda::Function Bench::function_of(const Kernel& kernel) {
  const std::string ptx = kernel_ptx(kernel.spec);
  const std::string key = fmt::format("{} {}", kernel.optimization, ptx);
  const auto at = functions_.find(key);
  if (at != functions_.end()) return at->second;
  std::string what;
  for (const Instruction* i : kernel.spec.instructions)
    what += (what.empty() ? "" : ", ") + std::string(i->id);
  return functions_[key] = gpu_.load(ptx, kKernelName, kernel.optimization, what);
}

KernelParameters Bench::parameters_of(const Kernel& kernel) {
  KernelParameters p;
  p.out = out_;
  p.lanes = kernel.lanes;
  const uint64_t threads = uint64_t{kernel.shape.blocks} * kernel.shape.threads;
  uint64_t bytes = 0;
  const uint64_t l2 = std::max<uint64_t>(gpu_.info().l2_bytes, kMiB);
  switch (memory_of(kernel.spec)) {
    case MemoryUse::kL1:
      bytes = 16 * 1024;
      break;
    case MemoryUse::kL2:
      bytes = std::bit_floor(l2 / 4);
      break;
    case MemoryUse::kDram:
      bytes = std::bit_ceil(std::max(8 * l2, 256 * kMiB));
      break;
    default:
      break;
  }
  if (bytes == 0) return p;
  if (buffer_bytes_ < bytes) {
    gpu_.synchronize();
    gpu_.release(buffer_);
    buffer_ = 0;
    buffer_ = gpu_.allocate(bytes);
    buffer_bytes_ = bytes;
  }
  p.buffer = buffer_;
  p.mask = bytes - 4;
  p.stride = 4 * threads;
  // A single thread walks by sectors, so that each access is one to memory.
  if (threads < 32) p.stride = 32;
  // A power of two that divides the buffer would visit few places.
  if (memory_of(kernel.spec) != MemoryUse::kDram) p.stride += 128;
  return p;
}

uint32_t Bench::choose_iterations(const Kernel& kernel) {
  const cuda::Function function = function_of(kernel);
  KernelParameters p = parameters_of(kernel);
  const OwnedEvent begin = gpu_.make_event(), end = gpu_.make_event();
  p.iterations = 16;
  for (;;) {
    gpu_.record(begin);
    gpu_.launch(function, kernel.shape, p.pointers());
    gpu_.record(end);
    gpu_.wait(end);
    const double seconds = gpu_.elapsed(begin, end).value();
    const double want = options_.launch.value();
    if (seconds > want / 4 || p.iterations >= kMostIterations / 8) {
      const double n = p.iterations * want / std::max(seconds, 1e-9);
      p.iterations = static_cast<uint32_t>(std::clamp(n, 1.0, double{kMostIterations}));
      break;
    }
    p.iterations *= 4;
  }
  return p.iterations;
}

SteadyPower Bench::watch(Seconds settle, Seconds seconds, const std::function<void()>& keep_busy) {
  const Seconds start = source_.now(), from = start + settle, until = from + seconds;
  double sum = 0, clock = 0, temperature = 0;
  uint64_t n = 0, clocks = 0, temperatures = 0;
  SteadyPower out;
  double last = std::numeric_limits<double>::quiet_NaN(), least_step = 0;
  // A counter is worth more than readings, from one of its steps to another.
  std::optional<Joules> counter_seen;
  struct Step {
    Seconds time;
    Joules energy;
  };
  std::optional<Step> first, latest;
  Seconds counter_read(-1), slowest_counter;
  for (;;) {
    keep_busy();
    const std::optional<Sample> s = source_.poll();
    if (!s) throw Error(source_.name() + ": the source ended before the measurement did");
    if (s->time >= until) break;
    if (s->time >= from) {
      sum += s->power.value();
      ++n;
      const double step = std::abs(s->power.value() - last);
      if (step > 1e-9 && (least_step == 0 || step < least_step)) least_step = step;
      if (s->core_clock) clock += s->core_clock->value(), ++clocks;
      if (s->temperature_c) temperature += *s->temperature_c, ++temperatures;
      // All reasons but "nothing runs" and "the clocks that applications asked for".
      if (s->throttle_reasons && (*s->throttle_reasons & ~uint64_t{0x3}) != 0)
        out.is_throttled = true;
      if (s->energy_total && counter_seen && *s->energy_total != *counter_seen) {
        if (!first) first = Step{s->time, *s->energy_total};
        latest = Step{s->time, *s->energy_total};
      }
      if (s->energy_total) {
        counter_seen = s->energy_total;
        if (counter_read > Seconds(0))
          slowest_counter = std::max(slowest_counter, s->time - counter_read);
        counter_read = s->time;
      }
    }
    last = s->power.value();
    const Seconds next = s->time + options_.poll;
    if (source_.now() < next) source_.sleep_until(next);
  }
  if (n == 0)
    throw Error(fmt::format("{}: no reading within {:g} s; is it too slow?", source_.name(),
                            seconds.value()));
  out.power = Watts(sum / static_cast<double>(n));
  // Half of the time at least must lie between steps of the counter, and the counter be read often:
  // else it is not known when it stepped.
  if (first && latest && latest->time - first->time > seconds * 0.5 &&
      slowest_counter < (latest->time - first->time) * 0.01)
    out.power = (latest->energy - first->energy) / (latest->time - first->time);
  out.readings = n;
  out.resolution = Watts(least_step);
  if (clocks > 0) out.clock = Hertz(clock / static_cast<double>(clocks));
  if (temperatures > 0) out.temperature_c = temperature / static_cast<double>(temperatures);
  return out;
}

SteadyPower Bench::run(const Kernel& kernel) {
  Kernel k = kernel;
  if (k.iterations == 0) k.iterations = choose_iterations(k);
  const cuda::Function function = function_of(k);
  KernelParameters p = parameters_of(k);
  p.iterations = k.iterations;
  for (int attempt = 1;; ++attempt) {
    SteadyPower out = run_once(function, k.shape, p);
    // A host that was held up let the GPU wait: again, it seldom is.
    if (!out.had_gaps || attempt == kAttempts) return out;
  }
}

SteadyPower Bench::run_once(cuda::Function function, LaunchShape shape, KernelParameters& p) {
  // Some launches ahead, so the GPU never waits for us; each marks its end.
  std::deque<OwnedEvent> marks;
  const OwnedEvent begin = gpu_.make_event();
  gpu_.record(begin);
  uint64_t launches = 0;
  bool had_gaps = false;
  const auto keep_busy = [&] {
    // The last one is kept: it may be the end of everything.
    while (marks.size() > 1 && gpu_.has_passed(marks.front())) marks.pop_front();
    had_gaps |= marks.size() == 1 && gpu_.has_passed(marks.front());
    while (marks.size() < kLaunchesAhead) {
      gpu_.launch(function, shape, p.pointers());
      ++launches;
      marks.push_back(gpu_.make_event());
      gpu_.record(marks.back());
    }
  };
  SteadyPower out = watch(options_.settle, options_.seconds, keep_busy);
  out.had_gaps = had_gaps;
  gpu_.wait(marks.back());
  out.per_launch = gpu_.elapsed(begin, marks.back()) / static_cast<double>(launches);
  return out;
}

SteadyPower Bench::idle(Seconds settle) {
  gpu_.synchronize();
  return watch(settle, options_.seconds, [] {});
}

namespace {

struct Pair {
  Bench::Kernel with, without;
  double instructions = 0;  // per launch, of all threads
};

Pair make_pair(Bench& bench, const Instruction& i, const BenchOptions& options, unsigned level) {
  Pair pair;
  KernelShape shape = default_shape(i);
  if (options.unroll != 0) shape.unroll = options.unroll;
  pair.with.spec = {{&i}, false, shape};
  pair.without.spec = {{&i}, true, shape};
  pair.with.optimization = pair.without.optimization = level;
  pair.with.shape = pair.without.shape = bench.busy_shape(pair.with.spec);
  pair.with.iterations = pair.without.iterations = bench.choose_iterations(pair.with);
  pair.instructions = static_cast<double>(pair.with.shape.blocks) * pair.with.shape.threads *
                      pair.with.iterations * shape.unroll;
  return pair;
}

EnergyFigure figure(const Pair& pair, const std::vector<SteadyPower>& with,
                    const std::vector<SteadyPower>& without, const std::vector<Watts>& idle,
                    const BenchOptions& options, const GpuInfo& gpu) {
  EnergyFigure f;
  f.instructions_per_launch = pair.instructions;
  std::vector<double> energies;
  double quantum = 0, clock = 0;
  const double r = static_cast<double>(with.size());
  for (size_t i = 0; i < with.size(); ++i) {
    const SteadyPower &a = with[i], &b = without[i];
    energies.push_back(
        ((a.power - idle[i]) * a.per_launch - (b.power - idle[i]) * b.per_launch).value() /
        pair.instructions);
    f.with_idle += (a.power * a.per_launch - b.power * b.per_launch) / pair.instructions / r;
    f.power += a.power / r;
    f.overhead_power += b.power / r;
    f.per_launch += a.per_launch / r;
    f.overhead_per_launch += b.per_launch / r;
    quantum = std::max({quantum, a.resolution.value(), b.resolution.value()});
    clock += a.clock.value() / r;
    if (a.is_throttled || b.is_throttled) f.doubts.push_back("clocks were throttled");
    if (a.had_gaps || b.had_gaps) f.doubts.push_back("the host was too slow: the GPU waited");
    if (a.clock.value() > 0 && std::abs(a.clock.value() / b.clock.value() - 1) > 0.02)
      f.doubts.push_back("the clock differed between both kernels");
  }
  std::sort(f.doubts.begin(), f.doubts.end());
  f.doubts.erase(std::unique(f.doubts.begin(), f.doubts.end()), f.doubts.end());
  const Mean mean = mean_of(energies);
  f.energy = Joules(mean.value);
  f.spread = Joules(mean.deviation);
  // Readings that are rounded alike in every repetition are all off by up to half a step.
  const double rounding = quantum / 2 * (f.per_launch + f.overhead_per_launch).value() /
                          pair.instructions /
                          std::sqrt(std::max(1.0, static_cast<double>(with.front().readings)));
  const double random = student(energies.size()) * mean.deviation / std::sqrt(r) + rounding;
  f.is_resolved = mean.value > random && energies.size() > 1;
  if (!f.is_resolved && energies.size() > 1) f.doubts.push_back("not told apart from nothing");
  const double half = random + options.sensor_error * std::abs(mean.value);
  f.low = Joules(std::max(0.0, mean.value - half));
  f.high = Joules(std::max(0.0, mean.value + half));
  if (mean.value < 0) f.energy = Joules(0);
  const double hertz = clock > 0 ? clock : gpu.clock.value();
  f.cycles =
      std::max(0.0, (f.per_launch - f.overhead_per_launch).value() * hertz *
                        (options.is_single_thread ? 1 : gpu.multiprocessors) / pair.instructions);
  return f;
}

void check_options(const BenchOptions& o) {
  if (o.instructions.empty()) throw Error("no instruction is named");
  if (o.repeats < 1) throw Error("--repeats: at least 1");
  if (!(o.seconds.value() > 0) || !(o.launch.value() > 0) || o.settle.value() < 0)
    throw Error("--seconds must be above zero, --settle not below");
  if (o.sensor_error < 0 || o.sensor_error >= 1)
    throw Error("--sensor-error must be from 0 up to, but not, 1 (0.05 is 5 %)");
  for (unsigned level : o.optimizations)
    if (level > 4) throw Error("--optimization: levels are 0 to 4");
}

}  // namespace

BenchResults run_benchmarks(Gpu& gpu, PowerSource& source, const BenchOptions& options,
                            const Progress& progress,
                            const std::function<void(const BenchResults&)>& done) {
  check_options(options);
  BenchResults results{.gpu = gpu.info(), .source = source.name(), .options = options};
  Bench bench(gpu, source, options);
  results.idle_before = bench.idle(Seconds(0)).power;
  double temperature_low = 1e9, temperature_high = -1e9, clock = 0;
  std::vector<double> idles;
  uint64_t clocks = 0;
  const auto see = [&](const SteadyPower& p) {
    if (p.temperature_c > 0) {
      temperature_low = std::min(temperature_low, p.temperature_c);
      temperature_high = std::max(temperature_high, p.temperature_c);
    }
    if (p.clock.value() > 0) clock += p.clock.value(), ++clocks;
  };
  for (const Instruction* i : options.instructions) {
    InstructionResult result{i, {}};
    for (unsigned level : options.optimizations) {
      if (progress) progress(fmt::format("{} -O{}", i->id, level));
      const Pair pair = make_pair(bench, *i, options, level);
      std::vector<SteadyPower> with, without;
      std::vector<Watts> idle;
      for (unsigned n = 0; n < options.repeats; ++n) {
        with.push_back(bench.run(pair.with));
        without.push_back(bench.run(pair.without));
        // Right behind a kernel, when clocks are still up: what the kernels' own idle share is.
        idle.push_back(bench.idle(options.settle).power);
        see(with.back());
        idles.push_back(idle.back().value());
      }
      result.by_optimization[level] = figure(pair, with, without, idle, options, gpu.info());
    }
    results.instructions.push_back(std::move(result));
    const Mean mean = mean_of(idles);
    const double half = student(idles.size()) * mean.deviation + options.sensor_error * mean.value;
    results.idle = Watts(mean.value);
    results.idle_low = Watts(std::max(0.0, mean.value - half));
    results.idle_high = Watts(mean.value + half);
    if (temperature_high > 0) {
      results.temperature_low_c = temperature_low;
      results.temperature_high_c = temperature_high;
    }
    results.clock = clocks > 0 ? Hertz(clock / static_cast<double>(clocks)) : gpu.info().clock;
    if (done) done(results);
  }
  if (clocks == 0)
    results.notes.push_back(
        "The source of power does not tell clocks: cycles are by the highest clock that the driver "
        "names.");
  return results;
}

}  // namespace gpusim::power
