/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * What the guest driver, QEMU and the daemon say to each other.
 *
 * The driver puts a command block (struct gpusim_command) into guest memory and rings: a trap under
 * the patched QEMU, a message through virtio-serial under a stock one. The daemon, which has guest
 * memory mapped, copies the request, works, and writes the reply into the same block; `status` goes
 * last. Nobody needs to ask: the driver watches `status` in its own memory.
 *
 *   driver ── request in guest memory ── bell ──► daemon ── reply in guest memory ──► driver
 *
 * All fields are little-endian and of fixed width; no field depends on the guest's ISA. Guest-physical
 * addresses are called gpa. An address that simulated cores use is a device address.
 */
#ifndef GPUSIM_WIRE_H
#define GPUSIM_WIRE_H

#ifdef __KERNEL__
#include <linux/build_bug.h>
#include <linux/stddef.h>
#include <linux/types.h>
typedef __u8 gpusim_u8;
typedef __u16 gpusim_u16;
typedef __u32 gpusim_u32;
typedef __u64 gpusim_u64;
typedef __s32 gpusim_s32;
#else
#include <stddef.h>
#include <stdint.h>
typedef uint8_t gpusim_u8;
typedef uint16_t gpusim_u16;
typedef uint32_t gpusim_u32;
typedef uint64_t gpusim_u64;
typedef int32_t gpusim_s32;
#endif

#if defined(__cplusplus)
#define GPUSIM_WIRE_ASSERT(condition) static_assert(condition, #condition)
#else
#define GPUSIM_WIRE_ASSERT(condition) _Static_assert(condition, #condition)
#endif

/* Both sides must have the same: whatever is added or changed here makes a new version, but for
 * instruction classes, whose number each reply says. In all versions a command begins with the same
 * 64 bytes, and its status and the reply's text are at the same places: who speaks another version
 * can read why it is refused. The daemon writes no more than GPUSIM_COMMAND_BASE_BYTES of a command
 * of another version; versions 1 and 2 had no more.
 */
#define GPUSIM_WIRE_VERSION 3u
#define GPUSIM_COMMAND_BASE_BYTES 1024u
#define GPUSIM_COMMAND_MAGIC 0x4d435347u /* "GSCM" */

/*
 * Traps of the patched QEMU: semihosting operations, x0 = operation, x1 = argument, result in x0:
 * >= 0, or a negative errno of Linux's generic table.
 */
enum gpusim_trap {
	/* Starts the daemon if none runs. Result: its generation, > 0; -EINTR: this vCPU has something
	 * else to do first, call again; -ENODEV: guest memory is not shared, or no daemon is set up.
	 */
	GPUSIM_TRAP_PROBE = 0x100,
	/* Argument: gpa of a command block. The result says only whether the daemon was told;
	 * -EAGAIN: 64 bells wait already; -EFAULT: no such guest memory; -EIO, as of a dead daemon,
	 * where the command's generation is neither 0 nor the daemon's.
	 */
	GPUSIM_TRAP_BELL = 0x101,
	/* Argument: gpa of a struct gpusim_wait. Returns when the command is done (0), at the
	 * time-out (-ETIMEDOUT), or when this vCPU has something else to do, such as an interrupt or
	 * a stop of the virtual machine (-EINTR: call again).
	 */
	GPUSIM_TRAP_WAIT = 0x102,
	/* Does nothing: what a trap costs. Result: 0. */
	GPUSIM_TRAP_PING = 0x103,
	/* Result: the generation of the daemon if it lives, or -EIO; starts none. */
	GPUSIM_TRAP_ALIVE = 0x104,
	/* Argument: gpa of a struct gpusim_reason, which receives why the last PROBE failed. -EFAULT: no
	 * such guest memory. Unlike command blocks it may lie in memory that is not shared.
	 */
	GPUSIM_TRAP_REASON = 0x105,
};

/* -EIO of a trap: the daemon died; PROBE starts the next one, with another generation. */

struct gpusim_wait {
	gpusim_u64 command_gpa;
	gpusim_u64 timeout_ns; /* of the host's clock, from this call on; 0: none */
	gpusim_u32 flags;      /* enum gpusim_wait_flags */
	gpusim_u32 reserved;
};
GPUSIM_WIRE_ASSERT(sizeof(struct gpusim_wait) == 24);

