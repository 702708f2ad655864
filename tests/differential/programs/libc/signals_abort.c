// abort() with a handler that returns: the process ends all the same, with SIGABRT's status.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static void handler(int signal) {
  printf("caught %d\n", signal);
  fflush(stdout);
}

int main(void) {
  signal(SIGABRT, handler);
  abort();
}
