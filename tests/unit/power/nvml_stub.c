/* A libnvidia-ml with one made-up GPU. STUB_NVML in the environment makes calls fail. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef union {
  double d;
  unsigned u;
  unsigned long long ull;
} Value;
typedef struct {
  unsigned field, scope;
  long long time, latency;
  int type, result;
  Value value;
} Field;
typedef struct {
  unsigned long long time;
  Value value;
} Reading;

static int is(const char* what) {
  const char* mode = getenv("STUB_NVML");
  return mode != NULL && strcmp(mode, what) == 0;
}
static unsigned long long now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return (unsigned long long)t.tv_sec * 1000000 + (unsigned long long)t.tv_nsec / 1000;
}

#ifndef STUB_IS_OLD
int nvmlInit_v2(void) { return is("no-driver") ? 9 : 0; }
#endif
int nvmlShutdown(void) { return 0; }
const char* nvmlErrorString(int r) { return r == 9 ? "Driver Not Loaded" : "Some Error"; }
int nvmlDeviceGetCount_v2(unsigned* n) { return *n = 1, 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void** device) { return *device = (void*)16, (int)i; }
int nvmlDeviceGetName(void* d, char* name, unsigned n) {
  (void)d;
  strncpy(name, "Stub GPU", n);
  return 0;
}
static int polls;
int nvmlDeviceGetPowerUsage(void* d, unsigned* mw) {
  (void)d;
  if (is("unsupported")) return 3;
  if (is("lost") && ++polls > 5) return 15;
  *mw = 123456;
  return 0;
}
int nvmlDeviceGetTotalEnergyConsumption(void* d, unsigned long long* mj) {
  (void)d;
  return *mj = 5000, 0;
}
int nvmlDeviceGetClockInfo(void* d, int type, unsigned* mhz) {
  (void)d;
  return *mhz = type == 1 ? 1410 : type == 2 ? 1215 : 0, 0;
}
int nvmlDeviceGetTemperature(void* d, int sensor, unsigned* c) {
  (void)d, (void)sensor;
  return *c = 41, 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void* d, unsigned long long* r) {
  (void)d;
  return *r = 4, 0;
}
int nvmlDeviceGetUtilizationRates(void* d, unsigned* u) {
  (void)d;
  return u[0] = 75, u[1] = 10, 0;
}
int nvmlDeviceGetFieldValues(void* d, int n, Field* f) {
  (void)d;
  for (int i = 0; i < n; ++i) {
    f[i].result = is("no-fields") ? 3 : 0;
    f[i].type = f[i].field == 186 ? 1 : 0; /* one unsigned, one double */
    if (f[i].field == 186)
      f[i].value.u = 130000;
    else if (f[i].field == 185)
      f[i].value.d = 120000;
    else
      f[i].result = 2;
  }
  return 0;
}
int nvmlDeviceGetSamples(void* d, int type, unsigned long long since, int* value_type,
                         unsigned* count, Reading* samples) {
  (void)d;
  if (type != 0) return 2;
  *value_type = 1;
  if (samples == NULL) return *count = 10, 0;
  const unsigned long long end = now_us() / 20000 * 20000;
  unsigned n = 0;
  for (unsigned i = 0; i < *count && i < 10; ++i) {
    const unsigned long long at = end - (9 - i) * 20000ull;
    if (at <= since) continue;
    samples[n].time = at;
    samples[n++].value.u = 100000 + 1000 * i;
  }
  *count = n;
  return 0;
}
