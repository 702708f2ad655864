// Teams and target regions: there is no device, so everything runs on the cores that there are.
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "omp_internal.h"

// ---- Leagues of teams, one after the other ------------------------------------------------------

void GOMP_teams_reg(void (*function)(void*), void* argument, unsigned teams, unsigned thread_limit,
                    unsigned flags) {
  (void)flags;
  struct thread* const me = self();
  struct icvs* const icvs = &current_task(me)->icvs;
  const uint32_t limit_before = icvs->thread_limit;
  if (teams == 0) teams = omp.num_teams != 0 ? omp.num_teams : 1;
  if (thread_limit == 0) thread_limit = omp.teams_thread_limit;
  if (thread_limit != 0) icvs->thread_limit = thread_limit;
  me->last_team = teams - 1;
  for (me->team_number = 0; me->team_number < teams; ++me->team_number) function(argument);
  me->last_team = me->team_number = 0;
  icvs->thread_limit = limit_before;
}

// Inside a target region: called before each team's turn.
bool GOMP_teams4(unsigned least, unsigned most, unsigned thread_limit, bool first) {
  (void)most;
  struct thread* const me = self();
  if (!first) {
    if (me->team_number == me->last_team) return false;
    ++me->team_number;
    return true;
  }
  if (thread_limit != 0) current_task(me)->icvs.thread_limit = thread_limit;
  me->last_team = least != 0 ? least - 1 : 0;
  me->team_number = 0;
  return true;
}

int omp_get_num_teams(void) { return (int)self()->last_team + 1; }
int omp_get_team_num(void) { return (int)self()->team_number; }
void omp_set_num_teams(int teams) { omp.num_teams = teams > 0 ? (uint32_t)teams : 0; }
int omp_get_max_teams(void) { return (int)omp.num_teams; }
void omp_set_teams_thread_limit(int limit) {
  omp.teams_thread_limit = limit > 0 ? (uint32_t)limit : 0;
}
int omp_get_teams_thread_limit(void) { return (int)omp.teams_thread_limit; }

// ---- Target -------------------------------------------------------------------------------------

// gomp-constants.h: the low byte of a mapping's kind, the binary logarithm of its alignment above.
enum { kMapFirstprivate = 0x0c, kMapMask = 0xff, kMapAlignShift = 8 };

// gomp-constants.h: special numbers of devices, and what a list of arguments holds.
enum { kHostFallback = -2, kDefaultDevice = -1 };
enum { kArgumentIsNext = 1 << 7, kArgumentMask = 0xff << 8, kThreadLimit = 2 << 8 };
enum { kHost = 0 };  // what the number of devices is, too
static int default_device;
static bool is_default_chosen;

static bool wants_device(int device) {
  if (device == kHostFallback) return false;
  if (device == kDefaultDevice) return !is_default_chosen || default_device != kHost;
  return device != kHost;
}

// 0: not given.
static uint32_t thread_limit_of(void** arguments) {
  intptr_t limit = 0;
  while (arguments != 0 && *arguments != 0) {
    const intptr_t what = (intptr_t)*arguments++;
    const intptr_t value = what & kArgumentIsNext ? (intptr_t)*arguments++ : what >> 16;
    if ((what & kArgumentMask) == kThreadLimit) limit = value;
  }
  return limit <= 0 ? 0 : limit < UINT32_MAX ? (uint32_t)limit : UINT32_MAX;
}

void GOMP_taskwait_depend(void** depend);

void GOMP_target_ext(int device, void (*function)(void*), size_t count, void** addresses,
                     size_t* sizes, unsigned short* kinds, unsigned flags, void** depend,
                     void** arguments) {
  (void)flags;
  if (omp.target_mandatory && wants_device(device))
    omp_fatal("OMP_TARGET_OFFLOAD=mandatory, and there is no device to offload to");
  if (depend != 0) GOMP_taskwait_depend(depend);
  // The region works on its own copies of firstprivate variables.
  void** const copies = omp_get_zeroed((count + 1) * sizeof *copies);
  for (size_t i = 0; i < count; ++i) {
    if ((kinds[i] & kMapMask) != kMapFirstprivate || sizes[i] == 0) continue;
    const size_t align = (size_t)1 << (kinds[i] >> kMapAlignShift);
    if (posix_memalign(&copies[i], align < sizeof(void*) ? sizeof(void*) : align, sizes[i]) != 0)
      omp_fatal("out of memory");
    addresses[i] = memcpy(copies[i], addresses[i], sizes[i]);
  }
  struct thread* const me = self();
  // As an initial task of its own, outside of the region around it.
  const struct thread_state before = me->now;
  const uint32_t team_number = me->team_number, last_team = me->last_team;
  struct task* const task = omp_get_zeroed(sizeof *task);
  omp_init_implicit_task(task, 0, &omp.initial);
  const uint32_t thread_limit = thread_limit_of(arguments);
  if (thread_limit != 0) task->icvs.thread_limit = thread_limit;
  uint32_t group = 1;
  me->now = (struct thread_state){.task = task, .contention_group = &group};
  me->team_number = me->last_team = 0;
  function(addresses);
  omp_finish_implicit_task(task);
  free(task);
  me->now = before;
  me->team_number = team_number;
  me->last_team = last_team;
  for (size_t i = 0; i < count; ++i) free(copies[i]);
  free(copies);
}

