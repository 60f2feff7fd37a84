/*
 * Preloaded into an unmodified SPI program, this library makes /dev/spidev<bus>.<cs> appear and
 * forwards every transfer to a board process (hw_mocks/spidev_server.py).
 *
 * ARMATURE_SPIDEV_DIR names a directory with one SOCK_SEQPACKET socket per device, called as the
 * node is ("spidev0.0"). open() returns the connected socket itself, so the kernel keeps doing what
 * it does for any descriptor: close(), dup(), close-on-exec and the end of the process need no help
 * from here. One packet each way is one chip-select window. Mode, word size and speed live in the
 * server, as they live in the kernel: they belong to the device, not to whoever opened it.
 *
 * While the variable is set no /dev/spidev<bus>.<cs> reaches the kernel, even if it exists: a run
 * on the mock must not move a real motor because an emulated device was removed or misnamed.
 *
 * Not emulated: the time a transfer takes (clock, delay_usecs), cs_change on the last transfer of a
 * message, symbolic links to a node, file locks on it, poll() and select(), and what glibc calls
 * inside itself (fopen, fread, glob(3)) or programs without it do. Only 64-bit glibc systems.
 */
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE /* its inline open() and read() would clash with the ones defined here */

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/spi/spidev.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(long) == 8, "struct stat and struct stat64 are taken for the same");

/* ---- The packets. spidev_server.py states them too; change VERSION with either. ---- */

enum { VERSION = 1 };
enum operation { TRANSFER = 0, GET = 1, SET = 2 };
enum setting { MODE = 0, BITS_PER_WORD = 1, SPEED_HZ = 2 };

enum {
    BUFSIZ_BYTES = 4096,            /* spidev's default bufsiz: limit of tx and of rx per message */
    WINDOW_BYTES = 2 * BUFSIZ_BYTES /* a message may send that much, then receive that much */
};

struct request {
    uint8_t magic[3]; /* tells the server our packets from what libc writes without asking us */
    uint8_t version;
    uint8_t operation;
    uint8_t setting;       /* GET, SET */
    uint8_t bits_per_word; /* TRANSFER: 0 = as set for the device */
    uint8_t reserved;
    uint32_t sequence;
    uint32_t value; /* SET: the new value; TRANSFER: speed in Hz, 0 = as set for the device */
    uint8_t data[WINDOW_BYTES];
};

struct reply {
    uint8_t magic[3];
    uint8_t version;
    uint32_t sequence;
    uint32_t error; /* an errno, 0 = done */
    uint32_t value; /* GET */
    uint8_t data[WINDOW_BYTES];
};

enum {
    REQUEST_HEADER = offsetof(struct request, data),
    REPLY_HEADER = offsetof(struct reply, data),
    SPIN_NS = 200000,
    TIMEOUT_S = 2, /* a stopped board process: ETIMEDOUT, as from a stuck SPI controller */
    SPIDEV_MAJOR = 153,
    TRACKED_FDS = 4096,
    INHERITED_FDS = 256, /* looked at when a program starts */
    LISTINGS = 16
};

/* ---- The functions behind ours, which may be those of another preloaded library ---- */

int __open_2(const char *, int);
int __open64_2(const char *, int);
int __openat_2(int, const char *, int);
int __openat64_2(int, const char *, int);
ssize_t __read_chk(int, void *, size_t, size_t);
int __xstat(int, const char *, struct stat *);
int __xstat64(int, const char *, struct stat64 *);
int __lxstat(int, const char *, struct stat *);
int __lxstat64(int, const char *, struct stat64 *);
int __fxstat(int, int, struct stat *);
int __fxstat64(int, int, struct stat64 *);
int __fxstatat(int, int, const char *, struct stat *, int);
int __fxstatat64(int, int, const char *, struct stat64 *, int);

#define FOR_EACH_WRAPPED(X) \
    X(open) X(open64) X(openat) X(openat64) X(__open_2) X(__open64_2) X(__openat_2) \
    X(__openat64_2) X(ioctl) X(fcntl) X(fcntl64) X(read) X(__read_chk) X(write) X(dup) X(dup2) \
    X(dup3) X(stat) X(stat64) X(lstat) X(lstat64) X(fstat) X(fstat64) X(fstatat) X(fstatat64) \
    X(__xstat) X(__xstat64) X(__lxstat) X(__lxstat64) X(__fxstat) X(__fxstat64) X(__fxstatat) \
    X(__fxstatat64) X(statx) X(access) X(euidaccess) X(eaccess) X(faccessat) X(getxattr) \
    X(lgetxattr) X(opendir) X(fdopendir) X(readdir) X(readdir64) X(rewinddir) X(closedir)

