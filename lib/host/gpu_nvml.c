/*
 * NVIDIA's GPUs by NVML: see gpu.h.  The library belongs to the driver, so it is looked for by the
 * loader, and each function may be missing in an old one.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/clock.h"
#include "host/gpu.h"

#define LIBRARY "libnvidia-ml.so.1"
#define DEVICES_MAX 64
#define PROCESSES_MAX 4096
#define EVENTS_MAX 1024 /* that are taken at a reading; the others wait for the next */
#define XID_MAX 65535
#define GPM_APART 0.1 /* s: NVML's manual asks for more than this between two samples */
#define FIRST_PID_NAMESPACE 0xEFFFFFFCu

/* NVML's nvmlReturn_t, and what the calls below are given. */
enum { SUCCESS = 0, INSUFFICIENT_SIZE = 7 };
enum { TEMPERATURE_GPU = 0, CLOCK_SM = 1, CLOCK_MEM = 2, UNCORRECTED = 1, VOLATILE = 0 };
typedef void *device;
struct utilization {
    unsigned gpu, memory;
};
struct memory {
    unsigned long long total, free, used;
};
struct process_info {
    unsigned pid;
    unsigned long long memory; /* ~0: not known */
    unsigned gpu_instance, compute_instance;
};
struct process_sample {
    unsigned pid;
    unsigned long long time; /* us */
    unsigned sm, memory, encoder, decoder;
};

/* nvmlFieldValue_t, its numbers (NVLink's data in KiB, without the protocol's) and value types. */
enum { NVLINK_DATA_TX = 138, NVLINK_DATA_RX = 139 };
enum { UNSIGNED_INT = 1, UNSIGNED_LONG = 2, UNSIGNED_LONG_LONG = 3 };
#define ALL_LINKS (~0u)
struct field {
    unsigned number, scope;
    long long time, latency;
    unsigned type;
    int result;
    union {
        unsigned small;
        unsigned long long large;
    } value;
};

/* nvmlGpmSupport_t and nvmlGpmMetricsGet_t, whose length grows with NVML: it is given room. */
enum { GPM_VERSION = 1, GPM_SM_UTIL = 2, GPM_METRICS_MAX = 512 };
struct gpm_support {
    unsigned version, supported;
};
struct gpm_metrics {
    unsigned version, count;
    void *before, *after;
    struct {
        unsigned number;
        int result;
        double value;
        const char *name, *long_name, *unit;
    } metrics[GPM_METRICS_MAX];
};

/* nvmlEventData_t; before MIG it ended behind data. */
#define XID_ERROR 0x08ull
struct event {
    device gpu;
    unsigned long long type, data;
    unsigned gpu_instance, compute_instance;
};

/* The functions that we call, newest name first. */
struct nvml {
    void *library;
    int (*init)(void);
    int (*shutdown)(void);
    const char *(*error)(int result);
    int (*count)(unsigned *out);
    int (*by_index)(unsigned index, device *out);
    int (*uuid)(device, char *out, unsigned cap);
    int (*name)(device, char *out, unsigned cap);
    int (*utilization)(device, struct utilization *out);
    int (*memory)(device, struct memory *out);
    int (*power)(device, unsigned *milliwatts);
    int (*energy)(device, unsigned long long *millijoules);
    int (*temperature)(device, unsigned sensor, unsigned *out);
    int (*clock)(device, unsigned which, unsigned *mhz);
    int (*reasons)(device, unsigned long long *bits);
    int (*ecc)(device, unsigned kind, unsigned since, unsigned long long *count);
    int (*processes)(device, unsigned *count, struct process_info *out);
    int (*samples)(device, struct process_sample *out, unsigned *count, unsigned long long since);
    int (*fields)(device, int count, struct field *values);
    int (*mig)(device, unsigned *now, unsigned *pending);
    int (*gpm_support)(device, struct gpm_support *out);
    int (*gpm_alloc)(void **sample);
    int (*gpm_free)(void *sample);
    int (*gpm_sample)(device, void *sample);
    int (*gpm_metrics)(struct gpm_metrics *asked);
    int (*events_create)(void **set);
    int (*events_free)(void *set);
    int (*events_register)(device, unsigned long long types, void *set);
    int (*events_wait)(void *set, struct event *out, unsigned milliseconds);
};

