// Vector micro-ops on 64-bit halves of vector registers.
