#include "host/self_test.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "device_sim/base/child_process.h"
#include "device_sim/base/error.h"
#include "device_sim/base/file_descriptor.h"
#include "device_sim/base/user_cache.h"
#include "device_sim/self_test/self_test.h"
#include "host/console.h"
#include "host/output_file.h"

namespace gpusim::host {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// Which device, driver and executable a result holds for.
std::string key_of(const DeviceInfo& device) {
  struct stat self {};
  ::stat("/proc/self/exe", &self);
  return fmt::format("{}; gpusim of {} bytes and time {}.{:09}", device.identity, self.st_size,
                     self.st_mtim.tv_sec, self.st_mtim.tv_nsec);
}

// Empty: the user has no cache folder.
fs::path file_of(const std::string& key) {
  const fs::path cache = user_cache_folder();
  if (cache.empty()) return cache;
  return cache / fmt::format("self-test-{:016x}.json", std::hash<std::string>()(key));
}

// Whoever cannot remember finds out again.
void remember(const std::string& key, const SelfTest& result) {
  const fs::path file = file_of(key);
  if (file.empty()) return;
  std::error_code ignored;
  fs::create_directories(file.parent_path(), ignored);
  const Json json = {{"for", key}, {"passed", result.passed}, {"why_not", result.why_not}};
  try {
    write_output_file("the self-test's result", file,
                      json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
  } catch (const Error&) {
  }
}

// The last line that is not empty.
std::string last_line(std::string_view text) {
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  return std::string(text.substr(text.rfind('\n') + 1));
}

}  // namespace

SelfTest run_self_test(uint32_t number, const DeviceInfo& device, unsigned most_seconds) {
  const auto start = std::chrono::steady_clock::now();
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw Error(fmt::format("self-test: pipe: {}", std::strerror(errno)));
  const FileDescriptor read_end(ends[0]);
  FileDescriptor write_end(ends[1]);
  ChildProcess child({"/proc/self/exe", "self-test", "--device", std::to_string(number),
                      "--timeout", std::to_string(most_seconds), "--here"},
                     {.input = ChildSettings::kNoStream,
                      .output = ChildSettings::kNoStream,
                      .error = write_end.get()});
  write_end = FileDescriptor();
  std::string errors;
  char piece[4096];
  for (ssize_t n;
       (n = ::read(read_end.get(), piece, sizeof piece)) > 0 || (n < 0 && errno == EINTR);)
    if (n > 0) errors.append(piece, static_cast<size_t>(n));
  SelfTest result;
  result.passed = child.wait() == 0;
  result.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (const std::optional<int> signal = child.ended_by_signal(); signal == SIGALRM)
    result.why_not = fmt::format("it did not end within {} s", most_seconds);
  else if (signal)
    result.why_not = fmt::format("it ended by SIG{}", ::sigabbrev_np(*signal));
  else if (!result.passed)
    result.why_not = last_line(errors);
  remember(key_of(device), result);
  return result;
}

std::optional<SelfTest> known_self_test(const DeviceInfo& device) {
  const std::string key = key_of(device);
  const fs::path file = file_of(key);
  if (file.empty()) return std::nullopt;
  std::ifstream in(file);
  const Json json = Json::parse(in, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.value("for", Json()) != Json(key) ||
      !json.value("passed", Json()).is_boolean() || !json.value("why_not", Json()).is_string())
    return std::nullopt;
  return SelfTest{.passed = json["passed"], .why_not = json["why_not"]};
}

int self_test_here(uint32_t number, unsigned most_seconds) {
  std::signal(SIGALRM, SIG_DFL);
  ::alarm(most_seconds);
  const std::string what = self_test::run_self_test(
      [=] { return make_backend_on(backend_with_devices().name, std::vector{number}); });
  if (!what.empty()) console::err("{}\n", what);
  return what.empty() ? 0 : 1;
}

}  // namespace gpusim::host
