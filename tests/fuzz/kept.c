/*
 * The kept rows of a crash dump: a table's name, a NUL, and the text that the dump has for it. What
 * is told of it must be a table that SQL can read whole, and every byte of its rows is looked at.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proc/source.h"
#include "sql/db.h"
#include "table/recorded/dump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool look(void *context, size_t count, const char *const *names, const struct prb_value *row)
{
    unsigned *sum = context;
    for (size_t i = 0; i < count; i++) {
        if (!names[i] || !*names[i])
            abort();
        for (size_t k = 0; row && row[i].type == PRB_TEXT && k < row[i].length; k++)
            *sum += (unsigned char)row[i].text[k];
    }
    return true;
}

static void read_all(struct prb_proc *proc, const char *name, bool there)
{
    static const struct prb_table *const none[] = {NULL};
    struct prb_error err = {0};
    char sql[PRB_RING_NAME_MAX + 64];
    unsigned sum = 0;
    PRB_AUTO(prb_db) struct prb_db *db = prb_db_open_tables(NULL, none, 0, &err);
    if (!db || !prb_db_add_source(db, prb_dumped_tables_of(proc, &err), &err))
        return;
    snprintf(sql, sizeof sql, "SELECT * FROM python.\"%s\"", name);
    if (prb_db_query(db, sql, look, &sum, &err) != there)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct prb_table *const *tables;
    struct prb_proc proc = {.ops = NULL};
    char name[sizeof PRB_TEXT_RING + 256];
    size_t count = 0, len = strnlen((const char *)data, size < 255 ? size : 255);
    if (len == size || data[len])
        return 0;
    snprintf(name, sizeof name, PRB_TEXT_RING "%s", (const char *)data);
    if (!prb_proc_save_text(&proc, name, (const char *)data + len + 1, size - len - 1))
        abort();
    /* The same name in other letters is one table for SQL. */
    char *first = &name[sizeof PRB_TEXT_RING - 1];
    if (*first >= 'a' && *first <= 'z')
        *first ^= 'a' ^ 'A';
    prb_proc_save_text(&proc, name, (const char *)data + len + 1, size - len - 1);
    struct prb_table_source *source = prb_dumped_tables_of(&proc, NULL);
    if (!source || !source->list(source, &tables, &count, NULL) || count > 1)
        abort();
    source->free(source);
    read_all(&proc, (const char *)data, count == 1);
    prb_proc_deinit(&proc);
    return 0;
}
