// `gpusim run KERNELS.ptx`: one launch of one kernel.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "host/ptx/engine.h"

namespace gpusim::ptx {

struct KernelRunOptions {
  std::string path, entry;  // entry empty: the only kernel
  Dim3 grid, block;
  std::optional<Dim3> cluster;
  uint32_t dynamic_shared_bytes = 0;
  uint64_t stack_bytes = 1024;
  std::vector<std::string> arguments;  // as written
  EngineOptions engine;
  std::string stats_path;
  std::string profile;  // a file for JSON, or "-": a table on standard error
  bool quiet = false;
};

/// Whether the file is PTX text: by its name, or its beginning.
bool is_ptx_file(const std::string& path);

/// "X", "X,Y" or "X,Y,Z", each from 1 on. Throws Error that names `option`.
Dim3 parse_dimensions(const std::string& option, const std::string& text);

/// Returns the exit status. Throws Error.
int run_kernels(const KernelRunOptions& options);

}  // namespace gpusim::ptx
