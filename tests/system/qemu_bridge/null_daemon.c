/* A daemon that completes every command at once and does nothing: the other end of QEMU's bridge
 * for tests. How it may misbehave:
 *
 *   --die-at-hello     ends instead of answering the hello
 *   --silent           never answers the hello
 *   --refuse           answers it with -ENOMEM
 *   --garbage          answers it with nonsense
 *   --die-on-bell      ends when the first bell comes
 *   --die-after-reply  ends when it has answered the first command
 *   --never            takes commands and never replies
 *   --take-none        leaves bells on the ring
 *   --break-ring       says that it took more bells than there were
 *   --no-pause         goes on when it should pause
 *   --delay-ms N       replies N ms after the bell
 *   --say-pid          writes its process number to standard error
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "qemu_bridge/wire/gpusim_bell.h"

#define SPIN_NS 300000

static bool die_at_hello, silent, refuse, garbage, die_on_bell, die_after_reply, never, take_none,
    break_ring, no_pause, say_pid;
static int delay_ms, fd = -1;
static struct gpusim_bell_page* page;
static struct gpusim_bell_region regions[GPUSIM_BELL_MOST_REGIONS];
static char* mapped[GPUSIM_BELL_MOST_REGIONS];
static unsigned region_count;

static void die(const char* what) {
  fprintf(stderr, "null_daemon: %s\n", what);
  _exit(3);
}

static long futex(gpusim_u32* word, int op, gpusim_u32 value) {
  return syscall(SYS_futex, word, op, value, NULL, NULL, 0);
}

static long long now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ll + t.tv_nsec;
}

/* Nothing comes after the hello but the end. */
static void* watch(void* unused) {
  char byte;
  (void)unused;
  while (recv(fd, &byte, 1, 0) > 0) {
  }
  _exit(0);
}