static const struct {
    const char *name, *old;
    size_t at;
    bool needed;
} functions[] = {
    {"nvmlInit_v2", "nvmlInit", offsetof(struct nvml, init), true},
    {"nvmlShutdown", NULL, offsetof(struct nvml, shutdown), true},
    {"nvmlErrorString", NULL, offsetof(struct nvml, error), false},
    {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount", offsetof(struct nvml, count), true},
    {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex", offsetof(struct nvml, by_index),
     true},
    {"nvmlDeviceGetUUID", NULL, offsetof(struct nvml, uuid), false},
    {"nvmlDeviceGetName", NULL, offsetof(struct nvml, name), false},
    {"nvmlDeviceGetUtilizationRates", NULL, offsetof(struct nvml, utilization), false},
    {"nvmlDeviceGetMemoryInfo", NULL, offsetof(struct nvml, memory), false},
    {"nvmlDeviceGetPowerUsage", NULL, offsetof(struct nvml, power), false},
    {"nvmlDeviceGetTotalEnergyConsumption", NULL, offsetof(struct nvml, energy), false},
    {"nvmlDeviceGetTemperature", NULL, offsetof(struct nvml, temperature), false},
    {"nvmlDeviceGetClockInfo", NULL, offsetof(struct nvml, clock), false},
    {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons",
     offsetof(struct nvml, reasons), false},
    {"nvmlDeviceGetTotalEccErrors", NULL, offsetof(struct nvml, ecc), false},
    {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2",
     offsetof(struct nvml, processes), false},
    {"nvmlDeviceGetProcessUtilization", NULL, offsetof(struct nvml, samples), false},
    {"nvmlDeviceGetFieldValues", NULL, offsetof(struct nvml, fields), false},
    {"nvmlDeviceGetMigMode", NULL, offsetof(struct nvml, mig), false},
    {"nvmlGpmQueryDeviceSupport", NULL, offsetof(struct nvml, gpm_support), false},
    {"nvmlGpmSampleAlloc", NULL, offsetof(struct nvml, gpm_alloc), false},
    {"nvmlGpmSampleFree", NULL, offsetof(struct nvml, gpm_free), false},
    {"nvmlGpmSampleGet", NULL, offsetof(struct nvml, gpm_sample), false},
    {"nvmlGpmMetricsGet", NULL, offsetof(struct nvml, gpm_metrics), false},
    {"nvmlEventSetCreate", NULL, offsetof(struct nvml, events_create), false},
    {"nvmlEventSetFree", NULL, offsetof(struct nvml, events_free), false},
    {"nvmlDeviceRegisterEvents", NULL, offsetof(struct nvml, events_register), false},
    {"nvmlEventSetWait_v2", "nvmlEventSetWait", offsetof(struct nvml, events_wait), false},
};

static bool load(struct nvml *out, struct prb_error *err)
{
    *out = (struct nvml){0};
    out->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!out->library)
        return prb_fail(err, PRB_UNSUPPORTED, "NVIDIA's driver is not installed (%s)", LIBRARY);
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *found = dlsym(out->library, functions[i].name);
        if (!found && functions[i].old)
            found = dlsym(out->library, functions[i].old);
        if (!found && functions[i].needed)
            return prb_fail(err, PRB_UNSUPPORTED, "%s has no %s", LIBRARY, functions[i].name);
        memcpy((char *)out + functions[i].at, &found, sizeof found);
    }
    return true;
}

static bool refuse(const struct nvml *nvml, int result, const char *what, struct prb_error *err)
{
    const char *text = nvml->error ? nvml->error(result) : NULL;
    return prb_fail(err, PRB_UNSUPPORTED, "%s: %s %d (%s)", LIBRARY, what, result,
                    text ? text : "unknown");
}

/* ---- one device ---- */

/* NVML's nvmlClocksEventReasons: the gravest first. */
static const struct {
    unsigned long long bit;
    const char *name;
} reasons[] = {
    {0x40, "hardware thermal"},  {0x80, "power brake"}, {0x08, "hardware slowdown"},
    {0x20, "software thermal"},  {0x04, "power cap"},   {0x02, "clocks set by a user"},
    {0x10, "other GPUs (sync)"},
};

static const char *reason_of(const struct nvml *nvml, device gpu)
{
    unsigned long long bits;
    if (!nvml->reasons || nvml->reasons(gpu, &bits) != SUCCESS)
        return NULL;
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (bits & reasons[i].bit)
            return reasons[i].name;
    return NULL;
}

static int64_t clock_of(const struct nvml *nvml, device gpu, unsigned which)
{
    unsigned mhz;
    return nvml->clock && nvml->clock(gpu, which, &mhz) == SUCCESS ? (int64_t)mhz : -1;
}

