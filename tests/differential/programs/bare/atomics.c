// aarch64 flags: -march=armv8-a
// bits: 64
// Atomic builtins on a v8.0 machine: loops of exclusive loads and stores, in all widths.
#include "atomics.h"
