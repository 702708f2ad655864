#include "host/sweep/claims.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "device_sim/base/error.h"
#include "device_sim/base/file_descriptor.h"
#include "host/output_file.h"

namespace gpusim::sweep {
namespace {

namespace fs = std::filesystem;

constexpr const char* kGivenBack = "given back";

[[noreturn]] void fail(const std::string& path, int error) {
  throw Error(fmt::format("-o {}: {}", path, std::strerror(error)));
}

}  // namespace

Claims::Claims(std::string folder, std::string worker)
    : folder_(std::move(folder)), worker_(std::move(worker)) {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) throw Error(fmt::format("-o {}: {}", folder_, error.message()));
}

std::string Claims::path(const std::string& point, uint32_t generation) const {
  return fmt::format("{}/{}.{}", folder_, point, generation);
}

bool Claims::take(const std::string& point, uint32_t generation) {
  const std::string file = path(point, generation);
  FileDescriptor fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!fd) {
    if (errno == EEXIST) return false;
    fail(file, errno);
  }
  const std::string text = worker_ + "\n";
  if (::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    fail(file, errno);
  if (::close(fd.release()) < 0) fail(file, errno);
  return true;
}

void Claims::give_back(const std::string& point, uint32_t generation) {
  host::write_output_file("-o", path(point, generation),
                          fmt::format("{}\n{}\n", worker_, kGivenBack));
}

std::optional<Claims::Holder> Claims::holder(const std::string& point, uint32_t generation) const {
  std::ifstream file(path(point, generation));
  if (!file) return std::nullopt;
  Holder holder;
  std::string second;
  std::getline(file, holder.worker);
  std::getline(file, second);
  holder.gave_back = second == kGivenBack;
  return holder;
}

std::map<std::string, uint32_t> Claims::last() const {
  std::map<std::string, uint32_t> list;
  std::error_code error;
  for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename();
    const size_t dot = name.rfind('.');
    uint32_t generation = 0;
    if (dot == std::string::npos) continue;
    const char* const stop = name.data() + name.size();
    if (const auto [tail, bad] = std::from_chars(name.data() + dot + 1, stop, generation);
        bad != std::errc{} || tail != stop)
      continue;
    uint32_t& known = list[name.substr(0, dot)];
    known = std::max(known, generation);
  }
  return list;
}

uint32_t Claims::lost(const std::string& point, uint32_t first, uint32_t last) const {
  uint32_t count = 0;
  for (uint32_t g = first; g <= last; ++g) {
    const std::optional<Holder> one = holder(point, g);
    count += one && !one->gave_back;
  }
  return count;
}

}  // namespace gpusim::sweep
