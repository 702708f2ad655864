// CUDA C++ into machine code by NVRTC, in this process. Needs no device.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>

namespace gpusim::cuda {

struct DeviceCode {
  std::string code;
  // What ptxas says of the first kernel: bytes of stores and loads of registers for which there
  // was no room.
  uint32_t spilled_bytes = 0;
};

// `architecture`: a chip, "sm_90", whose machine code (a cubin) comes back; for "compute_90" PTX.
// gpusim's headers are compiled in. Throws std::runtime_error: NVRTC is not there, or what it does
// not take, in its own words; or somebody set `ends`, and nobody waits for the result.
DeviceCode compile_by_nvrtc(const std::string& source, const std::string& architecture,
                            const std::atomic<bool>* ends = nullptr);

// A kernel of regions alone (regions.h), for as many blocks as have room at once without many
// registers spilled.
std::string compile_regions(const std::string& source, const std::string& architecture,
                            const std::atomic<bool>* ends = nullptr);

// Of NVRTC, "13.0". Loads it. Throws where it is not there.
std::string nvrtc_version();

}  // namespace gpusim::cuda