#define DECLARE(name) static __typeof__(name) *real_##name;
FOR_EACH_WRAPPED(DECLARE)

/* Another library's constructor may call us before our own has run. */
static void initialise(void);
#define REAL(name) (*(real_##name ? real_##name : (initialise(), real_##name)))

/* ---- State ---- */

static bool initialised;
static char directory[sizeof(((struct sockaddr_un *)0)->sun_path)]; /* empty: do nothing at all */
static struct stat dev_directory;

/*
 * What we know of each descriptor. An entry holds only as long as the descriptor still is that very
 * socket, which is checked by its inode at each use. So it does not matter how a descriptor was
 * closed (close_range, fclose, a vfork child that shares our memory and closes everything).
 */
static struct node {
    ino_t socket_ino; /* 0: never ours */
    dev_t dev;        /* what stat() says of the node */
    ino_t ino;
    dev_t rdev;
} nodes[TRACKED_FDS];

/* Directory streams on /dev, each with the stream on our directory that continues it. */
static struct listing {
    DIR *dev;
    DIR *sockets;
} listings[LISTINGS];
static int listings_in_use;

/*
 * One lock for everything: the server answers one transfer at a time anyway. It covers send and
 * receive together, so that threads sharing a socket get their own replies, and these buffers.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t last_sequence;
static struct request request = {.magic = {'S', 'P', 'I'}, .version = VERSION};
static struct reply reply;

static int fail(int error)
{
    errno = error;
    return -1;
}

/* ---- Names ---- */

/* stat without the wrappers: the name glibc exports for it depends on glibc's age. */
static int plain_stat(int dirfd, const char *path, struct stat *st, int flags)
{
    return (int)syscall(SYS_newfstatat, dirfd, path, st, flags);
}

static bool is_dev_directory(int dirfd)
{
    struct stat st;
    if (plain_stat(dirfd, "", &st, AT_EMPTY_PATH) != 0)
        return false;
    return st.st_dev == dev_directory.st_dev && st.st_ino == dev_directory.st_ino;
}

/* Reads one to three digits; returns what follows them, or NULL. */
static const char *parse_number(const char *text, unsigned *number)
{
    const char *start = text;
    for (*number = 0; *text >= '0' && *text <= '9' && text - start < 3; text++)
        *number = *number * 10 + (unsigned)(*text - '0');
    return text > start ? text : NULL;
}

/* Reads "spidev<bus>.<cs>" and nothing else (by hand: this runs in a forked child too). */
static bool parse_name(const char *name, dev_t *rdev)
{
    unsigned bus, cs;
    if (strncmp(name, "spidev", 6) != 0 || (name = parse_number(name + 6, &bus)) == NULL
        || *name != '.' || (name = parse_number(name + 1, &cs)) == NULL || *name != '\0')
        return false;
    *rdev = makedev(SPIDEV_MAJOR, bus * 1000 + cs);
    return true;
}

/* The socket that stands for one of our nodes. */
struct target {
    struct sockaddr_un address;
    dev_t rdev;
};

/* Whether a path is one of our nodes, whether or not that device exists. */
static bool find_target(int dirfd, const char *path, struct target *target)
{
    const char *name = path;
    int saved_errno = errno, length;
    if (!initialised)
        initialise();
    if (directory[0] == '\0')
        return false;
    if (strncmp(path, "/dev/", 5) == 0)
        name = path + 5;
    if (!parse_name(name, &target->rdev))
        return false;
    if (name == path && !is_dev_directory(dirfd)) {
        errno = saved_errno;
        return false;
    }
    target->address.sun_family = AF_UNIX;
    length = snprintf(target->address.sun_path, sizeof target->address.sun_path, "%s/%s",
                      directory, name);
    return length < (int)sizeof target->address.sun_path;
}

/* The path to ask the kernel about: the socket's for one of our nodes, else the path itself. */
static const char *redirect(int dirfd, const char *path, struct target *target)
{
    return find_target(dirfd, path, target) ? target->address.sun_path : path;
}

/* ---- Descriptors ---- */

