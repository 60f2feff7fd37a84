/* What is said to the board: by packets, or through the buffer that it shares with us. */
#include "shim.h"

#include <linux/spi/spidev.h>
#include <sched.h>
#include <string.h>
#include <time.h>

/* ---- The packets. packets.py states them too; change VERSION with either. ---- */

enum { VERSION = 1 };
enum operation { TRANSFER = 0, GET = 1, SET = 2 };
enum setting { MODE = 0, BITS_PER_WORD = 1, SPEED_HZ = 2 };

enum {
    BUFSIZ_BYTES = 4096,            /* spidev's default bufsiz: limit of tx and of rx per message */
    WINDOW_BYTES = 2 * BUFSIZ_BYTES, /* a message may send that much, then receive that much */
    MESSAGE_PARTS = ((1 << _IOC_SIZEBITS) - 1) / sizeof(struct spi_ioc_transfer)
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
    SPIN_NS = 200000
};

/* Under the lock, which covers send and receive together: threads get their own replies. */
static uint32_t last_sequence;
static struct request request = {.magic = {'S', 'P', 'I'}, .version = VERSION};
static struct reply reply;

/* ---- Talking to the board. The caller holds the lock. ---- */

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/*
 * Lets a board on the same core get on. Yielding does that between ordinary processes; one with a
 * real-time priority must sleep, or the board would wait for it and it for the board.
 */
static void give_way(void)
{
    static const struct timespec moment = {.tv_nsec = 20000};
    int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
    if (policy == SCHED_FIFO || policy == SCHED_RR)
        clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, NULL);
    else
        sched_yield();
}

/*
 * Receives a packet into `reply`. Looks for a moment before it sleeps, as SPI drivers do for short
 * transfers: waking a sleeping core costs more than the whole exchange (measured on a virtual
 * machine: 110 instead of 30 µs).
 */
