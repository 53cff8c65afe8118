/*
 * Between the probe and the plugin, which are two libraries: the probe looks for the plugin's one function by name, and
 * hands over where rows go.  The plugin needs nothing else, and does nothing until then.
 */
#ifndef PRB_NCCL_HOST_H
#define PRB_NCCL_HOST_H

#include <stdbool.h>
#include <stdint.h>

#define PRB_NCCL_LIBRARY "libprobing-nccl.so"
#define PRB_NCCL_VARIABLE "NCCL_PROFILER_PLUGIN"
#define PRB_NCCL_SWITCH "prb_nccl_switch"
#define PRB_NCCL_VERSION 1u

struct prb_ring_value;

/* Lasts as long as the process. */
struct prb_nccl_host {
    uint32_t version;
    /* As prb_probe_table and prb_ring_write are; NULL: no table. */
    void *(*table)(const char *name, const char *columns);
    bool (*write)(void *table, const struct prb_ring_value *values);
};

/* The events of this mask are recorded from now on; 0: none, and what is under way is dropped.  Messages of fewer bytes
 * are left out.  Any thread. */
typedef void prb_nccl_switch_fn(const struct prb_nccl_host *host, int mask, uint64_t least_bytes);

#endif
