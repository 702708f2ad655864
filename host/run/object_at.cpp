#include "host/run/object_at.h"

#include <fmt/format.h>

#include "translator/common/translator.h"

namespace gpusim::host {

std::string object_at(const Module& module, const MachineConfig& config, uint64_t address) {
  const uint64_t offset = address - config.window_base;
  if (config.memory_model == MemoryModel::kShared && config.window_shift != 0 &&
      offset >> config.window_shift < config.cores)
    return fmt::format("the stack of core {}", offset >> config.window_shift);
  return symbolize(module, address);
}

}  // namespace gpusim::host