/* Takes note of a descriptor if it is a socket connected to one of our devices. */
static bool adopt(int fd, struct sockaddr_un *peer)
{
    struct stat end, node;
    socklen_t size = sizeof *peer;
    size_t prefix = strlen(directory);
    dev_t rdev;

    memset(peer, 0, sizeof *peer);
    if (fd < 0 || fd >= TRACKED_FDS || getpeername(fd, (struct sockaddr *)peer, &size) != 0
        || peer->sun_family != AF_UNIX || strncmp(peer->sun_path, directory, prefix) != 0
        || peer->sun_path[prefix] != '/' || !parse_name(peer->sun_path + prefix + 1, &rdev)
        || plain_stat(fd, "", &end, AT_EMPTY_PATH) != 0)
        return false;
    if (plain_stat(AT_FDCWD, peer->sun_path, &node, 0) != 0)
        node = end; /* the device has vanished meanwhile; the descriptor stays */
    nodes[fd] = (struct node){end.st_ino, node.st_dev, node.st_ino, rdev};
    return true;
}

static const struct node *find_node(int fd)
{
    struct stat end;
    if (fd < 0 || fd >= TRACKED_FDS || nodes[fd].socket_ino == 0)
        return NULL;
    if (plain_stat(fd, "", &end, AT_EMPTY_PATH) != 0 || !S_ISSOCK(end.st_mode)
        || end.st_ino != nodes[fd].socket_ino)
        return NULL;
    return &nodes[fd];
}

static int duplicated(int from, int to)
{
    if (to >= 0 && to < TRACKED_FDS && find_node(from) != NULL)
        nodes[to] = nodes[from];
    return to;
}

