// isa: riscv32
// folder: own
// System calls whose structures have narrower longs on 32 bits: nothing behind them may be written.
// And lengths that leave 32 bits.
#include "bare.h"
#include "linux_calls.h"

enum { MARK = 0x5a5a5a5a };

static void fill(uint32_t* words, unsigned count) {
  for (unsigned i = 0; i < count; ++i) words[i] = MARK;
}

static unsigned written(const uint32_t* words, unsigned count) {
  while (count != 0 && words[count - 1] == MARK) --count;
  return count;
}

static volatile int rung, value;

static void on_ring(int number, const uint32_t* info) {
  rung = number;
  value = (int)info[5];
}

static void timers(void) {
  uint32_t now[8];
  fill(now, 8);
  const long set[4] = {7, 500000, 1000, 0}, wrong[4] = {0, 0, 1, 1000000}, none[4] = {0, 0, 0, 0};
  print("setitimer %d", (int)CALL3(103, 0, set, 0));
  print(" %d\n", (int)CALL3(103, 0, wrong, 0));
  print("getitimer %d", (int)CALL2(102, 0, now));
  print(" words %u interval %u %u", written(now, 8), now[0], now[1]);
  print(" value %s\n", now[2] == 1000 || now[2] == 999 ? "about 1000" : "wrong");
  fill(now, 8);
  print("setitimer %d", (int)CALL3(103, 0, none, now));
  print(" words %u\n", written(now, 8));

  const struct {
    void (*handler)(int, const uint32_t*);
    word flags;
    uint32_t mask[2];
  } action = {on_ring, 4, {0, 0}};
  CALL4(134, 10, &action, 0, 8);
  uint32_t event[16] = {77, 10, 0}, id[2] = {MARK, MARK};
  print("timer_create %d", (int)CALL3(107, 1, event, id));
  print(" words %u\n", written(id, 2));
  const struct time64 once[2] = {{0, 0}, {0, 1000000}}, while_away = {5, 0};
  print("timer_settime64 %d\n", (int)CALL4(409, id[0], 0, once, 0));
  while (!rung) CALL4(407, 1, 0, &while_away, 0);
  print("signal %d value %d\n", rung, value);
  print("timer_delete %d\n", (int)CALL2(111, id[0], 0));
}

static void use_of_resources(void) {
  static uint32_t room[40];
  fill(room, 40);
  const long ticks = CALL2(153, room, 0);
  print("times %s words %u children %u %u\n", ticks != 0 ? "yes" : "no", written(room, 40),
        room[2], room[3]);
  fill(room, 40);
  print("getrusage %d", (int)CALL2(165, 0, room));
  print(" words %u %s\n", written(room, 40), room[1] < 1000000 && room[3] < 1000000 ? "" : "wrong");
  print("getrusage %d\n", (int)CALL2(165, 5, room));
  fill(room, 40);
  print("sysinfo %d", (int)CALL2(179, room, 0));
  print(" %s\n", room[4] != 0 && room[13] != 0 && room[16] == MARK ? "fits" : "wrong");
}

static void file_systems(void) {
  static uint32_t room[40];
  fill(room, 40);
  print("statfs64 %d", (int)CALL3(43, ".", 88, room));
  print(" %s name %u\n", room[1] != 0 && room[22] == MARK ? "fits" : "wrong", room[14]);
  fill(room, 40);
  const long fd = CALL4(56, -100, ".", 0200000, 0);
  print("fstatfs64 %d", (int)CALL3(44, fd, 88, room));
  print(" %s name %u\n", room[1] != 0 && room[22] == MARK ? "fits" : "wrong", room[14]);
  print("statfs64 %d\n", (int)CALL3(43, "absent", 88, room));
  CALL2(57, fd, 0);
}

