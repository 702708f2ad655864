// What a guest's sockets and shared mappings reach outside of it; the first argument chooses.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

static void say(const char* what, long result) {
  if (result < 0)
    printf("%s: %s\n", what, strerror(errno));
  else
    printf("%s: %s\n", what, "ok");
}

static struct sockaddr_in inet(const char* address, int port) {
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  inet_pton(AF_INET, address, &a.sin_addr);
  return a;
}
static int port_of(int fd) {
  struct sockaddr_in a;
  socklen_t size = sizeof a;
  getsockname(fd, (struct sockaddr*)&a, &size);
  char text[64];
  printf("at %s\n", inet_ntop(AF_INET, &a.sin_addr, text, sizeof text));
  return ntohs(a.sin_port);
}

static int shared_port;
static struct sockaddr_un shared_name;

static void* tcp_client(void* argument) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  const struct sockaddr_in to = inet("127.0.0.1", shared_port);
  char bytes[16] = "";
  if (connect(fd, (const struct sockaddr*)&to, sizeof to) == 0 && write(fd, "ping", 4) == 4 &&
      recv(fd, bytes, 4, MSG_WAITALL) == 4)
    printf("client got %s\n", bytes);
  else
    perror("client");
  close(fd);
  return argument;
}
static void tcp(void) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  const struct sockaddr_in any = inet("0.0.0.0", 0);
  say("bind", bind(fd, (const struct sockaddr*)&any, sizeof any));
  say("listen", listen(fd, 4));
  shared_port = port_of(fd);
  pthread_t t;
  pthread_create(&t, NULL, tcp_client, NULL);
  struct sockaddr_in from;
  socklen_t size = sizeof from;
  const int peer = accept(fd, (struct sockaddr*)&from, &size);
  char bytes[16] = "";
  say("accept", peer);
  say("read", read(peer, bytes, sizeof bytes));
  printf("server got %s from a family %d, %u bytes\n", bytes, from.sin_family, size);
  say("write", write(peer, "pong", 4));
  say("end", read(peer, bytes, sizeof bytes));
  pthread_join(t, NULL);
  const struct sockaddr_in closed = inet("127.0.0.1", shared_port);
  close(fd);
  const int late = socket(AF_INET, SOCK_STREAM, 0);
  say("refused", connect(late, (const struct sockaddr*)&closed, sizeof closed));
  const int unbound = socket(AF_INET, SOCK_STREAM, 0);
  say("listen", listen(unbound, 1));
  port_of(unbound);
}

static void udp(void) {
  const int a = socket(AF_INET, SOCK_DGRAM, 0), b = socket(AF_INET, SOCK_DGRAM, 0);
  const struct sockaddr_in any = inet("127.0.0.1", 0);
  say("bind", bind(a, (const struct sockaddr*)&any, sizeof any));
  const struct sockaddr_in to = inet("127.0.0.1", port_of(a));
  say("sendto", sendto(b, "hello", 5, 0, (const struct sockaddr*)&to, sizeof to));
  port_of(b);
  char bytes[16] = "";
  struct sockaddr_in from;
  socklen_t size = sizeof from;
  say("recvfrom", recvfrom(a, bytes, sizeof bytes, 0, (struct sockaddr*)&from, &size));
  say("answer", sendto(a, bytes, 5, 0, (const struct sockaddr*)&from, size));
  say("recv", recv(b, bytes, sizeof bytes, 0));
  printf("%s\n", bytes);
}

static void outside(void) {
  const int tcp_fd = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_DGRAM, 0),
            six = socket(AF_INET6, SOCK_DGRAM, 0);
  struct sockaddr_in far = inet("192.0.2.1", 9);
  say("connect", connect(tcp_fd, (const struct sockaddr*)&far, sizeof far));
  say("bind", bind(tcp_fd, (const struct sockaddr*)&far, sizeof far));
  say("sendto", sendto(fd, "x", 1, 0, (const struct sockaddr*)&far, sizeof far));
  struct iovec vector = {"x", 1};
  struct msghdr message = {.msg_name = &far, .msg_namelen = sizeof far, .msg_iov = &vector,
                           .msg_iovlen = 1};
  say("sendmsg", sendmsg(fd, &message, 0));
  far.sin_family = AF_UNSPEC;  // which Linux takes for AF_INET there
  say("no family", sendto(fd, "x", 1, 0, (const struct sockaddr*)&far, sizeof far));
  struct sockaddr_in6 mapped = {.sin6_family = AF_INET6, .sin6_port = htons(9)};
  inet_pton(AF_INET6, "::ffff:192.0.2.1", &mapped.sin6_addr);
  say("mapped", sendto(six, "x", 1, 0, (const struct sockaddr*)&mapped, sizeof mapped));
  inet_pton(AF_INET6, "2001:db8::1", &mapped.sin6_addr);
  say("six", connect(six, (const struct sockaddr*)&mapped, sizeof mapped));
  int one = 1;
  say("option", setsockopt(fd, IPPROTO_IP, IP_TRANSPARENT, &one, sizeof one));
  say("device", setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "lo", 3));
}

