// Pairs of sockets: streams, datagrams, messages with files, options and errors, one thread.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

static int* volatile wild = (int*)8;

static void say(const char* what, long result) {
  if (result < 0)
    printf("%s: %s\n", what, strerror(errno));
  else
    printf("%s: %ld\n", what, result);
}

static void streams(void) {
  int s[2];
  char bytes[64];
  say("pair", socketpair(AF_UNIX, SOCK_STREAM, 0, s));
  say("write", write(s[0], "hello world", 11));
  int count = 0;
  ioctl(s[1], FIONREAD, &count);
  printf("waiting %d\n", count);
  say("peek", recv(s[1], bytes, 5, MSG_PEEK));
  printf("%.5s\n", bytes);
  say("recv", recv(s[1], bytes, 6, MSG_WAITALL));
  printf("%.6s\n", bytes);
  say("read", read(s[1], bytes, sizeof bytes));
  say("nothing", recv(s[1], bytes, sizeof bytes, MSG_DONTWAIT));
  const struct timeval soon = {0, 20000};
  say("timeout", setsockopt(s[1], SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon));
  say("late", recv(s[1], bytes, sizeof bytes, 0));
  struct timeval got;
  socklen_t size = sizeof got;
  say("option", getsockopt(s[1], SOL_SOCKET, SO_RCVTIMEO, &got, &size));
  printf("%ld %ld %u\n", (long)got.tv_sec, (long)got.tv_usec, size);
  int one = 1;
  say("nonblocking", ioctl(s[1], FIONBIO, &one));
  say("nothing", read(s[1], bytes, sizeof bytes));
  // A buffer is full at some point, and says so.
  static char block[65536];
  long sent = 0, n;
  fcntl(s[0], F_SETFL, O_NONBLOCK);
  while ((n = write(s[0], block, sizeof block)) > 0) sent += n;
  say("full", n);
  struct pollfd p = {s[0], POLLOUT, 0};
  say("poll", poll(&p, 1, 0));
  long received = 0;
  while ((n = read(s[1], block, sizeof block)) > 0) received += n;
  printf("%s\n", sent > 0 && sent == received ? "all came" : "some were lost");
  say("shutdown", shutdown(s[0], SHUT_WR));
  say("end", read(s[1], bytes, sizeof bytes));
  say("other way", write(s[1], "back", 4));
  say("read", read(s[0], bytes, sizeof bytes));
  signal(SIGPIPE, SIG_IGN);
  say("broken", write(s[0], "x", 1));
  close(s[1]);
  say("gone", send(s[0], "x", 1, MSG_NOSIGNAL));
  p.events = POLLIN;
  say("poll", poll(&p, 1, 0));
  printf("events %#x\n", (unsigned)p.revents);
  close(s[0]);
}

static void caught(int number) { printf("signal %d\n", number); }
static void signals(void) {
  int s[2];
  signal(SIGPIPE, caught);
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, s)) return;
  close(s[1]);
  say("signalled", write(s[0], "x", 1));
  close(s[0]);
}

static void datagrams(int type) {
  int s[2];
  char a[8] = "", b[8] = "";
  say("pair", socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, s));
  const struct iovec out[2] = {{"ab", 2}, {"cdef", 4}};
  say("writev", writev(s[0], out, 2));
  say("second", send(s[0], "", 0, 0));
  say("third", send(s[0], "0123456789", 10, 0));
  struct iovec in[2] = {{a, 3}, {b, 7}};
  say("readv", readv(s[1], in, 2));
  printf("%s %s\n", a, b);
  say("empty", recv(s[1], a, sizeof a, 0));
  struct msghdr message = {.msg_iov = in, .msg_iovlen = 1};
  say("cut", recvmsg(s[1], &message, MSG_TRUNC));
  printf("flags %#x\n", (unsigned)message.msg_flags);
  struct mmsghdr many[3];
  memset(many, 0, sizeof many);
  for (int i = 0; i < 3; ++i) many[i].msg_hdr = (struct msghdr){.msg_iov = (void*)out, .msg_iovlen = 2};
  say("sendmmsg", sendmmsg(s[0], many, 3, 0));
  printf("%u %u %u\n", many[0].msg_len, many[1].msg_len, many[2].msg_len);
  for (int i = 0; i < 3; ++i) many[i].msg_hdr = (struct msghdr){.msg_iov = in, .msg_iovlen = 2};
  say("recvmmsg", recvmmsg(s[1], many, 3, MSG_DONTWAIT, NULL));
  say("recvmmsg", recvmmsg(s[1], many, 3, MSG_DONTWAIT, NULL));
  close(s[0]);
  close(s[1]);
}

