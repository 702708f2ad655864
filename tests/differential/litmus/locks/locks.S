// Locks as compilers, libraries and textbooks have them, without any hint that a core waits: no
// WFE, no YIELD. Functions keep to the procedure-call standard.
    .arch armv8.1-a
    .text

    .macro function name
    .global \name
    .type \name, %function
\name:
    .endm

// ---- test and set: x0 is a 32-bit word, 0 when free

function exclusive_lock
1:  ldaxr w1, [x0]
    cbnz w1, 1b
    mov w2, #1
    stxr w3, w2, [x0]
    cbnz w3, 1b
    ret
function swap_lock
    mov w2, #1
1:  swpa w2, w1, [x0]
    cbnz w1, 1b
    ret
// Looks before it tries, as it should.
function cas_lock
    mov w2, #1
1:  ldr w1, [x0]
    cbnz w1, 1b
    mov w1, wzr
    casa w1, w2, [x0]
    cbnz w1, 1b
    ret
function word_unlock
    stlr wzr, [x0]
    ret
// As Armv7 code became A64: barriers instead of acquire and release.
function barrier_lock
1:  ldxr w1, [x0]
    cbnz w1, 1b
    mov w2, #1
    stxr w3, w2, [x0]
    cbnz w3, 1b
    dmb ish
    ret
function barrier_unlock
    dmb ish
    str wzr, [x0]
    ret

// ---- tickets: next at x0, now serving at x0 + 4

function ticket_lock
    mov w1, #1
    ldadda w1, w2, [x0]
    add x0, x0, #4
1:  ldar w3, [x0]
    cmp w2, w3
    b.ne 1b
    ret
function ticket_exclusive_lock
1:  ldaxr w2, [x0]
    add w1, w2, #1
    stxr w3, w1, [x0]
    cbnz w3, 1b
    add x0, x0, #4
1:  ldar w3, [x0]
    cmp w2, w3
    b.ne 1b
    ret
// Cores that wait count, and are never long at the same place.
function ticket_counting_lock
    mov w1, #1
    ldadda w1, w2, [x0]
    add x4, x0, #8
    add x0, x0, #4
1:  ldar w3, [x0]
    cmp w2, w3
    b.eq 3f
2:  ldaxr w1, [x4]
    add w1, w1, #1
    stlxr w3, w1, [x4]
    cbnz w3, 2b
    b 1b
3:  ret
function ticket_unlock
    add x0, x0, #4
    ldr w1, [x0]
    add w1, w1, #1
    stlr w1, [x0]
    ret

// ---- MCS: the last waiter's node at x0; x1: the own node {next, is waiting}