static int connect_to(const struct sockaddr_un *address, int flags)
{
    const struct timeval timeout = {.tv_sec = TIMEOUT_S};
    int result, fd = socket(AF_UNIX, SOCK_SEQPACKET | (flags & O_CLOEXEC ? SOCK_CLOEXEC : 0), 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
    do
        result = connect(fd, (const struct sockaddr *)address, sizeof *address);
    while (result != 0 && errno == EINTR);
    if (result == 0)
        return fd;
    /* A socket that nobody serves is a node without a driver, ENXIO in the kernel too. */
    result = errno == ECONNREFUSED ? ENXIO : errno == EAGAIN ? ETIMEDOUT : errno;
    close(fd);
    return fail(result);
}

/*
 * Gives an inherited descriptor a connection of its own. Parent and child sharing one socket would
 * take each other's replies; the device's settings are the server's, so nothing is lost.
 */
static void reconnect(int fd)
{
    struct sockaddr_un peer;
    int flags = REAL(fcntl)(fd, F_GETFD), fresh;
    if (flags < 0 || !adopt(fd, &peer))
        return;
    fresh = connect_to(&peer, 0);
    if (fresh < 0)
        return; /* the device has gone: the old socket says so at the next transfer */
    REAL(dup3)(fresh, fd, flags & FD_CLOEXEC ? O_CLOEXEC : 0);
    close(fresh);
    adopt(fd, &peer);
}

static void before_fork(void) { pthread_mutex_lock(&lock); }

static void after_fork_in_parent(void) { pthread_mutex_unlock(&lock); }

static void after_fork_in_child(void)
{
    pthread_mutex_init(&lock, NULL);
    for (int fd = 0; fd < TRACKED_FDS; fd++)
        if (find_node(fd) != NULL)
            reconnect(fd);
}

__attribute__((constructor)) static void initialise(void)
{
    const char *value;
    struct sockaddr_un peer;
    int saved_errno = errno;
    if (initialised)
        return;
    initialised = true;
#define LOOK_UP(name) real_##name = (__typeof__(name) *)dlsym(RTLD_NEXT, #name);
    FOR_EACH_WRAPPED(LOOK_UP)
    value = secure_getenv("ARMATURE_SPIDEV_DIR");
    if (value != NULL && value[0] == '/' && strlen(value) < sizeof directory
        && plain_stat(AT_FDCWD, "/dev", &dev_directory, 0) == 0) {
        strcpy(directory, value);
        pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
        for (int fd = 0; fd < INHERITED_FDS; fd++) /* `program > /dev/spidev0.0` in a shell */
            if (adopt(fd, &peer))
                reconnect(fd);
    }
    errno = saved_errno;
}

/* Whether the call was about a node of ours; then *fd is its result. */
static bool open_node(int dirfd, const char *path, int flags, int *fd)
{
    struct target target;
    struct sockaddr_un peer;
    struct stat socket_file;
    if (!find_target(dirfd, path, &target))
        return false;
    if (plain_stat(AT_FDCWD, target.address.sun_path, &socket_file, 0) != 0)
        *fd = -1;
    else if (flags & O_DIRECTORY)
        *fd = fail(ENOTDIR);
    else if (flags & O_CREAT && flags & O_EXCL)
        *fd = fail(EEXIST);
    else
        *fd = connect_to(&target.address, flags);
    if (*fd >= 0 && !adopt(*fd, &peer)) {
        close(*fd);
        *fd = fail(EMFILE); /* beyond our table */
    }
    return true;
}

/* ---- Talking to the board. The caller holds the lock. ---- */

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/*
 * Receives a packet into `reply`. Looks for a moment before it sleeps, as SPI drivers do for short
 * transfers: waking a sleeping core costs more than the whole exchange (measured on a virtual
 * machine: 110 instead of 30 µs). Yielding lets a board on the same core answer meanwhile.
 */
static ssize_t receive(int fd)
{
    int64_t deadline_ns = now_ns() + SPIN_NS;
    ssize_t done;
    do {
        done = recv(fd, &reply, sizeof reply, MSG_DONTWAIT);
        if (done >= 0 || errno != EAGAIN)
            return done;
        sched_yield();
    } while (now_ns() < deadline_ns);
    return recv(fd, &reply, sizeof reply, 0);
}

/*
 * Sends `request` with `size` bytes of data and waits for its reply. Returns how many bytes of data
 * `reply` holds, at most `size`, or -1 with errno.
 */
static ssize_t exchange(int fd, enum operation operation, size_t size)
{
    ssize_t done;
    request.operation = (uint8_t)operation;
    request.sequence = ++last_sequence;
    do
        done = send(fd, &request, REQUEST_HEADER + size, MSG_NOSIGNAL);
    while (done < 0 && errno == EINTR);
    if (done < 0)
        return fail(errno == EAGAIN ? ETIMEDOUT : ENODEV);
    do { /* skip the reply to an exchange that was given up */
        do
            done = receive(fd);
        while (done < 0 && errno == EINTR);
        if (done < 0 && errno == EAGAIN)
            return fail(ETIMEDOUT);
        if (done <= 0)
            return fail(ENODEV); /* the server is gone, or took the device away */
        if (done < REPLY_HEADER || memcmp(reply.magic, request.magic, sizeof reply.magic) != 0
            || reply.version != VERSION)
            return fail(EPROTO);
    } while (reply.sequence != last_sequence);
    if (reply.error != 0)
        return fail((int)reply.error);
    done -= REPLY_HEADER;
    return done < (ssize_t)size ? done : (ssize_t)size;
}

static int get_setting(int fd, enum setting setting, uint32_t *value)
{
    request.setting = (uint8_t)setting;
    if (exchange(fd, GET, 0) < 0)
        return -1;
    *value = reply.value;
    return 0;
}

static int set_setting(int fd, enum setting setting, uint32_t value)
{
    request.setting = (uint8_t)setting;
    request.value = value;
    return exchange(fd, SET, 0) < 0 ? -1 : 0;
}

/* read() and write(): half of a transfer, the other half zeros or thrown away. */
static ssize_t transfer_half(int fd, void *rx, const void *tx, size_t size)
{
    ssize_t done;
    if (size > BUFSIZ_BYTES)
        return fail(EMSGSIZE);
    if (size == 0)
        return 0;
    pthread_mutex_lock(&lock);
    request.bits_per_word = 0;
    request.value = 0;
    if (tx != NULL)
        memcpy(request.data, tx, size);
    else
        memset(request.data, 0, size);
    done = exchange(fd, TRANSFER, size);
    if (done > 0 && rx != NULL)
        memcpy(rx, reply.data, (size_t)done);
    pthread_mutex_unlock(&lock);
    return done;
}

static void *pointer(uint64_t address) { return (void *)(uintptr_t)address; }

/*
 * One chip-select window: transfers first..last. The board is told the fastest clock and the widest
 * word of the window, should they differ within it.
 */
static ssize_t transfer_window(int fd, const struct spi_ioc_transfer *first,
                               const struct spi_ioc_transfer *last)
{
    const struct spi_ioc_transfer *part;
    size_t size = 0, offset = 0;
    ssize_t done;
    request.bits_per_word = 0;
    request.value = 0;
    for (part = first; part <= last; part++) {
        if (part->tx_buf != 0)
            memcpy(request.data + size, pointer(part->tx_buf), part->len);
        else
            memset(request.data + size, 0, part->len);
        size += part->len;
        if (part->bits_per_word > request.bits_per_word)
            request.bits_per_word = part->bits_per_word;
        if (part->speed_hz > request.value)
            request.value = part->speed_hz;
    }
    if (size == 0)
        return 0;
    done = exchange(fd, TRANSFER, size);
    if (done < 0)
        return -1;
    memset(reply.data + done, 0, size - (size_t)done);
    for (part = first; part <= last; offset += part->len, part++)
        if (part->rx_buf != 0)
            memcpy(pointer(part->rx_buf), reply.data + offset, part->len);
    return done;
}

/* SPI_IOC_MESSAGE(count). Returns how many bytes were clocked: all, unless a board cut it short. */
static int transfer_message(int fd, const struct spi_ioc_transfer *parts, size_t count)
{
    uint64_t tx = 0, rx = 0, all = 0;
    size_t first = 0;
    int total = 0;
    for (size_t i = 0; i < count; i++) {
        tx += parts[i].tx_buf != 0 ? parts[i].len : 0;
        rx += parts[i].rx_buf != 0 ? parts[i].len : 0;
        all += parts[i].len;
    }
    if (tx > BUFSIZ_BYTES || rx > BUFSIZ_BYTES || all > WINDOW_BYTES)
        return fail(EMSGSIZE);
    for (size_t i = 0; i < count; i++) {
        size_t size = 0;
        ssize_t done;
        if (!parts[i].cs_change && i + 1 < count)
            continue;
        done = transfer_window(fd, parts + first, parts + i);
        if (done < 0)
            return -1;
        total += (int)done;
        for (; first <= i; first++)
            size += parts[first].len;
        if ((size_t)done < size) {
            for (; first < count; first++) /* never clocked */
                if (parts[first].rx_buf != 0)
                    memset(pointer(parts[first].rx_buf), 0, parts[first].len);
            break;
        }
    }
    return total;
}

static int spidev_ioctl(int fd, unsigned long number, void *argument)
{
    uint8_t *byte = argument;
    uint32_t *word = argument, value;
    int result;
    switch (number) {
    case SPI_IOC_RD_MODE:
    case SPI_IOC_RD_LSB_FIRST:
        if ((result = get_setting(fd, MODE, &value)) == 0)
            *byte = number == SPI_IOC_RD_MODE ? (uint8_t)value : (value & SPI_LSB_FIRST) != 0;
        return result;
    case SPI_IOC_RD_MODE32:
        return get_setting(fd, MODE, word);
    case SPI_IOC_RD_BITS_PER_WORD:
        if ((result = get_setting(fd, BITS_PER_WORD, &value)) == 0)
            *byte = (uint8_t)value;
        return result;
    case SPI_IOC_RD_MAX_SPEED_HZ:
        return get_setting(fd, SPEED_HZ, word);
    case SPI_IOC_WR_MODE:
        return set_setting(fd, MODE, *byte);
    case SPI_IOC_WR_MODE32:
        return set_setting(fd, MODE, *word);
    case SPI_IOC_WR_LSB_FIRST:
        if (get_setting(fd, MODE, &value) != 0)
            return -1;
        value &= ~(uint32_t)SPI_LSB_FIRST;
        return set_setting(fd, MODE, *byte ? value | SPI_LSB_FIRST : value);
    case SPI_IOC_WR_BITS_PER_WORD:
        return set_setting(fd, BITS_PER_WORD, *byte);
    case SPI_IOC_WR_MAX_SPEED_HZ:
        return set_setting(fd, SPEED_HZ, *word);
    default:
        break;
    }
    if (_IOC_NR(number) != 0 || _IOC_DIR(number) != _IOC_WRITE)
        return fail(ENOTTY);
    if (_IOC_SIZE(number) % sizeof(struct spi_ioc_transfer) != 0)
        return fail(EINVAL);
    return transfer_message(fd, argument, _IOC_SIZE(number) / sizeof(struct spi_ioc_transfer));
}

/*
 * ---- What programs call ----
 *
 * Calls that glibc offers under several names are defined by a macro, once per name, so that each
 * goes on to the next library's function of the very same name.
 */

/* Variadic arguments must be fetched, but only if they are there. */
#define FETCH_MODE(mode, flags) \
    mode_t mode = 0; \
    if ((flags) & O_CREAT || ((flags) & O_TMPFILE) == O_TMPFILE) { \
        va_list arguments; \
        va_start(arguments, flags); \
        mode = va_arg(arguments, mode_t); \
        va_end(arguments); \
    }

#define DEFINE_OPEN(name) \
    int name(const char *path, int flags, ...) \
    { \
        int fd; \
        FETCH_MODE(mode, flags) \
        return open_node(AT_FDCWD, path, flags, &fd) ? fd : REAL(name)(path, flags, mode); \
    }
DEFINE_OPEN(open)
DEFINE_OPEN(open64)

#define DEFINE_OPENAT(name) \
    int name(int dirfd, const char *path, int flags, ...) \
    { \
        int fd; \
        FETCH_MODE(mode, flags) \
        return open_node(dirfd, path, flags, &fd) ? fd : REAL(name)(dirfd, path, flags, mode); \
    }
DEFINE_OPENAT(openat)
DEFINE_OPENAT(openat64)

/* The names a program built with _FORTIFY_SOURCE uses. */
#define DEFINE_OPEN_2(name) \
    int name(const char *path, int flags) \
    { \
        int fd; \
        return open_node(AT_FDCWD, path, flags, &fd) ? fd : REAL(name)(path, flags); \
    }
DEFINE_OPEN_2(__open_2)
DEFINE_OPEN_2(__open64_2)

#define DEFINE_OPENAT_2(name) \
    int name(int dirfd, const char *path, int flags) \
    { \
        int fd; \
        return open_node(dirfd, path, flags, &fd) ? fd : REAL(name)(dirfd, path, flags); \
    }
DEFINE_OPENAT_2(__openat_2)
DEFINE_OPENAT_2(__openat64_2)

int ioctl(int fd, unsigned long number, ...)
{
    va_list arguments;
    void *argument;
    int result;
    va_start(arguments, number);
    argument = va_arg(arguments, void *);
    va_end(arguments);
    if (find_node(fd) == NULL)
        return REAL(ioctl)(fd, number, argument);
    if (number == FIONBIO)
        return 0; /* spidev ignores it; our socket must keep blocking */
    if (_IOC_TYPE(number) != SPI_IOC_MAGIC)
        return REAL(ioctl)(fd, number, argument);
    pthread_mutex_lock(&lock);
    result = spidev_ioctl(fd, number, argument);
    pthread_mutex_unlock(&lock);
    return result;
}

#define DEFINE_FCNTL(name) \
    int name(int fd, int command, ...) \
    { \
        va_list arguments; \
        long argument; \
        va_start(arguments, command); \
        argument = va_arg(arguments, long); \
        va_end(arguments); \
        if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) \
            return duplicated(fd, REAL(name)(fd, command, argument)); \
        if (command == F_SETFL && find_node(fd) != NULL) \
            argument &= ~(long)O_NONBLOCK; /* as FIONBIO above */ \
        return REAL(name)(fd, command, argument); \
    }
