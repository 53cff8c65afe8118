/*
 * The last rows of a process's rings, as texts of its crash dump: the columns as lines, an empty
 * line, then rows, each its length (32 bits) and its bytes as prb_ring_write_packed takes them.
 * lib/table/recorded/dump.c reads them.
 */
#include <fcntl.h>
#include <string.h>

#include "crash/crash.h"
#include "proc/source.h"
#include "ring/columns.h"
#include "table/recorded/dump.h"
#include "table/recorded/folder.h"

#define TABLES_MAX 64

struct packing {
    const struct prb_ring_column *columns;
    size_t count, share;
    struct prb_buf rows;
};

static uint32_t length_at(const struct prb_buf *rows, size_t at)
{
    uint32_t length;
    memcpy(&length, rows->data + at, sizeof length);
    return length;
}

/* The oldest go, until no more than so many bytes are left. */
static void drop_old(struct prb_buf *rows, size_t bytes)
{
    size_t at = 0;
    while (rows->len - at > bytes)
        at += sizeof(uint32_t) + length_at(rows, at);
    memmove(rows->data, rows->data + at, rows->len - at);
    rows->len -= at;
}

void prb_crash_pack(const struct prb_ring_column *columns, size_t count,
                    const struct prb_ring_value *values, struct prb_buf *rows)
{
    uint64_t nulls = 0, length = sizeof nulls + count * sizeof(uint64_t);
    for (size_t i = 0; i < count; i++) {
        nulls |= (uint64_t)values[i].null << i;
        if (columns[i].type == PRB_RING_TEXT && !values[i].null)
            length += values[i].len;
    }
    uint32_t header = (uint32_t)length;
    prb_buf_add(rows, &header, sizeof header);
    prb_buf_add(rows, &nulls, sizeof nulls);
    for (size_t i = 0; i < count; i++) {
        int64_t word = values[i].null                     ? 0
                       : columns[i].type == PRB_RING_TEXT ? (int64_t)values[i].len
                                                          : values[i].integer;
        prb_buf_add(rows, &word, sizeof word);
    }
    for (size_t i = 0; i < count; i++)
        if (columns[i].type == PRB_RING_TEXT && !values[i].null)
            prb_buf_add(rows, values[i].text, values[i].len);
}

void prb_crash_keep_table(struct prb_proc *proc, const char *table,
                          const struct prb_ring_column *columns, size_t count,
                          const struct prb_buf *rows)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    char name[sizeof PRB_TEXT_RING + PRB_RING_NAME_MAX];
    for (size_t i = 0; i < count; i++)
        prb_buf_addf(&text, "%s:%s:%s:%s\n", columns[i].name, prb_ring_type_name(columns[i].type),
                     columns[i].unit, columns[i].doc);
    prb_buf_addc(&text, '\n');
    prb_buf_add(&text, rows->data ? rows->data : "", rows->len);
    snprintf(name, sizeof name, PRB_TEXT_RING "%s", table);
    if (prb_buf_ok(&text) && prb_buf_ok(rows))
        prb_proc_save_text(proc, name, text.data, text.len);
}

static bool pack(void *context, const struct prb_ring_value *values)
{
    struct packing *packing = context;
    prb_crash_pack(packing->columns, packing->count, values, &packing->rows);
    if (prb_buf_ok(&packing->rows) && packing->rows.len > 2 * packing->share)
        drop_old(&packing->rows, packing->share);
    return prb_buf_ok(&packing->rows);
}

static void keep(struct prb_proc *proc, struct prb_ring_reader *reader, size_t share)
{
    struct packing packing = {.share = share};
    packing.columns = prb_ring_columns(reader, &packing.count);
    if (prb_ring_each(reader, pack, &packing, NULL, NULL)) {
        drop_old(&packing.rows, share);
        prb_crash_keep_table(proc, prb_ring_name(reader), packing.columns, packing.count,
                             &packing.rows);
    }
    prb_buf_deinit(&packing.rows);
}

void prb_crash_rings(struct prb_proc *proc, size_t bytes_max)
{
    int folder = prb_recorded_folder_of(proc);
    PRB_AUTO(dir) DIR *dir = folder >= 0 ? fdopendir(folder) : NULL;
    struct prb_ring_reader *readers[TABLES_MAX];
    size_t count = 0;
    if (folder >= 0 && !dir)
        close(folder);
    for (struct dirent *entry; dir && count < TABLES_MAX && (entry = readdir(dir));) {
        const char *dot = strrchr(entry->d_name, '.');
        if (!dot || strcmp(dot, PRB_RING_SUFFIX) != 0)
            continue;
        readers[count] = prb_ring_open(dirfd(dir), entry->d_name, NULL);
        count += readers[count] != NULL;
    }
    for (size_t i = 0; i < count; i++) {
        keep(proc, readers[i], bytes_max / count);
        prb_ring_close(readers[i]);
    }
}

/* ---- secrets ---- */

/* A bit for each column that is text, of the lines "NAME:TYPE:…" up to the empty one. */
static uint64_t text_columns(const char *head, size_t *count_out)
{
    uint64_t texts = 0;
    size_t count = 0;
    for (; *head && *head != '\n'; head = strchr(head, '\n') + 1, count++) {
        const char *type = strchr(head, ':');
        texts |= (uint64_t)(type && strncmp(type, ":text:", 6) == 0) << count;
    }
    *count_out = count;
    return texts;
}

/* Each value by itself: the next value, or the next row's length, follows without a gap. */
static void hide_row(struct prb_hidden *secrets, char *row, size_t len, uint64_t texts,
                     size_t count)
{
    size_t at = (1 + count) * sizeof(uint64_t);
    for (size_t i = 0; i < count; i++) {
        uint64_t value;
        memcpy(&value, row + (1 + i) * sizeof value, sizeof value);
        if (!(texts >> i & 1) || value > len - at)
            continue;
        prb_hidden_apply(secrets, row + at, (size_t)value);
        at += (size_t)value;
    }
}

void prb_crash_hide_rings(struct prb_proc *proc, struct prb_hidden *secrets)
{
    for (size_t i = 0; i < proc->text_count; i++) {
        struct prb_buf *text = &proc->texts[i].text;
        if (strncmp(proc->texts[i].name, PRB_TEXT_RING, strlen(PRB_TEXT_RING)) != 0 || !text->len)
            continue;
        size_t count;
        uint64_t texts = text_columns(text->data, &count);
        char *rows = memmem(text->data, text->len, "\n\n", 2);
        for (size_t at = rows ? (size_t)(rows + 2 - text->data) : text->len; at < text->len;) {
            uint32_t length = length_at(text, at);
            at += sizeof length;
            hide_row(secrets, text->data + at, length, texts, count);
            at += length;
        }
    }
}
