/* stat and access: the socket's own answer, made to look like a device. */
#include "shim.h"

#include <sys/sysmacros.h>

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

/* The path to ask the kernel about: the socket's for one of our nodes, else the path itself. */
static const char *redirect(int dirfd, const char *path, struct target *target)
{
    return find_target(dirfd, path, target) ? target->address.sun_path : path;
}

PUBLIC_BEGIN

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

PUBLIC_END
