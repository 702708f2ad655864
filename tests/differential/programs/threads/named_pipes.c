// cores: 3
// folder: own
// Named pipes: who opens one waits for the other end.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void say(const char* what, long result) {
  if (result < 0)
    printf("%s: %s\n", what, strerror(errno));
  else
    printf("%s: %ld\n", what, result);
}

static void pause_ms(long milliseconds) {
  nanosleep(&(struct timespec){0, milliseconds * 1000000}, NULL);
}

static void* write_later(void* text) {
  pause_ms(20);
  const int fd = open("pipe", O_WRONLY);
  pause_ms(20);  // the reader has it open by now, and waits for bytes
  if (write(fd, text, strlen(text)) < 0) perror("write");
  close(fd);
  return NULL;
}

static void* read_later(void* buffer) {
  pause_ms(20);
  const int fd = open("pipe", O_RDONLY);
  ssize_t n = 0, all = 0;
  while ((n = read(fd, (char*)buffer + all, 16 - all)) > 0) all += n;
  close(fd);
  return NULL;
}

int main(void) {
  signal(SIGPIPE, SIG_IGN);
  umask(027);
  say("make", mkfifo("pipe", 0666));
  struct stat status;
  say("status", stat("pipe", &status));
  printf("mode %o\n", status.st_mode);
  say("again", mkfifo("pipe", 0666));
  say("plain", mknod("plain", S_IFREG | 0600, 0));

  say("no reader", open("pipe", O_WRONLY | O_NONBLOCK));
  const int both = open("pipe", O_RDWR);
  const int writer = open("pipe", O_WRONLY | O_NONBLOCK);
  say("reader", writer >= 0);
  close(both);
  say("reader gone", write(writer, "x", 1));
  close(writer);

  const int now = open("pipe", O_RDONLY | O_NONBLOCK);
  char text[17] = "";
  say("no writer", read(now, text, sizeof text));
  struct pollfd waiting = {now, POLLIN, 0};
  say("nothing", poll(&waiting, 1, 0));
  close(now);

  pthread_t thread;
  pthread_create(&thread, NULL, write_later, "to a reader");
  int fd = open("pipe", O_RDONLY);
  say("read", read(fd, text, 16));
  puts(text);
  say("end", read(fd, text, 16));
  pthread_join(thread, NULL);
  close(fd);

  memset(text, 0, sizeof text);
  pthread_create(&thread, NULL, read_later, text);
  fd = open("pipe", O_WRONLY | O_TRUNC);
  say("write", write(fd, "from ", 5));
  say("write", write(fd, "a writer", 8));
  close(fd);
  pthread_join(thread, NULL);
  puts(text);
  say("remove", unlink("pipe") + unlink("plain"));
  return 0;
}
