/*
 * Tables of a plugin: a shared object that `probing query` and everything else that asks SQL loads
 * into its own process, never into a target.
 *
 * A plugin includes this header alone, links nothing of Probing, and has one symbol,
 * probing_plugin_v1.  It is found in PROBING_PLUGINS (paths of files, separated by colons) and in
 * LIBDIR/probing/plugins.  examples/plugin/limits.c is one.
 *
 * This interface is stable: version 1 of these structs only gains members at their ends, and each
 * struct says how large it is.
 */
#ifndef PROBING_PLUGIN_H
#define PROBING_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PROBING_PLUGIN_VERSION 1u

enum probing_type { PROBING_INTEGER = 1, PROBING_REAL = 2, PROBING_TEXT = 3 };

struct probing_column {
    const char *name; /* letters, digits and _ */
    enum probing_type type;
    const char *unit; /* "bytes", "s", "ms", "count", "id", "ratio", "%", ... or "" */
    const char *doc;  /* one sentence */
};

/* The rows that one statement reads of a table, being made. */
struct probing_rows;

/* What Probing does for a plugin; valid for ever.  Called with the rows that fill was given, on the
 * thread that it was called on. */
struct probing_host {
    uint32_t version, size; /* of this struct, as the program that loads the plugin has it */

    /* The target's pid, in the caller's namespace; of a core or snapshot the one it had then. */
    int (*pid)(const struct probing_rows *rows);
    /* 1: it is a process that runs; 0: a core or snapshot. */
    int (*runs)(const struct probing_rows *rows);
    /* Bytes of its memory, which may change meanwhile: how many could be read from address on. */
    size_t (*read)(const struct probing_rows *rows, uint64_t address, void *out, size_t len);
    /* A text of /proc/PID ("limits", "task/7/stat"), also of a core or snapshot that has it: its
     * length, of which at most cap - 1 bytes and a NUL come to out; -1: there is none. */
    long (*text)(const struct probing_rows *rows, const char *name, char *out, size_t cap);

    /* Begin a row; then its cells in the order of the columns.  Missing ones are NULL, more than
     * there are columns are left out.  Texts are copied; NULL is NULL. */
    void (*begin)(struct probing_rows *rows);
    void (*null)(struct probing_rows *rows);
    void (*integer)(struct probing_rows *rows, int64_t value);
    void (*real)(struct probing_rows *rows, double value);
    void (*string)(struct probing_rows *rows, const char *text);
    /* One sentence beside the result: what the rows leave out, and why. */
    void (*note)(struct probing_rows *rows, const char *text);
};

struct probing_table {
    uint32_t size;             /* of this struct */
    const char *schema, *name; /* "nccl", "channels": letters, digits and _; not one of Probing's */
    const char *doc;           /* one sentence */
    const struct probing_column *columns; /* ends with name NULL; 1 to 63 */
    int needs_target;                     /* 0: rows of the machine, without a target */
    /* Append the rows of this moment; called once in a statement.  0, or -1 with the reason in
     * error (cap bytes): the query fails with it. */
    int (*fill)(struct probing_rows *rows, char *error, size_t cap);
};

struct probing_plugin {
    uint32_t version, size; /* PROBING_PLUGIN_VERSION; of this struct */
    const char *name;
    const struct probing_table *const *tables; /* ends with NULL */
};

/* The plugin, a constant; NULL: it does not work with this host.  Called once in a process. */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const struct probing_plugin *probing_plugin_v1(const struct probing_host *host);

#ifdef __cplusplus
}
#endif
#endif
