// Where each core starts: sp points at argc, argv, 0, envp, 0, auxv, as Linux lays it out.
// A frame record of zeroes ends the chain of frames for debuggers and unwinders.

        .text
        .global _start
        .type   _start, %function
_start:
        mov     x29, xzr
        mov     x30, xzr
        mov     x0, sp
        msr     tpidr_el0, x0
        bl      gpusim_main
        bl      gpusim_exit
        // Never reached. It reads the core's number, by which gpusim knows a program for all cores
        // when its symbols are stripped and nothing else in it asks.
        mrs     x0, tpidrro_el0
        .size   _start, . - _start

        .section .note.GNU-stack, "", %progbits