static int64_t bytes_of(const struct field *kib)
{
    unsigned long long count = kib->type == UNSIGNED_INT ? kib->value.small : kib->value.large;
    bool known = kib->result == SUCCESS && kib->type >= UNSIGNED_INT &&
                 kib->type <= UNSIGNED_LONG_LONG && count <= INT64_MAX / 1024;
    return known ? (int64_t)count * 1024 : -1;
}

static void read_nvlink(const struct nvml *nvml, device gpu, struct prb_gpu *out)
{
    struct field fields[] = {{.number = NVLINK_DATA_RX, .scope = ALL_LINKS, .result = -1},
                             {.number = NVLINK_DATA_TX, .scope = ALL_LINKS, .result = -1}};
    if (!nvml->fields || nvml->fields(gpu, 2, fields) != SUCCESS)
        return;
    out->nvlink_received = bytes_of(&fields[0]);
    out->nvlink_sent = bytes_of(&fields[1]);
}

static void read_numbers(const struct nvml *nvml, device gpu, struct prb_gpu *out)
{
    struct utilization busy;
    struct memory memory;
    unsigned number;
    unsigned long long large;
    if (nvml->uuid && nvml->uuid(gpu, out->uuid, sizeof out->uuid) != SUCCESS)
        out->uuid[0] = '\0';
    if (nvml->name && nvml->name(gpu, out->name, sizeof out->name) != SUCCESS)
        out->name[0] = '\0';
    out->uuid[sizeof out->uuid - 1] = out->name[sizeof out->name - 1] = '\0';
    if (nvml->utilization && nvml->utilization(gpu, &busy) == SUCCESS) {
        out->busy = busy.gpu;
        out->memory_busy = busy.memory;
    }
    if (nvml->memory && nvml->memory(gpu, &memory) == SUCCESS) {
        out->memory_used = (int64_t)memory.used;
        out->memory_total = (int64_t)memory.total;
    }
    if (nvml->power && nvml->power(gpu, &number) == SUCCESS)
        out->power = number * 1e-3;
    if (nvml->energy && nvml->energy(gpu, &large) == SUCCESS)
        out->energy = (double)large * 1e-3;
    if (nvml->temperature && nvml->temperature(gpu, TEMPERATURE_GPU, &number) == SUCCESS)
        out->temperature = number;
    out->sm_clock = clock_of(nvml, gpu, CLOCK_SM);
    out->memory_clock = clock_of(nvml, gpu, CLOCK_MEM);
    if (nvml->ecc && nvml->ecc(gpu, UNCORRECTED, VOLATILE, &large) == SUCCESS)
        out->ecc_errors = (int64_t)large;
    out->throttle = reason_of(nvml, gpu);
    read_nvlink(nvml, gpu, out);
}

/* ---- what more than one reading tells ----
 * A set of events for each device: which one an event is of need not be looked for. */

struct watch {
    bool begun;
    char uuid[96];    /* of whom xid is told */
    int64_t xid;      /* 0: none seen */
    void *events;     /* NULL: they cannot be had */
    void *samples[2]; /* of its counters, the older first; NULL: it has none */
    double sampled;   /* s, monotonic: when the older was taken; 0: not yet */
    double sm_active;
};

static void begin_watch(const struct nvml *nvml, device gpu, struct watch *watch)
{
    struct gpm_support support = {.version = GPM_VERSION};
    bool samples = nvml->gpm_support && nvml->gpm_alloc && nvml->gpm_free && nvml->gpm_sample &&
                   nvml->gpm_metrics && nvml->gpm_support(gpu, &support) == SUCCESS &&
                   support.supported;
    bool events = nvml->events_create && nvml->events_free && nvml->events_register &&
                  nvml->events_wait && nvml->events_create(&watch->events) == SUCCESS;
    for (int i = 0; i < 2; i++)
        if (!samples || nvml->gpm_alloc(&watch->samples[i]) != SUCCESS)
            watch->samples[i] = NULL;
    if (!events)
        watch->events = NULL;
    if (watch->events && nvml->events_register(gpu, XID_ERROR, watch->events) != SUCCESS) {
        nvml->events_free(watch->events);
        watch->events = NULL;
    }
    watch->sampled = 0;
    watch->sm_active = -1;
    watch->begun = true;
}

static void end_watch(const struct nvml *nvml, struct watch *watch)
{
    for (int i = 0; i < 2; i++)
        if (watch->samples[i])
            nvml->gpm_free(watch->samples[i]);
    if (watch->events)
        nvml->events_free(watch->events);
    watch->samples[0] = watch->samples[1] = watch->events = NULL;
    watch->begun = false;
}

