// `gpusim power microbench`: from a bare GPU to a calibrated energy target in one command.
#include <fmt/format.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <memory>
#include <sstream>

#include "device_sim/base/error.h"
#include "device_sim/base/file.h"
#include "energy/power/microbench/sweeps.h"
#include "energy/power/microbench/target_file.h"
#include "energy/target.h"
#include "host/cli/power_commands.h"
#include "host/cli/strict_values.h"
#include "host/console.h"
#include "host/output_file.h"

namespace gpusim::host {
namespace {

namespace pw = gpusim::power;
namespace fs = std::filesystem;

struct Options {
  SourceArguments source;
  std::string output, rows = "all", emit, levels = "3,0", sweeps, name, cuda;
  bool list = false, is_single = false, is_quick = false, only_sweeps = false;
  int device = 0;
  unsigned unroll = 0, repeats = 3;
  double seconds = 1.5, settle = 0.6, sensor_error = 0.05;
};

std::string list_text() {
  std::string text =
      fmt::format("{:<18} {:<20} {:<17} {}\n", "instruction", "class", "row", "what");
  for (const pw::Instruction& i : pw::instructions())
    text += fmt::format("{:<18} {:<20} {:<17} {}{}\n", i.id,
                        kInsnClassNames[static_cast<size_t>(i.insn_class)], i.row,
                        pw::row(i.row).title, pw::row(i.row).is_published ? " (Table I)" : "");
  return text;
}

int emit(const Options& o, const std::vector<const pw::Instruction*>& chosen) {
  std::error_code error;
  fs::create_directories(o.emit, error);
  if (error) throw Error(fmt::format("--emit {}: {}", o.emit, error.message()));
  for (const pw::Instruction* i : chosen) {
    pw::KernelShape shape = pw::default_shape(*i);
    if (o.unroll != 0) shape.unroll = o.unroll;
    for (bool is_overhead : {false, true})
      write_output_file("--emit",
                        fmt::format("{}/{}{}.ptx", o.emit, i->id, is_overhead ? ".overhead" : ""),
                        pw::kernel_ptx({{i}, is_overhead, shape}));
  }
  console::out("{} kernels and their overheads in {}\n", chosen.size(), o.emit);
  return 0;
}

std::vector<unsigned> parse_levels(const std::string& text) {
  std::vector<unsigned> levels;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) {
    if (part.size() != 1 || part[0] < '0' || part[0] > '4')
      throw Error(fmt::format("--optimization {}: levels 0 to 4, as 3,0", text));
    levels.push_back(static_cast<unsigned>(part[0] - '0'));
    if (std::count(levels.begin(), levels.end(), levels.back()) > 1)
      throw Error(fmt::format("--optimization {}: level {} twice", text, part));
  }
  if (levels.empty()) throw Error("--optimization: levels 0 to 4, as 3,0");
  return levels;
}

std::string today() {
  char text[32];
  const std::time_t now = std::time(nullptr);
  std::tm t{};
  ::gmtime_r(&now, &t);
  std::strftime(text, sizeof text, "%Y-%m-%d", &t);
  return text;
}

std::string earlier_text(const std::string& path) {
  return fs::exists(path) ? read_text(path) : std::string();
}

void write_sweeps(const Options& o, const pw::Sweeps& sweeps) {
  const std::string device = o.sweeps + "/device.txt";
  const std::string who = sweeps.gpu.name + "\n";
  const std::string earlier = earlier_text(device);
  if (!earlier.empty() && earlier != who)
    throw Error(fmt::format("--sweeps {}: the files there are of another GPU: {}", o.sweeps,
                            earlier.substr(0, earlier.find('\n'))));
  const std::string names[] = {o.sweeps + "/constant.csv", o.sweeps + "/static.csv",
                               o.sweeps + "/idle.csv"};
  const pw::SweepFiles files = pw::sweep_files(
      sweeps, {earlier_text(names[0]), earlier_text(names[1]), earlier_text(names[2])});
  write_output_file("--sweeps", device, who);
  write_output_file("--sweeps", names[0], files.constant);
  write_output_file("--sweeps", names[1], files.statics);
  write_output_file("--sweeps", names[2], files.idle);
  for (const std::string& note : sweeps.notes) console::out("note: {}\n", note);
  console::out(
      "wrote {0}/constant.csv, static.csv and idle.csv. Set another clock, run again, and with "
      "three "
      "clocks: gpusim energy tune --constant {0}/constant.csv --static {0}/static.csv --idle "
      "{0}/idle.csv --sms {1}\n",
      o.sweeps, sweeps.gpu.multiprocessors);
}

int run(const Options& o) {
  if (o.list) {
    console::out("{}", list_text());
    return 0;
  }
  const auto chosen = pw::select_instructions(o.rows);
  if (!o.emit.empty()) return emit(o, chosen);
  pw::BenchOptions bench;
  bench.instructions = chosen;
  bench.optimizations = parse_levels(o.levels);
  bench.seconds = pw::Seconds(o.is_quick ? 0.5 : o.seconds);
  bench.settle = pw::Seconds(o.settle);
  bench.repeats = o.is_quick ? 2 : o.repeats;
  bench.unroll = o.unroll;
  bench.is_single_thread = o.is_single;
  bench.sensor_error = o.sensor_error;
  if (!o.output.empty()) check_output_file("-o", o.output);
  if (o.only_sweeps && o.sweeps.empty()) throw Error("--only-sweeps needs --sweeps DIR");
  if (!o.name.empty() && o.name.find_first_of("/, ") != std::string::npos)
    throw Error("--name: one word, without slash or comma");
  if (!o.sweeps.empty()) {
    std::error_code error;
    fs::create_directories(o.sweeps, error);
    if (error) throw Error(fmt::format("--sweeps {}: {}", o.sweeps, error.message()));
  }
  pw::Gpu gpu(o.cuda, o.device);
  const auto source = o.source.open();
  if (source->is_virtual())
    throw Error(
        fmt::format("--source {}: its clock is not this machine's; a GPU's kernels need a "
                    "source that measures now",
                    o.source.source));
  const bool is_terminal = ::isatty(STDERR_FILENO) != 0;
  const pw::Progress progress = [&](const std::string& what) {
    if (is_terminal) console::err("\r\033[K{}", what);
  };
  const std::string name = o.name.empty() ? pw::target_name(gpu.info()) : o.name;
  const std::string date = today();
  if (!o.only_sweeps) {
    const pw::BenchResults results =
        pw::run_benchmarks(gpu, *source, bench, progress, [&](const pw::BenchResults& so_far) {
          if (!o.output.empty())
            write_output_file("-o", o.output, pw::target_json(so_far, name, date));
        });
    if (is_terminal) console::err("\r\033[K");
    console::out("{}", pw::bench_table(results));
    for (const std::string& note : results.notes) console::out("note: {}\n", note);
    if (!o.output.empty()) {
      // What `gpusim energy` would say of it, now rather than later.
      energy::parse_target(read_text(o.output), o.output);
      console::out("wrote {}: gpusim energy estimate STATS.json --target {}{}\n", o.output,
                   o.output.find('/') == std::string::npos ? "./" : "", o.output);
    }
  }
  if (!o.sweeps.empty()) {
    const pw::Sweeps sweeps = pw::run_sweeps(gpu, *source, bench, progress);
    if (is_terminal) console::err("\r\033[K");
    write_sweeps(o, sweeps);
  }
  return 0;
}

}  // namespace

