/* GET /api/v1/p/{}/tensor/{address}/map: two dimensions of a tensor as a grid of means, for a picture. */
#include <math.h>
#include <string.h>

#include "serve/work/targets.h"

#define SIDE 128
#define SIDE_MAX 256
#define READ_MAX ((int64_t)32 << 20) /* elements; of more, every so many are read */
#define PIECE 4096                   /* elements in a row that are read at once */
#define PIECE_APART 256              /* the same, where some between them are left out */

struct cell {
    double sum;
    int64_t finite, nan, inf;
};

struct map {
    int64_t rows, columns; /* of the tensor's part */
    int64_t down, across;  /* of the grid */
    int64_t read;          /* elements */
    struct cell *cells;
};

PRB_DEFINE_AUTO_PTR(elements, struct prb_element, free)

static double value_of(const struct prb_element *element)
{
    if (element->kind == PRB_ELEMENT_REAL)
        return element->real;
    return element->kind == PRB_ELEMENT_UINT ? (double)element->natural : (double)element->integer;
}

static void add(struct cell *cell, double value)
{
    cell->nan += isnan(value) != 0;
    cell->inf += isinf(value) != 0;
    if (isfinite(value)) {
        cell->sum += value;
        cell->finite++;
    }
}

/* Elements that lie one after another, row by row. */
static void add_piece(struct map *map, int64_t start, const struct prb_element *elements,
                      size_t count)
{
    int64_t row = start / map->columns, column = start % map->columns;
    int64_t place = -1, until = column;
    for (size_t i = 0; i < count; i++, column++) {
        if (column == map->columns) {
            column = 0;
            row++;
            until = 0;
        }
        if (column >= until) {
            int64_t cell = column * map->across / map->columns;
            place = row * map->down / map->rows * map->across + cell;
            until = ((cell + 1) * map->columns + map->across - 1) / map->across;
        }
        add(map->cells + place, value_of(elements + i));
    }
    map->read += (int64_t)count;
}

/* The part as two dimensions, in one where its elements lie side by side: that is read faster. */
static bool shape(struct prb_tensor *part, struct map *map, struct prb_error *err)
{
    if (part->dims > 2)
        return prb_fail(err, PRB_USAGE,
                        "a picture has two dimensions, and this has %u: choose one of each other "
                        "by slice, as slice=0,0",
                        part->dims);
    map->columns = part->dims ? part->shape[part->dims - 1] : 1;
    map->rows = part->dims == 2 ? part->shape[0] : 1;
    if (part->contiguous) {
        part->dims = 1;
        part->shape[0] = part->numel;
        part->stride[0] = part->item_size;
    }
    return true;
}

static bool read_all(struct prb_serve_job *job, struct prb_target *target,
                     const struct prb_tensor *part, struct map *map, struct prb_error *err)
{
    PRB_AUTO(elements) struct prb_element *elements = calloc(PIECE, sizeof *elements);
    int64_t apart = (part->numel + READ_MAX - 1) / READ_MAX;
    int64_t piece = apart > 1 ? PIECE_APART : PIECE;
    if (!elements)
        return prb_nomem(err);
    for (int64_t start = 0; start < part->numel && prb_serve_job_goes_on(job);
         start += piece * apart) {
        int64_t left = part->numel - start;
        size_t count = (size_t)(left < piece ? left : piece);
        if (!prb_tensor_elements(target, part, start, count, elements, err))
            return false;
        if (elements->kind == PRB_ELEMENT_COMPLEX)
            return prb_fail(err, PRB_UNSUPPORTED, "a complex number has no single colour");
        add_piece(map, start, elements, count);
    }
    return true;
}

/* [[cell, how many], …] of those that have some. */
static void write_counts(const struct map *map, const char *name, size_t offset,
                         struct prb_buf *out)
{
    const char *before = "";
    prb_buf_addf(out, ",\"%s\":[", name);
    for (int64_t i = 0; i < map->down * map->across; i++) {
        int64_t count = *(const int64_t *)((const char *)(map->cells + i) + offset);
        if (!count)
            continue;
        prb_buf_addf(out, "%s[%lld,%lld]", before, (long long)i, (long long)count);
        before = ",";
    }
    prb_buf_adds(out, "]");
}

static void write_map(const struct map *map, const struct prb_tensor *part, struct prb_buf *out)
{
    prb_buf_addf(out,
                 "{\"rows\":%lld,\"columns\":%lld,\"down\":%lld,\"across\":%lld,"
                 "\"elements\":%lld,\"read\":%lld,\"mean\":[",
                 (long long)map->rows, (long long)map->columns, (long long)map->down,
                 (long long)map->across, (long long)part->numel, (long long)map->read);
    for (int64_t i = 0; i < map->down * map->across; i++) {
        const struct cell *cell = map->cells + i;
        double mean = cell->finite ? cell->sum / (double)cell->finite : NAN;
        prb_buf_adds(out, i ? "," : "");
        if (isfinite(mean))
            prb_buf_addf(out, "%.6g", mean);
        else
            prb_buf_adds(out, "null");
    }
    prb_buf_adds(out, "]");
    write_counts(map, "nan", offsetof(struct cell, nan), out);
    write_counts(map, "inf", offsetof(struct cell, inf), out);
    prb_buf_adds(out, "}");
}

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    const char *slice = prb_question_value(job->question, "slice");
    double side = SIDE;
    struct prb_tensor whole, part;
    prb_addr address;
    if (!prb_question_number(job->question, "count", 1, SIDE_MAX, &side, err) ||
        !prb_question_address(job, &address, err))
        return false;
    PRB_AUTO(prb_serve_target) struct prb_serve_target *held = prb_serve_target_hold(job, err);
    struct prb_target *target = held ? prb_serve_target_open(held) : NULL;
    struct map map = {0};
    if (!held || !prb_tensor_take(target, address, &whole, err) ||
        !prb_tensor_slice(&whole, slice ? slice : "...", &part, err) || !shape(&part, &map, err))
        return false;
    map.down = map.rows < (int64_t)side ? map.rows : (int64_t)side;
    map.across = map.columns < (int64_t)side ? map.columns : (int64_t)side;
    PRB_AUTO_FREE struct cell *cells = calloc((size_t)(map.down * map.across) + 1, sizeof *cells);
    map.cells = cells;
    if (!cells)
        return prb_nomem(err);
    if (!read_all(job, target, &part, &map, err))
        return false;
    job->answer->type = "application/json";
    write_map(&map, &part, &job->answer->body);
    return prb_buf_ok(&job->answer->body) || prb_nomem(err);
}

const struct prb_route prb_route_tensor_map = {
    .methods = PRB_GET,
    .path = "/api/v1/p/{}/tensor/{}/map",
    .summary = "two dimensions of a tensor as a grid of means, with NaN and infinity counted",
    .grant = PRB_MAY_LOOK,
    .formats = "json",
    .parameters = "slice count",
    .slow = true,
    .seconds = 30,
    .answer = answer,
};
