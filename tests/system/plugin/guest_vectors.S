// Accesses of vector instructions; test_plugin.py knows which bytes.
  .text
  .global work
work:                          // a0: core, a1: place
  addi a2, a1, 64
  vsetivli zero, 4, e32, m1, ta, ma
  vle32.v v8, (a1)             // neighbours are one access
  vs8r.v v8, (a2)
  vlseg2e32.v v16, (a1)
  li a4, 8
  vlse32.v v16, (a1), a4       // apart: one for each element
  ld a5, 8(a1)
  li a3, 0xe4
  vsetivli zero, 8, e8, m1, ta, ma
  vmv.s.x v0, a3
  vle8.v v16, (a1), v0.t       // bytes 2, 5, 6, 7
  vsetivli zero, 0, e8, m1, ta, ma
  vse8.v v16, (a1)             // nothing
  sd a5, 16(a1)
  ret
  .bss
  .balign 256
  .global place
place: .skip 256