static void kinds(void) {
  say("inet", socket(AF_INET, SOCK_STREAM, 0));
  say("inet6", socket(AF_INET6, SOCK_DGRAM, 0));
  say("raw", socket(AF_INET, SOCK_RAW, IPPROTO_ICMP));
  say("netlink", socket(AF_NETLINK, SOCK_RAW, 0));
  say("packet", socket(AF_PACKET, SOCK_RAW, 0));
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  const struct sockaddr_un abstract = {.sun_family = AF_UNIX, .sun_path = "\0gpusim-test"};
  say("abstract", bind(fd, (const struct sockaddr*)&abstract, sizeof abstract));
  say("automatic", bind(fd, (const struct sockaddr*)&abstract, 2));
}

static struct sockaddr_un name(const char* path) {
  struct sockaddr_un a = {.sun_family = AF_UNIX};
  strncpy(a.sun_path, path, sizeof a.sun_path - 1);
  return a;
}
static void* unix_client(void* argument) {
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  if (connect(fd, (const struct sockaddr*)&shared_name, sizeof shared_name) || write(fd, "ping", 4) != 4)
    perror("client");
  struct sockaddr_un peer;
  socklen_t size = sizeof peer;
  getpeername(fd, (struct sockaddr*)&peer, &size);
  printf("peer %s\n", peer.sun_path);
  close(fd);
  return argument;
}
static void named(const char* path, const char* other) {
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  shared_name = name(path);
  const int bound = bind(fd, (const struct sockaddr*)&shared_name, sizeof shared_name);
  say("bind", bound);
  if (bound < 0) return;
  say("again", bind(fd, (const struct sockaddr*)&shared_name, sizeof shared_name));
  say("listen", listen(fd, 1));
  struct sockaddr_un own;
  socklen_t size = sizeof own;
  getsockname(fd, (struct sockaddr*)&own, &size);
  printf("own %s\n", own.sun_path);
  pthread_t t;
  pthread_create(&t, NULL, unix_client, NULL);
  const int peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
  char bytes[16] = "";
  say("accept", peer);
  say("read", read(peer, bytes, sizeof bytes));
  pthread_join(t, NULL);
  // Datagrams know whom to answer.
  const int a = socket(AF_UNIX, SOCK_DGRAM, 0), b = socket(AF_UNIX, SOCK_DGRAM, 0);
  char path_a[100], path_b[100];
  snprintf(path_a, sizeof path_a, "%s.a", path);
  snprintf(path_b, sizeof path_b, "%s.b", path);
  const struct sockaddr_un name_a = name(path_a), name_b = name(path_b);
  say("bind", bind(a, (const struct sockaddr*)&name_a, sizeof name_a));
  say("bind", bind(b, (const struct sockaddr*)&name_b, sizeof name_b));
  say("sendto", sendto(a, "question", 8, 0, (const struct sockaddr*)&name_b, sizeof name_b));
  struct sockaddr_un from = {0};
  size = sizeof from;
  say("recvfrom", recvfrom(b, bytes, sizeof bytes, 0, (struct sockaddr*)&from, &size));
  say("answer", sendto(b, "answer", 6, 0, (const struct sockaddr*)&from, size));
  say("recv", recv(a, bytes, sizeof bytes, 0));
  printf("%.6s\n", bytes);
  const struct sockaddr_un elsewhere = name(other);
  say("elsewhere", bind(socket(AF_UNIX, SOCK_STREAM, 0), (const struct sockaddr*)&elsewhere,
                        sizeof elsewhere));
  say("connect elsewhere", connect(socket(AF_UNIX, SOCK_STREAM, 0),
                                   (const struct sockaddr*)&elsewhere, sizeof elsewhere));
}

// A server outside sends a file.
static void file_from_outside(const char* path) {
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  const struct sockaddr_un to = name(path);
  say("connect", connect(fd, (const struct sockaddr*)&to, sizeof to));
  char bytes[32] = "", control[CMSG_SPACE(sizeof(int))];
  struct iovec vector = {bytes, sizeof bytes};
  struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1, .msg_control = control,
                           .msg_controllen = sizeof control};
  say("recvmsg", recvmsg(fd, &message, 0));
  int got;
  memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof got);
  say("read", read(got, bytes, sizeof bytes));
  printf("%s\n", bytes);
}

