#include "host/sweep/study_progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "host/console.h"

namespace gpusim::sweep {
namespace {

size_t terminal_width() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20) return size.ws_col;
  return 80;
}

}  // namespace

std::string duration_text(double seconds) {
  const auto s = static_cast<uint64_t>(std::llround(std::max(0.0, seconds)));
  if (s < 60) return fmt::format("{} s", s);
  if (s < 3600) return fmt::format("{} min {} s", s / 60, s % 60);
  return fmt::format("{} h {} min", s / 3600, s / 60 % 60);
}

StudyProgress::StudyProgress(bool wanted)
    : wanted_(wanted), enabled_(wanted && isatty(STDERR_FILENO) != 0) {}

bool StudyProgress::is_due() const { return enabled_ && Clock::now() >= next_; }

void StudyProgress::add_known(const PointId& id, double seconds) {
  known_.push_back({id.one, id.backend, id.cores, seconds});
}

double StudyProgress::expected(const PointId& id) const {
  const Known* best = nullptr;
  double least = 0, all = 0;
  for (const Known& k : known_) {
    all += k.seconds;
    if (k.one != id.one || k.backend != id.backend) continue;
    const double distance = std::abs(std::log2(static_cast<double>(k.cores) / id.cores));
    if (best && distance >= least) continue;
    best = &k;
    least = distance;
  }
  if (best) return best->seconds;
  return known_.empty() ? -1 : all / static_cast<double>(known_.size());
}

void StudyProgress::show(size_t done, size_t wanted, size_t failed,
                         const std::vector<PointId>& waiting, const std::vector<PointId>& running,
                         const std::vector<double>& so_far) {
  if (!enabled_) return;
  next_ = Clock::now() + std::chrono::milliseconds(250);
  constexpr size_t kBar = 20;
  const size_t full = wanted ? kBar * done / wanted : kBar;
  std::string line = fmt::format("[{}{}] {} of {} points", std::string(full, '#'),
                                 std::string(kBar - full, '.'), done, wanted);
  if (failed) line += fmt::format(", {} failed", failed);
  double left = 0;
  bool known = !known_.empty();
  for (const PointId& id : waiting) left += expected(id);
  // Points that run at the same time share what is left of the others.
  left /= static_cast<double>(std::max<size_t>(1, running.size()));
  double longest = 0;
  for (size_t i = 0; i < running.size(); ++i)
    longest = std::max(longest, expected(running[i]) - so_far[i]);
  left += longest;
  if (known) line += fmt::format(", about {} left", duration_text(left));
  if (!running.empty())
    line += fmt::format("; {} on {} cores{}", running[0].one->label, running[0].cores,
                        running.size() > 1 ? fmt::format(" and {} more", running.size() - 1) : "");
  const size_t width = terminal_width() - 1;
  if (line.size() > width) line.resize(width);
  host::console::err("\r{}\033[K", line);
  shown_ = true;
}

void StudyProgress::say(const std::string& line) {
  if (!wanted_) return;
  clear();
  host::console::err("{}\n", line);
}

void StudyProgress::clear() {
  if (!shown_) return;
  host::console::err("\r\033[K");
  shown_ = false;
}

}  // namespace gpusim::sweep
