/* A folder of rings for the tests, and what they read from it. */
#ifndef PRB_TESTS_RING_H
#define PRB_TESTS_RING_H

#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ring/format.h"

static char ring_folder[64];

static void ring_path(char out[128], const char *name)
{
    snprintf(out, 128, "%s/%s%s", ring_folder, name, PRB_RING_SUFFIX);
}

static int ring_begin(void **state)
{
    (void)state;
    snprintf(ring_folder, sizeof ring_folder, "/tmp/probing-ring-XXXXXX");
    return mkdtemp(ring_folder) ? 0 : -1;
}

static int ring_end(void **state)
{
    (void)state;
    PRB_AUTO(dir) DIR *dir = opendir(ring_folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        unlinkat(dirfd(dir), entry->d_name, 0);
    return rmdir(ring_folder);
}

static inline struct prb_ring_reader *ring_reader(const char *name)
{
    char path[128];
    struct prb_error err;
    ring_path(path, name);
    struct prb_ring_reader *reader = prb_ring_open(AT_FDCWD, path, &err);
    if (!reader)
        fail_msg("%s", err.text);
    return reader;
}

/* A row whose columns prove each other: whoever reads half of one sees it. */
#define RING_PROOF_COLUMNS                                                                         \
    "writer:integer\nn:integer:count:of this writer, from 0\nhalf:real\ntext:text\nsum:integer"

static inline uint64_t ring_sum(int64_t writer, int64_t n, const char *text, size_t len)
{
    uint64_t sum = (uint64_t)writer * 31 + (uint64_t)n;
    for (size_t i = 0; i < len; i++)
        sum = (sum ^ (unsigned char)text[i]) * 0x100000001b3ull;
    return sum;
}

static inline bool ring_write_proof(struct prb_ring_table *table, int64_t writer, int64_t n)
{
    char text[200];
    size_t len = (size_t)(n * 7 % (int64_t)sizeof text);
    memset(text, 'a' + (int)(n % 26), len);
    const struct prb_ring_value values[] = {
        {.integer = writer},
        {.integer = n},
        {.real = (double)n / 2},
        {.text = text, .len = len},
        {.integer = (int64_t)ring_sum(writer, n, text, len)},
    };
    return prb_ring_write(table, values);
}

static inline bool ring_is_proof(const struct prb_ring_value *values)
{
    size_t len = (size_t)(values[1].integer * 7 % 200);
    return values[2].real == (double)values[1].integer / 2 && values[3].len == len &&
           (uint64_t)values[4].integer ==
               ring_sum(values[0].integer, values[1].integer, values[3].text, len);
}

/* Counts rows, and those that are not whole or not in the order of their writer. */
struct ring_proofs {
    uint64_t rows, wrong;
    int64_t last[256];
};

static inline bool ring_check_proof(void *context, const struct prb_ring_value *values)
{
    struct ring_proofs *proofs = context;
    int64_t *last = &proofs->last[values[0].integer & 255];
    proofs->rows++;
    if (!ring_is_proof(values) || values[1].integer < *last)
        proofs->wrong++;
    *last = values[1].integer + 1;
    return true;
}

#endif
