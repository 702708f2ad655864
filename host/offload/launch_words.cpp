#include "host/offload/launch_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "device_sim/uir/module.h"
#include "host/offload/offload_error.h"

namespace gpusim::offload {
namespace {

host::CallWord per_core(const gpusim_launch& launch, uint32_t index, const DeviceMemory& memory) {
  const gpusim_argument& a = launch.arguments[index];
  const auto table = memory.bytes(a.value, uint64_t{8} * launch.cores, kRead);
  if (!table || a.value % 8 != 0)
    throw OffloadError(EFAULT, fmt::format("argument {}: no table of {} words of 64 bits at {:#x}",
                                           index, launch.cores, a.value));
  return {.word = {}, .per_core = {reinterpret_cast<const uint64_t*>(table->data()), launch.cores}};
}

host::CallWord copy(const gpusim_argument& a, uint32_t index, const DeviceMemory& memory) {
  const auto bytes = memory.bytes(a.value, a.step, kRead);
  if (!bytes || a.step == 0 || a.step > GPUSIM_MOST_COPY_BYTES)
    throw OffloadError(EFAULT, fmt::format("argument {}: {} bytes are not mapped at {:#x}, or not "
                                           "1 to {}",
                                           index, a.step, a.value, GPUSIM_MOST_COPY_BYTES));
  return {.word = {}, .copy = {bytes->begin(), bytes->end()}};
}

// A row of cores, as a table.
host::CallWord divided(const gpusim_launch& launch, uint32_t index, LaunchWords& words) {
  const gpusim_argument& a = launch.arguments[index];
  if (a.step == 0) throw OffloadError(EINVAL, fmt::format("argument {}: rows of 0 cores", index));
  std::vector<uint64_t>& table = words.tables.emplace_back(launch.cores);
  for (uint32_t core = 0; core < launch.cores; ++core)
    table[core] = a.kind == GPUSIM_ARGUMENT_REMAINDER ? core % a.step : core / a.step;
  return {.word = {}, .per_core = table};
}

}  // namespace

void check_launch(const gpusim_launch& launch, const DeviceMemory& memory, uint32_t most_cores) {
  if (launch.cores == 0 || launch.cores > most_cores)
    throw OffloadError(EINVAL,
                       fmt::format("{} cores: there can be 1 to {}", launch.cores, most_cores));
  if (launch.argument_count > GPUSIM_MOST_ARGUMENTS)
    throw OffloadError(EINVAL, fmt::format("{} arguments: there can be at most {}",
                                           launch.argument_count, GPUSIM_MOST_ARGUMENTS));
  if ((launch.flags & ~uint32_t{GPUSIM_LAUNCH_PROCESS}) ||
      std::ranges::any_of(launch.reserved, [](uint64_t w) { return w != 0; }))
    throw OffloadError(EINVAL, "unknown flags of a launch, or reserved fields that are not zero");
  if (launch.output_size_bytes != 0 &&
      !memory.bytes(launch.output, launch.output_size_bytes, kWrite))
    throw OffloadError(EFAULT, fmt::format("output to {:#x}: {} bytes are not mapped there for "
                                           "writing",
                                           launch.output, launch.output_size_bytes));
}

LaunchWords launch_words(const gpusim_launch& launch, const DeviceMemory& memory) {
  LaunchWords out;
  for (uint32_t i = 0; i < launch.argument_count; ++i) {
    const gpusim_argument& a = launch.arguments[i];
    host::CallWord word;
    switch (a.kind) {
      case GPUSIM_ARGUMENT_VALUE:
        word.word = {a.value, 0};
        break;
      case GPUSIM_ARGUMENT_AFFINE:
        word.word = {a.value, a.step};
        break;
      case GPUSIM_ARGUMENT_CORES:
        word.word = {launch.cores, 0};
        break;
      case GPUSIM_ARGUMENT_PER_CORE:
        word = per_core(launch, i, memory);
        break;
      case GPUSIM_ARGUMENT_REMAINDER:
      case GPUSIM_ARGUMENT_QUOTIENT:
        word = divided(launch, i, out);
        break;
      case GPUSIM_ARGUMENT_COPY:
        word = copy(a, i, memory);
        break;
      default:
        throw OffloadError(EINVAL, fmt::format("argument {}: unknown kind {}", i, a.kind));
    }
    word.is_float = a.is_float != 0;
    out.words.push_back(std::move(word));
  }
  return out;
}

std::vector<std::string> launch_strings(const gpusim_launch& launch, const DeviceMemory& memory) {
  constexpr uint64_t kMost = 1 << 20;
  if (launch.strings_size_bytes == 0) return {};
  const auto bytes = memory.bytes(launch.strings, launch.strings_size_bytes, kRead);
  if (!bytes || bytes->size() > kMost)
    throw OffloadError(EFAULT, fmt::format("arguments of the program: {} bytes are not mapped at "
                                           "{:#x}, or more than {}",
                                           launch.strings_size_bytes, launch.strings, kMost));
  // One copy: the memory may change meanwhile.
  const std::string copy(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  std::vector<std::string> out;
  for (size_t begin = 0; begin < copy.size();) {
    const size_t end = std::min(copy.find('\0', begin), copy.size());
    out.push_back(copy.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

}  // namespace gpusim::offload