// Host and "device" share their memory: there is nothing to map or to copy.
void GOMP_target_data_ext(int device, size_t count, void** addresses, size_t* sizes,
                          unsigned short* kinds) {
  (void)device, (void)count, (void)addresses, (void)sizes, (void)kinds;
}
void GOMP_target_end_data(void) {}
void GOMP_target_update_ext(int device, size_t count, void** addresses, size_t* sizes,
                            unsigned short* kinds, unsigned flags, void** depend) {
  (void)device, (void)count, (void)addresses, (void)sizes, (void)kinds, (void)flags;
  if (depend != 0) GOMP_taskwait_depend(depend);
}
void GOMP_target_enter_exit_data(int device, size_t count, void** addresses, size_t* sizes,
                                 unsigned short* kinds, unsigned flags, void** depend) {
  (void)device, (void)count, (void)addresses, (void)sizes, (void)kinds, (void)flags;
  if (depend != 0) GOMP_taskwait_depend(depend);
}

int omp_get_num_devices(void) { return 0; }
int omp_get_initial_device(void) { return kHost; }
int omp_get_device_num(void) { return kHost; }
int omp_is_initial_device(void) { return 1; }
void omp_set_default_device(int device) {
  default_device = device;
  is_default_chosen = true;
}
int omp_get_default_device(void) { return default_device; }

void* omp_target_alloc(size_t size, int device) { return device == kHost ? malloc(size) : 0; }
void omp_target_free(void* memory, int device) {
  if (device == kHost) free(memory);
}
int omp_target_is_present(const void* address, int device) {
  return address == 0 || device == kHost;
}
int omp_target_memcpy(void* to, const void* from, size_t size, size_t to_offset, size_t from_offset,
                      int to_device, int from_device) {
  if (to_device != kHost || from_device != kHost) return 22;  // EINVAL
  memcpy((char*)to + to_offset, (const char*)from + from_offset, size);
  return 0;
}
int omp_target_memcpy_rect(void* to, const void* from, size_t element, int dimensions,
                           const size_t* counts, const size_t* to_offsets,
                           const size_t* from_offsets, const size_t* to_sizes,
                           const size_t* from_sizes, int to_device, int from_device) {
  if (to == 0 && from == 0) return INT_MAX;  // asks for the number of dimensions
  if (to_device != kHost || from_device != kHost || element == 0 || dimensions < 1) return 22;
  size_t to_step = element, from_step = element;
  for (int i = 1; i < dimensions; ++i) to_step *= to_sizes[i], from_step *= from_sizes[i];
  char* const t = (char*)to + to_offsets[0] * to_step;
  const char* const f = (const char*)from + from_offsets[0] * from_step;
  if (dimensions == 1) {
    memcpy(t, f, counts[0] * element);
    return 0;
  }
  for (size_t i = 0; i < counts[0]; ++i) {
    const int failed = omp_target_memcpy_rect(
        t + i * to_step, f + i * from_step, element, dimensions - 1, counts + 1, to_offsets + 1,
        from_offsets + 1, to_sizes + 1, from_sizes + 1, kHost, kHost);
    if (failed) return failed;
  }
  return 0;
}
int omp_target_associate_ptr(const void* host, const void* device_address, size_t size,
                             size_t offset, int device) {
  (void)host, (void)device_address, (void)size, (void)offset, (void)device;
  return 22;
}
int omp_target_disassociate_ptr(const void* address, int device) {
  (void)address, (void)device;
  return 22;
}
