#include "host/run/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "device_sim/base/digits.h"
#include "host/console.h"
#include "host/run/terminal_lines.h"

namespace gpusim::host {
namespace {

std::string duration(double seconds) {
  const auto s = static_cast<uint64_t>(seconds);
  if (s < 60) return fmt::format("{} s", s);
  if (s < 3600) return fmt::format("{} min {} s", s / 60, s % 60);
  return fmt::format("{} h {} min", s / 3600, s / 60 % 60);
}

std::string count(double n) {
  for (const char* unit : {"", " k", " M", " G", " T"}) {
    if (n < 1000) return fmt::format("{:.{}f}{}", n, *unit ? 1 : 0, unit);
    n /= 1000;
  }
  return fmt::format("{:.1f} P", n);
}

// NO_COLOR (no-color.org) asks for no control sequences; a dumb terminal has none.
bool has_control_sequences() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return !(no_color && *no_color) && !(terminal && std::string_view(terminal) == "dumb");
}

}  // namespace

Progress::Progress(bool wanted) : enabled_(wanted && isatty(STDERR_FILENO) != 0) {}

bool Progress::is_due() const { return enabled_ && Clock::now() >= next_; }

void Progress::show(const State& state) {
  if (!enabled_) return;
  const auto now = Clock::now();
  next_ = now + std::chrono::milliseconds(500);
  const double interval = std::chrono::duration<double>(now - last_).count();
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  const double mips =
      static_cast<double>(state.instructions - last_instructions_) / 1e6 / std::max(interval, 1e-9);
  last_ = now;
  last_instructions_ = state.instructions;
  std::string line =
      fmt::format("{} of {} cores finished, {} instructions, {:.0f} MIPS", grouped(state.finished),
                  grouped(state.cores), count(static_cast<double>(state.instructions)), mips);
  line += ", " + duration(elapsed);
  // What is left can be told from the instruction limit, or once a fair share has finished.
  const double by_limit =
      state.most_instructions == 0
          ? 0
          : static_cast<double>(state.instructions) / static_cast<double>(state.most_instructions);
  const double by_cores = static_cast<double>(state.finished) / std::max(1u, state.cores);
  const double done = by_cores >= 0.05 ? by_cores : by_limit;
  if (done > 0.01)
    line += fmt::format(", {} {} left", by_cores >= 0.05 ? "about" : "at most",
                        duration(elapsed * (1 - done) / done));
  print_line(line);
  shown_ = true;
}

void Progress::clear() {
  if (!shown_) return;
  print_line("");
  if (!has_control_sequences()) console::err("\r");
  shown_ = false;
}

// Over the line before.
void Progress::print_line(const std::string& text) {
  // A line that the terminal breaks cannot be written over.
  std::string line = text;
  if (const size_t columns = error_columns(); columns != 0 && line.size() >= columns)
    line.resize(columns - 1);
  if (has_control_sequences())
    console::err("\r{}\033[K", line);
  else
    console::err("\r{:<{}}", line, width_);
  width_ = line.size();
}

}  // namespace gpusim::host
