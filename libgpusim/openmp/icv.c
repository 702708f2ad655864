// Internal control variables: the environment, and the omp_* functions that read and set them.
#define _GNU_SOURCE  // CPU_COUNT_S
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/auxv.h>
#include <time.h>
#include <unistd.h>

#include "omp_internal.h"

struct omp_globals omp;

// ---- Messages and memory -----------------------------------------------------------------------

static void print(const char* kind, const char* format, va_list arguments) {
  char text[512];
  int length = snprintf(text, sizeof text, "libgpusim_omp: %s: ", kind);
  length += vsnprintf(text + length, sizeof text - (size_t)length - 1, format, arguments);
  if (length > (int)sizeof text - 2) length = (int)sizeof text - 2;
  text[length++] = '\n';
  if (write(2, text, (size_t)length) < 0) return;
}

void omp_fatal(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  print("error", format, arguments);
  va_end(arguments);
  exit(EXIT_FAILURE);
}

void omp_note(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  print("note", format, arguments);
  va_end(arguments);
}

void* omp_get_memory(size_t size) {
  void* const memory = malloc(size);
  if (memory == 0) omp_fatal("out of memory: %zu bytes", size);
  return memory;
}

void* omp_get_zeroed(size_t size) {
  void* const memory = calloc(1, size);
  if (memory == 0) omp_fatal("out of memory: %zu bytes", size);
  return memory;
}

// Messages of the compiler's `error at(execution)`.
static void user_message(const char* kind, const char* text, size_t length) {
  if (length == (size_t)-1) length = text != 0 ? strlen(text) : 0;
  omp_note("%s directive%s%.*s", kind, length != 0 ? ": " : "", (int)length, text != 0 ? text : "");
}
void GOMP_warning(const char* text, size_t length) { user_message("warning", text, length); }
void GOMP_error(const char* text, size_t length) {
  user_message("error", text, length);
  exit(EXIT_FAILURE);
}

// ---- Environment -------------------------------------------------------------------------------

static const char* variable(const char* name) {
  const char* text = getenv(name);
  while (text != 0 && isspace((unsigned char)*text)) ++text;
  return text != 0 && *text != 0 ? text : 0;
}

static bool at_end(const char* text) {
  while (isspace((unsigned char)*text)) ++text;
  return *text == 0;
}

static void bad_value(const char* name, const char* text) {
  omp_note("%s=\"%s\" is not understood and ignored", name, text);
}

static bool read_number(const char* name, long least, long most, long* value) {
  const char* const text = variable(name);
  if (text == 0) return false;
  char* end;
  errno = 0;
  const long number = strtol(text, &end, 10);
  if (end == text || errno != 0 || !at_end(end) || number < least || number > most) {
    bad_value(name, text);
    return false;
  }
  *value = number;
  return true;
}

static bool read_bool(const char* name, bool* value) {
  const char* const text = variable(name);
  if (text == 0) return false;
  if (strncasecmp(text, "true", 4) == 0 && at_end(text + 4)) return *value = true;
  if (strncasecmp(text, "false", 5) == 0 && at_end(text + 5)) {
    *value = false;
    return true;
  }
  bad_value(name, text);
  return false;
}

static void read_threads(void) {
  const char* const text = variable("OMP_NUM_THREADS");
  if (text == 0) return;
  uint32_t count = 0;
  const char* rest = text;
  for (;;) {
    char* end;
    errno = 0;
    const long number = strtol(rest, &end, 10);
    if (end == rest || errno != 0 || number < 1 || number > INT_MAX) break;
    if (count < sizeof omp.nested_threads / sizeof omp.nested_threads[0])
      omp.nested_threads[count++] = (uint32_t)number;
    while (isspace((unsigned char)*end)) ++end;
    if (*end == 0) {
      omp.initial.threads = omp.nested_threads[0];
      omp.nested_threads_count = count > 1 ? count : 0;
      if (count > 1) omp.initial.max_active_levels = 255;
      return;
    }
    if (*end != ',') break;
    rest = end + 1;
  }
  bad_value("OMP_NUM_THREADS", text);
}

static void read_schedule(void) {
  static const struct {
    const char* name;
    uint32_t schedule;
  } kinds[] = {{"static", kStatic}, {"dynamic", kDynamic}, {"guided", kGuided}, {"auto", kAuto}};
  const char* const text = variable("OMP_SCHEDULE");
  if (text == 0) return;
  const char* rest = text;
  uint32_t modifier = 0;
  if (strncasecmp(rest, "monotonic:", 10) == 0) {
    modifier = SCHEDULE_MONOTONIC;
    rest += 10;
  } else if (strncasecmp(rest, "nonmonotonic:", 13) == 0) {
    rest += 13;
  }
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; ++i) {
    const size_t length = strlen(kinds[i].name);
    if (strncasecmp(rest, kinds[i].name, length) != 0) continue;
    rest += length;
    while (isspace((unsigned char)*rest)) ++rest;
    long chunk = kinds[i].schedule == kStatic ? 0 : 1;
    if (*rest == ',') {
      char* end;
      errno = 0;
      chunk = strtol(rest + 1, &end, 10);
      if (end == rest + 1 || errno != 0 || chunk < 0) break;
      rest = end;
    }
    if (!at_end(rest)) break;
    omp.initial.schedule = kinds[i].schedule | modifier;
    omp.initial.chunk = chunk;
    return;
  }
  bad_value("OMP_SCHEDULE", text);
}

