// Our stand-in for libnvidia-ml.so.1: says what stub_cuda.cpp writes to $GPUSIM_STUB_TRUTH, in
// steps of 5 ms, as a sensor without lag.
#include <time.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#define API extern "C" __attribute__((visibility("default")))

namespace {

struct Busy {
  double begin, end, watts;
};

struct Truth {
  std::ifstream file;
  std::vector<Busy> busy;
  double idle = 20;

  // New lines since the last call; whole ones only.
  void read() {
    const char* path = std::getenv("GPUSIM_STUB_TRUTH");
    if (!file.is_open() && path != nullptr) file.open(path);
    if (!file.is_open()) return;
    for (;;) {
      file.clear();
      const auto at = file.tellg();
      std::string line;
      if (!std::getline(file, line) || file.eof()) {
        file.clear();
        file.seekg(at);
        return;
      }
      Busy b{};
      if (line.starts_with("# idle"))
        idle = std::atof(line.c_str() + 6);
      else if (std::sscanf(line.c_str(), "%lf %lf %lf", &b.begin, &b.end, &b.watts) == 3)
        busy.push_back(b);
    }
  }
  double at(double time) const {
    for (auto b = busy.rbegin(); b != busy.rend(); ++b) {
      if (time >= b->begin && time < b->end) return b->watts;
      if (b->end < time) break;
    }
    return idle;
  }
};

}  // namespace

API int nvmlInit_v2() { return 0; }
API int nvmlShutdown() { return 0; }
API const char* nvmlErrorString(int) { return "an error"; }
API int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 1;
  return 0;
}
API int nvmlDeviceGetHandleByIndex_v2(unsigned, void** device) {
  *device = device;
  return 0;
}
API int nvmlDeviceGetName(void*, char* name, unsigned bytes) {
  std::snprintf(name, bytes, "Stub GPU 1");
  return 0;
}
API int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  static Truth truth;
  truth.read();
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  const double now = static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  *milliwatts = static_cast<unsigned>(std::lround(truth.at(std::floor(now / 0.005) * 0.005) * 1e3));
  return 0;
}
API int nvmlDeviceGetClockInfo(void*, int, unsigned* mhz) {
  *mhz = 1000;
  return 0;
}
API int nvmlDeviceGetTemperature(void*, int, unsigned* celsius) {
  *celsius = 50;
  return 0;
}
