/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The daemon process of a virtual machine: its start, the hello (gpusim_bell.h), and its end. All
 * functions want the big lock held, except where they say otherwise.
 */
#ifndef SEMIHOSTING_GPUSIM_DAEMON_H
#define SEMIHOSTING_GPUSIM_DAEMON_H

#include "gpusim-compat.h"
#include "gpusim_bell.h"

typedef enum GpusimDaemonState {
    GPUSIM_DAEMON_STARTING, /* the hello is sent */
    GPUSIM_DAEMON_READY,
    GPUSIM_DAEMON_ENDED,    /* reaped; the memory stays until the last reference goes */
} GpusimDaemonState;

typedef struct GpusimRam {
    uint64_t gpa;
    uint64_t size;
    hwaddr offset; /* in the region */
    uint8_t *host;
    MemoryRegion *region; /* referenced */
} GpusimRam;

typedef struct GpusimDaemon {
    unsigned references;
    GpusimDaemonState state; /* written with the lock held, read atomically without */
    int status;              /* ENDED before it was ready: a negative errno */
    uint32_t generation;
    pid_t pid;
    int socket;
    int64_t ready_by_ns; /* of the host's clock */
    struct gpusim_bell_page *page;
    unsigned ram_count;
    GpusimRam ram[GPUSIM_BELL_MOST_REGIONS];
} GpusimDaemon;

/* Why there is no daemon: for the guest that asks (GPUSIM_TRAP_REASON), and on standard error. */
void G_GNUC_PRINTF(1, 2) gpusim_refuse(const char *format, ...);
const struct gpusim_reason *gpusim_last_reason(void);

/* NULL: it was reported why; *status is a negative errno. The reference is the caller's. */
GpusimDaemon *gpusim_daemon_start(char **argv, uint32_t generation, bool paused, int *status);

/* Reads what came from the daemon: its ready message, or that it is gone, which ends it. */
void gpusim_daemon_receive(GpusimDaemon *daemon);

/* Kills and reaps it; afterwards it cannot write to guest memory. */
void gpusim_daemon_end(GpusimDaemon *daemon);

void gpusim_daemon_unref(GpusimDaemon *daemon);

/* NULL, unless all of it lies in one piece of shared guest memory. Needs a reference, no lock. */
void *gpusim_daemon_memory(GpusimDaemon *daemon, uint64_t gpa, uint64_t size);

/* After work was published on the bell page. */
void gpusim_daemon_wake(GpusimDaemon *daemon);

/* Sleeps while *word is @value, up to @ns. No lock. */
void gpusim_futex_wait(uint32_t *word, uint32_t value, int64_t ns);

#endif