DEFINE_FCNTL(fcntl)
DEFINE_FCNTL(fcntl64)

ssize_t read(int fd, void *buffer, size_t size)
{
    return find_node(fd) != NULL ? transfer_half(fd, buffer, NULL, size)
                                 : REAL(read)(fd, buffer, size);
}

ssize_t __read_chk(int fd, void *buffer, size_t size, size_t capacity)
{
    return find_node(fd) != NULL && size <= capacity ? transfer_half(fd, buffer, NULL, size)
                                                     : REAL(__read_chk)(fd, buffer, size, capacity);
}

ssize_t write(int fd, const void *buffer, size_t size)
{
    return find_node(fd) != NULL ? transfer_half(fd, NULL, buffer, size)
                                 : REAL(write)(fd, buffer, size);
}

int dup(int fd) { return duplicated(fd, REAL(dup)(fd)); }

int dup2(int from, int to) { return duplicated(from, REAL(dup2)(from, to)); }

int dup3(int from, int to, int flags) { return duplicated(from, REAL(dup3)(from, to, flags)); }

/* ---- stat and friends: the socket's own answer, made to look like a device ---- */

/* The node's inode is its socket's, so that two emulations never look like the same device. */
static void make_device(struct stat *st, dev_t rdev)
{
    st->st_mode = S_IFCHR | 0660;
    st->st_rdev = rdev;
    st->st_size = 0;
}

