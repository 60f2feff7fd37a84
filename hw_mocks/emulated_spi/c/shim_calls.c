/*
 * What programs call on the way to a device: open, ioctl, read, write, dup.
 *
 * Calls that glibc offers under several names are defined by a macro, once per name, so that each
 * goes on to the next library's function of the very same name.
 */
#include "shim.h"

#include <linux/spi/spidev.h>
#include <stdarg.h>

PUBLIC_BEGIN

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

/* A stream would read and write behind our back, so there is none. */
#define DEFINE_FOPEN(name) \
    FILE *name(const char *path, const char *mode) \
    { \
        struct target target; \
        if (!find_target(AT_FDCWD, path, &target)) \
            return REAL(name)(path, mode); \
        errno = EOPNOTSUPP; \
        return NULL; \
    }
DEFINE_FOPEN(fopen)
DEFINE_FOPEN(fopen64)

/* The kernel looks at 32 bits: a request kept in an int comes with its sign in the other half. */
int ioctl(int fd, unsigned long wide, ...)
{
    uint32_t number = (uint32_t)wide;
    va_list arguments;
    const struct node *node;
    struct hold held;
    void *argument;
    int result;
    va_start(arguments, wide);
    argument = va_arg(arguments, void *);
    va_end(arguments);
    if ((node = find_node(fd)) == NULL)
        return REAL(ioctl)(fd, wide, argument);
    if (number == FIONBIO)
        return 0; /* spidev ignores it; our socket must keep blocking */
    if (_IOC_TYPE(number) != SPI_IOC_MAGIC)
        return REAL(ioctl)(fd, wide, argument);
    held = hold();
    result = spidev_ioctl(fd, node, number, argument);
    release(held);
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

PUBLIC_END
