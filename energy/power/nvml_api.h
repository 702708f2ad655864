// What of NVML is used, declared by us: libnvidia-ml.so.1 is loaded at run time, so that nothing of
// NVIDIA's is needed to build, and machines without a driver can run the rest. Names and numbers
// are those of NVIDIA's NVML API reference; none of the functions changes a setting.
#pragma once
#include <cstdint>

namespace gpusim::power::nvml {

enum Return : int {
  kSuccess = 0,
  kNotSupported = 3,
  kNoPermission = 4,
  kNotFound = 6,
  kInsufficientSize = 7,
  kDriverNotLoaded = 9,
  kGpuIsLost = 15,
  kLibraryVersionMismatch = 18,
};

using Device = struct DeviceStruct*;

enum ClockType : int { kClockSm = 1, kClockMemory = 2 };
enum ValueType : int {
  kDouble = 0,
  kUnsignedInt = 1,
  kUnsignedLong = 2,
  kUnsignedLongLong = 3,
  kSignedLongLong = 4,
  kSignedInt = 5,
  kUnsignedShort = 6,
};
inline constexpr int kTotalPowerSamples = 0;
inline constexpr unsigned kFieldPowerAverage = 185, kFieldPowerInstant = 186;

union Value {
  double as_double;
  int as_int;
  unsigned as_unsigned;
  unsigned long as_unsigned_long;
  unsigned long long as_unsigned_long_long;
  long long as_long_long;
  unsigned short as_unsigned_short;
};
struct FieldValue {
  unsigned field, scope;
  long long timestamp_us, latency_us;
  int value_type;
  int result;
  Value value;
};
static_assert(sizeof(FieldValue) == 40);
struct PowerReading {               // nvmlSample_t
  unsigned long long timestamp_us;  // since the epoch
  Value value;
};
static_assert(sizeof(PowerReading) == 16);
struct Utilization {
  unsigned gpu, memory;  // per cent
};

struct Api {
  int (*init)();
  int (*shutdown)();
  const char* (*error_string)(int);
  int (*device_count)(unsigned*);
  int (*device_by_index)(unsigned, Device*);
  int (*name)(Device, char*, unsigned);
  int (*power_usage)(Device, unsigned* milliwatts);
  // Older drivers lack some of these: null then.
  int (*total_energy)(Device, unsigned long long* millijoules);
  int (*clock)(Device, int, unsigned* megahertz);
  int (*temperature)(Device, int, unsigned*);
  int (*throttle_reasons)(Device, unsigned long long*);
  int (*utilization)(Device, Utilization*);
  int (*field_values)(Device, int, FieldValue*);
  int (*samples)(Device, int, unsigned long long, int*, unsigned*, PowerReading*);
};

}  // namespace gpusim::power::nvml
