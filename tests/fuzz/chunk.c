/*
 * A chunk of the store: what its directory says must hold for what is decoded, and every byte of
 * that is looked at.
 */
#include <stdint.h>
#include <stdlib.h>

#include "store/chunk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t look(const struct prb_store_column *column)
{
    uint64_t sum = 0;
    for (size_t row = 0; row < column->count; row++) {
        if (column->nulls && column->nulls[row] > 1)
            abort();
        if (column->type != PRB_RING_TEXT) {
            sum += (uint64_t)column->integers[row];
            continue;
        }
        for (uint32_t i = 0; i < column->texts[row].len; i++)
            sum += (unsigned char)column->texts[row].data[i];
    }
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct prb_packer *packer;
    static volatile uint64_t sum;
    struct prb_store_chunk chunk;
    double least = 0, most = 0;
    /* In memory of its own: a byte behind its end is nobody's. */
    char *copy = malloc(size ? size : 1);
    if (!copy || (!packer && !(packer = prb_packer_new(NULL))))
        abort();
    for (size_t i = 0; i < size; i++)
        copy[i] = (char)data[i];
    if (prb_store_chunk_open(copy, size, &chunk, NULL)) {
        for (size_t i = 0; i < chunk.columns; i++) {
            PRB_AUTO(prb_store_values) struct prb_store_values values = {0};
            prb_store_chunk_bounds(&chunk, i, &least, &most);
            prb_store_chunk_may_have(&chunk, i, 0, 1);
            if (!prb_store_column_decode(packer, chunk.bytes, chunk.len, &chunk.entries[i],
                                         chunk.rows, &values, NULL))
                continue;
            if (values.column.count != chunk.rows)
                abort();
            sum += look(&values.column);
        }
    }
    free(copy);
    return 0;
}
