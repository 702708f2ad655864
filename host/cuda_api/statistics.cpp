#include "host/cuda_api/statistics.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

namespace gpusim::cuda_api {

std::string readable_name(const std::string& mangled) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && name != nullptr ? name.get() : mangled;
}

uint64_t Statistics::add(const std::string& kernel, const LaunchOutcome& outcome, double seconds) {
  const std::lock_guard lock(mutex_);
  Kernel& k = kernels_[kernel];
  ++k.launches;
  k.threads += outcome.threads;
  k.instructions += outcome.thread_instructions;
  k.faults += outcome.fault.has_value() ? 1 : 0;
  k.seconds += seconds;
  for (const auto& [spelling, count] : outcome.opcodes) k.opcodes[spelling] += count;
  if (outcome.profile) {
    if (!k.profile) k.profile.emplace();
    *k.profile += *outcome.profile;
  }
  return ++launches_;
}

uint64_t Statistics::launches() const {
  const std::lock_guard lock(mutex_);
  return launches_;
}

nlohmann::ordered_json Statistics::json(const std::string& device,
                                        const std::string& backend) const {
  const std::lock_guard lock(mutex_);
  nlohmann::ordered_json root;
  root["device"] = device;
  root["backend"] = backend;
  root["launches"] = launches_;
  auto& list = root["kernels"] = nlohmann::ordered_json::array();
  for (const auto& [name, k] : kernels_) {
    nlohmann::ordered_json item;
    item["name"] = readable_name(name);
    item["symbol"] = name;
    item["launches"] = k.launches;
    item["threads"] = k.threads;
    item["instructions"] = k.instructions;
    item["faults"] = k.faults;
    item["seconds"] = k.seconds;
    item["opcodes"] = k.opcodes;
    if (k.profile) item["profile"] = ptx::profile_json(*k.profile);
    list.push_back(std::move(item));
  }
  return root;
}

}  // namespace gpusim::cuda_api
