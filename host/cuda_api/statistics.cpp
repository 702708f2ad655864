#include "host/cuda_api/statistics.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "device_sim/core/cta.h"

namespace gpusim::cuda_api {

std::string readable_name(const std::string& mangled) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && name != nullptr ? name.get() : mangled;
}

namespace {

// Of launches of one kernel, most often the same opcodes. Both are sorted.
void add_opcodes(std::vector<ptx::OpcodeCount>& sums, const std::vector<ptx::OpcodeCount>& more) {
  const auto is_same = [](const ptx::OpcodeCount& x, const ptx::OpcodeCount& y) {
    return x.opcode.data() == y.opcode.data();
  };
  if (std::ranges::equal(sums, more, is_same)) {
    for (size_t k = 0; k < more.size(); ++k) sums[k].count += more[k].count;
    return;
  }
  std::map<std::string_view, uint64_t> all;
  for (const std::vector<ptx::OpcodeCount>* list : {&std::as_const(sums), &more})
    for (const auto& [opcode, count] : *list) all[opcode] += count;
  sums.clear();
  for (const auto& [opcode, count] : all) sums.push_back({opcode, count});
}

}  // namespace

uint64_t Statistics::add(const std::string& kernel, const LaunchShape& shape,
                         const LaunchOutcome& outcome, double seconds) {
  const std::lock_guard lock(mutex_);
  if (keeps_launches_ && each_.size() < kMostLaunches)
    each_.push_back({kernel, shape, outcome.thread_instructions, outcome.opcodes});
  Kernel& k = kernels_[kernel];
  ++k.launches;
  k.threads += outcome.threads;
  k.instructions += outcome.thread_instructions;
  k.faults += outcome.fault.has_value() ? 1 : 0;
  k.seconds += seconds;
  k.devices = std::max(k.devices, outcome.devices);
  if (outcome.why_one_device) k.why_one_device = outcome.why_one_device;
  add_opcodes(k.opcodes, outcome.opcodes);
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
    auto& opcodes = item["opcodes"] = nlohmann::ordered_json::object();
    for (const ptx::OpcodeCount& o : k.opcodes) opcodes[std::string(o.opcode)] = o.count;
    if (k.devices != 0) item["gpus"] = k.devices;
    if (k.why_one_device) item["why_one_gpu"] = k.why_one_device;
    if (k.profile) item["profile"] = ptx::profile_json(*k.profile);
    list.push_back(std::move(item));
  }
  if (!keeps_launches_) return root;
  auto& each = root["each_launch"] = nlohmann::ordered_json::array();
  for (size_t k = 0; k < each_.size(); ++k) {
    const One& one = each_[k];
    const ptx::Dim3 &g = one.shape.grid, &b = one.shape.block;
    nlohmann::ordered_json item;
    item["launch"] = k + 1;
    item["symbol"] = one.kernel;
    item["grid"] = {g.x, g.y, g.z};
    item["block"] = {b.x, b.y, b.z};
    item["shared_bytes"] = one.shape.shared_bytes;
    item["threads"] = g.count() * b.count();
    item["warps"] = g.count() * ((b.count() + kWarpLanes - 1) / kWarpLanes);
    item["instructions"] = one.instructions;
    auto& opcodes = item["opcodes"] = nlohmann::ordered_json::object();
    for (const ptx::OpcodeCount& o : one.opcodes) opcodes[std::string(o.opcode)] = o.count;
    each.push_back(std::move(item));
  }
  return root;
}

}  // namespace gpusim::cuda_api