static int stat_fd(int fd, const struct node *node, struct stat *st)
{
    if (plain_stat(fd, "", st, AT_EMPTY_PATH) != 0)
        return -1;
    st->st_dev = node->dev;
    st->st_ino = node->ino;
    make_device(st, node->rdev);
    return 0;
}

/* Whether the call was about a node of ours; then *result is its result. */
static bool stat_node(int dirfd, const char *path, struct stat *st, int flags, int *result)
{
    struct target target;
    const struct node *node;
    if (path[0] == '\0' && flags & AT_EMPTY_PATH && (node = find_node(dirfd)) != NULL)
        *result = stat_fd(dirfd, node, st);
    else if (find_target(dirfd, path, &target)) {
        *result = plain_stat(AT_FDCWD, target.address.sun_path, st, 0);
        if (*result == 0)
            make_device(st, target.rdev);
    } else
        return false;
    return true;
}

#define DEFINE_STAT(name, type) \
    int name(const char *path, struct type *st) \
    { \
        int result; \
        return stat_node(AT_FDCWD, path, (struct stat *)st, 0, &result) ? result \
                                                                        : REAL(name)(path, st); \
    }
DEFINE_STAT(stat, stat)
DEFINE_STAT(stat64, stat64)
DEFINE_STAT(lstat, stat)
DEFINE_STAT(lstat64, stat64)

