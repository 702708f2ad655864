// Debian's asmjit is a static library for programs: its code takes the address of C's `stderr` as
// programs can and shared objects cannot. Linked with --wrap=stderr, it takes this one, and so does
// all else in that shared object.
#include <cstdio>

extern "C" {
extern FILE* __real_stderr;  // NOLINT: the linker's name for C's
__attribute__((visibility("hidden"))) FILE* __wrap_stderr = nullptr;  // NOLINT
}

// Before all other constructors, which may print.
__attribute__((constructor(101))) static void set_stderr() { __wrap_stderr = __real_stderr; }
