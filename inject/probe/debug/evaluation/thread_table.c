/*
 * What is kept of threads that have our trace function: the program's own one, and the exception
 * that passes a frame of which no hook sees the end.  A table by address; an entry of a thread that
 * ended is overwritten, since a new thread has no trace function.
 */
#include <stdlib.h>

#include "inject/probe/debug/evaluation/evaluation.h"

static struct prb_evaluation_entry *table;
static size_t room;
size_t prb_evaluation_entry_count;

struct prb_evaluation_entry *prb_evaluation_entry_find(const char *thread)
{
    for (size_t i = 0; i < prb_evaluation_entry_count; i++)
        if (table[i].thread == thread)
            return &table[i];
    return NULL;
}

static bool grow(void)
{
    size_t more = room ? room * 2 : 16;
    struct prb_evaluation_entry *new =
        more <= PRB_EVALUATION_ENTRIES_MAX ? realloc(table, more * sizeof *new) : NULL;
    if (!new)
        return false;
    table = new;
    room = more;
    return true;
}

struct prb_evaluation_entry *prb_evaluation_entry_make(const char *thread)
{
    struct prb_evaluation_entry *entry = prb_evaluation_entry_of(thread);
    if (entry)
        return entry;
    if (prb_evaluation_entry_count == room && !grow())
        return NULL;
    entry = &table[prb_evaluation_entry_count++];
    *entry =
        (struct prb_evaluation_entry){.thread = thread, .id = prb_evaluation_thread_id(thread)};
    return entry;
}

void prb_evaluation_keep_less(const char *thread)
{
    struct prb_evaluation_entry *entry = prb_evaluation_entry_of(thread);
    if (!entry)
        return;
    entry->original = NULL;
    entry->quiet = false;
    if (!entry->raised)
        *entry = table[--prb_evaluation_entry_count];
}

void prb_evaluation_keep_none(void)
{
    while (prb_evaluation_entry_count) {
        struct prb_py *raised = table[--prb_evaluation_entry_count].raised;
        if (!prb_evaluation.plain)
            prb_py_drop(raised);
    }
}