function mcs_lock
    mov w2, #1
    str xzr, [x1]
    str w2, [x1, #8]
    mov x3, x1
    swpal x3, x3, [x0]
    cbz x3, 2f
    stlr x1, [x3]
    add x2, x1, #8
1:  ldar w3, [x2]
    cbnz w3, 1b
2:  ret
function mcs_unlock
    ldar x2, [x1]
    cbnz x2, 2f
    mov x3, x1
    casal x3, xzr, [x0]
    cmp x3, x1
    b.eq 3f
1:  ldar x2, [x1]
    cbz x2, 1b
2:  add x2, x2, #8
    stlr wzr, [x2]
3:  ret

// ---- Peterson's lock for two: {wants[2], turn}, words of 32 bits at x0; w1: the own side

function peterson_lock
    mov w3, #1
    eor w2, w1, #1
    str w3, [x0, w1, uxtw #2]
    dmb ish
    str w2, [x0, #8]
    dmb ish
1:  ldr w4, [x0, w2, uxtw #2]
    cbz w4, 2f
    ldr w4, [x0, #8]
    cmp w4, w2
    b.eq 1b
2:  dmb ish
    ret
function peterson_unlock
    dmb ish
    str wzr, [x0, w1, uxtw #2]
    ret
// The same with load-acquire and store-release, which are sequentially consistent among themselves.
function peterson_rcsc_lock
    mov w3, #1
    eor w2, w1, #1
    add x5, x0, w1, uxtw #2
    add x6, x0, w2, uxtw #2
    add x7, x0, #8
    stlr w3, [x5]
    stlr w2, [x7]
1:  ldar w4, [x6]
    cbz w4, 2f
    ldar w4, [x7]
    cmp w4, w2
    b.eq 1b
2:  ret
function peterson_rcsc_unlock
    add x5, x0, w1, uxtw #2
    stlr wzr, [x5]
    ret

// ---- Dekker's lock for two, laid out as Peterson's

function dekker_lock
    mov w3, #1
    eor w2, w1, #1
    str w3, [x0, w1, uxtw #2]
    dmb ish
1:  ldr w4, [x0, w2, uxtw #2]
    cbz w4, 4f
    ldr w4, [x0, #8]
    cmp w4, w1
    b.eq 1b
    str wzr, [x0, w1, uxtw #2]
2:  ldr w4, [x0, #8]
    cmp w4, w1
    b.ne 2b
    str w3, [x0, w1, uxtw #2]
    dmb ish
    b 1b
4:  dmb ish
    ret
function dekker_unlock
    eor w2, w1, #1
    dmb ish
    str w2, [x0, #8]
    str wzr, [x0, w1, uxtw #2]
    ret

// ---- a stack of nodes without locks: {first node, changes} at x0; a node starts with its next

function push_pair
    mov x8, x1
1:  ldp x2, x3, [x0]
    str x2, [x8]
    mov x4, x2
    mov x5, x3
    mov x6, x8
    add x7, x3, #1
    caspal x4, x5, x6, x7, [x0]
    cmp x4, x2
    ccmp x5, x3, #0, eq
    b.ne 1b
    ret
function pop_pair
1:  ldp x2, x3, [x0]
    cbz x2, 2f
    ldr x6, [x2]
    mov x4, x2
    mov x5, x3
    add x7, x3, #1
    caspal x4, x5, x6, x7, [x0]
    cmp x4, x2
    ccmp x5, x3, #0, eq
    b.ne 1b
2:  mov x0, x2
    ret
function push_exclusive_pair
1:  ldaxp x2, x3, [x0]
    str x2, [x1]
    add x4, x3, #1
    stlxp w5, x1, x4, [x0]
    cbnz w5, 1b
    ret
function pop_exclusive_pair
1:  ldaxp x2, x3, [x0]
    cbz x2, 2f
    ldr x6, [x2]
    add x4, x3, #1
    stlxp w5, x6, x4, [x0]
    cbnz w5, 1b
    mov x0, x2
    ret
2:  clrex
    mov x0, xzr
    ret
// A number and changes in 64 bits: nodes of 64 bytes, counted from 1, at x1.
function push_number
1:  ldr x3, [x0]
    add x4, x1, x2, lsl #6
    str w3, [x4]
    lsr x5, x3, #32
    add x5, x5, #1
    orr x5, x2, x5, lsl #32
    mov x6, x3
    casl x6, x5, [x0]
    cmp x6, x3
    b.ne 1b
    ret
function pop_number
1:  ldar x3, [x0]
    mov w2, w3
    cbz w2, 2f
    add x4, x1, x2, lsl #6
    ldr w4, [x4]
    lsr x5, x3, #32
    add x5, x5, #1
    orr x5, x4, x5, lsl #32
    mov x6, x3
    casa x6, x5, [x0]
    cmp x6, x3
    b.ne 1b
2:  mov x0, x2
    ret

// ---- seqlock: a 32-bit count at x0, odd while it is written; four words of 64 bits at x0 + 8

// x1: what all four become. Writers exclude each other.
function seq_write
    ldr w2, [x0]
    add w2, w2, #1
    str w2, [x0]
    dmb ishst
    stp x1, x1, [x0, #8]
    stp x1, x1, [x0, #24]
    add w2, w2, #1
    stlr w2, [x0]
    ret
// Returns the sum of the differences of neighbours: 0 if all were read from one writing.
function seq_read
1:  ldar w2, [x0]
    tbnz w2, #0, 1b
    ldp x3, x4, [x0, #8]
    ldp x5, x6, [x0, #24]
    dmb ishld
    ldr w7, [x0]
    cmp w7, w2
    b.ne 1b
    eor x3, x3, x4
    eor x4, x4, x5
    eor x5, x5, x6
    orr x3, x3, x4
    orr x0, x3, x5
    ret

// ---- a barrier that spins: {arrived, phase}; x1: cores

function spin_barrier
    add x4, x0, #4
    ldar w2, [x4]
    mov w3, #1
    ldaddal w3, w5, [x0]
    add w5, w5, #1
    cmp w5, w1
    b.ne 1f
    str wzr, [x0]
    add w2, w2, #1
    stlr w2, [x4]
    ret
1:  ldar w5, [x4]
    cmp w5, w2
    b.eq 1b
    ret
