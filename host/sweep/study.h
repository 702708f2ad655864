// What a scaling study is asked for: programs, sizes, arguments, numbers of cores. From the command
// line or from a file (docs/sweep.md describes its keys).
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace gpusim::sweep {

// Strong: the same work however many cores; weak: the same work per core; none: neither, so that
// speed-ups mean nothing.
enum class Scaling { kStrong, kWeak, kNone };

// One program with one set of arguments: a curve.
struct Case {
  std::string label;                 // "sobel", "fft/large"
  std::string program;               // as commands name it
  std::vector<std::string> options;  // of `gpusim run`
  std::vector<std::string> args;     // of the program; {cores}, {cores*K}, {cores/K} are filled in
  Scaling scaling = Scaling::kStrong;
  std::vector<uint32_t> cores;  // empty: the study's
  std::string program_sha256 = {};
  // With a chip, as `gpusim run --chip` takes it: its name without what is varied, and the values
  // of the study's keys, in their order.
  std::string family = {}, chip = {};
  std::vector<std::string> chip_values = {};
};

// The program's name, without what is varied of its chip.
const std::string& family_of(const Case& one);

// A key of a chip's description and the values that it is to have (host/sweep/chips.h).
struct VariedKey {
  std::string key;
  std::vector<std::string> values;
};

struct Study {
  std::string title;
  std::vector<Case> cases;
  std::vector<uint32_t> cores;
  std::vector<std::string> backends = {"auto"};
  bool backend_is_auto = false;  // they were chosen for the machine where the study begins
  uint32_t repeat = 1;
  std::string energy;              // targets with commas between
  uint32_t threads = 0;            // of one point; 0: as many as it can use
  uint32_t jobs = 0;               // points at once; 0: as host threads allow
  double timeout_seconds = 0;      // of one point; 0: none
  std::vector<std::string> chips;  // all cases on each of them; empty: no chip
  std::vector<VariedKey> vary;
};

// Options of `gpusim run` for a study in simulated time; `timing`: an energy target, or nothing.
std::vector<std::string> time_options(bool simulated_time, const std::string& timing);

const char* scaling_name(Scaling scaling);
Scaling parse_scaling(const std::string& where, const std::string& name);

// "1,2,4..65536": A..B doubles from A up to B, B included; A..B+S goes in steps of S. In rising
// order, each once. Throws Error naming `where`.
std::vector<uint32_t> parse_cores(const std::string& where, const std::string& text);

// "{cores*1024}" for that many cores. Throws Error.
std::string filled_in(const std::string& argument, uint32_t cores);

// A .json or .toml file. Paths in it start from its folder; those of the result from the current
// one. Throws Error that names the key.
Study load_study(const std::string& path);
bool is_study_file(const std::string& path);

// Checks what cannot be told while reading (two cases of one name, no cores) and reads each program
// once, for its checksum. Throws Error.
void prepare(Study& study);

nlohmann::ordered_json study_json(const Study& study);
// What study_json wrote.
Study study_of_json(const nlohmann::ordered_json& json, const std::string& where);

}  // namespace gpusim::sweep
