#include "qemu_bridge/daemon/log.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "device_sim/base/error.h"
#include "host/console.h"

namespace gpusim::daemon {

Log Log::to_standard_error() {
  Log log;
  log.file_ = std::shared_ptr<std::FILE>(stderr, [](std::FILE*) {});
  return log;
}

Log Log::to_file(const std::string& path) {
  Log log;
  // "e": kernels' helpers inherit nothing.
  log.file_ = std::shared_ptr<std::FILE>(std::fopen(path.c_str(), "ae"), [](std::FILE* f) {
    if (f) std::fclose(f);
  });
  if (!log.file_) throw Error(fmt::format("--log {}: {}", path, std::strerror(errno)));
  return log;
}

void Log::write(const std::string& text) {
  using namespace std::chrono;
  const auto now = duration_cast<microseconds>(system_clock::now().time_since_epoch()).count();
  const std::string line = fmt::format("{}.{:06} {}\n", now / 1'000'000, now % 1'000'000, text);
  // A full disk ends no daemon.
  (void)std::fwrite(line.data(), 1, line.size(), file_.get());
  (void)std::fflush(file_.get());
}

void complain(const std::string& text) {
  std::string line = text;
  std::replace(line.begin(), line.end(), '\n', ' ');
  host::console::err("gpusim daemon: {}\n", line);
}

}  // namespace gpusim::daemon
