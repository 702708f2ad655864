#include <dlfcn.h>
#include <fmt/format.h>

#include <ctime>

#include "device_sim/base/csv.h"
#include "device_sim/base/error.h"
#include "energy/power/nvml_api.h"
#include "energy/power/sources.h"

namespace gpusim::power {
namespace {

using namespace nvml;

double number_of(int type, const Value& v) {
  switch (type) {
    case kDouble:
      return v.as_double;
    case kUnsignedLong:
      return static_cast<double>(v.as_unsigned_long);
    case kUnsignedLongLong:
      return static_cast<double>(v.as_unsigned_long_long);
    case kSignedLongLong:
      return static_cast<double>(v.as_long_long);
    case kSignedInt:
      return v.as_int;
    case kUnsignedShort:
      return v.as_unsigned_short;
    default:
      return v.as_unsigned;
  }
}

class Library {
 public:
  explicit Library(const std::string& path) {
    const std::string file = path.empty() ? "libnvidia-ml.so.1" : path;
    handle_ = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr)
      throw Error(
          fmt::format("nvml: {} cannot be loaded: there is no NVIDIA driver on this machine ({})",
                      file, ::dlerror()));
    try {
      load(api.init, "nvmlInit_v2", true);
      load(api.shutdown, "nvmlShutdown", true);
      load(api.error_string, "nvmlErrorString", true);
      load(api.device_count, "nvmlDeviceGetCount_v2", true);
      load(api.device_by_index, "nvmlDeviceGetHandleByIndex_v2", true);
      load(api.name, "nvmlDeviceGetName", true);
      load(api.power_usage, "nvmlDeviceGetPowerUsage", true);
      load(api.total_energy, "nvmlDeviceGetTotalEnergyConsumption", false);
      load(api.clock, "nvmlDeviceGetClockInfo", false);
      load(api.temperature, "nvmlDeviceGetTemperature", false);
      load(api.throttle_reasons, "nvmlDeviceGetCurrentClocksThrottleReasons", false);
      if (api.throttle_reasons == nullptr)
        load(api.throttle_reasons, "nvmlDeviceGetCurrentClocksEventReasons", false);
      load(api.utilization, "nvmlDeviceGetUtilizationRates", false);
      load(api.field_values, "nvmlDeviceGetFieldValues", false);
      load(api.samples, "nvmlDeviceGetSamples", false);
      const int result = api.init();
      if (result != kSuccess) fail("nvmlInit_v2", result);
    } catch (...) {
      ::dlclose(handle_);
      throw;
    }
  }
  ~Library() {
    api.shutdown();
    ::dlclose(handle_);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  [[noreturn]] void fail(const std::string& call, int result) const {
    const char* text = api.error_string(result);
    const char* hint = "";
    if (result == kDriverNotLoaded) hint = ": the driver's kernel module is not loaded";
    if (result == kNotSupported) hint = ": this GPU, or its driver, does not give it";
    if (result == kNoPermission) hint = ": this user may not read it";
    if (result == kGpuIsLost) hint = ": the GPU is gone; it may need a reset";
    if (result == kLibraryVersionMismatch)
      hint = ": library and kernel module are of different drivers; a restart helps";
    throw Error(fmt::format("nvml: {} failed with {} ({}){}", call, result,
                            text != nullptr ? text : "no text", hint));
  }

  Api api{};

 private:
  template <class F>
  void load(F& function, const char* name, bool is_needed) {
    function = reinterpret_cast<F>(::dlsym(handle_, name));
    if (function == nullptr && is_needed)
      throw Error(fmt::format(
          "nvml: the driver's library has no {}: it is too old, or not NVIDIA's", name));
  }

  void* handle_ = nullptr;
};

enum class Reading { kUsage, kInstant, kAverage };

class NvmlSource final : public PowerSource {
 public:
  NvmlSource(unsigned index, Reading reading, const SourceOptions& options)
      : library_(options.nvml_library), reading_(reading) {
    const Api& api = library_.api;
    unsigned count = 0;
    if (const int r = api.device_count(&count); r != kSuccess)
      library_.fail("nvmlDeviceGetCount_v2", r);
    if (index >= count)
      throw Error(fmt::format("nvml:{}: there are {} GPUs, numbered from 0", index, count));
    if (const int r = api.device_by_index(index, &device_); r != kSuccess)
      library_.fail("nvmlDeviceGetHandleByIndex_v2", r);
    char text[96] = {};
    if (api.name(device_, text, sizeof text - 1) != kSuccess) text[0] = '\0';
    constexpr const char* kNames[] = {"", ":instant", ":average"};
    name_ = fmt::format("nvml:{}{} ({})", index, kNames[static_cast<int>(reading)], text);
  }

  std::string name() const override { return name_; }
  Seconds now() const override { return monotonic_now(); }
  void sleep_until(Seconds time) override { monotonic_sleep_until(time); }
  bool is_virtual() const override { return false; }

