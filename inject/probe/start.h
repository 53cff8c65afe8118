/*
 * The one symbol that libprobe.so exports for those who load it: prb_probe_start.
 * Called by the injected thread, by `import probing` (ctypes), and by libprobe's own constructor
 * under LD_PRELOAD.
 */
#ifndef PRB_PROBE_START_H
#define PRB_PROBE_START_H

#include <stddef.h>
#include <stdint.h>

#define PRB_PROBE_START_VERSION 1
#define PRB_HOW_PRELOAD "preload"

struct prb_ring_table; /* lib/ring/ring.h */

/* What Python code in the target may call (through ctypes): every function is thread-safe, takes no
 * GIL, never blocks. */
struct prb_probe_functions {
    uint32_t version, size;
    int (*active)(void);                                       /* 1: listens */
    int (*detach)(void);                                       /* 0: done */
    int (*config_get)(const char *key, char *out, size_t cap); /* length, -1: unknown */
    int (*config_set)(const char *key, const char *value, char *error, size_t cap); /* 0: done */
    const char *(*socket_path)(void);
    /* columns: "name:type[:unit[:doc]]" lines; types integer, real, text, boolean, time.  The same
     * name and columns again give the same table; other columns: NULL, error says why. */
    void *(*table)(const char *name, const char *columns, char *error, size_t cap);
    /*
     * One row, packed, little endian: uint64_t with bit N set where column N is NULL; 8 bytes for
     * each column (int64_t, boolean 0 or 1, double of REAL and TIME, for TEXT its length in bytes
     * as int64_t); then the texts (UTF-8) one after another in the columns' order.  A NULL's 8
     * bytes are 0.  0: written, 1: dropped (no room), -1: wrong.
     */
    int (*row)(void *table, const void *packed, size_t len);
    /* All settings, lines "key=value", NUL-terminated where cap suffices.  The length without NUL.
     */
    int (*config_list)(char *out, size_t cap);
    /* Start a server for this process at HOST:PORT, a port, or RANDOM, and wait for it.  allow:
     * "control" or "eval", what its token may do beside looking, or NULL: as PROBING_SERVE_ALLOW
     * says.  0: out has its address with the token; -1: why not. */
    int (*serve)(const char *address, const char *allow, char *out, size_t cap);
};

struct prb_probe_call {
    uint32_t version, size;
    const char *settings; /* lines "key=value", or NULL */
    /* "import", "preload", or "PID/UID" of who injects: for the log */
    const char *how;
    char error[256];                             /* filled when it fails */
    const struct prb_probe_functions *functions; /* filled */
};

/* 0: runs (or ran already); else call->error says why.  Idempotent; never takes the GIL. */
int prb_probe_start(struct prb_probe_call *call);

#endif
