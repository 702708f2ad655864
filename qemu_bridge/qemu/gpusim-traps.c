/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gpusim's semihosting operations: the guest's way to the daemon. Commands are not looked at here,
 * but for where they lie, whose they are and whether they are done. All state is guarded by the
 * big lock, which a trap holds when it comes; the two that wait let go of it meanwhile.
 */
#include "qemu/osdep.h"

#include <poll.h>

#include "gpusim-daemon.h"
#include "hw/core/cpu.h"
#include "qemu/bswap.h"
#include "qemu/error-report.h"
#include "qemu/notify.h"
#include "qemu/processor.h"
#include "qemu/timer.h"
#include "semihosting/gpusim.h"

#define FIRST_OP 0x100
#define LAST_OP 0x1ff

/* How long a waiting vCPU spins, and how often it then looks whether it is wanted elsewhere. */
#define SPIN_NS (30 * SCALE_US)
#define LOOK_NS (500 * SCALE_US)

#define PAUSE_WITHIN_NS (10 * NANOSECONDS_PER_SECOND)

static char **command; /* of the daemon */
static bool native_operations = true;
static GpusimDaemon *current;
static uint32_t generation;

bool gpusim_configure(const char *text, bool native)
{
    static const char *const more_words[] = { "daemon", "--qemu-fd", "3" };
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) words = NULL;
    int count, more, i;

    native_operations = native;
    if (!text) {
        return true;
    }
    if (!g_shell_parse_argv(text, &count, &words, &error)) {
        error_report("semihosting-config gpusim=%s: %s", text, error->message);
        return false;
    }
    g_strfreev(command);
    more = count == 1 ? 0 : 1; /* a whole command line says itself what to do */
    command = g_new0(char *, count + ARRAY_SIZE(more_words) + 1);
    for (i = 0; i < count; i++) {
        command[i] = g_strdup(words[i]);
    }
    for (; more < ARRAY_SIZE(more_words); more++) {
        command[i++] = g_strdup(more_words[more]);
    }
    return true;
}

bool gpusim_configured(void)
{
    return command;
}

static void drop_daemon(void)
{
    if (current) {
        gpusim_daemon_end(current);
        gpusim_daemon_unref(current);
        current = NULL;
    }
}

static GpusimDaemon *ready_daemon(void)
{
    return current && current->state == GPUSIM_DAEMON_READY ? current : NULL;
}

/* The guest restarts, or goes back to an earlier state: what it had asked for must not reach it. */
static void on_reset(void *opaque)
{
    drop_daemon();
}

static void on_quit(Notifier *notifier, void *data)
{
    drop_daemon();
}

/* The daemon writes behind QEMU's back, which has to know what a migration must send. */
static void mark_dirty(GpusimDaemon *daemon)
{
    unsigned i;

    for (i = 0; i < daemon->ram_count; i++) {
        GpusimRam *ram = &daemon->ram[i];
        memory_region_set_dirty(ram->region, ram->offset, ram->size);
    }
}

static void on_run_state(void *opaque, bool running, RunState state)
{
    struct gpusim_bell_page *page;
    uint32_t request, paused;
    int64_t until;

    if (!current || current->state == GPUSIM_DAEMON_ENDED) {
        return;
    }
    page = current->page;
    request = page->pause_request;
    if ((request & 1) == !running) {
        return;
    }
    qatomic_store_release(&page->pause_request, ++request);
    gpusim_daemon_wake(current);
    if (running || current->state != GPUSIM_DAEMON_READY) {
        return; /* one that is not ready yet finds the request before its first command */
    }

    until = get_clock() + PAUSE_WITHIN_NS;
    while ((paused = qatomic_load_acquire(&page->paused)) != request) {
        if (get_clock() >= until) {
            error_report("gpusim: the daemon did not pause with the virtual machine; it is ended");
            drop_daemon();
            return;
        }
        gpusim_futex_wait(&page->paused, paused, 50 * SCALE_MS);
        gpusim_daemon_receive(current);
        if (current->state == GPUSIM_DAEMON_ENDED) {
            return;
        }
    }
    mark_dirty(current);
}

static void register_handlers(void)
{
    static Notifier exit_notifier = { .notify = on_quit };
    static bool registered;

    if (!registered) {
        registered = true;
        qemu_add_vm_change_state_handler(on_run_state, NULL);
        qemu_register_reset(on_reset, NULL);
        qemu_add_exit_notifier(&exit_notifier);
    }
}

