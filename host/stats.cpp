#include "host/stats.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "host/error.h"

namespace gpusim::host {
namespace {

using Json = nlohmann::ordered_json;

[[noreturn]] void fail(const std::string& path, int error) {
  throw UserError(fmt::format("--stats {}: {}", path, std::strerror(error)));
}

Json classes_json(const ClassCounts& classes) {
  Json object = Json::object();
  for (int c = 0; c < kInsnClassCount; ++c) object[kInsnClassNames[c]] = classes[c];
  return object;
}

uint64_t sum(const ClassCounts& classes) { return Tally{classes, 0}.instructions(); }

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder;
}

// Devices and pipes cannot be replaced by renaming.
bool is_plain_or_absent(const std::string& path) {
  struct stat s;
  return ::stat(path.c_str(), &s) < 0 || S_ISREG(s.st_mode);
}

void write_all(int fd, const std::string& text, const std::string& path) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = ::write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(path, errno);
    done += static_cast<size_t>(n);
  }
}

}  // namespace

double RunSummary::mips() const {
  return seconds > 0 ? static_cast<double>(tally.instructions()) / seconds / 1e6 : 0;
}

Json stats_json(const RunSummary& s) {
  Json faults = Json::array();
  for (const StopRecord& stop : s.stops) {
    Json fault = {{"core", stop.core},
                  {"pc", fmt::format("{:#x}", stop.pc)},
                  {"symbol", stop.symbol},
                  {"reason", stop.reason},
                  {"instruction", stop.instruction},
                  {"exit_status", stop.exit_status}};
    if (stop.has_address) fault["address"] = fmt::format("{:#x}", stop.address);
    faults.push_back(std::move(fault));
  }
  Json object = {{"isa", s.isa},
                 {"backend", s.backend},
                 {"device", s.device},
                 {"cores", s.cores},
                 {"guest_instructions", s.tally.instructions()},
                 {"classes", classes_json(s.tally.classes)},
                 {"micro_ops", s.tally.micro_ops},
                 {"seconds", s.seconds},
                 {"mips", s.mips()},
                 {"exit_status", s.exit_status},
                 {"faults", std::move(faults)}};
  if (!s.per_core.empty()) {
    Json list = Json::array();
    for (size_t core = 0; core < s.per_core.size(); ++core)
      list.push_back({{"core", core},
                      {"guest_instructions", sum(s.per_core[core])},
                      {"classes", classes_json(s.per_core[core])}});
    object["per_core"] = std::move(list);
  }
  return object;
}

void write_stats(const RunSummary& summary, const std::string& path) {
  const std::string text =
      stats_json(summary).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  if (!is_plain_or_absent(path)) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) fail(path, errno);
    write_all(fd, text, path);
    ::close(fd);
    return;
  }
  std::string beside = path + ".XXXXXX";
  const int fd = ::mkstemp(beside.data());
  if (fd < 0) fail(path, errno);
  try {
    // mkstemp makes files private; this one is as other files of the user are.
    const mode_t mask = ::umask(0);
    ::umask(mask);
    ::fchmod(fd, 0666 & ~mask);
    write_all(fd, text, path);
    if (::close(fd) < 0 || ::rename(beside.c_str(), path.c_str()) < 0) fail(path, errno);
  } catch (...) {
    ::unlink(beside.c_str());
    throw;
  }
}

void check_stats_path(const std::string& path) {
  struct stat s;
  if (::stat(path.c_str(), &s) == 0 && S_ISDIR(s.st_mode)) fail(path, EISDIR);
  const std::string target = is_plain_or_absent(path) ? folder_of(path) : path;
  if (::access(target.c_str(), W_OK) < 0) fail(path, errno);
}

}  // namespace gpusim::host