static void read_stack_size(void) {
  const char* const text = variable("OMP_STACKSIZE");
  if (text == 0) return;
  char* end;
  errno = 0;
  const unsigned long number = strtoul(text, &end, 10);
  int shift = 10;
  while (isspace((unsigned char)*end)) ++end;
  switch (tolower((unsigned char)*end)) {
    case 'b':
      shift = 0;
      ++end;
      break;
    case 'k':
      shift = 10;
      ++end;
      break;
    case 'm':
      shift = 20;
      ++end;
      break;
    case 'g':
      shift = 30;
      ++end;
      break;
    default:
      break;
  }
  if (end == text || errno != 0 || !at_end(end) || number == 0 ||
      number > (UINT64_C(1) << 46) >> shift)
    bad_value("OMP_STACKSIZE", text);
  else
    omp.stack_size = number << shift;
}

// libgpusim/guest/gpusim_guest.h. The run-time must not ask TPIDRRO_EL0 for the number of cores: a
// program that reads it is started on all of them.
#define GPUSIM_AT_CORE_COUNT UINT64_C(0x47505301)

static uint32_t count_cores(void) {
  const uint64_t simulated = getauxval(GPUSIM_AT_CORE_COUNT);
  gpusim_omp_on_gpusim = simulated != 0;
  if (gpusim_omp_on_gpusim) return (uint32_t)simulated;
  enum { kMost = 65536 };
  static cpu_set_t set[kMost / CPU_SETSIZE];
  if (sched_getaffinity(0, sizeof set, set) != 0) return 1;
  const int count = CPU_COUNT_S(sizeof set, set);
  return count > 0 ? (uint32_t)count : 1;
}

void omp_display_env(int verbose);

__attribute__((constructor)) static void start(void) {
  omp.cores = count_cores();
  omp.initial = (struct icvs){.threads = omp.cores,
                              .thread_limit = UINT32_MAX,
                              .schedule = kDynamic,
                              .max_active_levels = 1,
                              .chunk = 1};
  long number;
  bool flag;
  read_threads();
  read_schedule();
  read_stack_size();
  if (read_number("OMP_THREAD_LIMIT", 1, INT_MAX, &number))
    omp.initial.thread_limit = (uint32_t)number;
  if (read_bool("OMP_DYNAMIC", &flag)) omp.initial.dynamic = flag;
  if (read_bool("OMP_NESTED", &flag)) omp.initial.max_active_levels = flag ? 255 : 1;
  if (read_number("OMP_MAX_ACTIVE_LEVELS", 0, INT_MAX, &number))
    omp.initial.max_active_levels = (uint8_t)(number > 255 ? 255 : number);
  if (read_bool("OMP_CANCELLATION", &flag)) omp.cancellation = flag;
  if (read_number("OMP_MAX_TASK_PRIORITY", 0, INT_MAX, &number))
    omp.max_task_priority = (int32_t)number;
  if (read_number("OMP_NUM_TEAMS", 1, INT_MAX, &number)) omp.num_teams = (uint32_t)number;
  if (read_number("OMP_TEAMS_THREAD_LIMIT", 1, INT_MAX, &number))
    omp.teams_thread_limit = (uint32_t)number;
  const char* const offload = variable("OMP_TARGET_OFFLOAD");
  omp.target_mandatory = offload != 0 && strncasecmp(offload, "mandatory", 9) == 0;
  const char* const allocator = variable("OMP_ALLOCATOR");
  if (allocator != 0) omp_read_allocator(allocator);
  if (read_bool("OMP_DISPLAY_ENV", &flag) && flag) omp_display_env(0);
  omp_pool_init();
}

// ---- Functions of <omp.h> ----------------------------------------------------------------------

static struct icvs* mine(void) { return &current_task(self())->icvs; }

int omp_get_thread_num(void) { return (int)self()->now.tid; }
int omp_get_num_threads(void) {
  const struct team* const team = self()->now.team;
  return team != 0 ? (int)team->size : 1;
}
int omp_get_num_procs(void) { return (int)omp.cores; }
int omp_in_parallel(void) {
  const struct team* const team = self()->now.team;
  return team != 0 && team->active_level > 0;
}
int omp_get_level(void) {
  const struct team* const team = self()->now.team;
  return team != 0 ? (int)team->level : 0;
}
int omp_get_active_level(void) {
  const struct team* const team = self()->now.team;
  return team != 0 ? (int)team->active_level : 0;
}

