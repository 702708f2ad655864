/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * What QEMU and the daemon that it started share: a socket and a page of memory, the bell page.
 *
 * QEMU starts the daemon as COMMAND... --qemu-fd 3: descriptor 3 is one end of a SOCK_SEQPACKET
 * socket pair, 0 is /dev/null, 1 and 2 are QEMU's standard error, others are closed; signals have
 * their default handlers and none is blocked; the process leads a group of its own.
 *
 *   QEMU ── hello: guest RAM and the bell page as descriptors ──► daemon
 *   QEMU ◄── ready: a status and a sentence ────────────────────── daemon
 *
 * Nothing else goes through the socket today; both sides ignore further messages. End of file on
 * it means that the other side is gone: the daemon ends at once and touches no guest memory; QEMU
 * kills the daemon, reaps it, and starts another at the guest's next GPUSIM_TRAP_PROBE, with
 * another generation and another bell page.
 *
 * Every field says who writes it. "Release", "acquire" and "seq_cst" are C11's memory orders; all
 * accesses are atomic. Words that one side sleeps on are futexes: FUTEX_WAIT and FUTEX_WAKE without
 * FUTEX_PRIVATE_FLAG, since the page is shared. Fields stand in the host's byte order. Neither side
 * relies on what the other writes for its own safety: values are checked after they were read once.
 */
#ifndef GPUSIM_BELL_H
#define GPUSIM_BELL_H

#include "gpusim_wire.h"

#define GPUSIM_BELL_VERSION 1u
#define GPUSIM_BELL_MAGIC 0x4c425347u /* "GSBL" */

#define GPUSIM_BELL_RING 64u /* entries; a power of two */
#define GPUSIM_BELL_PAGE_BYTES 4096u
#define GPUSIM_BELL_MOST_REGIONS 64u
#define GPUSIM_BELL_MOST_FDS 32u /* with the bell page's */

/* Guest RAM: [gpa, gpa + size) is what the file has from `offset` on. */
struct gpusim_bell_region {
	gpusim_u64 gpa;
	gpusim_u64 size_bytes;
	gpusim_u64 offset;
	gpusim_u32 fd_index; /* which of the message's descriptors; 1 or more */
	gpusim_u32 flags;    /* enum gpusim_bell_region_flags */
};
GPUSIM_WIRE_ASSERT(sizeof(struct gpusim_bell_region) == 32);

enum gpusim_bell_region_flags {
	GPUSIM_BELL_READ_ONLY = 1, /* map it without PROT_WRITE; commands never lie in it */
};

/* QEMU's first message, 32 bytes and `region_count` regions, not overlapping, by rising gpa. With it
 * come `fd_count` descriptors by SCM_RIGHTS; the one with index 0 is the bell page, to be mapped
 * MAP_SHARED from offset 0. Several regions may share a descriptor.
 */
struct gpusim_bell_hello {
	gpusim_u32 magic;        /* GPUSIM_BELL_MAGIC */
	gpusim_u32 version;      /* GPUSIM_BELL_VERSION */
	gpusim_u32 wire_version; /* GPUSIM_WIRE_VERSION */
	gpusim_u32 generation;   /* > 0; what GPUSIM_OP_HELLO replies, and commands carry */
	gpusim_u32 fd_count;
	gpusim_u32 region_count;
	gpusim_u64 reserved;
	/* struct gpusim_bell_region [region_count] follow. */
};
GPUSIM_WIRE_ASSERT(sizeof(struct gpusim_bell_hello) == 32);

/* The daemon's answer, after it mapped everything; it serves bells from then on. QEMU gives it some
 * seconds. After a status other than 0 the daemon ends; PROBE returns the status, REASON the text,
 * which QEMU also prints on its standard error.
 */
struct gpusim_bell_ready {
	gpusim_u32 magic;        /* GPUSIM_BELL_MAGIC */
	gpusim_u32 version;      /* GPUSIM_BELL_VERSION */
	gpusim_u32 wire_version; /* GPUSIM_WIRE_VERSION */
	gpusim_u32 generation;   /* the hello's */
	gpusim_s32 status;       /* 0 or a negative errno of Linux's generic table */
	gpusim_u32 reserved;
	char text[232]; /* ends at a zero byte */
};
GPUSIM_WIRE_ASSERT(sizeof(struct gpusim_bell_ready) == 256);

