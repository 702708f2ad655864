// System V semaphores and message queues where nobody has to wait.
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <time.h>

static void say(const char* what, long result) {
  if (result < 0)
    printf("%s: %s\n", what, strerror(errno));
  else
    printf("%s: %ld\n", what, result);
}

union semun {
  int val;
  struct semid_ds* buf;
  unsigned short* array;
};

static void semaphores(void) {
  const int id = semget(IPC_PRIVATE, 3, IPC_CREAT | 0600);
  say("made", id >= 0);
  union semun arg = {.val = 5};
  say("set", semctl(id, 0, SETVAL, arg));
  struct sembuf two[2] = {{0, -2, IPC_NOWAIT}, {1, 3, 0}};
  say("operate", semop(id, two, 2));
  unsigned short values[3];
  arg.array = values;
  say("all", semctl(id, 0, GETALL, arg));
  printf("%d %d %d\n", values[0], values[1], values[2]);
  struct sembuf all_or_none[2] = {{1, 1, 0}, {2, -1, IPC_NOWAIT}};
  say("none", semop(id, all_or_none, 2));
  say("value", semctl(id, 1, GETVAL));
  const struct timespec soon = {0, 1000000};
  struct sembuf take = {2, -1, 0};
  say("late", semtimedop(id, &take, 1, &soon));
  struct sembuf zero = {2, 0, 0};
  say("is zero", semop(id, &zero, 1));
  struct sembuf bad = {7, 1, 0};
  say("bad number", semop(id, &bad, 1));
  struct sembuf much = {0, 32767, 0};
  say("too much", semop(id, &much, 1));
  struct semid_ds state;
  arg.buf = &state;
  say("state", semctl(id, 0, IPC_STAT, arg));
  printf("%lu semaphores, mode %o\n", (unsigned long)state.sem_nsems, state.sem_perm.mode);
  say("waiting", semctl(id, 0, GETNCNT));
  say("remove", semctl(id, 0, IPC_RMID));
  say("gone", semop(id, &zero, 1));
  say("none", semget(IPC_PRIVATE, 0, IPC_CREAT | 0600));
}

struct message {
  long type;
  char text[64];
};

static void queues(void) {
  const int id = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
  struct message m;
  for (int i = 1; i <= 4; ++i) {
    m.type = 5 - i;
    say("send", msgsnd(id, &m, (size_t)snprintf(m.text, sizeof m.text, "message %d", i), 0));
  }
  say("receive", msgrcv(id, &m, sizeof m.text, 3, 0));
  printf("%ld %.9s\n", m.type, m.text);
  say("lowest", msgrcv(id, &m, sizeof m.text, -2, 0));
  printf("%ld %.9s\n", m.type, m.text);
  say("too long", msgrcv(id, &m, 4, 0, 0));
  say("cut", msgrcv(id, &m, 4, 0, MSG_NOERROR));
  printf("%ld %.4s\n", m.type, m.text);
  say("except", msgrcv(id, &m, sizeof m.text, 1, MSG_EXCEPT));
  say("none", msgrcv(id, &m, sizeof m.text, 0, IPC_NOWAIT));
  m.type = 0;
  say("bad type", msgsnd(id, &m, 1, 0));
  m.type = 1;
  long sent = 0;
  while (msgsnd(id, &m, sizeof m.text, IPC_NOWAIT) == 0) ++sent;
  say("full", -1);
  struct msqid_ds state;
  say("state", msgctl(id, IPC_STAT, &state));
  printf("%d %d\n", sent == (long)state.msg_qnum, (long)state.msg_qbytes == sent * 64);
  say("remove", msgctl(id, IPC_RMID, NULL));
  say("gone", msgrcv(id, &m, sizeof m.text, 0, 0));
}

int main(void) {
  semaphores();
  queues();
  return 0;
}
