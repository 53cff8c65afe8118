/*
 * The GPUs of this machine, seen from outside any process that uses them: NVIDIA's management
 * library (NVML), found at run time, and what the kernel's amdgpu driver shows in sysfs.
 *
 * NVML's functions, structs and numbers are those of its manual (NVML API Reference, "Device
 * Queries"); no context is made on a device.  Linux Documentation/gpu/amdgpu/thermal.rst.
 */
#ifndef PRB_HOST_GPU_H
#define PRB_HOST_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/error.h"

/* Numbers below 0: not known. */
struct prb_gpu {
    const char *backend; /* "nvml" or "amdgpu" */
    unsigned index;      /* as the backend counts them, whatever CUDA_VISIBLE_DEVICES says */
    char uuid[96], name[96];
    double busy;        /* %: of the last second or so, a kernel ran (however few of its units) */
    double memory_busy; /* %: its memory was read or written */
    int64_t memory_used, memory_total; /* bytes */
    double temperature;                /* degrees Celsius */
    double power;                      /* W */
    double energy;                     /* J, since the driver was loaded */
    int64_t sm_clock, memory_clock;    /* MHz */
    int64_t ecc_errors; /* that could not be corrected, since the driver was loaded */
    int64_t nvlink_received, nvlink_sent; /* bytes of all links, since the driver was loaded */
    double sm_active;     /* %: of its SMs' time, since the reading before; see prb_gpus_keep */
    int64_t xid;          /* the last Xid error since the first reading; -1: none, or not told of */
    const char *throttle; /* what lowers its clocks; NULL: nothing, or not known */
};

struct prb_gpu_process {
    unsigned gpu;
    pid_t pid;      /* in our pid namespace; -1: not known */
    int64_t memory; /* bytes; -1: the driver does not say (in a container, with MIG) */
    double busy;    /* % of the last samples; -1: not known */
};

struct prb_gpus {
    struct prb_gpu *items;
    size_t count, cap;
    struct prb_gpu_process *processes;
    size_t process_count, process_cap;
};
void prb_gpus_deinit(struct prb_gpus *gpus);
PRB_DEFINE_AUTO(prb_gpus, struct prb_gpus, prb_gpus_deinit)

/* All of them; processes: who uses them, too.  UNSUPPORTED says what was looked for: none is here. */
bool prb_gpus_read(bool processes, struct prb_gpus *out, struct prb_error *err);

/* From now on the driver's library stays loaded between readings, of which each else has it loaded
 * and begun: for who reads every second.  It takes some 20 MB.  Only so are sm_active and xid known:
 * one is the difference of two readings, the other is what came since the first. */
void prb_gpus_keep(void);

/* The parts of that: by NVML (false with err; UNSUPPORTED: there is no library, or it does not
 * work), and by a folder such as /sys/class/drm. */
bool prb_gpus_nvml(bool processes, struct prb_gpus *out, struct prb_error *err);
bool prb_gpus_amd(const char *folder, struct prb_gpus *out, struct prb_error *err);

#endif
