/* What ranks answered to one question. */
#include <string.h>

#include "fleet/rows/bytes.h"
#include "fleet/rows/pack.h"
#include "fleet/rows/rows.h"

void prb_answers_deinit(struct prb_answers *answers)
{
    for (size_t i = 0; i < answers->count; i++)
        free(answers->items[i].data);
    free(answers->items);
    *answers = (struct prb_answers){0};
}

static bool is_over(const void *data, size_t len)
{
    const size_t magic = sizeof PRB_PACKED_OVER - 1;
    return len >= magic && memcmp(data, PRB_PACKED_OVER, magic) == 0;
}

/* Count the rows of a part, and refuse what is too much. */
static bool count_rows(struct prb_answers *answers, const void *data, size_t len,
                       struct prb_error *err)
{
    struct prb_packed part;
    if (is_over(data, len)) {
        size_t magic = sizeof PRB_PACKED_OVER - 1;
        prb_fail(&answers->over, PRB_TIMEOUT, "%.*s", (int)(len - magic < 200 ? len - magic : 200),
                 (const char *)data + magic);
    } else if (!prb_packed_open(data, len, &part, err)) {
        return false;
    } else {
        for (size_t i = 0; i < part.table_count; i++)
            answers->rows += part.tables[i].rows;
        if (answers->rows > answers->rows_max)
            prb_fail(&answers->over, PRB_TIMEOUT, "there are more than %zu rows",
                     answers->rows_max);
    }
    return answers->over.code ? prb_fail(err, PRB_TIMEOUT, "%s", answers->over.text) : true;
}

bool prb_answers_add(struct prb_answers *answers, int rank, const char *host, const void *data,
                     size_t len, struct prb_error *err)
{
    answers->bytes += len;
    if (answers->bytes_max && answers->bytes > answers->bytes_max)
        prb_fail(&answers->over, PRB_TIMEOUT, "there are more than %zu MiB",
                 answers->bytes_max >> 20);
    if (answers->over.code)
        return prb_fail(err, PRB_TIMEOUT, "%s", answers->over.text);
    if (answers->rows_max && !count_rows(answers, data, len, err))
        return false;
    struct prb_answer one = {
        .rank = rank, .local_rank = -1, .node_rank = -1, .data = malloc(len + 1), .len = len};
    if (!one.data || !PRB_GROW(answers->items, answers->count, answers->cap)) {
        free(one.data);
        return prb_nomem(err);
    }
    memcpy(one.data, data, len);
    ((char *)one.data)[len] = '\0';
    snprintf(one.host, sizeof one.host, "%s", host);
    answers->items[answers->count++] = one;
    return true;
}

static int by_rank(const void *a, const void *b)
{
    const struct prb_answer *x = a, *y = b;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

void prb_answers_sort(struct prb_answers *answers)
{
    if (answers->count)
        qsort(answers->items, answers->count, sizeof *answers->items, by_rank);
}