static void select_files(void) {
  int pipes[2] = {-1, -1};
  print("pipe2 %d\n", (int)CALL2(59, pipes, 0));
  CALL3(24, pipes[0], 40, 0);  // dup3: in the second word of a set
  uint32_t read_set[4] = {0, 1u << 8, MARK, MARK};
  const struct time64 none = {0, 0};
  print("pselect6_time64 %d", (int)CALL6(413, 41, read_set, 0, 0, &none, 0));
  print(" %x %x\n", read_set[0], read_set[1]);
  print("write %d\n", (int)CALL3(64, pipes[1], "x", 1));
  read_set[1] = 1u << 8;
  uint32_t mask[2] = {0x200, 0};
  const word argument[2] = {(word)mask, 8};
  print("pselect6_time64 %d", (int)CALL6(413, 41, read_set, 0, 0, &none, argument));
  print(" %x %x words %u\n", read_set[0], read_set[1], written(read_set, 4));
}

static void messages(void) {
  int ends[2] = {-1, -1};
  print("socketpair %d\n", (int)CALL4(199, 1, 2, 0, ends));
  const struct vector out[2] = {{"hello ", 6}, {"there", 5}};
  struct {
    word size;
    int level, type, fd[2];
  } rights = {20, 1, 1, {1, ends[0]}};
  struct message m = {0, 0, out, 2, &rights, 20, 0};
  print("sendmsg %d\n", (int)CALL3(211, ends[0], &m, 0));
  char text[16] = {0};
  uint32_t control[8];
  fill(control, 8);
  const struct vector in = {text, 15};
  struct message r = {0, 0, &in, 1, control, sizeof control, 0};
  print("recvmsg %d %s", (int)CALL3(212, ends[1], &r, 0), text);
  print(" control %u words %u: %u %u %u flags %x\n", (unsigned)r.control_size, written(control, 8),
        control[0], control[1], control[2], r.flags);
  print("write %d\n", (int)CALL3(64, control[4], "by its own way", 14));
  print("read %d", (int)CALL3(63, ends[1], text, 15));
  print(" %s\n", text);

  const struct vector one[2] = {{"one", 3}, {"three", 5}};
  struct {
    struct message message;
    uint32_t length;
  } two[2] = {{{0, 0, &one[0], 1, 0, 0, 0}, 0}, {{0, 0, &one[1], 1, 0, 0, 0}, 0}};
  print("sendmmsg %d", (int)CALL4(269, ends[0], two, 2, 0));
  print(" %u %u\n", two[0].length, two[1].length);
}

static void lengths(void) {
  print("munmap %d", (int)CALL2(215, 0xffffe000, 0x4000));
  print(" %d", (int)CALL2(215, 0x10000, 0xffffffff));
  print(" %d\n", (int)CALL2(215, 0x80000000, 0x80001000));
  print("mprotect %d\n", (int)CALL3(226, 0x80000000, 0x80001000, 1));
  print("madvise %d\n", (int)CALL3(233, 0x80000000, 0x80001000, 0));
  static char text[16];
  const long fd = CALL4(56, -100, "file", 0100 | 2, 0600);
  print("write %d", (int)CALL3(64, fd, text, 0xffffffff));
  print(" %d", (int)CALL3(64, fd, text, 0xfffffff0));
  print(" pwrite64 %d\n", (int)CALL5(68, fd, text, 0xffffffff, 0, 0));
  const struct vector wrong[2] = {{text, 4}, {text, 0x80000000}}, odd = {text, -1};
  print("writev %d", (int)CALL3(66, fd, wrong, 2));
  print(" %d", (int)CALL3(66, fd, &odd, 1));
  print(" pwritev %d\n", (int)CALL5(70, fd, &odd, 1, 0, 0));
  print("size %d\n", (int)CALL5(62, fd, 0, 0, text, 2));
  print("%d\n", (int)*(const int*)(const void*)text);
}

int main(void) {
  timers();
  use_of_resources();
  file_systems();
  select_files();
  messages();
  lengths();
  return 0;
}
