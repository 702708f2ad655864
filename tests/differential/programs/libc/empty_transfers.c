// bits: 64
// folder: own
// oracle: host
// cores: 1
// Reads and writes of no bytes: what Linux looks at all the same. QEMU looks at less in vectors.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

static void say(const char* what, long result) {
  if (result < 0)
    printf(" %s %d", what, -errno);
  else
    printf(" %s %ld", what, result);
}

static void look(const char* name, int fd) {
  // Null, nothing there, the highest of a process's, beyond them, the last.
  const uint64_t places[] = {0, 0xdead0000, UINT64_C(1) << 46, UINT64_C(1) << 60, UINT64_MAX};
  for (unsigned i = 0; i < sizeof places / sizeof *places; ++i) {
    const struct iovec empty[2] = {{(void*)(uintptr_t)places[i], 0}, {0, 0}};
    printf("%s, %#llx:", name, (unsigned long long)places[i]);
    say("read", syscall(SYS_read, fd, places[i], 0L));
    say("write", syscall(SYS_write, fd, places[i], 0L));
    say("pread", syscall(SYS_pread64, fd, places[i], 0L, 0L));
    say("pwrite", syscall(SYS_pwrite64, fd, places[i], 0L, 0L));
    say("readv", syscall(SYS_readv, fd, empty, 2L));
    say("writev", syscall(SYS_writev, fd, empty, 2L));
    puts("");
  }
}

int main(void) {
  int pipe_of[2], stream[2], packets[2];
  if (pipe2(pipe_of, O_NONBLOCK) || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, stream) ||
      socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, packets))
    return 1;
  look("file", open("file", O_RDWR | O_CREAT, 0600));
  look("read-only", open("file", O_RDONLY));
  look("write-only", open("file", O_WRONLY));
  look("memory", memfd_create("memory", 0));
  look("null", open("/dev/null", O_RDWR));
  look("zero", open("/dev/zero", O_RDWR));
  look("reader", pipe_of[0]);
  look("writer", pipe_of[1]);
  close(pipe_of[0]);
  look("broken", pipe_of[1]);
  look("stream", stream[0]);
  look("closed", 77);
  look("counter", eventfd(0, EFD_NONBLOCK));
  look("timer", timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK));
  // Of packets, a write of nothing sends one; a vector of nothing does not.
  char byte;
  const struct iovec nothing = {&byte, 0};
  printf("packets:");
  say("read", read(packets[1], &byte, 0));
  say("writev", writev(packets[0], &nothing, 1));
  say("recv", recv(packets[1], &byte, 1, 0));
  say("write", write(packets[0], &byte, 0));
  say("recv", recv(packets[1], &byte, 1, 0));
  puts("");
  return 0;
}
