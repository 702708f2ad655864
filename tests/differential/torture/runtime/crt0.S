// Start-up of a stand-alone guest: main with argc = 0, its result to exit_group.
	.text
	.globl _start
	.type _start, %function
#if defined(__aarch64__)
_start:
	mov x29, #0
	mov x30, #0
	mov x9, sp
	and x9, x9, #-16
	mov sp, x9
	mov x0, #0
	mov x1, #0
	bl main
	bl exit

	.globl __sys_exit
__sys_exit:
	mov x8, #94
	svc #0
1:	b 1b

	.globl __sys_write
__sys_write:
	mov x8, #64
	svc #0
	ret
#elif defined(__riscv)
_start:
	.option push
	.option norelax
	la gp, __global_pointer$
	.option pop
	andi sp, sp, -16
	li a0, 0
	li a1, 0
	call main
	call exit

	.globl __sys_exit
__sys_exit:
	li a7, 94
	ecall
1:	j 1b

	.globl __sys_write
__sys_write:
	li a7, 64
	ecall
	ret
#endif

	.section .note.GNU-stack, "", %progbits
