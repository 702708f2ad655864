/* Entry points that stand before functions of CUDA: each tells its number to gpusim_attach_enter,
   calls the function that it names with the same registers and stack, and tells the result to
   gpusim_attach_leave. x86-64, System V. No signature is needed: arguments on the stack are copied
   as they lie (256 bytes; the longest lists of CUDA take 72). */
#define STACK_BYTES 256
#define FRAME_BYTES 0x148 /* struct Frame of preload.h, and what aligns the stack to 16 */

        .text

/* Exported: programs that are linked with the libraries. */
#define CALL(name) \
        .globl name; .type name, @function; .balign 16; \
        name: .cfi_startproc; pushq $__COUNTER__; .cfi_adjust_cfa_offset 8; \
        jmp gpusim_attach_common; .cfi_endproc; .size name, . - name;
#include "driver_calls.def"
#include "runtime_calls.def"
#undef CALL

/* For functions whose addresses the program asks for (dlsym, cuGetProcAddress). */
        .globl gpusim_attach_pool
        .hidden gpusim_attach_pool
        .balign 16
gpusim_attach_pool:
        .set number, __COUNTER__
        .rept GPUSIM_ATTACH_POOL
        .balign 16
        .cfi_startproc
        pushq $number
        .cfi_adjust_cfa_offset 8
        jmp gpusim_attach_common
        .cfi_endproc
        .set number, number + 1
        .endr

        .type gpusim_attach_common, @function
        .balign 16
gpusim_attach_common:
        .cfi_startproc
        .cfi_def_cfa_offset 16        /* the number lies under the return address */
        pushq %rbp
        .cfi_adjust_cfa_offset 8
        .cfi_offset %rbp, -24
        movq %rsp, %rbp
        .cfi_def_cfa_register %rbp
        subq $FRAME_BYTES, %rsp
        movq %rdi, 0x00(%rsp)
        movq %rsi, 0x08(%rsp)
        movq %rdx, 0x10(%rsp)
        movq %rcx, 0x18(%rsp)
        movq %r8,  0x20(%rsp)
        movq %r9,  0x28(%rsp)
        movq %rax, 0x30(%rsp)         /* of variadic functions */
        leaq 24(%rbp), %rax
        movq %rax, 0x38(%rsp)         /* arguments on the stack */
        movups %xmm0, 0x40(%rsp)
        movups %xmm1, 0x50(%rsp)
        movups %xmm2, 0x60(%rsp)
        movups %xmm3, 0x70(%rsp)
        movups %xmm4, 0x80(%rsp)
        movups %xmm5, 0x90(%rsp)
        movups %xmm6, 0xa0(%rsp)
        movups %xmm7, 0xb0(%rsp)
        movq 8(%rbp), %rdi
        movq %rsp, %rsi
        call gpusim_attach_enter
        movq %rax, %r11
        movq %rsp, %r10               /* the frame */
        subq $STACK_BYTES, %rsp
        movq 0x38(%r10), %rsi
        movq %rsp, %rdi
        movl $(STACK_BYTES / 8), %ecx
        cld
        rep movsq
        movq 0x00(%r10), %rdi
        movq 0x08(%r10), %rsi
        movq 0x10(%r10), %rdx
        movq 0x18(%r10), %rcx
        movq 0x20(%r10), %r8
        movq 0x28(%r10), %r9
        movq 0x30(%r10), %rax
        movups 0x40(%r10), %xmm0
        movups 0x50(%r10), %xmm1
        movups 0x60(%r10), %xmm2
        movups 0x70(%r10), %xmm3
        movups 0x80(%r10), %xmm4
        movups 0x90(%r10), %xmm5
        movups 0xa0(%r10), %xmm6
        movups 0xb0(%r10), %xmm7
        call *%r11
        addq $STACK_BYTES, %rsp
        movq %rax, 0xc0(%rsp)         /* what it returns, beside its arguments */
        movq %rdx, 0xc8(%rsp)
        movups %xmm0, 0xd0(%rsp)
        movups %xmm1, 0xe0(%rsp)
        movq 8(%rbp), %rdi
        movq %rsp, %rsi
        call gpusim_attach_leave
        movq 0xc0(%rsp), %rax
        movq 0xc8(%rsp), %rdx
        movups 0xd0(%rsp), %xmm0
        movups 0xe0(%rsp), %xmm1
        leave
        .cfi_def_cfa %rsp, 16
        addq $8, %rsp
        .cfi_adjust_cfa_offset -8
        ret
        .cfi_endproc
        .size gpusim_attach_common, . - gpusim_attach_common

/* void *dlsym(void *handle, const char *name): ours where it is CUDA's; else the real one is jumped
   to, which takes the library that RTLD_NEXT is meant for from its return address. */
        .globl dlsym
        .type dlsym, @function
        .balign 16
dlsym:
        .cfi_startproc
        pushq %rdi
        .cfi_adjust_cfa_offset 8
        pushq %rsi
        .cfi_adjust_cfa_offset 8
        subq $8, %rsp
        .cfi_adjust_cfa_offset 8
        call gpusim_attach_dlsym
        addq $8, %rsp
        .cfi_adjust_cfa_offset -8
        popq %rsi
        .cfi_adjust_cfa_offset -8
        popq %rdi
        .cfi_adjust_cfa_offset -8
        testq %rax, %rax
        jz 1f
        ret
1:      jmp *gpusim_attach_real_dlsym(%rip)
        .cfi_endproc
        .size dlsym, . - dlsym

        .section .note.GNU-stack, "", @progbits