enum gpusim_wait_flags {
	GPUSIM_WAIT_FREEZE_TIME = 1, /* the guest's clocks stand still meanwhile */
};

/* A sentence for people. */
struct gpusim_reason {
	char text[256]; /* ends at a zero byte */
};
GPUSIM_WIRE_ASSERT(sizeof(struct gpusim_reason) == 256);

/* A message through virtio-serial, either way. */
struct gpusim_message {
	gpusim_u32 kind; /* enum gpusim_message_kind */
	gpusim_u32 generation;
	gpusim_u64 value;
};
GPUSIM_WIRE_ASSERT(sizeof(struct gpusim_message) == 16);

enum gpusim_message_kind {
	GPUSIM_MESSAGE_HELLO = 1, /* daemon: value = wire version; its generation stands beside it */
	GPUSIM_MESSAGE_BELL = 2,  /* driver: value = gpa of a command block */
	GPUSIM_MESSAGE_DONE = 3,  /* daemon: value = gpa of a command block that has its reply */
	GPUSIM_MESSAGE_PING = 4,  /* driver; the daemon sends the same back */
};

/* Operations. What they take stands in gpusim_request, what they give in gpusim_reply. */
enum gpusim_op {
	/* word[0]: wire version of the driver. Reply: word[0] version, [1] generation, [2] largest
	 * number of cores, [3] contexts at once, [4] bytes of a context's device addresses,
	 * [5] page size; text: one line per backend, "name: device".
	 */
	GPUSIM_OP_HELLO = 1,
	/* Reply: word[0] the context's number. */
	GPUSIM_OP_CONTEXT_OPEN = 2,
	/* Cancels its kernels, unmaps its memory, forgets its programs. After the reply the daemon
	 * touches none of its pages.
	 */
	GPUSIM_OP_CONTEXT_CLOSE = 3,
	/* word[0] device address, [1] bytes, [2] enum gpusim_rights, [3] gpa of a table of struct
	 * gpusim_extent, [4] its entries. Addresses and sizes are whole pages; the extents add up to
	 * the size. -EEXIST: part of the range is mapped.
	 */
	GPUSIM_OP_MAP = 4,
	/* word[0] device address, [1] bytes: exactly as mapped. -EBUSY while a kernel of the context
	 * runs or waits.
	 */
	GPUSIM_OP_UNMAP = 5,
	/* An ELF file or a module in mapped memory. word[0] device address, [1] bytes, [2] enum
	 * gpusim_load_flags. Reply: word[0] the program's number, [1] guest instructions translated so
	 * far, [2] 1 if it came from the cache; text: the ISA.
	 */
	GPUSIM_OP_LOAD = 6,
	/* word[0] program. -EBUSY while one of its kernels runs or waits. */
	GPUSIM_OP_UNLOAD = 7,
	/* word[0] program; text: a name. Reply: word[0] address, [1] bytes. -ENOENT. */
	GPUSIM_OP_SYMBOL = 8,
	/* struct gpusim_launch. Reply: struct gpusim_report, and `classes`. */
	GPUSIM_OP_LAUNCH = 9,
	/* word[0]: ticket of a LOAD or LAUNCH of the same context. That one ends with -ECANCELED, if
	 * it had not ended before; -ENOENT: it had, or there was none.
	 */
	GPUSIM_OP_CANCEL = 10,
	/* Everything of the context but its number goes, as with CONTEXT_CLOSE. */
	GPUSIM_OP_RESET = 11,
	/* Reply: word[0] bytes that were copied between guest memory and the machine's for all
	 * kernels of the context, [1] bytes mapped in place, [2] kernels ended, [3] programs
	 * translated, [4] programs taken from the cache, [5] launches that were posted.
	 */
	GPUSIM_OP_COUNTERS = 12,
	/* word[0] device address of a struct gpusim_direct, a multiple of 64, in memory that is
	 * mapped for reading and writing; 0: none any more. A context has one at most. It ends with
	 * any mapping that it lies in, and as everything does with RESET; what was posted and not
	 * taken then ends with -ECANCELED. -EBUSY while a launch that was posted there runs or waits.
	 */
	GPUSIM_OP_DIRECT = 13,
	/* word[0] program, [1] device address of a function that is to be a kernel. -EOPNOTSUPP: it
	 * cannot be one, and the text says why.
	 */
	GPUSIM_OP_CHECK = 14,
	/* The names of instruction classes, in the order of a reply's `classes`. word[0]: the first
	 * that is wanted. Reply: word[0] how many classes there are, [1] how many names the text has;
	 * text: the names, a line each. A later simulator may have more classes, behind those of
	 * today: who does not know them counts them as "other".
	 */
	GPUSIM_OP_CLASSES = 15,
};

