// First in the thread-local storage of the emulated kernels: what follows is shared memory.
        .section .tbss, "awT", @nobits
        .balign 64
        .globl cuda_emulated_shared_begin
        .type cuda_emulated_shared_begin, @object
        .size cuda_emulated_shared_begin, 64
cuda_emulated_shared_begin:
        .zero 64
        .section .note.GNU-stack, "", @progbits