/* A guest restored elsewhere should not meet its daemon's number again. */
static uint32_t next_generation(void)
{
    generation = generation ? generation + 1 : (uint32_t)g_random_int_range(1, 1 << 30);
    generation &= INT32_MAX;
    generation += !generation;
    return generation;
}

/* An interrupt, a stop of the virtual machine, or work that another thread has for this vCPU. */
static bool wanted_elsewhere(CPUState *cs)
{
    return qatomic_read(&cs->exit_request) || qatomic_read(&cs->stop);
}

/*
 * From now on somebody else uses the guest's memory: a single processor's atomic accesses, too,
 * have to be atomic on the host, and its barriers must be there.
 */
static void run_in_parallel(void)
{
    CPUState *cpu;

    if (!tcg_enabled()) {
        return;
    }
    CPU_FOREACH(cpu) {
        if (!tcg_cflags_has(cpu, CF_PARALLEL)) {
            tcg_cflags_set(cpu, CF_PARALLEL);
            tb_flush(cpu);
        }
    }
}

static int64_t trap_probe(CPUState *cs)
{
    GpusimDaemon *daemon;
    int64_t result;

    if (!command) {
        gpusim_refuse("QEMU was started without a daemon; add gpusim=COMMAND to its "
                      "-semihosting-config");
        return -ENODEV;
    }
    if (current) {
        gpusim_daemon_receive(current);
        if (current->state == GPUSIM_DAEMON_ENDED) {
            drop_daemon();
        }
    }
    if (!current) {
        int status;

        register_handlers();
        run_in_parallel();
        current = gpusim_daemon_start(command, next_generation(), !runstate_is_running(), &status);
        if (!current) {
            return status;
        }
    }

    daemon = current;
    daemon->references++;
    while (daemon->state == GPUSIM_DAEMON_STARTING) {
        struct pollfd readable = { .fd = daemon->socket, .events = POLLIN };

        if (wanted_elsewhere(cs)) {
            break;
        }
        if (get_clock() >= daemon->ready_by_ns) {
            gpusim_refuse("the daemon does not answer; it is ended");
            daemon->status = -ETIMEDOUT;
            gpusim_daemon_end(daemon);
            break;
        }
        bql_unlock();
        poll(&readable, 1, 1);
        bql_lock();
        gpusim_daemon_receive(daemon);
    }
    if (daemon->state == GPUSIM_DAEMON_READY) {
        result = daemon->generation;
    } else if (daemon->state == GPUSIM_DAEMON_STARTING) {
        result = -EINTR;
    } else {
        result = daemon->status ? daemon->status : -EIO;
    }
    gpusim_daemon_unref(daemon);
    return result;
}

static int64_t trap_alive(void)
{
    if (current) {
        gpusim_daemon_receive(current);
    }
    if (!ready_daemon()) {
        return -EIO;
    }
    return current->generation;
}

static int64_t trap_reason(uint64_t gpa)
{
    const struct gpusim_reason *reason = gpusim_last_reason();
    MemTxResult result = address_space_write(&address_space_memory, gpa, MEMTXATTRS_UNSPECIFIED,
                                             reason, sizeof(*reason));

    return result == MEMTX_OK ? 0 : -EFAULT;
}

static struct gpusim_command *command_at(GpusimDaemon *daemon, uint64_t gpa)
{
    return gpa % 64 ? NULL : gpusim_daemon_memory(daemon, gpa, GPUSIM_COMMAND_BASE_BYTES);
}

/*
 * A command for a daemon that died must not reach the next one: who rang for it takes it back as
 * soon as ALIVE says so, while the next one still had it to answer.
 */
static bool is_for(const GpusimDaemon *daemon, const struct gpusim_command *block)
{
    uint32_t wanted = le32_to_cpu(qatomic_read(&block->generation));

    return !wanted || wanted == daemon->generation;
}

static int64_t trap_bell(uint64_t gpa)
{
    GpusimDaemon *daemon = ready_daemon();
    const struct gpusim_command *block;
    struct gpusim_bell_page *page;
    uint32_t head, waiting;

    if (!daemon) {
        return -EIO;
    }
    block = command_at(daemon, gpa);
    if (!block) {
        return -EFAULT;
    }
    if (!is_for(daemon, block)) {
        return -EIO;
    }
    page = daemon->page;
    head = page->head;
    waiting = head - qatomic_load_acquire(&page->tail);
    if (waiting == GPUSIM_BELL_RING) {
        return -EAGAIN;
    }
    if (waiting > GPUSIM_BELL_RING) {
        error_report("gpusim: the daemon broke its queue; it is ended");
        drop_daemon();
        return -EIO;
    }
    qatomic_set(&page->ring[head % GPUSIM_BELL_RING], gpa);
    qatomic_store_release(&page->head, head + 1);
    gpusim_daemon_wake(daemon);
    return 0;
}

