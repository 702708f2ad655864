#include "host/backend_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "device_sim/base/error.h"
#include "host/self_test.h"

namespace gpusim::host {
namespace {

// "there are 0 to 3", "there is 0".
std::string numbers_text(size_t count) {
  return count == 1 ? "there is only 0" : fmt::format("there are 0 to {}", count - 1);
}

std::string why_none() {
  std::string why_not;
  return backend_with_devices().available(&why_not) ? "no GPU in this machine" : why_not;
}

uint32_t parse_device(std::string_view text, const std::string& all) {
  uint32_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stop != end)
    throw Error(fmt::format("--devices {}: expected all, or numbers such as 0 or 0,2", all));
  return number;
}

// The first GPU that passed its self-test, or a note for the user why none is taken.
BackendChoice choose_automatically(const BackendRequest& request) {
  BackendChoice choice{request.backend, {}};
  if (request.cores < kFewestCoresOnGpu) return choice;
  const std::vector<DeviceInfo> known = devices_of(backend_with_devices().name);
  for (uint32_t i = 0; i < known.size(); ++i) {
    std::string why_not = known[i].why_not;
    if (why_not.empty()) {
      std::optional<SelfTest> test = known_self_test(known[i]);
      if (!test) test = run_self_test(i, known[i], kSelfTestSeconds);
      if (test->passed) return {backend_with_devices().name, {i}};
      why_not = fmt::format("its self-test failed: {} (gpusim self-test runs it again)",
                            test->why_not);
    }
    choice.note += fmt::format("{}GPU {}, {}, is not used: {}", choice.note.empty() ? "" : "; ", i,
                               known[i].name, why_not);
  }
  return choice;
}

}  // namespace

std::vector<uint32_t> parse_devices(const std::string& text) {
  const std::vector<DeviceInfo> known = devices_of(backend_with_devices().name);
  if (known.empty()) throw Error(fmt::format("--devices {}: {}", text, why_none()));
  std::vector<uint32_t> chosen;
  if (text == "all") {
    for (uint32_t i = 0; i < known.size(); ++i)
      if (known[i].why_not.empty()) chosen.push_back(i);
    if (chosen.empty()) throw Error(fmt::format("--devices all: {}", why_none()));
    return chosen;
  }
  for (size_t begin = 0; begin <= text.size();) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    const uint32_t device =
        parse_device(std::string_view(text).substr(begin, comma - begin), text);
    begin = comma + 1;
    if (device >= known.size())
      throw Error(fmt::format("--devices {}: there is no GPU {}; {} (gpusim info)", text, device,
                              numbers_text(known.size())));
    if (!known[device].why_not.empty())
      throw Error(fmt::format("--devices {}: GPU {}, {}: {}", text, device, known[device].name,
                              known[device].why_not));
    if (std::find(chosen.begin(), chosen.end(), device) != chosen.end())
      throw Error(fmt::format("--devices {}: {} stands there twice", text, device));
    chosen.push_back(device);
  }
  return chosen;
}

BackendChoice choose_backend(const BackendRequest& request) {
  if (request.devices.empty() && request.backend == "auto") return choose_automatically(request);
  if (request.devices.empty()) return {request.backend, {}};
  const std::string backend = backend_with_devices().name;
  if (request.backend != "auto" && request.backend != backend)
    throw Error(
        fmt::format("--devices {}: backend {} has no devices to choose from; they are "
                    "for backend {}",
                    request.devices, request.backend, backend));
  BackendChoice choice{backend, parse_devices(request.devices)};
  if (choice.devices.size() > 1 && request.memory_model == MemoryModel::kShared)
    throw Error(
        fmt::format("--devices {}: cores that share memory stay on one GPU; several "
                    "are for --memory private",
                    request.devices));
  return choice;
}

}  // namespace gpusim::host
