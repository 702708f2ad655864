// Sources of this machine: files of the kernel in a folder of ours, NVML by a library of ours.
#include "energy/power/source.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "device_sim/base/error.h"
#include "energy/power/recorder.h"

namespace gpusim::power {
namespace {

namespace fs = std::filesystem;

struct Folder {
  Folder() {
    std::string name = (fs::temp_directory_path() / "gpusim-power-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path = name;
  }
  ~Folder() { fs::remove_all(path); }
  void write(const std::string& file, const std::string& text) const {
    fs::create_directories((path / file).parent_path());
    std::ofstream(path / file) << text;
  }
  fs::path path;
};

std::string message(const std::string& spec, const SourceOptions& options) {
  try {
    open_source(spec, options)->poll();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

struct Variable {  // set as long as it lives
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name_); }
  const char* name_;
};

const SourceOptions kNvml{.nvml_library = GPUSIM_NVML_STUB};

TEST_CASE("RAPL: packages are added, counters wrap") {
  const Folder f;
  const auto zone = [&](const std::string& id, const std::string& name, const char* energy) {
    f.write("class/powercap/intel-rapl:" + id + "/name", name + "\n");
    f.write("class/powercap/intel-rapl:" + id + "/energy_uj", std::string(energy) + "\n");
    f.write("class/powercap/intel-rapl:" + id + "/max_energy_range_uj", "1000000000\n");
  };
  zone("0", "package-0", "999000000");
  zone("0:0", "core", "1");
  zone("1", "package-1", "5000000");
  zone("2", "psys", "0");
  const SourceOptions options{.sysfs_root = f.path.string()};
  const auto source = open_source("rapl", options);
  CHECK(source->name() == "rapl (package-0, package-1)");
  const Seconds begin = source->now();
  source->sleep_until(begin + Seconds(0.02));
  zone("0", "package-0", "1000000");  // wrapped: 2 J more
  zone("1", "package-1", "8000000");  // 3 J more
  const auto s = source->poll();
  REQUIRE(s);
  CHECK(s->energy_total->value() == doctest::Approx(5));
  const double upper = 5 / 0.02;
  CHECK(s->power.value() > 0);
  CHECK(s->power.value() <= upper * 1.01);
  CHECK(open_source("rapl:0:0", options)->name() == "rapl (core)");
  CHECK(message("rapl:7", options).find("no such zone; there are 0 (package-0), 0:0 (core)") !=
        std::string::npos);
  fs::remove(f.path / "class/powercap/intel-rapl:1/energy_uj");
  CHECK_THROWS_AS(source->poll(), Error);
  CHECK(message("rapl", {.sysfs_root = "/no/such/folder"}).find("no energy counters") !=
        std::string::npos);
}

TEST_CASE("hwmon: by the driver's name") {
  const Folder f;
  f.write("class/hwmon/hwmon0/name", "nvme\n");
  f.write("class/hwmon/hwmon1/name", "amdgpu\n");
  f.write("class/hwmon/hwmon1/power1_average", "45500000\n");
  f.write("class/hwmon/hwmon1/power2_input", "1000000\n");
  const SourceOptions options{.sysfs_root = f.path.string()};
  CHECK(open_source("hwmon:amdgpu", options)->poll()->power.value() == doctest::Approx(45.5));
  CHECK(open_source("hwmon:amdgpu:2", options)->poll()->power.value() == doctest::Approx(1));
  CHECK(message("hwmon:x", options).find("there are amdgpu:1, amdgpu:2") != std::string::npos);
  CHECK(message("hwmon", options).find("there are amdgpu:1, amdgpu:2") != std::string::npos);
  f.write("class/hwmon/hwmon1/power1_average", "high\n");
  CHECK(message("hwmon:amdgpu", options).find("\"high\" is not a reading") != std::string::npos);
}

TEST_CASE("NVML: all that it gives") {
  const auto source = open_source("nvml:0", kNvml);
  CHECK(source->name() == "nvml:0 (Stub GPU)");
  CHECK(!source->is_virtual());
  const auto s = source->poll();
  REQUIRE(s);
  CHECK(std::abs((s->time - monotonic_now()).value()) < 1);
  CHECK(s->power.value() == doctest::Approx(123.456));
  CHECK(s->instant->value() == doctest::Approx(130));
  CHECK(s->average->value() == doctest::Approx(120));
  CHECK(s->energy_total->value() == doctest::Approx(5));
  CHECK(s->core_clock->value() == 1410e6);
  CHECK(s->memory_clock->value() == 1215e6);
  CHECK(*s->temperature_c == 41);
  CHECK(*s->throttle_reasons == 4);
  CHECK(*s->utilization == doctest::Approx(0.75));
  CHECK(open_source("nvml:0:instant", kNvml)->poll()->power.value() == doctest::Approx(130));
  CHECK(open_source("nvml:0:average", kNvml)->poll()->power.value() == doctest::Approx(120));
}

TEST_CASE("NVML: the device's own buffer") {
  const auto source = open_source("nvml", kNvml);
  const auto taken = source->take_buffered();
  REQUIRE(taken.size() == 10);
  CHECK(taken[0].power.value() == doctest::Approx(100));
  CHECK((taken[9].time - taken[0].time).value() == doctest::Approx(0.18));
  CHECK(std::abs((taken[9].time - monotonic_now()).value()) < 1);
  source->sleep_until(source->now() + Seconds(0.05));
  const auto more = source->take_buffered();
  CHECK(more.size() >= 2);
  const Seconds since = source->now() - taken[9].time;
  CHECK(static_cast<double>(more.size()) <= since.value() / 0.02 + 1);
  CHECK(more[0].time > taken[9].time);
}

TEST_CASE("NVML: what is missing is said clearly") {
  CHECK(message("nvml", {.nvml_library = "/no/libnvidia-ml.so.1"})
            .find("nvml: /no/libnvidia-ml.so.1 cannot be loaded: there is no NVIDIA driver") == 0);
  CHECK(message("nvml", {.nvml_library = GPUSIM_NVML_OLD_STUB}) ==
        "nvml: the driver's library has no nvmlInit_v2: it is too old, or not NVIDIA's");
  CHECK(message("nvml:3", kNvml) == "nvml:3: there are 1 GPUs, numbered from 0");
  CHECK(message("nvml:x", kNvml).find("a GPU's number is expected") != std::string::npos);
  CHECK(message("nvml:0:x", kNvml).find("nvml:INDEX:instant") != std::string::npos);
  {
    const Variable v("STUB_NVML", "no-driver");
    CHECK(message("nvml", kNvml) ==
          "nvml: nvmlInit_v2 failed with 9 (Driver Not Loaded): the driver's kernel module is not "
          "loaded");
  }
  {
    const Variable v("STUB_NVML", "unsupported");
    CHECK(message("nvml", kNvml).find("this GPU, or its driver, does not give it") !=
          std::string::npos);
    CHECK(message("nvml:0:instant", kNvml).empty());
  }
  {
    const Variable v("STUB_NVML", "no-fields");
    CHECK(message("nvml:0:instant", kNvml).find("has no such field") != std::string::npos);
    const auto s = open_source("nvml", kNvml)->poll();
    CHECK(!s->instant);
  }
}

TEST_CASE("NVML: a GPU that is lost leaves a partial recording") {
  const Variable v("STUB_NVML", "lost");
  const auto source = open_source("nvml", kNvml);
  const Trace trace = record(*source, {.rate = Hertz(1000)}, [] { return false; }, {});
  CHECK(trace.is_partial);
  CHECK(trace.samples.size() == 5);
  CHECK(trace.notes[0].find("the GPU is gone") != std::string::npos);
}

TEST_CASE("kinds that do not exist") {
  CHECK(message("watts:1", {}).find("no such source of power") != std::string::npos);
  CHECK(message("csv", {}) == "csv: expected is csv:FILE");
}

}  // namespace
}  // namespace gpusim::power
