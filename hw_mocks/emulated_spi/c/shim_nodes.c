/* Which paths and descriptors are ours. */
#include "shim.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>

enum {
    TIMEOUT_S = 2, /* a stopped board process: ETIMEDOUT, as from a stuck SPI controller */
    SPIDEV_MAJOR = 153,
    TRACKED_FDS = 4096,
    INHERITED_FDS = 256, /* looked at when a program starts */
    MAPPED_BUFFERS = 64
};

#define DEFINE(name) __typeof__(name) *real_##name;
FOR_EACH_WRAPPED(DEFINE)

static bool initialised;
static struct stat dev_directory;
char directory[sizeof(((struct sockaddr_un *)0)->sun_path)];

/*
 * By descriptor. An entry holds only as long as the descriptor still is that very socket, which is
 * checked by its inode at each use. So it does not matter how a descriptor was closed (close_range,
 * fclose, a vfork child that shares our memory and closes everything).
 */
static struct node nodes[TRACKED_FDS];

/* Buffers stay mapped: who opens a device over and over gets the same memory each time. */
static struct mapping {
    dev_t dev;
    ino_t ino;
    struct dma_buffer *buffer;
} mappings[MAPPED_BUFFERS];
static int mappings_in_use;

/* ---- Names ---- */

int plain_stat(int dirfd, const char *path, struct stat *st, int flags)
{
    return (int)syscall(SYS_newfstatat, dirfd, path, st, flags);
}

/* Whether a path, or the descriptor itself for an empty one, is /dev. */
static bool is_dev(int dirfd, const char *path)
{
    struct stat st;
    int saved_errno = errno;
    bool is_there = plain_stat(dirfd, path, &st, AT_EMPTY_PATH) == 0;
    errno = saved_errno;
    return is_there && st.st_dev == dev_directory.st_dev && st.st_ino == dev_directory.st_ino;
}

bool is_dev_directory(int dirfd) { return is_dev(dirfd, ""); }

/* Reads one to five digits; returns what follows them, or NULL. */
static const char *parse_number(const char *text, unsigned *number)
{
    const char *start = text;
    for (*number = 0; *text >= '0' && *text <= '9' && text - start < 5; text++)
        *number = *number * 10 + (unsigned)(*text - '0');
    return text > start ? text : NULL;
}

/* By hand: this runs in a forked child too. */
bool parse_name(const char *name, dev_t *rdev)
{
    unsigned bus, cs;
    if (strncmp(name, "spidev", 6) != 0 || (name = parse_number(name + 6, &bus)) == NULL
        || *name != '.' || (name = parse_number(name + 1, &cs)) == NULL || *name != '\0')
        return false;
    *rdev = makedev(SPIDEV_MAJOR, bus * 1000 + cs);
    return true;
}

bool find_target(int dirfd, const char *path, struct target *target)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    char parent[PATH_MAX] = "";
    int length;
    if (!initialised)
        initialise();
    if (directory[0] == '\0' || !parse_name(name, &target->rdev)
        || (size_t)(name - path) >= sizeof parent)
        return false;
    memcpy(parent, path, (size_t)(name - path)); /* /dev/, but also /dev/./ or ../dev/ */
    if (!is_dev(dirfd, parent))
        return false;
    target->address.sun_family = AF_UNIX;
    length = snprintf(target->address.sun_path, sizeof target->address.sun_path, "%s/%s",
                      directory, name);
    return length < (int)sizeof target->address.sun_path;
}

/* ---- Descriptors ---- */

/* Maps the buffer that a board may keep beside its socket; NULL if there is none. */
static struct dma_buffer *map_buffer(const char *socket_path)
{
    char path[sizeof directory + sizeof ".dma"];
    struct dma_buffer *buffer = NULL;
    struct stat file;
    struct hold held;
    int fd;
    snprintf(path, sizeof path, "%s.dma", socket_path);
    fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0);
    if (fd < 0)
        return NULL;
    held = hold();
    if (plain_stat(fd, "", &file, AT_EMPTY_PATH) == 0 && S_ISREG(file.st_mode)
        && file.st_size >= (off_t)sizeof *buffer) {
        for (int i = 0; i < mappings_in_use; i++)
            if (mappings[i].dev == file.st_dev && mappings[i].ino == file.st_ino)
                buffer = mappings[i].buffer;
        if (buffer == NULL && mappings_in_use < MAPPED_BUFFERS) {
            buffer = mmap(NULL, sizeof *buffer, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
            if (buffer == MAP_FAILED)
                buffer = NULL;
            else
                mappings[mappings_in_use++]
                    = (struct mapping){file.st_dev, file.st_ino, buffer};
        }
    }
    release(held);
    close(fd);
    return buffer != NULL && buffer->version == DMA_VERSION ? buffer : NULL;
}

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
    nodes[fd] = (struct node){end.st_ino, node.st_dev, node.st_ino, rdev,
                              map_buffer(peer->sun_path)};
    return true;
}

const struct node *find_node(int fd)
{
    struct stat end;
    if (fd < 0 || fd >= TRACKED_FDS || nodes[fd].socket_ino == 0)
        return NULL;
    if (plain_stat(fd, "", &end, AT_EMPTY_PATH) != 0 || !S_ISSOCK(end.st_mode)
        || end.st_ino != nodes[fd].socket_ino)
        return NULL;
    return &nodes[fd];
}

int duplicated(int from, int to)
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

bool open_node(int dirfd, const char *path, int flags, int *fd)
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

/* ---- Start and fork ---- */

static void after_fork_in_child(void)
{
    renew_in_child();
    for (int fd = 0; fd < TRACKED_FDS; fd++)
        if (find_node(fd) != NULL)
            reconnect(fd);
    let_through_in_child();
}

__attribute__((constructor)) void initialise(void)
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
        pthread_atfork(hold_for_fork, release_in_parent, after_fork_in_child);
        for (int fd = 0; fd < INHERITED_FDS; fd++) /* `program > /dev/spidev0.0` in a shell */
            if (adopt(fd, &peer))
                reconnect(fd);
    }
    errno = saved_errno;
}
