// A core file of a guest process, as Linux writes one when a process dies: what its memory and its
// threads' registers were, for debuggers (elf(5); Linux, fs/binfmt_elf.c).
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "host/linux/kernel.h"
#include "host/output_file.h"

namespace gpusim::host {

struct CoreFileContents {
  Kernel& kernel;
  uint32_t core = 0;             // that died; debuggers begin there
  std::vector<uint32_t> others;  // cores of the same process, and its threads without one
  std::function<uint64_t(uint32_t core)> pc_of;
  int signal = 0;
  std::vector<std::pair<uint64_t, uint64_t>> auxiliary_vector;  // type, value; may be empty
  std::string arguments;                                        // for people
};

// Pages of zeros are holes of the file. Throws Error.
void write_core_file(const OutputFile& file, const CoreFileContents& contents);

}  // namespace gpusim::host