enum gpusim_rights {
	GPUSIM_READ = 1,
	GPUSIM_WRITE = 2,
};

enum gpusim_load_flags {
	/* The program is the caller's own: its writable segments are mapped already, at their own
	 * addresses, and are left as they are.
	 */
	GPUSIM_LOAD_LIVE_DATA = 1,
};

struct gpusim_extent {
	gpusim_u64 gpa;
	gpusim_u64 size_bytes;
};
GPUSIM_WIRE_ASSERT(sizeof(struct gpusim_extent) == 16);

#define GPUSIM_MOST_EXTENTS (1u << 18)

enum gpusim_argument_kind {
	GPUSIM_ARGUMENT_VALUE = 0,    /* value */
	GPUSIM_ARGUMENT_AFFINE = 1,   /* value + core * step */
	GPUSIM_ARGUMENT_CORES = 2,    /* the number of cores */
	GPUSIM_ARGUMENT_PER_CORE = 3, /* the core's entry of a table of 64-bit words at `value` */
	GPUSIM_ARGUMENT_REMAINDER = 4, /* core % step */
	GPUSIM_ARGUMENT_QUOTIENT = 5,  /* core / step */
	GPUSIM_ARGUMENT_COPY = 6, /* the address of the core's own copy of `step` bytes at `value` */
};

struct gpusim_argument {
	gpusim_u8 kind;     /* enum gpusim_argument_kind */
	gpusim_u8 is_float; /* goes where the ISA passes floating point; value holds its bits */
	gpusim_u8 reserved[6];
	gpusim_u64 value;
	gpusim_u64 step;
};
GPUSIM_WIRE_ASSERT(sizeof(struct gpusim_argument) == 24);

#define GPUSIM_MOST_ARGUMENTS 16
#define GPUSIM_MOST_COPY_BYTES 4096u /* of one argument */

enum gpusim_launch_flags {
	/* The whole program as a process of its own, with memory of its own; `function` and the
	 * arguments are not used. `strings` holds argv, entries ended by a zero byte each.
	 */
	GPUSIM_LAUNCH_PROCESS = 1,
};

struct gpusim_launch {
	gpusim_u32 program;
	gpusim_u32 cores;
	gpusim_u64 function; /* device address */
	gpusim_u32 flags;    /* enum gpusim_launch_flags */
	gpusim_u32 argument_count;
	gpusim_u64 stack_size_bytes; /* per core; 0: automatic */
	gpusim_u64 max_instructions; /* per core; 0: no limit */
	gpusim_u64 time_limit_ns;    /* of the host's clock; 0: none but the daemon's own */
	/* Mapped memory that receives what the kernel writes to standard output and error. */
	gpusim_u64 output;
	gpusim_u64 output_size_bytes; /* 0: thrown away */
	gpusim_u64 strings;
	gpusim_u64 strings_size_bytes;
	/* Kernels with the same number run one after the other, in the order of their launches; those
	 * of a context that differ run by turns.
	 */
	gpusim_u64 queue;
	gpusim_u64 reserved[3];
	struct gpusim_argument arguments[GPUSIM_MOST_ARGUMENTS];
};
GPUSIM_WIRE_ASSERT(sizeof(struct gpusim_launch) == 112 + 384);

struct gpusim_report {
	gpusim_s32 exit_status; /* as `gpusim run` would have: 128 + signal for a fault */
	gpusim_u32 faults;      /* cores that were stopped by one */
	gpusim_u64 guest_instructions;
	gpusim_u64 run_ns; /* that the host spent on it, without its waiting for others' slices */
	gpusim_u64 output_bytes; /* written, even if they did not all fit */
	gpusim_u32 fault_core;   /* the lowest-numbered one that faulted */
	gpusim_u32 cores;
	gpusim_u64 fault_pc;
	gpusim_u64 waited_ns; /* of the host's clock: from the launch to the kernel's beginning, */
	gpusim_u64 lasted_ns; /* and from there to its end, with its waiting for others' slices */
	gpusim_u64 output_kept_bytes; /* at the launch's `output` */
	/* Between guest memory and a device's, while it ran; 0 from daemons that never copy. */
	gpusim_u64 copied_bytes;
};
GPUSIM_WIRE_ASSERT(sizeof(struct gpusim_report) == 48 + 32);

