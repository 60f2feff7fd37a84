/*
 * The frame buffers of one emulated board, in memory that the program (shim_transfers.c) and the board's
 * process (dma_buffer.py) share.
 *
 * A real board's SPI peripheral shifts out a reply that the firmware has laid ready, and stores
 * what comes in for the firmware to look at afterwards. So does this: a program takes the reply and
 * leaves its frame without waiting for the board's process, whose turn comes later. Waking that
 * process would cost more than all the rest of a transfer.
 */
#ifndef ARMATURE_DMA_BUFFER_H
#define ARMATURE_DMA_BUFFER_H

#include <stdbool.h>
#include <stdint.h>

enum { DMA_VERSION = 1, DMA_FRAME_BYTES = 256 };

/* Whose turn it is. */
enum dma_phase {
    DMA_CLOSED = 0,  /* the board's, who wants to be asked by socket */
    DMA_READY = 1,   /* anybody's: who moves it on first has the reply */
    DMA_RUNNING = 2, /* one program's, for a moment */
    DMA_BUSY = 3     /* the board's, who is at work and will be ready again soon */
};

struct dma_buffer {
    uint32_t version;
    uint32_t size;            /* of a window, in bytes: others go by socket */
    uint32_t device_speed_hz; /* of a transfer that names no speed itself */
    uint32_t speed_max_hz;    /* faster windows go by socket */
    uint64_t turn;            /* phase in the lowest two bits, above them a count of the offers */
    int64_t started_ns;       /* by the program: when the window began, on the monotonic clock */
    uint32_t speed_hz;        /* by the program: what it asked for */
    uint8_t reply[DMA_FRAME_BYTES];
    uint8_t command[DMA_FRAME_BYTES];
};

static inline uint64_t dma_turn(const struct dma_buffer *buffer)
{
    return __atomic_load_n(&buffer->turn, __ATOMIC_ACQUIRE);
}

static inline enum dma_phase dma_phase(uint64_t turn) { return (enum dma_phase)(turn & 3); }

static inline uint64_t dma_with_phase(uint64_t turn, enum dma_phase phase)
{
    return (turn & ~UINT64_C(3)) | phase;
}

static inline void dma_set(struct dma_buffer *buffer, uint64_t turn)
{
    __atomic_store_n(&buffer->turn, turn, __ATOMIC_RELEASE);
}

/* Moves the turn on, unless somebody else has moved it meanwhile. */
static inline bool dma_move(struct dma_buffer *buffer, uint64_t from, uint64_t to)
{
    return __atomic_compare_exchange_n(&buffer->turn, &from, to, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE);
}

#endif
