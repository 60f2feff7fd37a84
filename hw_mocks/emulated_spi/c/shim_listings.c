/* Listing /dev: the kernel's entries first, then ours. */
#include "shim.h"

enum { LISTINGS = 16 };

/* Directory streams on /dev, each with the stream on our directory that continues it. */
static struct listing {
    DIR *dev;
    DIR *sockets;
} listings[LISTINGS];
static int listings_in_use;

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
    struct hold held;
    int saved_errno = errno;
    if (stream != NULL && directory[0] != '\0' && is_dev_directory(dirfd(stream))) {
        held = hold();
        if ((listing = find_listing(NULL)) != NULL) {
            *listing = (struct listing){.dev = stream, .sockets = REAL(opendir)(directory)};
            __atomic_add_fetch(&listings_in_use, 1, __ATOMIC_RELEASE);
        }
        release(held);
    }
    errno = saved_errno;
    return stream;
}

PUBLIC_BEGIN

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
        struct hold held; \
        if (__atomic_load_n(&listings_in_use, __ATOMIC_ACQUIRE) == 0) \
            return REAL(name)(stream); \
        held = hold(); \
        listing = find_listing(stream); \
        entry = listing != NULL ? (void *)next_entry(listing, (void *)&REAL(name)) \
                                : REAL(name)(stream); \
        release(held); \
        return entry; \
    }
DEFINE_READDIR(readdir, dirent)
DEFINE_READDIR(readdir64, dirent64)

void rewinddir(DIR *stream)
{
    struct listing *listing;
    struct hold held;
    if (__atomic_load_n(&listings_in_use, __ATOMIC_ACQUIRE) != 0) {
        held = hold();
        if ((listing = find_listing(stream)) != NULL && listing->sockets != NULL)
            REAL(rewinddir)(listing->sockets);
        release(held);
    }
    REAL(rewinddir)(stream);
}

int closedir(DIR *stream)
{
    struct listing *listing;
    struct hold held;
    if (__atomic_load_n(&listings_in_use, __ATOMIC_ACQUIRE) != 0) {
        held = hold();
        if ((listing = find_listing(stream)) != NULL) {
            if (listing->sockets != NULL)
                REAL(closedir)(listing->sockets);
            *listing = (struct listing){NULL, NULL};
            __atomic_sub_fetch(&listings_in_use, 1, __ATOMIC_RELEASE);
        }
        release(held);
    }
    return REAL(closedir)(stream);
}

PUBLIC_END
