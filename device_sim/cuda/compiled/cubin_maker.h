// Compiles device code by nvcc, as another process. The code includes gpusim's own headers, which
// are compiled in; they and what was made stay in a folder, under names made of their contents.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "device_sim/base/child_process.h"

namespace gpusim::cuda {

class CubinMaker {
 public:
  explicit CubinMaker(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // For a chip, "sm_90"; for "compute_90" the file has PTX. Ends what was begun before.
  void begin(const std::string& source, const std::string& architecture);
  // The file, once it is there. Throws std::runtime_error if the compiler fails.
  std::optional<std::filesystem::path> take();
  // For whoever does not want to do something else meanwhile.
  void wait();

 private:
  const std::filesystem::path folder_;
  std::filesystem::path cubin_, made_;
  std::optional<ChildProcess> nvcc_;
};

}  // namespace gpusim::cuda
