/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Starts and ends gpusim's daemon, and gives it guest memory. */
#include "qemu/osdep.h"

#include <linux/futex.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "gpusim-daemon.h"
#include "qemu/error-report.h"
#include "qemu/int128.h"
#include "qemu/memfd.h"
#include "qemu/rcu.h"

#define DAEMON_FD 3 /* where its end of the socket is */
#define READY_WITHIN_NS (30 * NANOSECONDS_PER_SECOND)

static struct gpusim_reason reason;

void gpusim_refuse(const char *format, ...)
{
    va_list arguments;

    memset(&reason, 0, sizeof(reason)); /* the guest gets all of it */
    va_start(arguments, format);
    vsnprintf(reason.text, sizeof(reason.text), format, arguments);
    va_end(arguments);
    error_report("gpusim: %s", reason.text);
}

const struct gpusim_reason *gpusim_last_reason(void)
{
    return &reason;
}

void gpusim_futex_wait(uint32_t *word, uint32_t value, int64_t ns)
{
    struct timespec limit = {
        .tv_sec = ns / NANOSECONDS_PER_SECOND,
        .tv_nsec = ns % NANOSECONDS_PER_SECOND,
    };
    syscall(SYS_futex, word, FUTEX_WAIT, value, &limit, NULL, 0);
}

void gpusim_daemon_wake(GpusimDaemon *daemon)
{
    uint32_t *sleeps = &daemon->page->daemon_sleeps;

    smp_mb();
    if (qatomic_read(sleeps) && qatomic_xchg(sleeps, 0)) {
        syscall(SYS_futex, sleeps, FUTEX_WAKE, 1, NULL, NULL, 0);
    }
}

void *gpusim_daemon_memory(GpusimDaemon *daemon, uint64_t gpa, uint64_t size)
{
    unsigned i;

    for (i = 0; i < daemon->ram_count; i++) {
        GpusimRam *ram = &daemon->ram[i];
        uint64_t offset = gpa - ram->gpa; /* wraps below the piece */

        if (offset < ram->size && size <= ram->size - offset) {
            return ram->host + offset;
        }
    }
    return NULL;
}

typedef struct Hello {
    struct {
        struct gpusim_bell_hello head;
        struct gpusim_bell_region regions[GPUSIM_BELL_MOST_REGIONS];
    } message;
    int fds[GPUSIM_BELL_MOST_FDS];
    GpusimDaemon *daemon;
} Hello;

/* The index of @fd in the message, or GPUSIM_BELL_MOST_FDS if there is no room. */
static unsigned fd_index(Hello *hello, int fd)
{
    unsigned count = hello->message.head.fd_count;
    unsigned i;

    for (i = 1; i < count; i++) {
        if (hello->fds[i] == fd) {
            return i;
        }
    }
    if (count < GPUSIM_BELL_MOST_FDS) {
        hello->fds[count] = fd;
        hello->message.head.fd_count = count + 1;
    }
    return count;
}

/* Memory that can't be shared is left out: the daemon refuses commands that name it. */
static bool add_range(Int128 start, Int128 length, const MemoryRegion *const_region,
                      hwaddr offset, void *opaque)
{
    Hello *hello = opaque;
    GpusimDaemon *daemon = hello->daemon;
    MemoryRegion *region = (MemoryRegion *)const_region;
    int fd;
    unsigned index;
    GpusimRam *ram;

    if (!memory_region_is_ram(region) || memory_region_is_ram_device(region) ||
        region->readonly || memory_region_is_romd(region) ||
        !qemu_ram_is_shared(region->ram_block)) {
        return false;
    }
    fd = memory_region_get_fd(region);
    if (fd < 0 || daemon->ram_count == GPUSIM_BELL_MOST_REGIONS) {
        return false;
    }
    index = fd_index(hello, fd);
    if (index == GPUSIM_BELL_MOST_FDS) {
        return false;
    }
    memory_region_ref(region);
    ram = &daemon->ram[daemon->ram_count];
    *ram = (GpusimRam) {
        .gpa = int128_get64(start),
        .size = int128_get64(length),
        .offset = offset,
        .host = (uint8_t *)memory_region_get_ram_ptr(region) + offset,
        .region = region,
    };
    hello->message.regions[daemon->ram_count++] = (struct gpusim_bell_region) {
        .gpa = ram->gpa,
        .size_bytes = ram->size,
        .offset = gpusim_file_offset(region->ram_block) + offset,
        .fd_index = index,
    };
    return false;
}

static bool send_hello(Hello *hello)
{
    struct gpusim_bell_hello *head = &hello->message.head;
    size_t fd_bytes = head->fd_count * sizeof(int);
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(hello->fds))];
    } control = {};
    struct iovec data = {
        .iov_base = &hello->message,
        .iov_len = sizeof(*head) + head->region_count * sizeof(struct gpusim_bell_region),
    };
    struct msghdr message = {
        .msg_iov = &data,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = CMSG_SPACE(fd_bytes),
    };
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);

    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(fd_bytes);
    memcpy(CMSG_DATA(rights), hello->fds, fd_bytes);
    return sendmsg(hello->daemon->socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) ==
           (ssize_t)data.iov_len;
}

/* vCPU threads block all signals and QEMU ignores some: neither is for the daemon to inherit. */
static int spawn(pid_t *pid, char **argv, int socket)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    int error;

    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, socket, DAEMON_FD);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&files, DAEMON_FD + 1);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETPGROUP);
    error = posix_spawnp(pid, argv[0], &files, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return error;
}

static void on_socket(void *opaque)
{
    gpusim_daemon_receive(opaque);
}

