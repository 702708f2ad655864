// cores: 8
// A server that waits with epoll for clients in other threads; blocking ends, large messages,
// semaphores, queues and event counters between threads.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <unistd.h>

enum { kClients = 5, kRequests = 20, kLarge = 1 << 20 };
static int ends[kClients][2], done_counter, semaphores, queue;

static void check(int good, const char* what) {
  if (good) return;
  printf("%s: %s\n", what, strerror(errno));
  exit(1);
}

static void* client(void* argument) {
  const int fd = ends[(intptr_t)argument][1];
  long sum = 0;
  for (int i = 0; i < kRequests; ++i) {
    const int32_t request = (int32_t)(intptr_t)argument * 1000 + i;
    int32_t answer;
    check(write(fd, &request, sizeof request) == sizeof request, "request");
    check(recv(fd, &answer, sizeof answer, MSG_WAITALL) == sizeof answer, "answer");
    sum += answer;
  }
  const uint64_t one = 1;
  check(write(done_counter, &one, sizeof one) == sizeof one, "done");
  shutdown(fd, SHUT_WR);
  return (void*)sum;
}

static void serve(void) {
  const int set = epoll_create1(0);
  for (int i = 0; i < kClients; ++i) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = ends[i][0]};
    check(epoll_ctl(set, EPOLL_CTL_ADD, ends[i][0], &event) == 0, "add");
  }
  int open = kClients, served = 0;
  while (open > 0) {
    struct epoll_event events[3];
    const int n = epoll_wait(set, events, 3, -1);
    check(n > 0, "wait");
    for (int i = 0; i < n; ++i) {
      int32_t request;
      const ssize_t got = read(events[i].data.fd, &request, sizeof request);
      if (got == 0) {
        check(epoll_ctl(set, EPOLL_CTL_DEL, events[i].data.fd, NULL) == 0, "delete");
        --open;
        continue;
      }
      request *= 2;
      check(write(events[i].data.fd, &request, sizeof request) == sizeof request, "reply");
      ++served;
    }
  }
  uint64_t finished = 0;
  check(read(done_counter, &finished, sizeof finished) == sizeof finished, "counter");
  printf("served %d, %llu clients\n", served, (unsigned long long)finished);
}

// One call moves more than any buffer holds.
static void* send_large(void* argument) {
  const int fd = (int)(intptr_t)argument;
  unsigned char* block = malloc(kLarge);
  for (int i = 0; i < kLarge; ++i) block[i] = (unsigned char)(i * 7);
  const ssize_t n = write(fd, block, kLarge);
  free(block);
  return (void*)n;
}
static void large(const char* name, int from, int to) {
  pthread_t t;
  pthread_create(&t, NULL, send_large, (void*)(intptr_t)to);
  long sum = 0, total = 0, n;
  unsigned char block[5000];
  while (total < kLarge && (n = read(from, block, sizeof block)) > 0) {
    for (long i = 0; i < n; ++i) sum += block[i];
    total += n;
  }
  void* sent;
  pthread_join(t, &sent);
  printf("%s: %ld of %ld, sum %ld\n", name, total, (long)sent, sum);
}

