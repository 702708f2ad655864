// What `gpusim cuda` tells the library that it preloads, through the environment.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace gpusim::cuda_api {

inline constexpr const char* kBackendVariable = "GPUSIM_CUDA_BACKEND";
// Numbers with commas between; empty: the first that can be used.
inline constexpr const char* kDevicesVariable = "GPUSIM_CUDA_DEVICES";
inline constexpr const char* kThreadsVariable = "GPUSIM_CUDA_THREADS";
inline constexpr const char* kChipVariable = "GPUSIM_CUDA_CHIP";
inline constexpr const char* kSmsVariable = "GPUSIM_CUDA_SMS";
// A folder; each process that used the device writes PID.json there, and PID.found as soon as
// something is found.
inline constexpr const char* kFolderVariable = "GPUSIM_CUDA_FOLDER";
inline constexpr const char* kListVariable = "GPUSIM_CUDA_LIST_LAUNCHES";
// What to check, as ptx::parse_checks takes it; empty: nothing.
inline constexpr const char* kCheckVariable = "GPUSIM_CUDA_CHECK";
inline constexpr const char* kProfileVariable = "GPUSIM_CUDA_PROFILE";
// A file that describes caches, for the profile; empty: none are simulated.
inline constexpr const char* kCachesVariable = "GPUSIM_CUDA_CACHES";
// Whether statistics have a digest of the device's memory.
inline constexpr const char* kDigestVariable = "GPUSIM_CUDA_MEMORY_DIGEST";
// Whether statistics have each launch.
inline constexpr const char* kEachLaunchVariable = "GPUSIM_CUDA_EACH_LAUNCH";
// How many bytes of events a process may record; 0: none. They are FOLDER/PID-N.events.
inline constexpr const char* kTimelineVariable = "GPUSIM_CUDA_TIMELINE";
inline constexpr const char* kQuietVariable = "GPUSIM_CUDA_QUIET";

struct Settings {
  std::string backend, chip, folder, check, caches;
  std::vector<uint32_t> devices;
  unsigned threads = 0, sms = 0;
  uint64_t timeline_bytes = 0;
  bool has_list = false, is_quiet = false, has_profile = false, has_digest = false,
       has_each_launch = false;
};

Settings settings_from_environment();

}  // namespace gpusim::cuda_api
