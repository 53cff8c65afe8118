/* See history.h. */
#include "table/recorded/history.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "ring/folder.h"
#include "ring/format.h"
#include "sql/table.h"
#include "table/recorded/dump.h"

/* ---- which file ---- */

/* Root looks at the folders of others: a path in one of these may lead anywhere. */
static bool read_pointer(int folder, char *path, size_t cap, int64_t *process_out)
{
    struct stat st;
    long long process = 0;
    int used = 0;
    PRB_AUTO_FD int fd =
        openat(folder, PRB_RING_STORE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) != 0 || st.st_uid != geteuid() || !S_ISREG(st.st_mode))
        return false;
    size_t len = prb_read_at(fd, path, cap - 1, 0);
    path[len] = '\0';
    if (sscanf(path, "%lld %n", &process, &used) != 1 || !used || process <= 0)
        return false;
    memmove(path, path + used, len + 1 - (size_t)used);
    path[strcspn(path, "\n")] = '\0';
    *process_out = process;
    return true;
}

void prb_history_find(struct prb_history *history, int folder)
{
    char path[4200];
    int64_t process;
    history->folder = folder;
    if (history->store || folder < 0 || !read_pointer(folder, path, sizeof path, &process))
        return;
    history->store = prb_store_open(path, false, NULL);
    history->process = process;
}

void prb_history_close(struct prb_history *history)
{
    prb_store_close(history->store);
    history->store = NULL;
}

const struct prb_store_process *prb_history_process(const struct prb_history *history, int64_t id)
{
    size_t count = 0;
    const struct prb_store_process *processes =
        history->store ? prb_store_processes(history->store, &count) : NULL;
    for (size_t i = 0; i < count; i++)
        if (processes[i].id == id)
            return &processes[i];
    return NULL;
}

size_t prb_history_bound(const struct prb_times *times, const char *name, size_t column,
                         struct prb_store_bound *out)
{
    if (!times->column || strcmp(times->column, name) != 0)
        return 0;
    *out = (struct prb_store_bound){column, times->least, times->most};
    return 1;
}

/* ---- rows ---- */

#define NONE PRB_RING_COLUMNS_MAX

struct giving {
    const struct prb_history_query *query;
    const struct prb_ring_column *columns; /* of the rows that come */
    size_t from[PRB_RING_COLUMNS_MAX];     /* for each asked column: which of theirs, or NONE */
    prb_store_row_fn *row;
    void *context;
    int64_t process;
    uint64_t raw;
    bool same; /* their first columns are the asked ones */
};

static bool is_number(enum prb_ring_type type) { return type != PRB_RING_TEXT; }
static bool is_real(enum prb_ring_type type)
{
    return type == PRB_RING_REAL || type == PRB_RING_TIME;
}

/* Where the asked columns are; returns a bit for each of theirs that is wanted. */
static uint64_t map(struct giving *giving, const struct prb_ring_column *columns, size_t count)
{
    const struct prb_history_query *query = giving->query;
    uint64_t wanted = 0;
    giving->columns = columns;
    giving->same = count >= query->count;
    for (size_t i = 0; i < query->count; i++) {
        giving->from[i] = NONE;
        for (size_t j = 0; j < count; j++)
            if (strcmp(query->columns[i].name, columns[j].name) == 0 &&
                is_number(query->columns[i].type) == is_number(columns[j].type))
                giving->from[i] = j;
        if (giving->from[i] != NONE && (query->wanted >> i & 1))
            wanted |= (uint64_t)1 << giving->from[i];
        giving->same = giving->same && giving->from[i] == i &&
                       is_real(query->columns[i].type) == is_real(columns[i].type);
    }
    return wanted;
}

/* Whether the rows that come fit what was asked. */
static bool fits(const struct giving *giving, size_t count)
{
    const struct prb_history_query *query = giving->query;
    size_t found = 0;
    for (size_t i = 0; i < query->count; i++)
        found += giving->from[i] != NONE &&
                 is_real(giving->columns[giving->from[i]].type) == is_real(query->columns[i].type);
    return query->fit == PRB_HISTORY_ANY ||
           found == (query->fit == PRB_HISTORY_PART ? count : query->count);
}

static bool give(struct giving *giving, const struct prb_ring_value *values, int64_t process,
                 enum prb_store_resolution resolution)
{
    const struct prb_history_query *query = giving->query;
    struct prb_ring_value out[PRB_RING_COLUMNS_MAX];
    if (giving->same) /* a ring has what is not wanted, too */
        return giving->row(giving->context, values, process, resolution);
    for (size_t i = 0; i < query->count; i++) {
        size_t from = giving->from[i];
        out[i] = (struct prb_ring_value){.null = true};
        if (from == NONE || !(query->wanted >> i & 1))
            continue;
        out[i] = values[from];
        bool whole = !is_real(giving->columns[from].type);
        if (!out[i].null && is_real(query->columns[i].type) && whole)
            out[i].real = (double)values[from].integer;
        else if (!out[i].null && query->columns[i].type != PRB_RING_TEXT &&
                 !is_real(query->columns[i].type) && !whole)
            out[i].null = true;
    }
    return giving->row(giving->context, out, process, resolution);
}

