// Functions that a program with a C library might give to cores: some take the library's locks.
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned word;

__attribute__((noinline)) static void report(int value) { printf("%d of many\n", value); }
void prints_deep(long core) {
	report((int)core);
	report(1);
}

int (*volatile print_line)(const char *) = puts;
void prints_by_pointer(long core) {
	if (core == 2)
		word += (unsigned)print_line("a line");
}

void allocates(void **out) { *out = malloc(10); }
void locks(void) { pthread_mutex_lock(&mutex); }

// These are allowed: only an assertion that fails takes locks, and only rare ways of the others.
void formats(char *out) { snprintf(out, 10, "%u", word); }
void asserts(long value) { assert(value != 0); }

// Not the library's, whatever its name.
int rand(void) { return 4; }
void draws(int *out) { *out = rand(); }

static long futex_wake(unsigned *place) {
	register long x8 __asm__("x8") = SYS_futex;
	register long x0 __asm__("x0") = (long)place;
	register long x1 __asm__("x1") = 1;
	register long x2 __asm__("x2") = 1;
	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x1), "r"(x2), "r"(x8) : "memory");
	return x0;
}

// What comes behind the call needs no micro-op: where the core goes on is the call's end all the same.
void wakes_late(unsigned *place);
__asm__(
	".pushsection .text\n"
	".globl wakes_late\n"
	".type wakes_late, %function\n"
	"wakes_late:\n\tmov x8, #98\n\tmov x1, #1\n\tmov x2, #1\n\tsvc 0\n\tnop\n\tret\n"
	".size wakes_late, . - wakes_late\n"
	".popsection");

void wakes(long core) {
	if (core == 1)
		futex_wake(&word);
}

int main(void) {
	printf("main may print\n");
	return 3;
}