/* %, of two samples.  A little over 100 is taken for 100: its counters are not read at once. */
static double active_between(const struct nvml *nvml, void *before, void *after)
{
    PRB_AUTO_FREE struct gpm_metrics *asked = calloc(1, sizeof *asked);
    if (!asked)
        return -1;
    asked->version = GPM_VERSION;
    asked->count = 1;
    asked->before = before;
    asked->after = after;
    asked->metrics[0].number = GPM_SM_UTIL;
    asked->metrics[0].result = -1;
    if (nvml->gpm_metrics(asked) != SUCCESS || asked->metrics[0].result != SUCCESS)
        return -1;
    double value = asked->metrics[0].value;
    return !(value >= 0 && value < 101) ? -1 : value < 100 ? value : 100;
}

/* The counters are those of its instances then, one by one. */
static bool in_mig(const struct nvml *nvml, device gpu)
{
    unsigned now = 0, pending = 0;
    return nvml->mig && nvml->mig(gpu, &now, &pending) == SUCCESS && now;
}

static double active_of(const struct nvml *nvml, device gpu, struct watch *watch)
{
    double now = prb_clock_s(), before = watch->sampled;
    void *older = watch->samples[0], *newer = watch->samples[1];
    if (before > 0 && now <= before + GPM_APART)
        return watch->sm_active;
    watch->sampled = 0;
    watch->sm_active = -1;
    if (!older || !newer || in_mig(nvml, gpu) || nvml->gpm_sample(gpu, newer) != SUCCESS)
        return -1;
    if (before > 0)
        watch->sm_active = active_between(nvml, older, newer);
    watch->samples[0] = newer;
    watch->samples[1] = older;
    watch->sampled = now;
    return watch->sm_active;
}

static int64_t xid_of(const struct nvml *nvml, struct watch *watch)
{
    struct event event = {0};
    for (int i = 0; i < EVENTS_MAX && watch->events; i++) {
        if (nvml->events_wait(watch->events, &event, 0) != SUCCESS)
            break;
        if (event.type == XID_ERROR && event.data > 0 && event.data <= XID_MAX)
            watch->xid = (int64_t)event.data;
    }
    return watch->xid > 0 ? watch->xid : -1;
}

static void look_again(const struct nvml *nvml, device gpu, struct watch *watch,
                       struct prb_gpu *out)
{
    if (out->uuid[0] && strcmp(watch->uuid, out->uuid) != 0) { /* another one has its number */
        end_watch(nvml, watch);
        memcpy(watch->uuid, out->uuid, sizeof watch->uuid);
        watch->xid = 0;
    }
    if (!watch->begun)
        begin_watch(nvml, gpu, watch);
    out->sm_active = active_of(nvml, gpu, watch);
    out->xid = xid_of(nvml, watch);
}

/* ---- who uses it ---- */

/* A list whose length is asked first, and may have grown since. */
static struct process_info *list_processes(const struct nvml *nvml, device gpu, unsigned *count_out)
{
    unsigned count = 0;
    int result = nvml->processes ? nvml->processes(gpu, &count, NULL) : SUCCESS;
    *count_out = 0;
    for (int tries = 0; result == INSUFFICIENT_SIZE && count < PROCESSES_MAX && tries < 4;
         tries++) {
        unsigned room = count + 16;
        struct process_info *list = calloc(room, sizeof *list);
        count = room;
        result = list ? nvml->processes(gpu, &count, list) : SUCCESS;
        if (list && result == SUCCESS && count <= room) {
            *count_out = count;
            return list;
        }
        free(list);
    }
    return NULL;
}

static double busy_of(const struct process_sample *samples, unsigned count, unsigned pid)
{
    double busy = -1;
    unsigned long long newest = 0;
    for (unsigned i = 0; i < count; i++) {
        if (samples[i].pid != pid || samples[i].time < newest)
            continue;
        newest = samples[i].time;
        busy = samples[i].sm;
    }
    return busy;
}

/* The driver names processes as the machine counts them, whoever asks.  The first pid namespace has the same number on
 * every machine (Linux, PROC_PID_INIT_INO); in another one nothing says which process it is. */
static bool counts_as_the_machine(void)
{
    struct stat ours;
    return stat("/proc/self/ns/pid", &ours) != 0 || ours.st_ino == FIRST_PID_NAMESPACE;
}