GpusimDaemon *gpusim_daemon_start(char **argv, uint32_t generation, bool paused, int *status)
{
    g_autofree Hello *hello = g_new0(Hello, 1);
    GpusimDaemon *daemon = g_new0(GpusimDaemon, 1);
    struct gpusim_bell_hello *head = &hello->message.head;
    int sockets[2] = { -1, -1 };
    int page_fd = -1;
    int error;

    daemon->references = 1;
    daemon->state = GPUSIM_DAEMON_ENDED;
    daemon->generation = generation;
    daemon->socket = -1;
    hello->daemon = daemon;
    *status = -ENODEV;

    head->fd_count = 1;
    WITH_RCU_READ_LOCK_GUARD() {
        flatview_for_each_range(address_space_to_flatview(&address_space_memory), add_range,
                                hello);
    }
    if (!daemon->ram_count) {
        gpusim_refuse("guest memory is not shared, so the daemon can't reach it; start QEMU "
                      "with  -object memory-backend-memfd,id=ram,share=on,size=SIZE "
                      "-machine ...,memory-backend=ram");
        goto fail;
    }

    daemon->page = qemu_memfd_alloc("gpusim-bell", GPUSIM_BELL_PAGE_BYTES,
                                    F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL, &page_fd, NULL);
    if (!daemon->page || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets)) {
        gpusim_refuse("no memory or socket to share with the daemon: %s", strerror(errno));
        *status = -ENOMEM;
        goto fail;
    }
    daemon->page->magic = GPUSIM_BELL_MAGIC;
    daemon->page->version = GPUSIM_BELL_VERSION;
    daemon->page->generation = generation;
    daemon->page->pause_request = paused;
    daemon->socket = sockets[0];
    hello->fds[0] = page_fd;
    head->magic = GPUSIM_BELL_MAGIC;
    head->version = GPUSIM_BELL_VERSION;
    head->wire_version = GPUSIM_WIRE_VERSION;
    head->generation = generation;
    head->region_count = daemon->ram_count;
    if (!send_hello(hello)) {
        gpusim_refuse("can't send guest memory to the daemon: %s", strerror(errno));
        goto fail;
    }

    error = spawn(&daemon->pid, argv, sockets[1]);
    if (error) {
        gpusim_refuse("can't start %s: %s", argv[0], strerror(error));
        goto fail;
    }
    close(sockets[1]);
    close(page_fd);
    daemon->state = GPUSIM_DAEMON_STARTING;
    daemon->ready_by_ns = get_clock() + READY_WITHIN_NS;
    qemu_set_fd_handler(daemon->socket, on_socket, NULL, daemon);
    *status = 0;
    return daemon;

fail:
    if (sockets[1] >= 0) {
        close(sockets[1]);
    }
    if (page_fd >= 0) {
        close(page_fd);
    }
    gpusim_daemon_unref(daemon);
    return NULL;
}

static void report_end(int how)
{
    if (WIFSIGNALED(how)) {
        gpusim_refuse("the daemon ended by signal %d", WTERMSIG(how));
    } else {
        gpusim_refuse("the daemon ended with status %d; what it said stands on QEMU's standard error",
                      WEXITSTATUS(how));
    }
}

static int end(GpusimDaemon *daemon)
{
    int how = 0;

    qemu_set_fd_handler(daemon->socket, NULL, NULL, NULL);
    kill(-daemon->pid, SIGKILL); /* its group, */
    kill(daemon->pid, SIGKILL);  /* and it, should it have left */
    while (waitpid(daemon->pid, &how, 0) < 0 && errno == EINTR) {
    }
    qatomic_set(&daemon->state, GPUSIM_DAEMON_ENDED);
    return how;
}

void gpusim_daemon_end(GpusimDaemon *daemon)
{
    if (daemon->state != GPUSIM_DAEMON_ENDED) {
        end(daemon);
    }
}

void gpusim_daemon_receive(GpusimDaemon *daemon)
{
    struct gpusim_bell_ready ready;
    ssize_t bytes;

    if (daemon->state == GPUSIM_DAEMON_ENDED) {
        return;
    }
    bytes = recv(daemon->socket, &ready, sizeof(ready), MSG_DONTWAIT);
    if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (bytes <= 0) {
        daemon->status = -EIO;
        report_end(end(daemon));
        return;
    }
    if (daemon->state != GPUSIM_DAEMON_STARTING) {
        return;
    }
    if (bytes != sizeof(ready) || ready.magic != GPUSIM_BELL_MAGIC ||
        ready.version != GPUSIM_BELL_VERSION || ready.wire_version != GPUSIM_WIRE_VERSION ||
        ready.generation != daemon->generation) {
        gpusim_refuse("the daemon's answer makes no sense; are QEMU's patch and the daemon "
                      "of one version?");
        daemon->status = -EPROTO;
        end(daemon);
    } else if (ready.status) {
        gpusim_refuse("the daemon can't serve: %.*s", (int)sizeof(ready.text), ready.text);
        daemon->status = ready.status < 0 && ready.status >= -4095 ? ready.status : -EIO;
        end(daemon);
    } else {
        qatomic_set(&daemon->state, GPUSIM_DAEMON_READY);
    }
}

void gpusim_daemon_unref(GpusimDaemon *daemon)
{
    unsigned i;

    if (--daemon->references) {
        return;
    }
    gpusim_daemon_end(daemon);
    if (daemon->socket >= 0) {
        close(daemon->socket);
    }
    if (daemon->page) {
        munmap(daemon->page, GPUSIM_BELL_PAGE_BYTES);
    }
    for (i = 0; i < daemon->ram_count; i++) {
        memory_region_unref(daemon->ram[i].region);
    }
    g_free(daemon);
}
