// A small real program for the fuzzers: sections, symbols, data in code, a jump table's branch.
    .text
    .globl _start
    .type _start, %function
_start:
    adr     x1, table
    ldr     w2, [x1, w0, uxtw #2]
    add     x1, x1, w2, sxtw
    cmp     w0, #3
    b.hi    1f
    br      x1
1:  bl      leaf
    mov     x8, #93
    svc     #0
    b       1b
    .size _start, . - _start
table:
    .word   1b - table, 2f - table
    .type leaf, %function
leaf:
2:  ldxr    x3, [sp]
    stxr    w4, x3, [sp]
    cbnz    w4, 2b
    fadd    d0, d1, d2
    ret
    .size leaf, . - leaf
    .data
value:
    .quad   _start
    .bss
    .space  64
