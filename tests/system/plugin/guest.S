// Blocks, accesses and synchronisation that the test knows one by one.
  .text
  .global work
work:                      // x0: core, x1: place
  mov x2, #3
loop:
  ldr x3, [x1]
  stp x3, x2, [x1, #16]
  subs x2, x2, #1
  b.ne loop
  dmb ish
  ldxr x4, [x1]
  stxr w5, x4, [x1]
  cbnz x0, odd
  ldrb w3, [x1, #7]
odd:
  sev
  ret
  .bss
  .balign 64
  .global place
place: .skip 64