static void files(void) {
  int s[2], ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, s) || pipe(ends)) return;
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  char byte = 'x', control[CMSG_SPACE(2 * sizeof(int))];
  struct iovec vector = {&byte, 1};
  struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1, .msg_control = control,
                           .msg_controllen = sizeof control};
  struct cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(2 * sizeof(int));
  memcpy(CMSG_DATA(head), ends, sizeof ends);
  say("sendmsg", sendmsg(s[0], &message, 0));
  say("sendmsg", sendmsg(s[0], &message, 0));
  memset(control, 0, sizeof control);
  message.msg_controllen = sizeof control;
  say("recvmsg", recvmsg(s[1], &message, MSG_CMSG_CLOEXEC));
  head = CMSG_FIRSTHDR(&message);
  int got[2];
  memcpy(got, CMSG_DATA(head), sizeof got);
  printf("control %zu of %zu, level %d type %d, files %d %d, flags %d %d\n",
         (size_t)head->cmsg_len, (size_t)message.msg_controllen, head->cmsg_level, head->cmsg_type,
         got[0] > 2, got[1] > 2, fcntl(got[0], F_GETFD), fcntl(got[0], F_GETFL) & O_NONBLOCK);
  close(ends[0]);
  close(ends[1]);
  say("write", write(got[1], "through", 7));
  char bytes[8] = "";
  say("read", read(got[0], bytes, sizeof bytes));
  printf("%s\n", bytes);
  close(got[1]);
  message.msg_controllen = CMSG_LEN(sizeof(int));
  say("less room", recvmsg(s[1], &message, 0));
  head->cmsg_len = CMSG_LEN(sizeof(int));
  *(int*)(void*)CMSG_DATA(head) = 99;
  message.msg_controllen = CMSG_SPACE(sizeof(int));
  say("no such file", sendmsg(s[0], &message, 0));
}

static void options(void) {
  int s[2], value = 0;
  socklen_t size = sizeof value;
  if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s)) return;
  say("type", getsockopt(s[0], SOL_SOCKET, SO_TYPE, &value, &size));
  printf("%d\n", value);
  say("domain", getsockopt(s[0], SOL_SOCKET, SO_DOMAIN, &value, &size));
  printf("%d\n", value);
  say("error", getsockopt(s[0], SOL_SOCKET, SO_ERROR, &value, &size));
  printf("%d\n", value);
  struct sockaddr_un name;
  size = sizeof name;
  say("name", getsockname(s[0], (struct sockaddr*)&name, &size));
  printf("%u %d\n", size, name.sun_family);
  size = sizeof name;
  say("peer", getpeername(s[0], (struct sockaddr*)&name, &size));
  printf("%u\n", size);
  struct ucred who;
  size = sizeof who;
  say("credentials", getsockopt(s[0], SOL_SOCKET, SO_PEERCRED, &who, &size));
  printf("%d %d\n", who.pid == getpid(), who.uid == getuid());
  say("listen", listen(s[0], 1));
  say("no socket", listen(1, 1));
  say("no file", listen(99, 1));
  say("connected", connect(s[0], (struct sockaddr*)&name, 2));
  say("bad family", socket(AF_UNIX, 77, 0));
  say("bad protocol", socketpair(AF_UNIX, SOCK_STREAM, 7, s));
  say("inet pair", socketpair(AF_INET, SOCK_STREAM, 0, s));
  say("bad address", socketpair(AF_UNIX, SOCK_STREAM, 0, wild));
  say("seek", lseek(s[0], 0, SEEK_SET));
}

int main(void) {
  streams();
  signals();
  datagrams(SOCK_DGRAM);
  datagrams(SOCK_SEQPACKET);
  files();
  options();
  return 0;
}