static unsigned frozen; /* vCPUs that wait with the guest's time stopped */

static void freeze_time(void)
{
    if (frozen++ == 0) {
        cpu_disable_ticks();
        qemu_clock_enable(QEMU_CLOCK_VIRTUAL, false);
    }
}

/* When the virtual machine was stopped meanwhile, time goes on with the machine. */
static void thaw_time(void)
{
    if (--frozen == 0 && runstate_is_running()) {
        cpu_enable_ticks();
        qemu_clock_enable(QEMU_CLOCK_VIRTUAL, true);
    }
}

static bool is_done(const struct gpusim_command *block)
{
    return le32_to_cpu(qatomic_load_acquire((uint32_t *)&block->status)) != GPUSIM_PENDING;
}

/* Without the lock. */
static int64_t wait_for(CPUState *cs, GpusimDaemon *daemon, const struct gpusim_command *block,
                        uint64_t timeout_ns)
{
    struct gpusim_bell_page *page = daemon->page;
    int64_t start = get_clock();
    int64_t spin_until = start + SPIN_NS;
    int64_t until = timeout_ns && timeout_ns < INT64_MAX - start ? start + timeout_ns : INT64_MAX;
    int64_t result = 0;

    while (!is_done(block) && !wanted_elsewhere(cs)) {
        int64_t now = get_clock();
        if (now >= spin_until || now >= until) {
            break;
        }
        cpu_relax();
    }

    qatomic_inc(&page->qemu_waits);
    smp_mb();
    for (;;) {
        uint32_t completions = qatomic_load_acquire(&page->completions);
        int64_t left;

        if (is_done(block)) {
            break;
        }
        if (qatomic_read(&daemon->state) == GPUSIM_DAEMON_ENDED) {
            result = -EIO;
            break;
        }
        if (wanted_elsewhere(cs)) {
            result = -EINTR;
            break;
        }
        left = until - get_clock();
        if (left <= 0) {
            result = -ETIMEDOUT;
            break;
        }
        gpusim_futex_wait(&page->completions, completions, MIN(left, LOOK_NS));
    }
    qatomic_dec(&page->qemu_waits);
    return result;
}

static int64_t trap_wait(CPUState *cs, uint64_t gpa)
{
    GpusimDaemon *daemon = current;
    const struct gpusim_command *block;
    struct gpusim_wait request;
    const void *at;
    int64_t result;
    bool freeze;

    if (!daemon) {
        return -EIO;
    }
    at = gpusim_daemon_memory(daemon, gpa, sizeof(request));
    if (!at) {
        return -EFAULT;
    }
    memcpy(&request, at, sizeof(request));
    block = command_at(daemon, le64_to_cpu(request.command_gpa));
    if (!block) {
        return -EFAULT;
    }
    if (is_done(block)) {
        return 0; /* even if the daemon ended since */
    }
    if (!ready_daemon()) {
        return -EIO;
    }

    freeze = le32_to_cpu(request.flags) & GPUSIM_WAIT_FREEZE_TIME;
    daemon->references++;
    if (freeze) {
        freeze_time();
    }
    bql_unlock();
    result = wait_for(cs, daemon, block, le64_to_cpu(request.timeout_ns));
    bql_lock();
    if (freeze) {
        thaw_time();
    }
    gpusim_daemon_unref(daemon);
    return result;
}

bool gpusim_semihosting(CPUState *cs, uint32_t op, uint64_t argument, int64_t *result)
{
    if (op < FIRST_OP || op > LAST_OP) {
        *result = -1;
        return !native_operations;
    }
    switch (op) {
    case GPUSIM_TRAP_PROBE:
        *result = trap_probe(cs);
        break;
    case GPUSIM_TRAP_BELL:
        *result = trap_bell(argument);
        break;
    case GPUSIM_TRAP_WAIT:
        *result = trap_wait(cs, argument);
        break;
    case GPUSIM_TRAP_PING:
        *result = 0;
        break;
    case GPUSIM_TRAP_ALIVE:
        *result = trap_alive();
        break;
    case GPUSIM_TRAP_REASON:
        *result = trap_reason(argument);
        break;
    default:
        *result = -ENOSYS;
        break;
    }
    return true;
}
