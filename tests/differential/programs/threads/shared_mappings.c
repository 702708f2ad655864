// cores: 4
// Files in memory mapped more than once: all mappings, read() and write() see the same bytes.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

static void say(const char* what, long result) {
  if (result < 0)
    printf("%s: %s\n", what, strerror(errno));
  else
    printf("%s: %ld\n", what, result);
}

static uint32_t* counters[2];
static void* count(void* which) {
  for (int i = 0; i < 1000; ++i)
    __atomic_fetch_add(counters[(intptr_t)which & 1], 1, __ATOMIC_SEQ_CST);
  return NULL;
}

static void segments(void) {
  const int id = shmget(0x1234, 10000, IPC_CREAT | IPC_EXCL | 0600);
  say("same key", shmget(0x1234, 5000, 0) == id);
  say("too large", shmget(0x1234, 20000, 0));
  say("exists", shmget(0x1234, 10000, IPC_CREAT | IPC_EXCL));
  char* a = shmat(id, NULL, 0);
  const char* b = shmat(id, NULL, SHM_RDONLY);
  strcpy(a + 5000, "through a segment");
  printf("%s\n", b + 5000);
  struct shmid_ds state;
  say("state", shmctl(id, IPC_STAT, &state));
  printf("size %zu, attached %lu\n", state.shm_segsz, (unsigned long)state.shm_nattch);
  say("detach", shmdt(a));
  say("remove", shmctl(id, IPC_RMID, NULL));
  printf("%s\n", b + 5000);
  say("detach", shmdt(b));
  say("twice", shmdt(b));
  say("gone", shmctl(id, IPC_STAT, &state));
}

int main(void) {
  enum { kPage = 4096 };
  char bytes[32] = "";
  const int fd = memfd_create("shared", 0);
  say("size", ftruncate(fd, 4 * kPage));
  char* a = mmap(NULL, 4 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  char* b = mmap(NULL, 2 * kPage, PROT_READ, MAP_SHARED, fd, kPage);
  const char* before = mmap(NULL, kPage, PROT_READ, MAP_PRIVATE, fd, kPage);
  strcpy(a + kPage, "written by a store");
  printf("%s\n", b);
  say("pread", pread(fd, bytes, sizeof bytes, kPage));
  printf("%s\n", bytes);
  say("pwrite", pwrite(fd, "written by a call", 18, 2 * kPage));
  printf("%s, %s\n", a + 2 * kPage, b + kPage);
  (void)before;
  say("writable now", mprotect(b, 2 * kPage, PROT_READ | PROT_WRITE));
  b[0] = 'W';
  printf("%s\n", a + kPage);
  say("sync", msync(a, 4 * kPage, MS_SYNC));
  say("bad sync", msync(a, kPage, MS_SYNC | MS_ASYNC));
  // A part goes, the rest stays; what comes in its place is not the file's.
  say("unmap", munmap(a + kPage, kPage));
  char* hole = mmap(a + kPage, kPage, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  printf("in place %d, zero %d\n", hole == a + kPage, hole[0] == 0);
  strcpy(hole, "the guest's own");
  printf("%s / %s\n", b, a + 2 * kPage);
  char* moved = mremap(b, 2 * kPage, 3 * kPage, MREMAP_MAYMOVE);
  printf("%s\n", moved + kPage);
  strcpy(moved + 2 * kPage, "beyond the old end");
  printf("%s\n", a + 3 * kPage);
  say("forget", madvise(moved, kPage, MADV_DONTNEED));
  printf("%s\n", moved);
  close(fd);
  strcpy(moved, "after close");
  printf("%s\n", moved);

  // Without a file.
  char* nameless = mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  nameless[7] = 1;
  printf("nameless %d\n", nameless[7]);

  // Threads through different mappings.
  const int other = memfd_create("counters", 0);
  say("size", ftruncate(other, kPage));
  for (int i = 0; i < 2; ++i)
    counters[i] = mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, other, 0);
  pthread_t t[3];
  for (intptr_t i = 0; i < 3; ++i) pthread_create(&t[i], NULL, count, (void*)i);
  count((void*)1);
  for (int i = 0; i < 3; ++i) pthread_join(t[i], NULL);
  printf("%u %u\n", *counters[0], *counters[1]);
  segments();

  const int closed = memfd_create("sealed", 0);
  say("bad size", (long)mmap(NULL, 0, PROT_READ, MAP_SHARED, closed, 0) == -1 ? -1 : 0);
  say("bad offset", mmap(NULL, kPage, PROT_READ, MAP_SHARED, closed, 12) == MAP_FAILED ? -1 : 0);
  say("no file", mmap(NULL, kPage, PROT_READ, MAP_SHARED, 99, 0) == MAP_FAILED ? -1 : 0);
  return 0;
}
