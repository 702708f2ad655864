// Exits with 7, which it moves through a vector register that nothing else uses.
    .globl _start
_start:
    mov x11, #7
    fmov d31, x11
    fmov x0, d31
    mov x8, #93
    svc #0
