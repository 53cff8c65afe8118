/* Names of tables and columns, and what a file's numbers may be. */
#include "ring/columns.h"

#include <string.h>
#include <strings.h>

#include "ring/format.h"

bool prb_ring_is_name(const char *text)
{
    static const char characters[] =
        "_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    size_t len = strnlen(text, PRB_RING_NAME_MAX + 1);
    return len > 0 && len <= PRB_RING_NAME_MAX && (text[0] < '0' || text[0] > '9') &&
           strspn(text, characters) == len;
}

static bool bad_name(const char *what, const char *name, struct prb_error *err)
{
    prb_fail(err, PRB_USAGE, "\"%.80s\" is not a name for a %s", name, what);
    return prb_error_remedy(err, "use letters, digits and _, a letter first, at most %d of them",
                            PRB_RING_NAME_MAX);
}

bool prb_ring_table_name(const char *name, struct prb_error *err)
{
    return prb_ring_is_name(name) || bad_name("table", name, err);
}

bool prb_ring_columns_check(const struct prb_ring_column *columns, size_t count,
                            struct prb_error *err)
{
    if (count < 1 || count > PRB_RING_COLUMNS_MAX)
        return prb_fail(err, PRB_USAGE, "a table has 1 to %d columns, not %zu",
                        PRB_RING_COLUMNS_MAX, count);
    for (size_t i = 0; i < count; i++) {
        if (!prb_ring_is_name(columns[i].name))
            return bad_name("column", columns[i].name, err);
        if (columns[i].type < PRB_RING_INTEGER || columns[i].type > PRB_RING_TIME)
            return prb_fail(err, PRB_USAGE, "column %s has an unknown type", columns[i].name);
        for (size_t j = 0; j < i; j++)
            if (strcasecmp(columns[i].name, columns[j].name) == 0)
                return prb_fail(err, PRB_USAGE, "two columns are named %s", columns[i].name);
    }
    return true;
}

size_t prb_ring_cut_length(const char *text, size_t len, size_t max)
{
    if (len <= max)
        return len;
    for (size_t back = 0; back < 4 && back < max; back++)
        if (((unsigned char)text[max - back] & 0xc0) != 0x80)
            return max - back;
    return max;
}

void prb_ring_cut(char *out, size_t cap, const char *text)
{
    size_t len = text ? prb_ring_cut_length(text, strlen(text), cap - 1) : 0;
    if (len)
        memcpy(out, text, len);
    out[len] = '\0';
}

bool prb_ring_shape_is_good(const struct prb_ring_head *head)
{
    uint32_t chunk = head->chunk_bytes;
    return head->magic == PRB_RING_MAGIC && head->version == PRB_RING_VERSION &&
           head->columns >= 1 && head->columns <= PRB_RING_COLUMNS_MAX &&
           chunk >= PRB_RING_CHUNK_MIN && chunk <= PRB_RING_CHUNK_MAX &&
           (chunk & (chunk - 1)) == 0 && head->chunks_max >= 1 &&
           head->chunks_max <= PRB_RING_CHUNKS_MAX && head->head_bytes % 4096 == 0 &&
           head->head_bytes >= sizeof *head + head->columns * sizeof(struct prb_ring_head_column) &&
           head->head_bytes <= (1u << 16);
}
