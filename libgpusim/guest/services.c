// System calls that the guest runtime needs, also inside kernels of a program that has a C library.
#include "gpusim_guest.h"

void gpusim_exit(int status) {
  for (;;) gpusim_syscall3(GPUSIM_SYS_EXIT, status, 0, 0);
}

void gpusim_exit_all(int status) {
  for (;;) gpusim_syscall3(GPUSIM_SYS_EXIT_GROUP, status, 0, 0);
}

int gpusim_write_all(int fd, const void* bytes, size_t size_bytes) {
  const char* p = (const char*)bytes;
  while (size_bytes != 0) {
    const long n = gpusim_syscall3(GPUSIM_SYS_WRITE, fd, (long)(uintptr_t)p, (long)size_bytes);
    const long interrupted = -4;  // -EINTR
    if (n == interrupted) continue;
    if (n <= 0) return -1;
    p += n;
    size_bytes -= (size_t)n;
  }
  return 0;
}