  std::optional<Sample> poll() override {
    const Api& api = library_.api;
    unsigned milliwatts = 0;
    const int result = api.power_usage(device_, &milliwatts);
    Sample s;
    s.time = monotonic_now();
    s.power = Watts(milliwatts * 1e-3);
    // A GPU may have the fields and not the old call.
    if (result != kSuccess && reading_ == Reading::kUsage)
      library_.fail("nvmlDeviceGetPowerUsage", result);
    read_fields(s);
    if (reading_ != Reading::kUsage) {
      const auto& field = reading_ == Reading::kInstant ? s.instant : s.average;
      if (!field)
        throw Error(
            fmt::format("{}: this GPU, or its driver, has no such field; nvml:N "
                        "reads nvmlDeviceGetPowerUsage",
                        name_));
      s.power = *field;
      s.time = monotonic_now();
    }
    // These are slow (milliseconds on some drivers) and change slowly.
    if (s.time >= next_slow_) {
      read_slow(s);
      next_slow_ = s.time + Seconds(0.1);
    }
    return s;
  }

  std::vector<Sample> take_buffered() override {
    std::vector<Sample> taken;
    const auto samples = library_.api.samples;
    if (samples == nullptr) return taken;
    int type = kUnsignedInt;
    unsigned count = 0;
    if (samples(device_, kTotalPowerSamples, last_seen_us_, &type, &count, nullptr) != kSuccess ||
        count == 0 || count > 1000000)
      return taken;
    std::vector<PowerReading> readings(count);
    if (samples(device_, kTotalPowerSamples, last_seen_us_, &type, &count, readings.data()) !=
        kSuccess)
      return taken;
    readings.resize(std::min<size_t>(count, readings.size()));
    // Their clock is that of the day; ours is not.
    timespec day{};
    ::clock_gettime(CLOCK_REALTIME, &day);
    const double day_less_ours = static_cast<double>(day.tv_sec) +
                                 static_cast<double>(day.tv_nsec) * 1e-9 - monotonic_now().value();
    for (const PowerReading& r : readings) {
      if (r.timestamp_us <= last_seen_us_) continue;
      last_seen_us_ = r.timestamp_us;
      taken.push_back({.time = Seconds(static_cast<double>(r.timestamp_us) * 1e-6 - day_less_ours),
                       .power = Watts(number_of(type, r.value) * 1e-3)});
    }
    return taken;
  }

 private:
  void read_fields(Sample& s) {
    if (library_.api.field_values == nullptr || !has_fields_) return;
    FieldValue values[2] = {};
    values[0].field = kFieldPowerInstant;
    values[1].field = kFieldPowerAverage;
    if (library_.api.field_values(device_, 2, values) != kSuccess) {
      has_fields_ = false;
      return;
    }
    const auto watts = [](const FieldValue& v) -> std::optional<Watts> {
      if (v.result != kSuccess) return std::nullopt;
      return Watts(number_of(v.value_type, v.value) * 1e-3);
    };
    s.instant = watts(values[0]);
    s.average = watts(values[1]);
    has_fields_ = s.instant || s.average;
  }

  void read_slow(Sample& s) {
    const Api& api = library_.api;
    unsigned long long wide = 0;
    unsigned narrow = 0;
    Utilization used{};
    if (api.total_energy != nullptr && api.total_energy(device_, &wide) == kSuccess)
      s.energy_total = Joules(static_cast<double>(wide) * 1e-3);
    if (api.clock != nullptr && api.clock(device_, kClockSm, &narrow) == kSuccess)
      s.core_clock = Hertz(narrow * 1e6);
    if (api.clock != nullptr && api.clock(device_, kClockMemory, &narrow) == kSuccess)
      s.memory_clock = Hertz(narrow * 1e6);
    if (api.temperature != nullptr && api.temperature(device_, 0, &narrow) == kSuccess)
      s.temperature_c = narrow;
    if (api.throttle_reasons != nullptr && api.throttle_reasons(device_, &wide) == kSuccess)
      s.throttle_reasons = wide;
    if (api.utilization != nullptr && api.utilization(device_, &used) == kSuccess)
      s.utilization = used.gpu * 0.01;
  }

  Library library_;
  Reading reading_;
  Device device_ = nullptr;
  std::string name_;
  Seconds next_slow_{-1e300};
  unsigned long long last_seen_us_ = 0;
  bool has_fields_ = true;
};

}  // namespace

std::unique_ptr<PowerSource> open_nvml(const std::string& spec, const SourceOptions& options) {
  const size_t colon = spec.find(':');
  const std::string index = spec.substr(0, colon);
  const std::string kind = colon == std::string::npos ? "" : spec.substr(colon + 1);
  Reading reading = Reading::kUsage;
  if (kind == "instant")
    reading = Reading::kInstant;
  else if (kind == "average")
    reading = Reading::kAverage;
  else if (!kind.empty())
    throw Error(fmt::format(
        "nvml:{}: expected is nvml:INDEX, nvml:INDEX:instant or nvml:INDEX:average", spec));
  const auto number = index.empty() ? 0.0 : parse_number(index).value_or(-1);
  if (!(number >= 0) || number > 1e6 || number != static_cast<unsigned>(number))
    throw Error(fmt::format("nvml:{}: a GPU's number is expected, from 0", spec));
  return std::make_unique<NvmlSource>(static_cast<unsigned>(number), reading, options);
}

}  // namespace gpusim::power