static void map_everything(gpusim_u32* generation) {
  struct {
    struct gpusim_bell_hello head;
    struct gpusim_bell_region regions[GPUSIM_BELL_MOST_REGIONS];
  } hello;
  union {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(GPUSIM_BELL_MOST_FDS * sizeof(int))];
  } control;
  struct iovec data = {&hello, sizeof hello};
  struct msghdr message = {
      .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  ssize_t bytes = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
  struct cmsghdr* rights = CMSG_FIRSTHDR(&message);
  int fds[GPUSIM_BELL_MOST_FDS];

  if (bytes < (ssize_t)sizeof hello.head || hello.head.magic != GPUSIM_BELL_MAGIC ||
      hello.head.version != GPUSIM_BELL_VERSION || hello.head.fd_count > GPUSIM_BELL_MOST_FDS ||
      hello.head.region_count > GPUSIM_BELL_MOST_REGIONS ||
      bytes != (ssize_t)(sizeof hello.head + hello.head.region_count * sizeof regions[0]))
    die("bad hello");
  if (!rights || rights->cmsg_type != SCM_RIGHTS ||
      rights->cmsg_len != CMSG_LEN(hello.head.fd_count * sizeof(int)))
    die("bad descriptors");
  memcpy(fds, CMSG_DATA(rights), hello.head.fd_count * sizeof(int));
  page = mmap(NULL, GPUSIM_BELL_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
  if (page == MAP_FAILED || page->generation != hello.head.generation) die("bad bell page");
  region_count = hello.head.region_count;
  for (unsigned i = 0; i < region_count; ++i) {
    regions[i] = hello.regions[i];
    if (regions[i].fd_index >= hello.head.fd_count) die("bad region");
    mapped[i] = mmap(NULL, regions[i].size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                     fds[regions[i].fd_index], (off_t)regions[i].offset);
    if (mapped[i] == MAP_FAILED) die("can't map guest memory");
  }
  *generation = hello.head.generation;
}

static void reply(gpusim_u64 gpa) {
  for (unsigned i = 0; i < region_count; ++i) {
    const gpusim_u64 offset = gpa - regions[i].gpa;
    if (offset < regions[i].size_bytes &&
        sizeof(struct gpusim_command) <= regions[i].size_bytes - offset) {
      struct gpusim_command* command = (struct gpusim_command*)(mapped[i] + offset);
      __atomic_store_n(&command->status, 0, __ATOMIC_RELEASE);
      __atomic_fetch_add(&page->completions, 1, __ATOMIC_SEQ_CST);
      __atomic_thread_fence(__ATOMIC_SEQ_CST);
      if (__atomic_load_n(&page->qemu_waits, __ATOMIC_RELAXED))
        futex(&page->completions, FUTEX_WAKE, 1 << 30);
      return;
    }
  }
  die("a command outside guest memory");
}

static bool pause_changed(void) {
  return !no_pause && __atomic_load_n(&page->pause_request, __ATOMIC_ACQUIRE) != page->paused;
}

static bool is_paused(void) { return page->paused & 1; }

static bool is_bell(void) {
  return !take_none && !is_paused() && __atomic_load_n(&page->head, __ATOMIC_ACQUIRE) != page->tail;
}

static bool is_work(void) { return pause_changed() || is_bell(); }

static void sleep_until_work(void) {
  const long long until = now_ns() + SPIN_NS;
  while (now_ns() < until) {
    if (is_work()) return;
#ifdef __x86_64__
    __builtin_ia32_pause();
#endif
  }
  __atomic_store_n(&page->daemon_sleeps, 1, __ATOMIC_RELAXED);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  if (!is_work()) futex(&page->daemon_sleeps, FUTEX_WAIT, 1);
  __atomic_store_n(&page->daemon_sleeps, 0, __ATOMIC_RELAXED);
}

static void look_at_pause(void) {
  if (!pause_changed()) return;
  __atomic_store_n(&page->paused, __atomic_load_n(&page->pause_request, __ATOMIC_ACQUIRE),
                   __ATOMIC_RELEASE);
  futex(&page->paused, FUTEX_WAKE, 1 << 30);
}

static void wait_until_not_paused(void) {
  for (look_at_pause(); is_paused(); look_at_pause()) sleep_until_work();
}

static void serve(void) {
  for (;;) {
    wait_until_not_paused();
    if (!is_bell()) {
      sleep_until_work();
      continue;
    }
    const gpusim_u64 gpa = page->ring[page->tail % GPUSIM_BELL_RING];
    __atomic_store_n(&page->tail, page->tail + (break_ring ? 7 : 1), __ATOMIC_RELEASE);
    if (die_on_bell) _exit(5);
    if (break_ring) pause();
    if (never) continue;
    if (delay_ms) usleep((useconds_t)delay_ms * 1000);
    wait_until_not_paused();
    reply(gpa);
    if (die_after_reply) _exit(6);
  }
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    bool* flag;
  } flags[] = {{"--die-at-hello", &die_at_hello},
               {"--silent", &silent},
               {"--refuse", &refuse},
               {"--garbage", &garbage},
               {"--die-on-bell", &die_on_bell},
               {"--die-after-reply", &die_after_reply},
               {"--never", &never},
               {"--take-none", &take_none},
               {"--break-ring", &break_ring},
               {"--no-pause", &no_pause},
               {"--say-pid", &say_pid}};
  for (int i = 1; i < argc; ++i) {
    bool known = !strcmp(argv[i], "daemon"); /* how QEMU calls a program given without arguments */
    for (unsigned f = 0; f < sizeof flags / sizeof flags[0]; ++f)
      if (!strcmp(argv[i], flags[f].name)) known = *flags[f].flag = true;
    if (i + 1 < argc && !strcmp(argv[i], "--delay-ms"))
      known = (delay_ms = atoi(argv[++i])) != 0;
    else if (i + 1 < argc && !strcmp(argv[i], "--qemu-fd"))
      known = (fd = atoi(argv[++i])) > 0;
    if (!known) die("unknown argument");
  }
  if (fd < 0) die("--qemu-fd is missing");
  if (say_pid) fprintf(stderr, "null_daemon: pid %d\n", (int)getpid());
  if (die_at_hello) _exit(4);

  struct gpusim_bell_ready ready = {.magic = garbage ? 0 : GPUSIM_BELL_MAGIC,
                                    .version = GPUSIM_BELL_VERSION,
                                    .wire_version = GPUSIM_WIRE_VERSION,
                                    .status = refuse ? -ENOMEM : 0,
                                    .text = "refused as asked"};
  map_everything(&ready.generation);
  if (!silent && send(fd, &ready, sizeof ready, MSG_NOSIGNAL) != sizeof ready) die("QEMU is gone");
  pthread_t watcher;
  if (pthread_create(&watcher, NULL, watch, NULL)) die("no thread");
  serve();
}
