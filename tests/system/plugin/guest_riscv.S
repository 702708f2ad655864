// Instructions of two and of four bytes in one block.
  .option rvc
  .text
  .global work
work:                      // a0: core, a1: place
  c.li a2, 3
loop:
  ld a3, 0(a1)
  .option push
  .option norvc
  addi a3, a3, 1           // four bytes, though two would do
  .option pop
  sd a3, 8(a1)
  c.addi a2, -1
  c.bnez a2, loop
  amoadd.d a3, a0, (a1)
  c.jr ra
  .bss
  .balign 64
  .global place
place: .skip 64
