// Calls that move their data in parts, each of which somebody else waits for; nobody makes another
// call meanwhile.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum { kPart = 65536, kParts = 64 };

static int ends[2], sockets[2];
static atomic_int at, is_over;
static char out[kPart * kParts], in[kPart * kParts];

static void* write_all(void* unused) {
  (void)unused;
  return (void*)write(ends[1], out, 4 * kPart);
}

static void* read_rest(void* unused) {
  (void)unused;
  long all = 0;
  atomic_fetch_add(&at, 1);
  while (atomic_load(&at) < 2) continue;
  for (volatile int i = 0; i < 100; ++i) continue;
  while (all < 3 * kPart) all += read(ends[0], in, kPart);
  return (void*)all;
}

static void* send_all(void* unused) {
  (void)unused;
  return (void*)send(sockets[0], out, sizeof out, 0);
}

static void* spin(void* unused) {
  while (!atomic_load(&is_over)) continue;
  return unused;
}

int main(void) {
  pthread_t reader, writer, sender, spinner;
  void *rest, *written, *sent;
  if (pipe(ends) || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets)) return 1;
  pthread_create(&reader, NULL, read_rest, NULL);
  pthread_create(&writer, NULL, write_all, NULL);
  usleep(50000);
  atomic_fetch_add(&at, 1);
  while (atomic_load(&at) < 2) continue;
  const long first = read(ends[0], in, kPart);
  pthread_join(reader, &rest);
  pthread_join(writer, &written);
  printf("pipe: %ld of %ld\n", first + (long)rest, (long)written);

  pthread_create(&spinner, NULL, spin, NULL);
  pthread_create(&sender, NULL, send_all, NULL);
  const long received = recv(sockets[1], in, sizeof in, MSG_WAITALL);
  pthread_join(sender, &sent);
  atomic_store(&is_over, 1);
  pthread_join(spinner, NULL);
  printf("sockets: %ld of %ld\n", received, (long)sent);
  return 0;
}
