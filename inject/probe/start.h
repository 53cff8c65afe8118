/*
 * The one symbol that libprobe.so exports for those who load it: prb_probe_start.
 * Called by the injected thread, by `import probing` (ctypes), and by libprobe's own constructor under LD_PRELOAD.
 */
#ifndef PRB_PROBE_START_H
#define PRB_PROBE_START_H

#include <stddef.h>
#include <stdint.h>

#define PRB_PROBE_START_VERSION 1

struct prb_ring_table; /* lib/ring/ring.h */

/* What Python code in the target may call (through ctypes): every function is thread-safe, takes no GIL, never blocks. */
struct prb_probe_functions {
    uint32_t version, size;
    int (*active)(void);                                  /* 1: listens */
    int (*detach)(void);                                  /* 0: done */
    int (*config_get)(const char *key, char *out, size_t cap); /* length, -1: unknown */
    int (*config_set)(const char *key, const char *value, char *error, size_t cap); /* 0: done */
    const char *(*socket_path)(void);
    /* columns: "name:type[:unit[:doc]]" lines; types of lib/ring/ring.h.  NULL: error tells. */
    void *(*table)(const char *name, const char *columns, char *error, size_t cap);
    /* One row: packed values as lib/ring/ring.h says.  0: written, 1: dropped (no room), -1: wrong. */
    int (*row)(void *table, const void *packed, size_t len);
};

struct prb_probe_call {
    uint32_t version, size;
    const char *settings; /* lines "key=value", or NULL */
    const char *how;      /* "inject", "import", "preload": for the log */
    char error[256];      /* filled when it fails */
    const struct prb_probe_functions *functions; /* filled */
};

/* 0: runs (or ran already); else call->error tells.  Idempotent; never takes the GIL. */
int prb_probe_start(struct prb_probe_call *call);

#endif
