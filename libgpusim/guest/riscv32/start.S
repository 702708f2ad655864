#include "../riscv/start.S"

// The linker of the bare tool chain makes one segment of code and of variables without contents. A word
// with contents has a page, and so a segment, of its own.
        .data
        .word   1