/*
 * Bells (QEMU -> daemon). QEMU, under a lock of its own:
 *     if head - tail (acquire) == 64: the ring is full, the trap returns -EAGAIN
 *     ring[head % 64] = gpa (relaxed); head = head + 1 (release)
 *     fence (seq_cst); wake the daemon (below)
 * The daemon:
 *     while tail != head (acquire): gpa = ring[tail % 64]; tail = tail + 1 (release)
 * head and tail count up and wrap at 2^32; head - tail is never above 64, or the other side is
 * broken. tail may pass an entry as soon as its gpa was read, before the command is. A gpa on the
 * ring is a multiple of 64 and the command's first GPUSIM_COMMAND_BASE_BYTES bytes lie in one region
 * that is not read-only; QEMU looks at nothing else of a command.
 *
 * The daemon sleeps only by `daemon_sleeps`, after it spun for a while (a few hundred
 * microseconds: waking a processor costs more):
 *     daemon_sleeps = 1 (relaxed); fence (seq_cst)
 *     look once more for work: head, pause_request, the socket, its own threads' results
 *     none: FUTEX_WAIT(daemon_sleeps, 1)
 *     daemon_sleeps = 0 (relaxed)
 * Whoever has work for it (QEMU; in the daemon a thread that watches the socket, and kernels'
 * threads) first publishes the work, then:
 *     fence (seq_cst); if daemon_sleeps (relaxed) != 0 and exchange(daemon_sleeps, 0) != 0: FUTEX_WAKE(1)
 * The two fences make sure that one of them sees the other.
 *
 * Completions (daemon -> QEMU). When a reply is in guest memory and the command's `status` was
 * stored (release), or several commands' were:
 *     completions = completions + 1 (seq_cst, read-modify-write; wraps)
 *     fence (seq_cst); if qemu_waits (relaxed) != 0: FUTEX_WAKE(completions, all)
 * QEMU in GPUSIM_TRAP_WAIT adds 1 to qemu_waits (seq_cst) and a fence (seq_cst), and then
 * repeats: read completions (acquire), read `status` in guest memory (acquire),
 * FUTEX_WAIT(completions, the value read) with a time-out; at the end it takes 1 off qemu_waits.
 * The guest itself may also just look at `status`.
 *
 * Pausing. When the virtual machine stops (the monitor's stop, savevm, migration), QEMU makes
 * pause_request odd, when it goes on even: +1 each time (release, then wake the daemon as above).
 * The daemon looks at pause_request (acquire) between slices of kernels and before commands; when
 * it differs from `paused`:
 *     odd:  stop writing guest memory: no slices, no replies, no copies into it, in no thread;
 *           paused = pause_request (release); FUTEX_WAKE(paused, all)
 *           then sleep as above until pause_request changes; bells stay on the ring
 *     even: paused = pause_request (release); FUTEX_WAKE(paused, all); go on
 * QEMU waits (acquire) for `paused` to become the odd number, some seconds; then it kills the
 * daemon, because memory must not change under a snapshot. It does not wait for even numbers, nor
 * does it ring while the virtual machine is stopped. QEMU may be stopped before the hello: then
 * pause_request is 1 from the start. When the guest is reset, or an earlier state of it is
 * loaded, QEMU kills the daemon.
 */
struct gpusim_bell_page {
	/* QEMU, before the hello; constant. */
	gpusim_u32 magic;   /* GPUSIM_BELL_MAGIC */
	gpusim_u32 version; /* GPUSIM_BELL_VERSION */
	gpusim_u32 generation;
	gpusim_u32 reserved0[13];

	/* QEMU */
	gpusim_u32 head;
	gpusim_u32 reserved1[15];

	/* the daemon */
	gpusim_u32 tail;
	gpusim_u32 reserved2[15];

	/* futex; the daemon sets it to 1, wakers and the daemon to 0 */
	gpusim_u32 daemon_sleeps;
	gpusim_u32 reserved3[15];

	/* futex; the daemon */
	gpusim_u32 completions;
	gpusim_u32 reserved4[15];

	/* QEMU: how many vCPUs are in GPUSIM_TRAP_WAIT */
	gpusim_u32 qemu_waits;
	gpusim_u32 reserved5[15];

	/* QEMU */
	gpusim_u32 pause_request;
	gpusim_u32 reserved6[15];

	/* futex; the daemon */
	gpusim_u32 paused;
	gpusim_u32 reserved7[15];

	/* QEMU */
	gpusim_u64 ring[GPUSIM_BELL_RING];

	gpusim_u8 reserved8[GPUSIM_BELL_PAGE_BYTES - 1024];
};
GPUSIM_WIRE_ASSERT(sizeof(struct gpusim_bell_page) == GPUSIM_BELL_PAGE_BYTES);

#endif
