// Start-up of a stand-alone A64 guest: main with argc = 0, its result to exit_group.
	.text
	.globl _start
	.type _start, %function
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

	.section .note.GNU-stack, "", %progbits