static bool add_processes(const struct nvml *nvml, device gpu, unsigned index, struct prb_gpus *out,
                          struct prb_error *err)
{
    unsigned count, sampled = 0, room = 0;
    bool known = counts_as_the_machine();
    PRB_AUTO_FREE struct process_info *list = list_processes(nvml, gpu, &count);
    if (count && nvml->samples && nvml->samples(gpu, NULL, &sampled, 0) == INSUFFICIENT_SIZE)
        room = sampled < PROCESSES_MAX ? sampled : PROCESSES_MAX;
    PRB_AUTO_FREE struct process_sample *samples = room ? calloc(room, sizeof *samples) : NULL;
    sampled = room;
    if (!samples || nvml->samples(gpu, samples, &sampled, 0) != SUCCESS || sampled > room)
        sampled = 0;
    for (unsigned i = 0; i < count; i++) {
        if (!PRB_GROW(out->processes, out->process_count, out->process_cap))
            return prb_nomem(err);
        out->processes[out->process_count++] = (struct prb_gpu_process){
            .gpu = index,
            .pid = known ? (pid_t)list[i].pid : -1,
            .memory = list[i].memory > INT64_MAX ? -1 : (int64_t)list[i].memory,
            .busy = busy_of(samples, sampled, list[i].pid)};
    }
    return true;
}

/* ---- all ---- */

/* watch: NULL: this reading is the only one. */
static bool add_device(const struct nvml *nvml, unsigned index, struct watch *watch, bool processes,
                       struct prb_gpus *out, struct prb_error *err)
{
    device gpu;
    if (nvml->by_index(index, &gpu) != SUCCESS)
        return true; /* lost, or not ours to see: the others are told */
    if (!PRB_GROW(out->items, out->count, out->cap))
        return prb_nomem(err);
    struct prb_gpu *item = &out->items[out->count++];
    *item = (struct prb_gpu){.backend = "nvml",
                             .index = index,
                             .busy = -1,
                             .memory_busy = -1,
                             .memory_used = -1,
                             .memory_total = -1,
                             .temperature = -1,
                             .power = -1,
                             .energy = -1,
                             .ecc_errors = -1,
                             .nvlink_received = -1,
                             .nvlink_sent = -1,
                             .sm_active = -1,
                             .xid = -1};
    read_numbers(nvml, gpu, item);
    if (watch)
        look_again(nvml, gpu, watch, item);
    return !processes || add_processes(nvml, gpu, index, out, err);
}

static bool add_devices(const struct nvml *nvml, struct watch *watches, bool processes,
                        struct prb_gpus *out, struct prb_error *err)
{
    unsigned count = 0;
    int result = nvml->count(&count);
    if (result != SUCCESS)
        return refuse(nvml, result, "nvmlDeviceGetCount gave", err);
    bool good = true;
    for (unsigned i = 0; good && i < count && i < DEVICES_MAX; i++)
        good = add_device(nvml, i, watches ? &watches[i] : NULL, processes, out, err);
    return good;
}

static bool begin(struct nvml *out, struct prb_error *err)
{
    int result = load(out, err) ? out->init() : -1;
    if (result == SUCCESS)
        return true;
    if (result > 0)
        refuse(out, result, "nvmlInit gave", err);
    if (out->library)
        dlclose(out->library);
    return false;
}

/* With the lock: of who reads again and again, see prb_gpus_keep. */
static struct {
    pthread_mutex_t lock;
    bool wanted, begun;
    struct nvml nvml;
    struct watch watches[DEVICES_MAX];
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

void prb_gpus_keep(void)
{
    pthread_mutex_lock(&kept.lock);
    kept.wanted = true;
    pthread_mutex_unlock(&kept.lock);
}

static void end(void)
{
    for (size_t i = 0; i < DEVICES_MAX; i++)
        end_watch(&kept.nvml, &kept.watches[i]);
    kept.nvml.shutdown();
    dlclose(kept.nvml.library);
    kept.begun = false;
}

bool prb_gpus_nvml(bool processes, struct prb_gpus *out, struct prb_error *err)
{
    pthread_mutex_lock(&kept.lock);
    kept.begun = kept.begun || begin(&kept.nvml, err);
    struct watch *watches = kept.wanted ? kept.watches : NULL;
    bool good = kept.begun && add_devices(&kept.nvml, watches, processes, out, err);
    if (kept.begun && (!good || !kept.wanted)) /* after an error it begins anew */
        end();
    pthread_mutex_unlock(&kept.lock);
    return good;
}
