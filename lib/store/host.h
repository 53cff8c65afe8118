/*
 * What the machine says of a process once a second, as the collector keeps it: rings that it writes
 * into the process's folder, and tables of the schema "host" in the store.  The tables of SQL
 * (system.usage, memory_usage, …) have their columns by these names, and pid and rank of the process.
 *
 * To add one: its name and columns here, its rows in collect/host.c, and a table that reads them
 * (table/shared/host_history.h).
 */
#ifndef PRB_STORE_HOST_H
#define PRB_STORE_HOST_H

#include <stdbool.h>
#include <string.h>

#define PRB_HOST_SCHEMA "host"
#define PRB_HOST_PREFIX "probing_host_" /* of rings: no program's table has such a name */

/* cpu_user_pct to write_mb as in system.usage; watched_ns: from the reading before; the process's
 * rows have cpu time, memory and threads, too. */
#define PRB_HOST_USAGE PRB_HOST_PREFIX "usage"
#define PRB_HOST_USAGE_COLUMNS                                                                     \
    "timestamp:time\nscope:text\nos_thread_id:integer\ncomm:text\ncpu_user_pct:real\n"             \
    "cpu_sys_pct:real\nwait_pct:real\nfaults:integer\nmajflt:integer\nvol_ctxt:integer\n"          \
    "invol_ctxt:integer\nread_mb:real\nwrite_mb:real\nstate:text\nwatched_ns:integer\n"            \
    "user_ns:integer\nsys_ns:integer\nrss_kb:integer\nthread_count:integer\n"                      \
    "gil_pct:real\n"

#define PRB_HOST_MEMORY PRB_HOST_PREFIX "memory"
#define PRB_HOST_MEMORY_COLUMNS                                                                    \
    "timestamp:time\nmemory_mb:real\nanon:real\nfile:real\nshared:real\nswap:real\npeak:real\n"    \
    "cgroup_used:real\ncgroup_limit:real\noom_kills:integer\n"

#define PRB_HOST_CGROUP PRB_HOST_PREFIX "cgroup"
#define PRB_HOST_CGROUP_COLUMNS                                                                    \
    "timestamp:time\npath:text\nversion:integer\nmemory_used:integer\nmemory_limit:integer\n"      \
    "limited_by:text\noom_kills:integer\ncpus:real\nthrottled_ms:real\n"                           \
    "throttled_periods:integer\npressure_cpu:real\npressure_memory:real\npressure_io:real\n"

#define PRB_HOST_NETWORK PRB_HOST_PREFIX "network"
#define PRB_HOST_NETWORK_COLUMNS                                                                   \
    "timestamp:time\ninterface:text\nkind:text\nrx_bytes:integer\ntx_bytes:integer\n"              \
    "rx_packets:integer\ntx_packets:integer\nrx_errors:integer\ntx_errors:integer\n"

/* Of the machine: written for one process of a job, read for all of them. */
#define PRB_HOST_GPUS PRB_HOST_PREFIX "gpus"
#define PRB_HOST_GPUS_COLUMNS                                                                      \
    "timestamp:time\ngpu_id:integer\nuuid:text\nname:text\nbackend:text\ngpu_util:real\n"          \
    "mem_util:real\nmemory_used_mb:real\nmemory_total_mb:real\ntemperature_c:real\npower_w:real\n" \
    "energy_j:real\nsm_clock_mhz:integer\nmem_clock_mhz:integer\nthrottle:text\n"                  \
    "ecc_errors:integer\nsm_active:real\nxid:integer\nnvlink_rx_mb:real\nnvlink_tx_mb:real\n"

#define PRB_HOST_GPU_PROCESSES PRB_HOST_PREFIX "gpu_processes"
#define PRB_HOST_GPU_PROCESSES_COLUMNS                                                             \
    "timestamp:time\ngpu_id:integer\ngpu_pid:integer\nmemory_mb:real\nsm_util:real\n"

/* Samples of stacks since the rows before, ten a second: state and stack as in python.stack_samples. */
#define PRB_HOST_STACKS PRB_HOST_PREFIX "stacks"
#define PRB_HOST_STACKS_COLUMNS                                                                    \
    "timestamp:time\nos_thread_id:integer\nthread_name:text\nstate:text\nsamples:integer\n"        \
    "stack:text\n"

/* Whether a ring of this name is the collector's. */
static inline bool prb_host_is_ring(const char *name)
{
    return strncmp(name, PRB_HOST_PREFIX, sizeof PRB_HOST_PREFIX - 1) == 0;
}

#endif
