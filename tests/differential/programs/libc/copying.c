// Memory as a file, and moving bytes between files, one thread.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static const char* volatile wild = (const char*)8;

static void say(const char* what, long result) {
  if (result < 0)
    printf("%s: %s\n", what, strerror(errno));
  else
    printf("%s: %ld\n", what, result);
}

int main(void) {
  char bytes[64] = "";
  const int a = memfd_create("a", MFD_CLOEXEC), b = memfd_create("b", MFD_ALLOW_SEALING);
  struct iovec vectors[2] = {{"0123", 4}, {"456789", 6}};
  say("pwritev", pwritev(a, vectors, 2, 5));
  struct stat s;
  fstat(a, &s);
  printf("size %ld, file %d\n", (long)s.st_size, S_ISREG(s.st_mode));
  struct iovec in[2] = {{bytes, 3}, {bytes + 10, 20}};
  say("preadv", preadv(a, in, 2, 5));
  printf("%.3s %.7s\n", bytes, bytes + 10);
  say("negative", preadv(a, in, 2, -1));
  off_t from = 5, to = 1;
  say("copy_file_range", copy_file_range(a, &from, b, &to, 6, 0));
  printf("offsets %ld %ld\n", (long)from, (long)to);
  say("pread", pread(b, bytes, sizeof bytes, 1));
  printf("%.6s\n", bytes);
  say("bad flags", copy_file_range(a, &from, b, &to, 6, 1));
  from = 5;
  lseek(b, 0, SEEK_SET);
  say("sendfile", sendfile(b, a, &from, 4));
  say("position", lseek(b, 0, SEEK_CUR));
  int p[2], q[2];
  if (pipe(p) || pipe(q)) return 1;
  from = 5;
  say("splice in", splice(a, &from, p[1], NULL, 10, 0));
  say("tee", tee(p[0], q[1], 4, 0));
  say("read", read(q[0], bytes, sizeof bytes));
  printf("%.4s\n", bytes);
  to = 0;
  say("splice out", splice(p[0], NULL, b, &to, 100, 0));
  say("none left", splice(p[0], NULL, b, &to, 100, SPLICE_F_NONBLOCK));
  say("no pipe", splice(a, &from, b, &to, 1, 0));
  say("vmsplice", vmsplice(p[1], vectors, 2, 0));
  say("read", read(p[0], bytes, sizeof bytes));
  printf("%.10s\n", bytes);
  say("pipe's size", fcntl(p[1], F_SETPIPE_SZ, 8192));
  say("pipe's size", fcntl(p[1], F_GETPIPE_SZ));
  say("seals", fcntl(a, F_GET_SEALS));
  say("seal", fcntl(b, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_WRITE));
  say("sealed", fcntl(b, F_GET_SEALS));
  say("write", write(b, "x", 1));
  say("shrink", ftruncate(b, 1));
  say("grow", ftruncate(b, 100));
  const int again = dup(a);
  say("lock", flock(a, LOCK_EX));
  say("same file", flock(again, LOCK_EX | LOCK_NB));
  say("unlock", flock(again, LOCK_UN));
  say("bad lock", flock(a, 64));
  say("no name", memfd_create(wild, 0));
  say("bad flags", memfd_create("x", 0x8000));
  return 0;
}