static int pair[2];
static void* read_pair(void* argument) {
  char byte;
  return (void*)(intptr_t)read(pair[0], &byte, 1 + (argument != NULL));
}
static void wait_for_ever(int how) {
  pthread_t t;
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) return;
  pthread_create(&t, NULL, read_pair, NULL);
  const int set = epoll_create1(0), counter = eventfd(0, 0), timer = timerfd_create(CLOCK_MONOTONIC, 0);
  struct epoll_event event = {.events = EPOLLIN};
  epoll_ctl(set, EPOLL_CTL_ADD, counter, &event);
  epoll_ctl(set, EPOLL_CTL_ADD, pair[1], &event);
  epoll_ctl(set, EPOLL_CTL_ADD, timer, &event);
  if (how) {
    const struct itimerspec soon = {{0, 0}, {0, 30000000}};
    timerfd_settime(timer, 0, &soon, NULL);
    printf("%d event\n", epoll_wait(set, &event, 1, -1));
    exit(0);
  }
  epoll_wait(set, &event, 1, -1);
}

static sigjmp_buf back;
static void bus_error(int number, siginfo_t* info, void* context) {
  (void)context;
  printf("signal %d code %d, in the mapping %d\n", number, info->si_code,
         (uintptr_t)info->si_addr % 4096 == 0);
  fflush(stdout);
  siglongjmp(back, 1);
}
static void mapping(const char* path, const char* how) {
  const int fd = open(path, O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, 8192)) return perror(path);
  char* p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  say("mmap", p == MAP_FAILED ? -1 : 0);
  if (p == MAP_FAILED) return;
  strcpy(p + 4090, "across two pages");
  if (!strcmp(how, "write")) {
    const int again = open(path, O_RDONLY);
    char* read_only = mmap(NULL, 8192, PROT_READ, MAP_SHARED, again, 0);
    printf("%s\n", read_only + 4090);
    say("no right", mprotect(read_only, 4096, PROT_READ | PROT_WRITE));
    say("write", mmap(NULL, 1, PROT_WRITE, MAP_SHARED, again, 0) == MAP_FAILED ? -1 : 0);
    return;
  }
  const struct sigaction action = {.sa_sigaction = bus_error, .sa_flags = SA_SIGINFO};
  if (!strcmp(how, "handled")) sigaction(SIGBUS, &action, NULL);
  if (ftruncate(fd, 0)) return;
  volatile char* const lost = p + 5000;
  if (sigsetjmp(back, 1) == 0)
    for (;;) *lost += 1;
  say("grows", ftruncate(fd, 8192));
  p[5000] = 'x';
  char byte = 0;
  say("pread", pread(fd, &byte, 1, 5000));
  printf("%c\n", byte);
}

static void hold(const char* what) {
  struct epoll_event event = {.events = EPOLLIN};
  if (!strcmp(what, "socket")) socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
  if (!strcmp(what, "eventfd")) eventfd(0, 0);
  if (!strcmp(what, "timerfd")) timerfd_create(CLOCK_MONOTONIC, 0);
  if (!strcmp(what, "epoll")) epoll_ctl(epoll_create1(0), EPOLL_CTL_ADD, eventfd(0, 0), &event);
  if (!strcmp(what, "memfd")) memfd_create("x", 0);
  if (!strcmp(what, "ipc")) semget(IPC_PRIVATE, 1, 0600);
  if (!strcmp(what, "mapping")) {
    const int fd = memfd_create("x", 0);
    if (ftruncate(fd, 4096) || mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED) return;
    close(fd);
  }
  for (volatile int i = 0; i < 3000000; ++i) {
  }
  printf("done\n");
}

int main(int argc, char** argv) {
  const char* what = argv[1];
  if (!strcmp(what, "kinds")) kinds();
  if (!strcmp(what, "tcp")) tcp();
  if (!strcmp(what, "udp")) udp();
  if (!strcmp(what, "outside")) outside();
  if (!strcmp(what, "named") && argc > 3) named(argv[2], argv[3]);
  if (!strcmp(what, "file")) file_from_outside(argv[2]);
  if (!strcmp(what, "wait")) wait_for_ever(argc > 2);
  if (!strcmp(what, "mapping") && argc > 3) mapping(argv[2], argv[3]);
  if (!strcmp(what, "hold")) hold(argv[2]);
  return 0;
}
