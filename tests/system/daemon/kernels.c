// Kernels for the tests of `gpusim daemon`.
typedef unsigned long u64;

void nothing(void) {}

// c[i] = a[i] + b[i], cyclically over cores.
void add(u64 core, u64 cores, const int *a, const int *b, int *c, u64 n)
{
	for (u64 i = core; i < n; i += cores)
		c[i] = a[i] + b[i];
}

// Long enough that native code is generated.
void churn(u64 core, u64 *out, u64 n)
{
	u64 x = core;
	for (u64 i = 0; i < n; ++i)
		x = x * 6364136223846793005 + (x >> 33) + i;
	out[core] = x;
}

void tick(volatile u64 *clock)
{
	for (;;)
		++*clock;
}

void forever(void)
{
	for (;;)
		__asm__ volatile("");
}

// Divisions, which are done core by core, and each core somewhere else. Core 0 says that it runs.
void crawl(u64 core, volatile u64 *runs)
{
	if (core == 0)
		*runs = 1;
	for (u64 x = core | 1;; ++x) {
		__asm__ volatile("udiv %0, %0, %1" : "+r"(x) : "r"(core | 1));
		if (x & 1)
			__asm__ volatile("udiv %0, %1, %0" : "+r"(x) : "r"(~core));
	}
}

void poke(u64 core, u64 which, volatile int *address)
{
	if (core == which)
		*address = 1;
}

static long call(long number, long a, long b, long c)
{
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x1), "r"(x2), "r"(x8) : "memory");
	return x0;
}

void say(u64 times)
{
	for (u64 i = 0; i < times; ++i)
		call(64, 1, (long)"hello\n", 6);
}

__attribute__((used)) void _start(void)
{
	call(64, 1, (long)"process\n", 8);
	call(94, 3, 0, 0);
}
