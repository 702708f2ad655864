// An energy target: what instructions of each class cost on a machine, where the numbers come from,
// and what else of the machine the model of chapter 6 of the thesis wants to know.
// docs/howto/energy_target.md describes the file format.
#pragma once
#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "device_sim/uir/insn_class.h"
#include "energy/units.h"

namespace gpusim::energy {

// Accesses of which no cache model says where they were served.
inline constexpr const char* kUnplacedMemory = "unplaced_memory";

// A value and the bounds that its source gives.
template <class T>
struct Interval {
  T low{}, value{}, high{};

  constexpr Interval operator+(const Interval& o) const {
    return {low + o.low, value + o.value, high + o.high};
  }
  constexpr Interval operator*(double n) const { return {low * n, value * n, high * n}; }
  constexpr Interval& operator+=(const Interval& o) { return *this = *this + o; }
};

// One instruction of a class.
struct ClassCost {
  Interval<Joules> energy;
  std::string measurement;  // the rows of the source, "add, sub"
  bool is_substitute = false;
  std::string reason;  // of the substitute
  std::string source;
};

// Equations 6.8 and 6.9 need cycles; the thesis leaves them to the modelled hardware.
struct Timing {
  Hertz clock;
  double units = 0;              // that work at the same time; 0: as many as cores are simulated
  bool units_are_cores = false;  // a simulated core keeps one unit busy at most
  // Where they are not, simulated cores are threads. A unit executes `warp` of them together; one
  // of them begins an instruction every `thread_cycles` at most.
  double warp = 1;
  double thread_cycles = 0;
  std::string unit;  // "core", "multiprocessor"
  bool is_assumed = false;
  std::string source, conditions;
  std::array<double, kInsnClassCount> cycles{};
  double unplaced_memory_cycles = 0;
};

// Section 6.1.1.3: after work has ended the machine stays in each state for `hold`, then falls to
// the next; the last one has no end.
struct OperatingState {
  std::string name;
  Watts idle_power;
  Seconds hold;
  std::string source, conditions;
  std::string substitute, reason;  // the state whose power stands in, if it has none of its own
};

// Between host and device, equation 6.10.
struct Transfer {
  Watts power;  // above idle, while data moves
  Seconds latency;
  BytesPerSecond bandwidth;
  bool is_assumed = false;
};

struct Target {
  std::string name;     // "ptx-volta/mtsm-o3"
  std::string title;    // with the variant's
  std::string variant;  // "mtsm-o3", or nothing
  std::string conditions;
  std::vector<std::string> notes;
  std::string uncertainty;  // what the bounds mean
  std::array<ClassCost, kInsnClassCount> classes;
  // Of an access of which no cache model says where it was served; off_chip_memory if the target
  // does not tell them apart.
  ClassCost unplaced_memory;
  bool has_unplaced_memory = false;  // it does
  std::optional<Timing> timing;
  // Per measurement, of a target whose rows are of PTX instructions: kernels are priced by them
  // (ptx_row), and by classes where they have none.
  std::map<std::string, Interval<Joules>, std::less<>> ptx_rows;
  std::vector<OperatingState> states;  // highest first
  std::optional<Transfer> transfer;

  const ClassCost& cost(InsnClass c) const { return classes[static_cast<size_t>(c)]; }
};

// The variants of a target file, the default one first. `origin` names the text in messages. Throws
// Error that says what is wrong and where.
std::vector<Target> parse_target(const std::string& text, const std::string& origin);

// All variants of all targets that are built in, by name; each file's default variant first.
const std::vector<Target>& builtin_targets();
// What `--target` names: names separated by commas, `all`, files (with a slash or ending in .json).
// "ptx-volta" is its default variant, "ptx-volta/all" stands for all of them.
std::vector<Target> find_targets(const std::string& list);

}  // namespace gpusim::energy
