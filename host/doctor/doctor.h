// What this machine has for gpusim, and what to do where it lacks something.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace gpusim::host::doctor {

enum class State {
  kGood,
  kLimited,  // works, but less well than it could
  kAbsent,   // something that not everybody needs
  kBroken,   // gpusim cannot run so
};
const char* name_of(State state);

struct Check {
  std::string area;  // "Memory"
  std::string name;  // "huge pages"
  State state = State::kGood;
  std::string value;   // what there is, or why not
  std::string advice;  // one line; empty where there is nothing to do
};

// Where tests put what a machine could be like; else the machine's own.
struct Machine {
  std::string root;          // before /proc, /sys and /dev
  std::string nvml_library;  // empty: as the loader finds it

  std::string path(const std::string& file) const { return root + file; }
};

std::vector<Check> check_processor(const Machine& machine);
std::vector<Check> check_memory(const Machine& machine);
std::vector<Check> check_limits(const Machine& machine);
std::vector<Check> check_gpus(const Machine& machine);
std::vector<Check> check_sensors(const Machine& machine);
std::vector<Check> check_programs();  // QEMU, compilers, debuggers: those in PATH
std::vector<Check> check_folders();
std::vector<Check> all_checks(const Machine& machine);

bool can_run(const std::vector<Check>& checks);
std::string text_of(const std::vector<Check>& checks);
nlohmann::ordered_json json_of(const std::vector<Check>& checks);

// The first line of a file, without its end; empty where it cannot be read.
std::string first_line(const std::string& path);

}  // namespace gpusim::host::doctor
