// Where each core starts: sp points at argc, argv, 0, envp, 0, auxv, as Linux lays it out.
// A return address of zero ends the chain of frames for debuggers and unwinders.

        .text
        .global _start
        .type   _start, %function
_start:
        .option push
        .option norelax
        la      gp, __global_pointer$
        .option pop
        mv      tp, sp
        li      ra, 0
        li      s0, 0
        call    gpusim_main
        call    gpusim_exit
        // Never reached. It reads the core's number, by which gpusim knows a program for all cores
        // when its symbols are stripped and nothing else in it asks.
        slti    zero, a0, 0x6c0
        .size   _start, . - _start

        .section .note.GNU-stack, "", %progbits
