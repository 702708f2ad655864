// Entry of CPU 0 from QEMU, of CPU 1 from PSCI; both at EL1 with the MMU off.
    .section .text.start, "ax"
    .globl _start
_start:
    adrp x1, stacks
    add x1, x1, :lo12:stacks
    add x1, x1, #0x4000
    mov sp, x1
    b guest_main

    .globl second_start
second_start:
    adrp x1, stacks
    add x1, x1, :lo12:stacks
    add x1, x1, #0x8000
    mov sp, x1
    b second_main

    .globl trap // (operation, argument)
trap:
    hlt #0xf000
    ret

    .globl psci // (function, ...)
psci:
    hvc #0
    ret

    .bss
    .balign 16
stacks:
    .space 0x8000
