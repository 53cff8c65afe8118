/* Plugins: shared objects with tables of their own (probing_plugin.h), in the process that asks. */
#ifndef PRB_PLUGIN_PLUGIN_H
#define PRB_PLUGIN_PLUGIN_H

#include "sql/table.h"

/*
 * The tables of all plugins that were found, loaded at the first call in a process and never
 * unloaded.  taken: the tables that a plugin must not have again.  NULL: out of memory.
 */
struct prb_table_source *prb_plugin_tables(const struct prb_table *const *taken, size_t count,
                                           struct prb_error *err);

/* The file that a path leads to, if its code may run with our rights: it, and every folder on the
 * way to it, belong to us or to root, and nobody else can write there; for root it is root's alone.
 * False: err says which is not so. */
bool prb_plugin_is_safe(const char *path, char real[4096], struct prb_error *err);

#endif