static bool give_stored(void *context, const struct prb_ring_value *values, int64_t process,
                        enum prb_store_resolution resolution)
{
    return give(context, values, process, resolution);
}

static bool give_ring(void *context, const struct prb_ring_value *values)
{
    struct giving *giving = context;
    giving->raw++;
    return give(giving, values, giving->process, PRB_STORE_RAW);
}

static bool each_stored(const struct prb_history *history, struct giving *giving,
                        struct prb_store_counts *counts, struct prb_error *err)
{
    size_t shape_count;
    const struct prb_store_shape *shapes = prb_store_shapes(history->store, &shape_count);
    for (size_t i = 0; i < shape_count; i++) {
        struct prb_store_counts more = {0};
        struct prb_store_bound bounds[PRB_RING_COLUMNS_MAX];
        struct prb_store_query query = {.shape = &shapes[i],
                                        .process = giving->query->every ? 0 : history->process,
                                        .bounds = bounds};
        if (strcmp(shapes[i].schema, giving->query->schema) != 0 ||
            strcmp(shapes[i].name, giving->query->name) != 0)
            continue;
        query.wanted = map(giving, shapes[i].columns, shapes[i].count);
        if (!fits(giving, shapes[i].count))
            continue;
        for (size_t b = 0; b < giving->query->bound_count && b < PRB_RING_COLUMNS_MAX; b++) {
            bounds[b] = giving->query->bounds[b];
            if (bounds[b].column < giving->query->count &&
                (bounds[b].column = giving->from[bounds[b].column]) != NONE)
                bounds[query.bound_count++] = bounds[b];
        }
        if (!prb_store_each(history->store, &query, giving->same ? giving->row : give_stored,
                            giving->same ? giving->context : giving, &more, err))
            return false;
        counts->broken += more.broken;
        counts->summed += more.summed;
        counts->chunks += more.chunks;
        counts->all += more.all;
        giving->raw += more.raw;
    }
    return true;
}

/* The ring of a folder, and its inode. */
static struct prb_ring_reader *open_ring(const struct prb_history *history, const char *name,
                                         uint64_t *inode_out)
{
    char file[PRB_RING_NAME_MAX + sizeof PRB_RING_SUFFIX];
    struct stat st;
    snprintf(file, sizeof file, "%s" PRB_RING_SUFFIX, name);
    if (history->folder < 0 || fstatat(history->folder, file, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return NULL;
    *inode_out = st.st_ino;
    return prb_ring_open(history->folder, file, NULL);
}

PRB_DEFINE_AUTO_PTR(prb_ring_reader, struct prb_ring_reader, prb_ring_close)

static bool each_in_ring(const struct prb_history *history, struct giving *giving,
                         const struct prb_ring_mark *mark, struct prb_ring_reader *reader,
                         struct prb_ring_counts *counts, struct prb_error *err)
{
    size_t count;
    const struct prb_ring_column *columns = prb_ring_columns(reader, &count);
    giving->process = history->process;
    map(giving, columns, count);
    return !fits(giving, count) || prb_ring_each_from(reader, mark->count ? mark : NULL, 0,
                                                      give_ring, giving, counts, NULL, err);
}

static bool each_in_dump(const struct prb_history *history, struct giving *giving,
                         struct prb_ring_counts *counts)
{
    PRB_AUTO(prb_dumped_ring) struct prb_dumped_ring ring;
    bool broken = false;
    if (!prb_dumped_ring_read(history->dump, giving->query->name, &ring))
        return true;
    map(giving, ring.columns, ring.count);
    bool good =
        !fits(giving, ring.count) || prb_dumped_ring_each(&ring, give_ring, giving, &broken);
    counts->broken += broken;
    return good;
}

bool prb_history_each(const struct prb_history *history, const struct prb_history_query *query,
                      prb_store_row_fn *row, void *context, struct prb_history_counts *counts_out,
                      struct prb_error *err)
{
    struct giving giving = {.query = query, .row = row, .context = context};
    PRB_AUTO(prb_ring_mark) struct prb_ring_mark mark = {0};
    PRB_AUTO(prb_ring_reader) struct prb_ring_reader *opened = NULL;
    uint64_t inode = query->reader ? prb_ring_inode(query->reader) : 0;
    if (!query->reader)
        opened = open_ring(history, query->name, &inode);
    struct prb_ring_reader *reader = query->reader ? query->reader : opened;
    *counts_out = (struct prb_history_counts){0};
    if (history->store) {
        bool good =
            prb_store_read_begin(history->store, err) && prb_store_refresh(history->store, err) &&
            each_stored(history, &giving, &counts_out->store, err) &&
            (!reader ||
             prb_store_mark(history->store, history->process, query->name, inode, &mark, err));
        prb_store_read_end(history->store);
        if (!good)
            return false;
    }
    if (history->dump && !each_in_dump(history, &giving, &counts_out->ring))
        return false;
    if (reader && !each_in_ring(history, &giving, &mark, reader, &counts_out->ring, err))
        return false;
    counts_out->raw = giving.raw;
    return true;
}