void add_power_microbench(CLI::App& power, Action& action) {
  CLI::App* c = power.add_subcommand(
      "microbench", "Measure what each PTX instruction costs on a GPU and write an energy target");
  auto o = std::make_shared<Options>();
  c->add_option("-o,--output", o->output, "Write the target file here (kept up to date meanwhile)");
  c->add_option("--rows", o->rows, "Instructions, rows or class:NAME, separated by commas (all)")
      ->transform(list_value());
  c->add_flag("--list", o->list, "List instructions, classes and rows, and stop");
  c->add_option("--emit", o->emit, "Write the PTX kernels into this folder, and stop");
  add_source_options(*c, o->source);
  c->add_option("--device", o->device, "CUDA device, in order of PCI addresses (0)");
  c->add_option("--optimization", o->levels, "Levels of the driver's assembler (3,0)")
      ->transform(list_value());
  c->add_option("--unroll", o->unroll,
                "Instructions per iteration (64; 8 for divisions and the like)");
  c->add_option("--repeats", o->repeats, "Repetitions of each measurement (3)")
      ->check(CLI::Range(1u, 1000u));
  c->add_option("--seconds", o->seconds, "Seconds that power is averaged over (1.5)")
      ->check(CLI::Range(0.01, 3600.0));
  c->add_option("--settle", o->settle, "Seconds before that, for clocks and sensor (0.6)")
      ->check(CLI::Range(0.0, 3600.0));
  c->add_option("--sensor-error", o->sensor_error, "Relative error of the sensor's gain (0.05)")
      ->check(CLI::Range(0.0, 0.99));
  c->add_flag("--quick", o->is_quick, "Half a second and two repetitions each");
  c->add_flag("--single-thread", o->is_single, "One thread on the whole GPU, as Arafa et al. did");
  c->add_option("--name", o->name, "Of the target (the GPU's)");
  c->add_option("--sweeps", o->sweeps,
                "Power over lanes and SMs at the present clock, added to files in this folder");
  c->add_flag("--only-sweeps", o->only_sweeps, "No target, only --sweeps");
  c->add_option("--cuda-library", o->cuda, "The driver's library (libcuda.so.1)");
  c->callback([o, &action] { action = [o] { return run(*o); }; });
}

}  // namespace gpusim::host
