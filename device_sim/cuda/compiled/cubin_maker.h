// Compiles device code while the caller goes on: a kernel of regions alone by NVRTC in a thread,
// which takes seconds and needs no compiler of the host; one with the interpreter in it by nvcc as
// another process, which takes half a minute, and can be ended at any time. The code includes
// gpusim's own headers, which are compiled in; what was made stays in a folder, under names made of
// its source.
#pragma once
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <string>

#include "device_sim/base/child_process.h"

namespace gpusim::cuda {

class CubinMaker {
 public:
  enum class By { kNvrtc, kNvcc };
  // So much stays in the folder, but for what was made or used in the last hour, which a run may
  // be about to load.
  static constexpr uint64_t kMostBytes = uint64_t{256} << 20;
  CubinMaker(std::filesystem::path folder, By compiler, uint64_t most_bytes = kMostBytes)
      : folder_(std::move(folder)), compiler_(compiler), most_bytes_(most_bytes) {}
  ~CubinMaker() { stop(); }
  CubinMaker(const CubinMaker&) = delete;
  CubinMaker& operator=(const CubinMaker&) = delete;

  // For a chip, "sm_90"; for "compute_90" the file has PTX. Ends what was begun before. Throws
  // std::runtime_error if the compiler is not there.
  void begin(const std::string& source, const std::string& architecture);
  // The file, once it is there. Throws std::runtime_error if the compiler fails.
  std::optional<std::filesystem::path> take();
  // For whoever does not want to do something else meanwhile.
  void wait();

 private:
  struct Thread {
    std::atomic<bool> ends = false;
    std::future<void> done;
  };
  void stop();
  void begin_nvcc(const std::filesystem::path& headers, const std::string& architecture);
  void begin_nvrtc(const std::string& source, const std::string& architecture);

  const std::filesystem::path folder_;
  const By compiler_;
  const uint64_t most_bytes_;
  std::filesystem::path cubin_, made_;
  std::optional<ChildProcess> nvcc_;
  std::unique_ptr<Thread> nvrtc_;
};

}  // namespace gpusim::cuda
