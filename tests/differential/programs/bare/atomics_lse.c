// isa: aarch64
// flags: -march=armv8.1-a+lse
// cpu: max
// The same builtins as single instructions of v8.1 (LSE).
#include "atomics.h"
