// A folder that programs fill is kept from growing for ever.
#pragma once
#include <chrono>
#include <cstdint>
#include <filesystem>

namespace gpusim {

// Removes what was written longest ago of the folder's entries (files, and folders with all that is
// in them) until the rest has no more than `most_bytes`. What was written less than `spared` ago
// stays. Others may do the same meanwhile; what cannot be removed stays, too.
void limit_folder(const std::filesystem::path& folder, uint64_t most_bytes,
                  std::chrono::seconds spared);

}  // namespace gpusim