// The team of that level that the caller is in, and its number there.
static const struct team* ancestor(int level, uint32_t* tid) {
  const struct thread* const me = self();
  const struct team* team = me->now.team;
  *tid = me->now.tid;
  while (team != 0 && (int)team->level > level) {
    *tid = team->saved.tid;
    team = team->saved.team;
  }
  return team;
}
int omp_get_ancestor_thread_num(int level) {
  if (level < 0 || level > omp_get_level()) return -1;
  uint32_t tid;
  const struct team* const team = ancestor(level, &tid);
  return team != 0 ? (int)tid : 0;
}
int omp_get_team_size(int level) {
  if (level < 0 || level > omp_get_level()) return -1;
  uint32_t tid;
  const struct team* const team = ancestor(level, &tid);
  return team != 0 ? (int)team->size : 1;
}

void omp_set_num_threads(int threads) { mine()->threads = threads > 0 ? (uint32_t)threads : 1; }
int omp_get_max_threads(void) {
  const uint32_t threads = mine()->threads;
  return (int)(threads < omp_pool_limit() ? threads : omp_pool_limit());
}
void omp_set_dynamic(int on) { mine()->dynamic = on != 0; }
int omp_get_dynamic(void) { return mine()->dynamic; }
void omp_set_nested(int on) {
  struct icvs* const icvs = mine();
  if (on != 0)
    icvs->max_active_levels = 255;
  else if (icvs->max_active_levels > 1)
    icvs->max_active_levels = 1;
}
int omp_get_nested(void) { return mine()->max_active_levels > 1; }
void omp_set_max_active_levels(int levels) {
  if (levels >= 0) mine()->max_active_levels = (uint8_t)(levels > 255 ? 255 : levels);
}
int omp_get_max_active_levels(void) { return mine()->max_active_levels; }
int omp_get_supported_active_levels(void) { return 255; }
int omp_get_thread_limit(void) {
  const uint32_t limit = mine()->thread_limit;
  return limit > INT_MAX ? INT_MAX : (int)limit;
}

void omp_set_schedule(uint32_t schedule, int chunk) {
  const uint32_t kind = schedule & ~SCHEDULE_MONOTONIC;
  if (kind < kStatic || kind > kAuto) return;
  struct icvs* const icvs = mine();
  icvs->schedule = schedule;
  icvs->chunk = kind == kStatic ? (chunk < 1 ? 0 : chunk) : (chunk < 1 ? 1 : chunk);
}
void omp_get_schedule(uint32_t* schedule, int* chunk) {
  const struct icvs* const icvs = mine();
  *schedule = icvs->schedule;
  *chunk = (int)icvs->chunk;
}

int omp_get_cancellation(void) { return omp.cancellation; }
int omp_get_max_task_priority(void) { return omp.max_task_priority; }

double omp_get_wtime(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
double omp_get_wtick(void) {
  struct timespec tick;
  clock_getres(CLOCK_MONOTONIC, &tick);
  return (double)tick.tv_sec + 1e-9 * (double)tick.tv_nsec;
}

// Places: none are defined, and threads do not move.
int omp_get_proc_bind(void) { return 0; }
int omp_get_num_places(void) { return 0; }
int omp_get_place_num(void) { return -1; }
int omp_get_place_num_procs(int place) {
  (void)place;
  return 0;
}
void omp_get_place_proc_ids(int place, int* ids) {
  (void)place;
  (void)ids;
}
int omp_get_partition_num_places(void) { return 0; }
void omp_get_partition_place_nums(int* places) { (void)places; }

void omp_display_env(int verbose) {
  (void)verbose;
  const struct icvs* const icvs = &omp.initial;
  static const char* const names[] = {"", "STATIC", "DYNAMIC", "GUIDED", "AUTO"};
  fprintf(stderr,
          "OPENMP DISPLAY ENVIRONMENT BEGIN\n"
          "  _OPENMP = '%d'\n"
          "  OMP_DYNAMIC = '%s'\n"
          "  OMP_NUM_THREADS = '%u'\n"
          "  OMP_SCHEDULE = '%s,%ld'\n"
          "  OMP_MAX_ACTIVE_LEVELS = '%u'\n"
          "  OMP_THREAD_LIMIT = '%u'\n"
          "  OMP_CANCELLATION = '%s'\n"
          "OPENMP DISPLAY ENVIRONMENT END\n",
          201511, icvs->dynamic ? "TRUE" : "FALSE", icvs->threads,
          names[icvs->schedule & ~SCHEDULE_MONOTONIC], icvs->chunk, icvs->max_active_levels,
          icvs->thread_limit, omp.cancellation ? "TRUE" : "FALSE");
}

// Affinity: the format is kept, and what is displayed is the little there is to say.
static char affinity_format[128] = "level %L thread %i affinity %A";
void omp_set_affinity_format(const char* format) {
  snprintf(affinity_format, sizeof affinity_format, "%s", format);
}
size_t omp_get_affinity_format(char* buffer, size_t size) {
  if (size != 0) snprintf(buffer, size, "%s", affinity_format);
  return strlen(affinity_format);
}

int omp_pause_resource(int kind, int device) {
  (void)kind;
  (void)device;
  return omp_get_level() == 0 ? 0 : -1;
}
int omp_pause_resource_all(int kind) { return omp_pause_resource(kind, 0); }
