// Power sensors that the Linux kernel shows as files: RAPL's energy counters (powercap) and hwmon.
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "device_sim/base/csv.h"
#include "device_sim/base/error.h"
#include "energy/power/sources.h"

namespace gpusim::power {
namespace {

namespace fs = std::filesystem;

class RealSource : public PowerSource {
 public:
  Seconds now() const override { return monotonic_now(); }
  void sleep_until(Seconds time) override { monotonic_sleep_until(time); }
  bool is_virtual() const override { return false; }
};

// Opened for each reading: a device that has gone is to be noticed.
std::string read_line(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  char text[256];
  const ssize_t n = fd < 0 ? -1 : ::read(fd, text, sizeof text);
  const int error = errno;
  if (fd >= 0) ::close(fd);
  if (n < 0) {
    const char* hint = error == EACCES ? " (reading it needs the superuser's rights)" : "";
    throw Error(fmt::format("{}: {}{}", path.string(), std::strerror(error), hint));
  }
  return std::string(trim(std::string_view(text, static_cast<size_t>(n))));
}

double read_number(const fs::path& path) {
  const std::string text = read_line(path);
  const auto n = parse_number(text);
  if (!n || !(*n >= 0))
    throw Error(fmt::format("{}: \"{}\" is not a reading", path.string(), text));
  return *n;
}

std::vector<fs::path> children(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    found.push_back(at->path());
  std::sort(found.begin(), found.end());
  return found;
}

// A counter of microjoules that wraps.
class Counter {
 public:
  explicit Counter(const fs::path& zone)
      : file_(zone / "energy_uj"), range_(read_number(zone / "max_energy_range_uj")) {
    last_ = read_number(file_);
  }
  Joules read() {
    const double now = read_number(file_);
    double more = now - last_;
    if (more < 0) more += range_;
    last_ = now;
    total_ += Joules(more * 1e-6);
    return total_;
  }

 private:
  fs::path file_;
  double range_, last_ = 0;
  Joules total_;
};

class RaplSource final : public RealSource {
 public:
  RaplSource(std::string name, const std::vector<fs::path>& zones) : name_(std::move(name)) {
    for (const fs::path& zone : zones) counters_.emplace_back(zone);
    last_time_ = monotonic_now();
  }
  std::string name() const override { return name_; }

  // The mean since the poll before. The counters move about every millisecond.
  std::optional<Sample> poll() override {
    sleep_until(last_time_ + Seconds(0.001));
    Joules total;
    for (Counter& c : counters_) total += c.read();
    const Seconds time = monotonic_now();
    if (total > last_total_) {
      power_ = (total - last_total_) / (time - last_time_);
      last_total_ = total;
      last_time_ = time;
    } else if (time - last_time_ > Seconds(0.1)) {  // it stands still
      power_ = Watts(0);
      last_time_ = time;
    }
    return Sample{.time = time, .power = power_, .energy_total = total};
  }

 private:
  std::string name_;
  std::vector<Counter> counters_;
  Seconds last_time_;
  Joules last_total_;
  Watts power_;
};

class HwmonSource final : public RealSource {
 public:
  HwmonSource(std::string name, fs::path file) : name_(std::move(name)), file_(std::move(file)) {}
  std::string name() const override { return name_; }
  std::optional<Sample> poll() override {
    const double microwatts = read_number(file_);
    return Sample{.time = monotonic_now(), .power = Watts(microwatts * 1e-6)};
  }

 private:
  std::string name_;
  fs::path file_;
};

}  // namespace

std::unique_ptr<PowerSource> open_rapl(const std::string& zone, const SourceOptions& options) {
  const fs::path root = fs::path(options.sysfs_root) / "class/powercap";
  std::vector<fs::path> zones;
  std::vector<std::string> known, names;
  for (const fs::path& child : children(root)) {
    const std::string file = child.filename();
    constexpr std::string_view kPrefix = "intel-rapl:";  // AMD's, too
    if (!file.starts_with(kPrefix)) continue;
    const std::string id = file.substr(kPrefix.size());
    std::string name;
    try {
      name = read_line(child / "name");
    } catch (const Error&) {
      continue;
    }
    known.push_back(fmt::format("{} ({})", id, name));
    // All packages: without their parts, and without psys, which holds them.
    const bool is_wanted = zone.empty()
                               ? id.find(':') == std::string::npos && name.starts_with("package")
                               : id == zone;
    if (!is_wanted) continue;
    zones.push_back(child);
    names.push_back(name);
  }
  if (known.empty())
    throw Error(fmt::format(
        "rapl: there are no energy counters in {}: the CPU has none, or the kernel's module "
        "intel_rapl_msr is not loaded (virtual machines often hide them)",
        root.string()));
  if (zones.empty())
    throw Error(fmt::format("rapl:{}: no such zone; there are {}", zone, fmt::join(known, ", ")));
  return std::make_unique<RaplSource>(fmt::format("rapl ({})", fmt::join(names, ", ")), zones);
}

// NAME is the driver's; NAME:2 its second sensor.
std::unique_ptr<PowerSource> open_hwmon(const std::string& spec, const SourceOptions& options) {
  const fs::path root = fs::path(options.sysfs_root) / "class/hwmon";
  const size_t colon = spec.find(':');
  const std::string name = spec.substr(0, colon);
  const std::string index = colon == std::string::npos ? "" : spec.substr(colon + 1);
  std::vector<std::string> known;
  for (const fs::path& child : children(root)) {
    std::string driver;
    try {
      driver = read_line(child / "name");
    } catch (const Error&) {
      continue;
    }
    for (const fs::path& file : children(child)) {
      const std::string what = file.filename();
      if (!what.starts_with("power")) continue;
      const size_t bar = what.find('_');
      const std::string kind = bar == std::string::npos ? "" : what.substr(bar + 1);
      if (kind != "average" && kind != "input") continue;
      const std::string number = what.substr(5, bar - 5);
      known.push_back(fmt::format("{}:{}", driver, number));
      if (driver == name && (index.empty() || index == number))
        return std::make_unique<HwmonSource>(fmt::format("hwmon:{} ({})", driver, what), file);
    }
  }
  throw Error(fmt::format("hwmon:{}: no such power sensor in {}; {}", spec, root.string(),
                          known.empty() ? "there is none at all"
                                        : fmt::format("there are {}", fmt::join(known, ", "))));
}

}  // namespace gpusim::power