static ssize_t receive(int fd)
{
    int64_t deadline_ns = now_ns() + SPIN_NS;
    ssize_t done;
    do {
        done = recv(fd, &reply, sizeof reply, MSG_DONTWAIT);
        if (done >= 0 || errno != EAGAIN)
            return done;
        give_way();
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

ssize_t transfer_half(int fd, void *rx, const void *tx, size_t size)
{
    struct hold held;
    ssize_t done = -1;
    if (size > BUFSIZ_BYTES)
        return fail(EMSGSIZE);
    if (size == 0)
        return 0;
    if (rx == NULL && tx == NULL)
        return fail(EFAULT);
    held = hold();
    request.bits_per_word = 0;
    request.value = 0;
    if (tx == NULL)
        memset(request.data, 0, size);
    if (tx == NULL || copy_in(request.data, tx, size))
        done = exchange(fd, TRANSFER, size);
    if (done > 0 && rx != NULL && !copy_out(rx, reply.data, (size_t)done))
        done = -1;
    release(held);
    return done;
}

static void *pointer(uint64_t address) { return (void *)(uintptr_t)address; }

/* The turn at which a reply is ready in the buffer, 0 if there is none or none in good time. */
static uint64_t await_ready(const struct dma_buffer *buffer)
{
    int64_t deadline_ns = now_ns() + SPIN_NS;
    uint64_t turn;
    while (dma_phase(turn = dma_turn(buffer)) != DMA_READY) {
        if (dma_phase(turn) == DMA_CLOSED || now_ns() >= deadline_ns)
            return 0;
        give_way();
    }
    return turn;
}

/*
 * A window as most programs make them: one frame in both directions, in the device's own mode and
 * word size. Whether the board had offered its reply, which `reply` then holds; else the window must
 * go by socket.
 */
static bool take_offer(int fd, struct dma_buffer *buffer, const struct spi_ioc_transfer *window)
{
    uint32_t size = window->len, speed_hz = window->speed_hz;
    ssize_t peeked;
    uint64_t turn;
    uint8_t sign;
    if (buffer == NULL || window->tx_buf == 0 || window->rx_buf == 0 || size > DMA_FRAME_BYTES
        || (window->bits_per_word != 0 && window->bits_per_word != 8))
        return false;
    /* The socket tells whether the board's process lives; its memory would outlive it. */
    peeked = recv(fd, &sign, sizeof sign, MSG_PEEK | MSG_DONTWAIT);
    if (peeked == 0 || (peeked < 0 && errno != EAGAIN))
        return false;
    memcpy(request.data, pointer(window->tx_buf), size);
    turn = await_ready(buffer);
    if (speed_hz == 0)
        speed_hz = buffer->device_speed_hz;
    if (turn == 0 || size != buffer->size || speed_hz > buffer->speed_max_hz
        || !dma_move(buffer, turn, dma_with_phase(turn, DMA_RUNNING)))
        return false;
    buffer->started_ns = now_ns();
    buffer->speed_hz = speed_hz;
    memcpy(buffer->command, request.data, size);
    memcpy(reply.data, buffer->reply, size);
    /* Unless we slept for so long that the board took us for dead. */
    return dma_move(buffer, dma_with_phase(turn, DMA_RUNNING), dma_with_phase(turn, DMA_BUSY));
}

/*
 * One chip-select window: transfers first..last. The board is told the fastest clock and the widest
 * word of the window, should they differ within it.
 */
static ssize_t transfer_window(int fd, struct dma_buffer *buffer,
                               const struct spi_ioc_transfer *first,
                               const struct spi_ioc_transfer *last)
{
    const struct spi_ioc_transfer *part;
    size_t size = 0, offset = 0;
    ssize_t done;
    if (first == last && take_offer(fd, buffer, first))
        return copy_out(pointer(first->rx_buf), reply.data, first->len) ? (ssize_t)first->len : -1;
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
        if (part->rx_buf != 0 && !copy_out(pointer(part->rx_buf), reply.data + offset, part->len))
            return -1;
    return done;
}

/* SPI_IOC_MESSAGE(count). Returns how many bytes were clocked: all, unless a board cut it short. */
static int transfer_message(int fd, struct dma_buffer *buffer, const void *message, size_t count)
{
    static struct spi_ioc_transfer parts[MESSAGE_PARTS]; /* under the lock */
    uint64_t tx = 0, rx = 0, all = 0;
    static const uint8_t zeros[BUFSIZ_BYTES];
    size_t first = 0;
    int total = 0;
    if (!copy_in(parts, message, count * sizeof parts[0]))
        return -1;
    for (size_t i = 0; i < count; i++) {
        tx += parts[i].tx_buf != 0 ? parts[i].len : 0;
        rx += parts[i].rx_buf != 0 ? parts[i].len : 0;
        all += parts[i].len;
    }
    if (tx > BUFSIZ_BYTES || rx > BUFSIZ_BYTES || all > WINDOW_BYTES)
        return fail(EMSGSIZE);
    for (size_t i = 0; i < count; i++) /* all of them before anything is clocked */
        if (parts[i].tx_buf != 0 && !copy_in(request.data, pointer(parts[i].tx_buf), parts[i].len))
            return -1;
    for (size_t i = 0; i < count; i++) {
        size_t size = 0;
        ssize_t done;
        if (!parts[i].cs_change && i + 1 < count)
            continue;
        done = transfer_window(fd, buffer, parts + first, parts + i);
        if (done < 0)
            return -1;
        total += (int)done;
        for (; first <= i; first++)
            size += parts[first].len;
        if ((size_t)done < size) {
            for (; first < count; first++) /* never clocked */
                if (parts[first].rx_buf != 0
                    && !copy_out(pointer(parts[first].rx_buf), zeros, parts[first].len))
                    return -1;
            break;
        }
    }
    return total;
}

/* A setting that the program gives, of one byte or four. */
static bool given(const void *argument, uint32_t number, uint32_t *value)
{
    uint8_t byte;
    if (_IOC_SIZE(number) != sizeof byte)
        return copy_in(value, argument, sizeof *value);
    if (!copy_in(&byte, argument, sizeof byte))
        return false;
    *value = byte;
    return true;
}

/* A setting that the program asks for; the result of its call. */
static int hand_over(void *argument, uint32_t number, uint32_t value)
{
    uint8_t byte = (uint8_t)value;
    bool is_byte = _IOC_SIZE(number) == sizeof byte;
    return copy_out(argument, is_byte ? (void *)&byte : &value, is_byte ? 1 : sizeof value) ? 0 : -1;
}

static int read_setting(int fd, enum setting setting, void *argument, uint32_t number)
{
    uint32_t value;
    if (get_setting(fd, setting, &value) != 0)
        return -1;
    if (number == SPI_IOC_RD_LSB_FIRST)
        value = (value & SPI_LSB_FIRST) != 0;
    return hand_over(argument, number, value);
}

static int write_setting(int fd, enum setting setting, const void *argument, uint32_t number)
{
    uint32_t value, mode;
    if (!given(argument, number, &value))
        return -1;
    if (number == SPI_IOC_WR_LSB_FIRST) {
        if (get_setting(fd, MODE, &mode) != 0)
            return -1;
        mode &= ~(uint32_t)SPI_LSB_FIRST;
        value = value ? mode | SPI_LSB_FIRST : mode;
    }
    return set_setting(fd, setting, value);
}

int spidev_ioctl(int fd, const struct node *node, uint32_t number, void *argument)
{
    switch (number) {
    case SPI_IOC_RD_MODE:
    case SPI_IOC_RD_MODE32:
    case SPI_IOC_RD_LSB_FIRST:
        return read_setting(fd, MODE, argument, number);
    case SPI_IOC_RD_BITS_PER_WORD:
        return read_setting(fd, BITS_PER_WORD, argument, number);
    case SPI_IOC_RD_MAX_SPEED_HZ:
        return read_setting(fd, SPEED_HZ, argument, number);
    case SPI_IOC_WR_MODE:
    case SPI_IOC_WR_MODE32:
    case SPI_IOC_WR_LSB_FIRST:
        return write_setting(fd, MODE, argument, number);
    case SPI_IOC_WR_BITS_PER_WORD:
        return write_setting(fd, BITS_PER_WORD, argument, number);
    case SPI_IOC_WR_MAX_SPEED_HZ:
        return write_setting(fd, SPEED_HZ, argument, number);
    default:
        break;
    }
    if (_IOC_NR(number) != 0 || _IOC_DIR(number) != _IOC_WRITE)
        return fail(ENOTTY);
    if (_IOC_SIZE(number) % sizeof(struct spi_ioc_transfer) != 0)
        return fail(EINVAL);
    return transfer_message(fd, node->buffer, argument,
                            _IOC_SIZE(number) / sizeof(struct spi_ioc_transfer));
}