#define DEFINE_FSTAT(name, type) \
    int name(int fd, struct type *st) \
    { \
        const struct node *node = find_node(fd); \
        return node != NULL ? stat_fd(fd, node, (struct stat *)st) : REAL(name)(fd, st); \
    }
DEFINE_FSTAT(fstat, stat)
DEFINE_FSTAT(fstat64, stat64)

#define DEFINE_FSTATAT(name, type) \
    int name(int dirfd, const char *path, struct type *st, int flags) \
    { \
        int result; \
        return stat_node(dirfd, path, (struct stat *)st, flags, &result) \
                   ? result \
                   : REAL(name)(dirfd, path, st, flags); \
    }
DEFINE_FSTATAT(fstatat, stat)
DEFINE_FSTATAT(fstatat64, stat64)

/* The names programs built against a glibc older than 2.33 use (many prebuilt Pythons). */
#define DEFINE_XSTAT(name, type) \
    int name(int version, const char *path, struct type *st) \
    { \
        int result; \
        return stat_node(AT_FDCWD, path, (struct stat *)st, 0, &result) \
                   ? result \
                   : REAL(name)(version, path, st); \
    }
DEFINE_XSTAT(__xstat, stat)
DEFINE_XSTAT(__xstat64, stat64)
DEFINE_XSTAT(__lxstat, stat)
DEFINE_XSTAT(__lxstat64, stat64)

#define DEFINE_FXSTAT(name, type) \
    int name(int version, int fd, struct type *st) \
    { \
        const struct node *node = find_node(fd); \
        return node != NULL ? stat_fd(fd, node, (struct stat *)st) : REAL(name)(version, fd, st); \
    }
DEFINE_FXSTAT(__fxstat, stat)
DEFINE_FXSTAT(__fxstat64, stat64)

#define DEFINE_FXSTATAT(name, type) \
    int name(int version, int dirfd, const char *path, struct type *st, int flags) \
    { \
        int result; \
        return stat_node(dirfd, path, (struct stat *)st, flags, &result) \
                   ? result \
                   : REAL(name)(version, dirfd, path, st, flags); \
    }
DEFINE_FXSTATAT(__fxstatat, stat)
DEFINE_FXSTATAT(__fxstatat64, stat64)

int statx(int dirfd, const char *path, int flags, unsigned mask, struct statx *stx)
{
    struct stat st;
    int result;
    if (!stat_node(dirfd, path, &st, flags, &result))
        return REAL(statx)(dirfd, path, flags, mask, stx);
    if (result != 0)
        return result;
    *stx = (struct statx){
        .stx_mask = STATX_BASIC_STATS,
        .stx_blksize = (uint32_t)st.st_blksize,
        .stx_nlink = (uint32_t)st.st_nlink,
        .stx_uid = st.st_uid,
        .stx_gid = st.st_gid,
        .stx_mode = (uint16_t)st.st_mode,
        .stx_ino = st.st_ino,
        .stx_atime = {.tv_sec = st.st_atim.tv_sec, .tv_nsec = (uint32_t)st.st_atim.tv_nsec},
        .stx_mtime = {.tv_sec = st.st_mtim.tv_sec, .tv_nsec = (uint32_t)st.st_mtim.tv_nsec},
        .stx_ctime = {.tv_sec = st.st_ctim.tv_sec, .tv_nsec = (uint32_t)st.st_ctim.tv_nsec},
        .stx_rdev_major = major(st.st_rdev),
        .stx_rdev_minor = minor(st.st_rdev),
        .stx_dev_major = major(st.st_dev),
        .stx_dev_minor = minor(st.st_dev),
    };
    return 0;
}

