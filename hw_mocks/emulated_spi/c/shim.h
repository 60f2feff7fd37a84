/*
 * Preloaded into an unmodified SPI program, this library makes /dev/spidev<bus>.<cs> appear and
 * forwards every transfer to a board process (server.py).
 *
 * ARMATURE_SPIDEV_DIR names a directory with one SOCK_SEQPACKET socket per device, called as the
 * node is ("spidev0.0"). open() returns the connected socket itself, so the kernel keeps doing what
 * it does for any descriptor: close(), dup(), close-on-exec and the end of the process need no help
 * from here. One packet each way is one chip-select window. Mode, word size and speed live in the
 * server, as they live in the kernel: they belong to the device, not to whoever opened it. A board
 * that has its next reply ready offers it in a file beside the socket ("spidev0.0.dma"), which
 * dma_buffer.h describes: then a transfer of that length needs no packet.
 *
 * While the variable is set no /dev/spidev<bus>.<cs> is opened in the kernel, even if it exists: a
 * run on the mock must not move a real motor because an emulated device was removed or misnamed.
 *
 * Not emulated: the time a transfer takes (clock, delay_usecs), cs_change on the last transfer of a
 * message, symbolic links to a node, file locks on it, streams (fopen fails), poll() and select(),
 * and what glibc calls inside itself (glob(3), stdio on a redirected descriptor) or programs
 * without it do. Only 64-bit glibc systems.
 *
 * shim_lock.c       the lock that threads share
 * shim_nodes.c      which paths and descriptors are ours
 * shim_memory.c     the program's memory, whose addresses may be bad
 * shim_transfers.c  what is said to the board
 * shim_calls.c      open, ioctl, read, write, dup and their like
 * shim_metadata.c   stat, access and their like
 * shim_listings.c   listing /dev
 */
#ifndef ARMATURE_SHIM_H
#define ARMATURE_SHIM_H

#define _GNU_SOURCE
#undef _FORTIFY_SOURCE /* its inline open() and read() would clash with the ones defined here */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "dma_buffer.h"

_Static_assert(sizeof(long) == 8, "struct stat and struct stat64 are taken for the same");

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
    X(fopen) X(fopen64) X(open) X(open64) X(openat) X(openat64) X(__open_2) X(__open64_2) X(__openat_2) \
    X(__openat64_2) X(ioctl) X(fcntl) X(fcntl64) X(read) X(__read_chk) X(write) X(dup) X(dup2) \
    X(dup3) X(stat) X(stat64) X(lstat) X(lstat64) X(fstat) X(fstat64) X(fstatat) X(fstatat64) \
    X(__xstat) X(__xstat64) X(__lxstat) X(__lxstat64) X(__fxstat) X(__fxstat64) X(__fxstatat) \
    X(__fxstatat64) X(statx) X(access) X(euidaccess) X(eaccess) X(faccessat) X(getxattr) \
    X(lgetxattr) X(opendir) X(fdopendir) X(readdir) X(readdir64) X(rewinddir) X(closedir)

#define DECLARE(name) extern __typeof__(name) *real_##name;
FOR_EACH_WRAPPED(DECLARE)
#undef DECLARE

/* Another library's constructor may call us before our own has run. */
void initialise(void);
#define REAL(name) (*(real_##name ? real_##name : (initialise(), real_##name)))

/* What programs call is all that they may see of this library. */
#define PUBLIC_BEGIN _Pragma("GCC visibility push(default)")
#define PUBLIC_END _Pragma("GCC visibility pop")

/* ---- The lock ---- */

/*
 * One lock for everything that threads share here: the server answers one at a time anyway. Signals
 * and cancellation wait meanwhile: a handler may well do a transfer itself (and switch motors off),
 * and a thread must not end with the lock. Who waits goes before who comes back.
 */
struct hold {
    sigset_t signals;
    int cancellation;
};
struct hold hold(void);
void release(struct hold held);
/* A fork holds the lock; the child has a new one, and gets signals once it is in order. */
void hold_for_fork(void);
void release_in_parent(void);
void renew_in_child(void);
void let_through_in_child(void);

/* ---- Which paths and descriptors are ours ---- */

extern char directory[]; /* of the sockets; empty: do nothing at all */

/* What we know of a descriptor that is one of our devices. */
struct node {
    ino_t socket_ino; /* 0: never ours */
    dev_t dev;        /* what stat() says of the node */
    ino_t ino;
    dev_t rdev;
    struct dma_buffer *buffer; /* NULL: everything goes by socket */
};

/* The socket that stands for one of our nodes. */
struct target {
    struct sockaddr_un address;
    dev_t rdev;
};

/* stat without the wrappers: the name glibc exports for it depends on glibc's age. */
int plain_stat(int dirfd, const char *path, struct stat *st, int flags);
bool is_dev_directory(int dirfd);
/* Reads "spidev<bus>.<cs>" and nothing else. */
bool parse_name(const char *name, dev_t *rdev);
/* Whether a path is one of our nodes, whether or not that device exists. */
bool find_target(int dirfd, const char *path, struct target *target);
/* What a descriptor is, NULL if not ours. */
const struct node *find_node(int fd);
/* Takes note of a descriptor's duplicate; returns that. */
int duplicated(int from, int to);
/* Whether the call was about a node of ours; then *fd is its result. */
bool open_node(int dirfd, const char *path, int flags, int *fd);

/* ---- The program's memory. The caller holds the lock. ---- */

/* Copy from and to an address of the program's: whether that is good; else errno is EFAULT. */
bool copy_in(void *ours, const void *theirs, size_t size);
bool copy_out(void *theirs, const void *ours, size_t size);

/* ---- What is said to the board ---- */

int spidev_ioctl(int fd, const struct node *node, uint32_t number, void *argument);
/* read() and write(): half of a transfer, the other half zeros or thrown away. */
ssize_t transfer_half(int fd, void *rx, const void *tx, size_t size);

static inline int fail(int error)
{
    errno = error;
    return -1;
}

#endif