struct message {
  long type;
  int value;
};
static void* work(void* argument) {
  (void)argument;
  for (;;) {
    struct message m;
    check(msgrcv(queue, &m, sizeof m.value, 1, 0) == sizeof m.value, "receive");
    if (m.value < 0) return NULL;
    m.type = 2;
    m.value *= m.value;
    check(msgsnd(queue, &m, sizeof m.value, 0) == 0, "answer");
    struct sembuf up = {0, 1, 0};
    check(semop(semaphores, &up, 1) == 0, "up");
  }
}
static void farm(void) {
  semaphores = semget(IPC_PRIVATE, 1, 0600);
  queue = msgget(IPC_PRIVATE, 0600);
  pthread_t t[3];
  for (int i = 0; i < 3; ++i) pthread_create(&t[i], NULL, work, NULL);
  for (int i = 0; i < 50; ++i) {
    const struct message m = {1, i};
    check(msgsnd(queue, &m, sizeof m.value, 0) == 0, "send");
  }
  struct sembuf all = {0, -50, 0};
  check(semop(semaphores, &all, 1) == 0, "all");
  long sum = 0;
  for (int i = 0; i < 50; ++i) {
    struct message m;
    check(msgrcv(queue, &m, sizeof m.value, 2, 0) > 0, "result");
    sum += m.value;
  }
  for (int i = 0; i < 3; ++i) {
    const struct message end = {1, -1};
    check(msgsnd(queue, &end, sizeof end.value, 0) == 0, "end");
  }
  for (int i = 0; i < 3; ++i) pthread_join(t[i], NULL);
  printf("squares %ld\n", sum);
  semctl(semaphores, 0, IPC_RMID);
  msgctl(queue, IPC_RMID, NULL);
}

// A signal ends a wait, and what was waited for is still there.
static void caught(int number) { (void)number; }
static void* interrupt(void* argument) {
  usleep(20000);
  pthread_kill(*(pthread_t*)argument, SIGUSR1);
  return NULL;
}
static void interrupted(void) {
  const struct sigaction action = {.sa_handler = caught};
  sigaction(SIGUSR1, &action, NULL);
  pthread_t self = pthread_self(), t;
  char byte;
  pthread_create(&t, NULL, interrupt, &self);
  const ssize_t n = recv(ends[0][0], &byte, 1, 0);
  printf("recv %zd, %s\n", n, n < 0 ? strerror(errno) : "");
  pthread_join(t, NULL);
  const int set = epoll_create1(0);
  pthread_create(&t, NULL, interrupt, &self);
  struct epoll_event event;
  const int got = epoll_wait(set, &event, 1, -1);
  printf("epoll_wait %d, %s\n", got, strerror(errno));
  pthread_join(t, NULL);
}

// A write that waits learns that its reader has gone, by a signal, too.
static void broken(int number) {
  char text[] = "signal 00\n";
  text[7] = (char)('0' + number / 10);
  text[8] = (char)('0' + number % 10);
  if (write(1, text, sizeof text - 1) < 0) exit(1);
}
static void* write_more(void* argument) {
  static char rest[4096];
  const ssize_t n = write((int)(intptr_t)argument, rest, sizeof rest);
  return (void*)(intptr_t)(n < 0 ? -errno : n);
}
static void left_alone(void) {
  int p[2];
  static char block[4096];
  signal(SIGPIPE, broken);
  if (pipe(p)) exit(1);
  fcntl(p[1], F_SETFL, O_NONBLOCK);
  while (write(p[1], block, sizeof block) > 0) {
  }
  fcntl(p[1], F_SETFL, 0);
  pthread_t t;
  pthread_create(&t, NULL, write_more, (void*)(intptr_t)p[1]);
  usleep(20000);
  fflush(stdout);
  close(p[0]);
  void* result;
  pthread_join(t, &result);
  printf("write %ld\n", (long)result);
}

int main(void) {
  done_counter = eventfd(0, 0);
  pthread_t t[kClients];
  for (intptr_t i = 0; i < kClients; ++i) {
    check(socketpair(AF_UNIX, SOCK_STREAM, 0, ends[i]) == 0, "pair");
    pthread_create(&t[i], NULL, client, (void*)i);
  }
  serve();
  long sum = 0;
  for (int i = 0; i < kClients; ++i) {
    void* part;
    pthread_join(t[i], &part);
    sum += (long)part;
  }
  printf("sum %ld\n", sum);
  int p[2], s[2];
  check(pipe(p) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, s) == 0, "ends");
  large("pipe", p[0], p[1]);
  large("socket", s[0], s[1]);
  farm();
  check(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends[0]) == 0, "pair");
  interrupted();
  left_alone();
  return 0;
}
