// folder: own
// Record locks (fcntl) of the process and of open files, which exclude each other in one process.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static struct flock* volatile wild = (struct flock*)8;

static void say(const char* what, long result) {
  if (result < 0)
    printf("%s: %s\n", what, strerror(errno));
  else
    printf("%s: %ld\n", what, result);
}

static int lock_from(int fd, int command, int type, int whence, long start, long length) {
  struct flock lock = {.l_type = type, .l_whence = whence, .l_start = start, .l_len = length};
  return fcntl(fd, command, &lock);
}
static int lock(int fd, int command, int type, long start, long length) {
  return lock_from(fd, command, type, SEEK_SET, start, length);
}

static void find(const char* what, int fd, int command, int type, long start, long length) {
  struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = length};
  if (fcntl(fd, command, &lock) < 0) {
    say(what, -1);
  } else if (lock.l_type == F_UNLCK) {
    printf("%s: free, still %ld+%ld\n", what, (long)lock.l_start, (long)lock.l_len);
  } else {
    printf("%s: %s %ld+%ld of %s\n", what, lock.l_type == F_RDLCK ? "read" : "write",
           (long)lock.l_start, (long)lock.l_len,
           lock.l_pid == getpid() ? "this process" : lock.l_pid == -1 ? "an open file" : "whom?");
  }
}

static void two_owners(int a, int b) {
  say("lock", lock(a, F_SETLK, F_WRLCK, 0, 10));
  find("own process, other file", b, F_GETLK, F_WRLCK, 0, 0);
  find("open file", b, F_OFD_GETLK, F_RDLCK, 5, 10);
  say("meets", lock(b, F_OFD_SETLK, F_RDLCK, 5, 10));
  say("beside", lock(b, F_OFD_SETLK, F_WRLCK, 10, 10));
  find("process", a, F_GETLK, F_WRLCK, 0, 0);
  say("process meets", lock(a, F_SETLK, F_RDLCK, 19, 1));
  say("wait for none", lock(a, F_SETLKW, F_WRLCK, 20, 0));
  say("split", lock(a, F_SETLK, F_UNLCK, 3, 4));
  find("first part", b, F_OFD_GETLK, F_WRLCK, 0, 0);
  find("hole", b, F_OFD_GETLK, F_WRLCK, 3, 4);
  find("second part", b, F_OFD_GETLK, F_WRLCK, 4, 6);
  say("weaker", lock(a, F_SETLK, F_RDLCK, 0, 9));
  find("read by both", b, F_OFD_GETLK, F_RDLCK, 0, 8);
  find("rest", b, F_OFD_GETLK, F_RDLCK, 0, 10);
  say("open files differ", lock(a, F_OFD_SETLK, F_RDLCK, 12, 1));
  // Any descriptor of the file that is closed takes the locks of the process along.
  close(dup(b));
  find("after close", b, F_OFD_GETLK, F_WRLCK, 0, 10);
  find("still the open file's", a, F_GETLK, F_WRLCK, 0, 0);
  say("lock again", lock(a, F_SETLK, F_WRLCK, 0, 1));
  say("dup2", dup2(a, b));
  find("the file went", a, F_OFD_GETLK, F_WRLCK, 10, 10);
  find("and the lock", a, F_OFD_GETLK, F_WRLCK, 0, 10);
}

static void ranges(int a, int b) {
  say("size", write(a, "0123456789", 10));
  say("from position", lock_from(a, F_SETLK, F_WRLCK, SEEK_CUR, -2, 1));
  find("there", b, F_OFD_GETLK, F_WRLCK, 0, 0);
  say("from end", lock_from(a, F_SETLK, F_WRLCK, SEEK_END, 5, -3));
  find("there", b, F_OFD_GETLK, F_WRLCK, 9, 0);
  say("before start", lock_from(a, F_SETLK, F_WRLCK, SEEK_END, -11, 1));
  say("backwards", lock(a, F_SETLK, F_WRLCK, 3, -4));
  say("too far", lock_from(a, F_SETLK, F_WRLCK, SEEK_END, 0x7fffffffffffffff, 1));
  say("too long", lock(a, F_SETLK, F_WRLCK, 2, 0x7fffffffffffffff));
  say("bad whence", lock_from(a, F_SETLK, F_WRLCK, 7, 0, 1));
  say("bad type", lock(a, F_SETLK, 9, 0, 1));
  say("bad wish", lock(a, F_GETLK, F_UNLCK, 0, 1));
  say("wild", fcntl(a, F_SETLK, wild));
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1, .l_pid = 1};
  say("pid", fcntl(a, F_OFD_SETLK, &lock));
}

int main(void) {
  const int a = open("locked", O_RDWR | O_CREAT, 0600), b = open("locked", O_RDWR);
  const int reader = open("locked", O_RDONLY), writer = open("locked", O_WRONLY);
  two_owners(a, b);
  close(b);
  const int c = open("locked", O_RDWR);
  ranges(a, c);
  say("reader writes", lock(reader, F_SETLK, F_WRLCK, 100, 1));
  say("writer reads", lock(writer, F_OFD_SETLK, F_RDLCK, 100, 1));
  say("reader", lock(reader, F_SETLK, F_RDLCK, 100, 1));
  find("reader's", c, F_OFD_GETLK, F_WRLCK, 100, 1);
  const int path = open("locked", O_PATH);
  say("path only", lock(path, F_SETLK, F_RDLCK, 0, 1));
  say("closed", lock(99, F_SETLK, F_RDLCK, 0, 1));
  say("flock is apart", flock(c, LOCK_EX | LOCK_NB));
  int ends[2];
  say("pipe", pipe(ends));
  say("of a pipe", lock(ends[0], F_SETLK, F_RDLCK, 0, 1));
  find("of a pipe", ends[0], F_GETLK, F_WRLCK, 0, 1);
  return unlink("locked");
}
