/* The atomic operations that dma_buffer.py needs and Python does not have. */
#include "dma_buffer.h"

#define PUBLIC __attribute__((visibility("default")))

PUBLIC uint64_t armature_dma_turn(const struct dma_buffer *buffer);
PUBLIC void armature_dma_set(struct dma_buffer *buffer, uint64_t turn);
PUBLIC bool armature_dma_move(struct dma_buffer *buffer, uint64_t from, uint64_t to);

uint64_t armature_dma_turn(const struct dma_buffer *buffer) { return dma_turn(buffer); }

void armature_dma_set(struct dma_buffer *buffer, uint64_t turn) { dma_set(buffer, turn); }

bool armature_dma_move(struct dma_buffer *buffer, uint64_t from, uint64_t to)
{
    return dma_move(buffer, from, to);
}
