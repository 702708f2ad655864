// Linux's calls on 32 bits that qemu-riscv32 7.2 lacks or answers in its own way: robust lists,
// recvmmsg_time64, and errors that Linux tells apart. On two cores: the second one sees what
// becomes of the lock of the first. The exit status is the line of the check that failed.
#include "bare.h"
#include "linux_calls.h"

#define CHECK(condition)                   \
  do {                                     \
    if (!(condition)) bare_exit(__LINE__); \
  } while (0)

struct entry {
  struct entry* next;
  uint32_t padding[3];
  uint32_t lock;
};
static struct {
  struct entry* next;
  long offset;
  struct entry* pending;
} head;
static struct entry first, second;
static uint32_t is_locked;
enum { OWNER_DIED = 0x40000000, EINVAL = 22, EFAULT = 14 };

static void lock_and_end(void) {
  CHECK(CALL2(99, &head, 24) == -EINVAL);
  CHECK(CALL2(99, &head, 12) == 0);
  void* found[2] = {0, (void*)7};
  uint32_t size[2] = {0, 7};
  CHECK(CALL3(100, 0, found, size) == 0);
  CHECK(found[0] == &head && found[1] == (void*)7 && size[0] == 12 && size[1] == 7);
  const uint32_t me = (uint32_t)CALL2(178, 0, 0);
  first.lock = second.lock = me;
  head.next = &first;
  head.offset = (long)((char*)&first.lock - (char*)&first);
  first.next = (struct entry*)&head;
  head.pending = &second;
  __atomic_store_n(&is_locked, me, __ATOMIC_RELEASE);
  for (;;) CALL2(93, 0, 0);
}

static void watch(void) {
  uint32_t owner;
  while ((owner = __atomic_load_n(&is_locked, __ATOMIC_ACQUIRE)) == 0) CALL2(124, 0, 0);
  while (__atomic_load_n(&second.lock, __ATOMIC_ACQUIRE) == owner) CALL2(124, 0, 0);
  CHECK(second.lock == OWNER_DIED);
  CHECK(__atomic_load_n(&first.lock, __ATOMIC_ACQUIRE) == OWNER_DIED);
}

static void messages(void) {
  int ends_of_pair[2] = {-1, -1};
  CHECK(CALL4(199, 1, 2, 0, ends_of_pair) == 0);
  CHECK(CALL3(64, ends_of_pair[0], "one", 3) == 3);
  CHECK(CALL3(64, ends_of_pair[0], "three", 5) == 5);
  char text[16] = {0};
  const struct vector back[2] = {{text, 8}, {text + 8, 8}};
  struct {
    struct message message;
    uint32_t length;
  } two[2] = {{{0, 0, &back[0], 1, 0, 0, 0}, 0}, {{0, 0, &back[1], 1, 0, 0, 0}, 0}};
  CHECK(CALL5(417, ends_of_pair[1], two, 2, 0x40, 0) == 2);
  CHECK(two[0].length == 3 && two[1].length == 5 && text[0] == 'o' && text[8] == 't');
}

static void lengths(void) {
  char text[16];
  CHECK(CALL3(43, ".", 120, text) == -EINVAL);
  CHECK(CALL3(64, 1, 0x1000, 0x80000000) == -EINVAL);
  CHECK(CALL3(64, 1, text, 0xffffffff) == -EFAULT);
  CHECK(CALL3(63, 0, text, 0xffffffff) == -EFAULT);
  // The last page is no process's.
  CHECK(CALL2(215, 0xfffff000, 0x1000) == -EINVAL);
  CHECK(CALL2(215, 0xffffe000, 0x2000) == -EINVAL);
  CHECK(CALL2(215, 0xffffe000, 0x1000) == 0);
}

int main(void) {
  uint32_t core = 0, count = 0;
  __asm__("slti zero, %0, 0x6c0" : "+r"(core));
  __asm__("slti zero, %0, 0x6c5" : "+r"(count));
  CHECK(count == 2);
  if (core == 0) lock_and_end();
  watch();
  messages();
  lengths();
  return 0;
}