#define GPUSIM_MOST_CLASSES 31

/* Guest instructions by class (docs/instruction_classes.md); names are told by CLASSES. */
struct gpusim_classes {
	gpusim_u32 count;
	gpusim_u32 reserved;
	gpusim_u64 instructions[GPUSIM_MOST_CLASSES]; /* 0 from `count` on */
};
GPUSIM_WIRE_ASSERT(sizeof(struct gpusim_classes) == 256);

#define GPUSIM_REQUEST_TEXT 256

struct gpusim_words {
	gpusim_u64 word[16];
	char text[GPUSIM_REQUEST_TEXT]; /* ends at a zero byte or here */
};

union gpusim_request {
	struct gpusim_words words;
	struct gpusim_launch launch;
};
GPUSIM_WIRE_ASSERT(sizeof(union gpusim_request) == 496);

#define GPUSIM_REPLY_TEXT 272

struct gpusim_reply {
	union {
		gpusim_u64 word[24];
		struct gpusim_report report;
	};
	/* What went wrong, or what the operation says; ends at a zero byte. */
	char text[GPUSIM_REPLY_TEXT];
	struct gpusim_classes classes; /* of LAUNCH */
};
GPUSIM_WIRE_ASSERT(sizeof(struct gpusim_reply) == 464 + 256);

/* `status` before the daemon's reply; everything else is 0 or a negative errno. */
#define GPUSIM_PENDING 1

/* In guest memory, at a multiple of 64; written by the driver, then by the daemon. */
struct gpusim_command {
	gpusim_u32 magic;
	gpusim_u16 version;
	gpusim_u16 op; /* enum gpusim_op */
	gpusim_u32 context;
	gpusim_u32 generation; /* of the daemon that it is for; 0 in HELLO */
	gpusim_u64 ticket;     /* the driver's own; not twice within a context */
	gpusim_s32 status;
	gpusim_u32 reserved[9];
	union gpusim_request request;
	struct gpusim_reply reply;
};
GPUSIM_WIRE_ASSERT(sizeof(struct gpusim_command) == 1280);
/* In all versions. */
GPUSIM_WIRE_ASSERT(offsetof(struct gpusim_command, version) == 4);
GPUSIM_WIRE_ASSERT(offsetof(struct gpusim_command, status) == 24);
GPUSIM_WIRE_ASSERT(offsetof(struct gpusim_command, reply.text) == 752);
GPUSIM_WIRE_ASSERT(offsetof(struct gpusim_command, reply.classes) == GPUSIM_COMMAND_BASE_BYTES);

enum gpusim_direct_state {
	GPUSIM_DIRECT_FREE = 0,
	GPUSIM_DIRECT_POSTED = 1,
	GPUSIM_DIRECT_TAKEN = 2,
};

/* Tickets of launches that were posted; no others have this bit. */
#define GPUSIM_DIRECT_TICKET ((gpusim_u64)1 << 63)

/* Where a process posts launches itself, without a trap. It may as long as `listening` is 1: it
 * fills in the command, with status GPUSIM_PENDING, sets `state` from FREE to POSTED, and looks at
 * `listening` again. If that is 0 by now the daemon may be asleep: any other command wakes it, and it
 * looks here, too. The daemon sets POSTED to TAKEN, the process TAKEN to FREE after the reply; nobody
 * needs a read-modify-write. Context and generation in the command are not looked at: they are those
 * of the DIRECT operation.
 */
struct gpusim_direct {
	gpusim_u32 state;     /* enum gpusim_direct_state */
	gpusim_u32 listening; /* the daemon's */
	gpusim_u32 reserved[14];
	struct gpusim_command command; /* LAUNCH */
};
GPUSIM_WIRE_ASSERT(sizeof(struct gpusim_direct) == 1344);

#endif
