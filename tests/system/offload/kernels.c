// Kernels for the tests of the device behind libGPUSim: functions that cores call, no libraries.
typedef unsigned long u64;

int counter;                     // the program's own data
#ifdef kernels_kernels2
int table[4] = {50, 60, 70, 80};
#else
int table[4] = {10, 20, 30, 40};
#endif
static const u64 kStep = 3;

void nothing(void) {}

static __thread u64 own = 17;
static __thread u64 own_zero;
// Each core has its own, fresh in each kernel.
void thread_locals(u64 core, u64 *out) {
	own += core;
	own_zero += 2 * core;
	__asm__ volatile("" : : : "memory");
	out[core] = own * 1000 + own_zero;
}

// c[i] = a[i] + b[i], cyclically over cores.
void add(u64 core, u64 cores, const int *a, const int *b, int *c, u64 n) {
	for (u64 i = core; i < n; i += cores)
		c[i] = a[i] + b[i];
}

void floats(u64 core, double *out, float f, double d) { out[core] = (double)f * d + (double)core; }

void words(u64 core, u64 *out, u64 own, u64 affine) { out[core] = own * 1000 + affine * kStep; }

void count(void) { __atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED); }

void read_globals(u64 core, int *out) { out[core] = counter + table[core % 4]; }

struct node {
	struct node *next;
	u64 value;
};
void sum_list(const struct node *head, u64 *sum) {
	u64 s = 0;
	for (; head; head = head->next)
		s += head->value;
	*sum = s;
}

void forever(void) {
	for (;;)
		__asm__ volatile("");
}

// Until somebody outside writes.
void await(volatile int *flag) {
	while (*flag == 0)
		__asm__ volatile("yield");
}

void poke(u64 core, u64 which, int *address) {
	if (core == which)
		*address = 1;
}

static long call(long number, long a, long b, long c) {
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x1), "r"(x2), "r"(x8) : "memory");
	return x0;
}

void say(u64 times) {
	for (u64 i = 0; i < times; ++i)
		call(64, 1, (long)"hello\n", 6);
}

void leave(u64 core) { call(93, (long)core + 40, 0, 0); }

// What a kernel may not have: files, memory.
void ask(long *results) {
	results[0] = call(56, -100, (long)"/etc/passwd", 0);
	results[1] = call(214, 0, 0, 0);
	results[2] = call(222, 0, 4096, 3);
}

u64 deep(u64 n) {
	volatile u64 frame[64];
	frame[n % 64] = n;
	return n == 0 ? 0 : deep(n - 1) + frame[n % 64];
}
void recurse(u64 core, u64 *out, u64 n) { out[core] = deep(n); }

// The whole program as a process: argc by the exit status.
__asm__(".globl _start\n"
	"_start:\n"
	"\tldr x0, [sp]\n"
	"\tldr x1, [sp, 8]\n"
	"\tb start_c\n");
__attribute__((used)) void start_c(long argc, const char *name) {
	long n = 0;
	while (name[n]) ++n;
	call(64, 1, (long)name, n);
	call(94, argc, 0, 0);
}