/* The server gives its sockets mode 0660 as well: the kernel's answer for them is the right one. */
#define DEFINE_ACCESS(name) \
    int name(const char *path, int mode) \
    { \
        struct target target; \
        return REAL(name)(redirect(AT_FDCWD, path, &target), mode); \
    }
DEFINE_ACCESS(access)
DEFINE_ACCESS(euidaccess)
DEFINE_ACCESS(eaccess)

int faccessat(int dirfd, const char *path, int mode, int flags)
{
    struct target target;
    return REAL(faccessat)(dirfd, redirect(dirfd, path, &target), mode, flags);
}

/* `ls -l` asks for access-control lists and complains if the file is not there. */
#define DEFINE_GETXATTR(name) \
    ssize_t name(const char *path, const char *attribute, void *value, size_t size) \
    { \
        struct target target; \
        return REAL(name)(redirect(AT_FDCWD, path, &target), attribute, value, size); \
    }
DEFINE_GETXATTR(getxattr)
DEFINE_GETXATTR(lgetxattr)

/* ---- Listing /dev: the kernel's entries first, then ours ---- */

/* Finds the listing of a stream, or a free one for NULL. The caller holds the lock. */
static struct listing *find_listing(const DIR *stream)
{
    for (int i = 0; i < LISTINGS; i++)
        if (listings[i].dev == stream)
            return &listings[i];
    return NULL;
}

static DIR *opened(DIR *stream)
{
    struct listing *listing;
    int saved_errno = errno;
    if (stream != NULL && directory[0] != '\0' && is_dev_directory(dirfd(stream))) {
        pthread_mutex_lock(&lock);
        if ((listing = find_listing(NULL)) != NULL) {
            *listing = (struct listing){.dev = stream, .sockets = REAL(opendir)(directory)};
            __atomic_add_fetch(&listings_in_use, 1, __ATOMIC_RELEASE);
        }
        pthread_mutex_unlock(&lock);
    }
    errno = saved_errno;
    return stream;
}

DIR *opendir(const char *path) { return opened(REAL(opendir)(path)); }

DIR *fdopendir(int fd) { return opened(REAL(fdopendir)(fd)); }

static struct dirent *next_entry(const struct listing *listing, struct dirent *(*next)(DIR *))
{
    struct dirent *entry;
    int saved_errno = errno;
    dev_t rdev;
    errno = 0;
    while ((entry = next(listing->dev)) != NULL)
        if (!parse_name(entry->d_name, &rdev)) /* a real device is hidden */
            break;
    if (entry != NULL || errno != 0)
        return entry;
    while (listing->sockets != NULL && (entry = next(listing->sockets)) != NULL)
        if (parse_name(entry->d_name, &rdev)) {
            entry->d_type = DT_CHR;
            break;
        }
    errno = saved_errno;
    return entry;
}

#define DEFINE_READDIR(name, type) \
    struct type *name(DIR *stream) \
    { \
        const struct listing *listing; \
        struct type *entry; \
        if (__atomic_load_n(&listings_in_use, __ATOMIC_ACQUIRE) == 0) \
            return REAL(name)(stream); \
        pthread_mutex_lock(&lock); \
        listing = find_listing(stream); \
        entry = listing != NULL ? (void *)next_entry(listing, (void *)&REAL(name)) \
                                : REAL(name)(stream); \
        pthread_mutex_unlock(&lock); \
        return entry; \
    }
DEFINE_READDIR(readdir, dirent)
DEFINE_READDIR(readdir64, dirent64)

void rewinddir(DIR *stream)
{
    struct listing *listing;
    if (__atomic_load_n(&listings_in_use, __ATOMIC_ACQUIRE) != 0) {
        pthread_mutex_lock(&lock);
        if ((listing = find_listing(stream)) != NULL && listing->sockets != NULL)
            REAL(rewinddir)(listing->sockets);
        pthread_mutex_unlock(&lock);
    }
    REAL(rewinddir)(stream);
}

int closedir(DIR *stream)
{
    struct listing *listing;
    if (__atomic_load_n(&listings_in_use, __ATOMIC_ACQUIRE) != 0) {
        pthread_mutex_lock(&lock);
        if ((listing = find_listing(stream)) != NULL) {
            if (listing->sockets != NULL)
                REAL(closedir)(listing->sockets);
            *listing = (struct listing){NULL, NULL};
            __atomic_sub_fetch(&listings_in_use, 1, __ATOMIC_RELEASE);
        }
        pthread_mutex_unlock(&lock);
    }
    return REAL(closedir)(stream);
}
