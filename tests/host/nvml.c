/*
 * A stand-in for NVIDIA's management library: two devices, scripted by words of PRB_FAKE_NVML:
 *   driver       nvmlInit fails: the driver does not answer
 *   lost         the second device is lost
 *   silent       nothing is supported but the names
 *   mig          the first device is in MIG mode
 *   xid          from the second look on the first device has had errors, the last one Xid 79
 *   nonsense     numbers that cannot be, of NVLink, SMs and events
 *   uncounted    the devices cannot be counted
 *   swapped      each device has the other's UUID
 *   PID          this process uses the first device, with 512 MB; as a second one, of unknown memory, pid 1
 * PRB_FAKE_NVML_TOLD: a file in which each process that begins writes its pid, and "left" where it ends the library but still
 * has something of it.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* no header here declares them */
#pragma GCC visibility push(default)

enum {
    SUCCESS,
    UNINITIALIZED,
    INVALID,
    NOT_SUPPORTED,
    SMALL = 7,
    DRIVER = 9,
    TIMEOUT = 10,
    LOST = 15
};
struct process_info {
    unsigned pid;
    unsigned long long memory;
    unsigned gpu_instance, compute_instance;
};
struct process_sample {
    unsigned pid;
    unsigned long long time;
    unsigned sm, memory, encoder, decoder;
};

static int devices[2];
static int ready, held;

static int says(const char *word)
{
    const char *script = getenv("PRB_FAKE_NVML");
    return script && strstr(script, word) != NULL;
}

static int index_of(void *device) { return (int)((int *)device - devices); }
static int supported(void) { return !ready ? UNINITIALIZED : says("silent") ? NOT_SUPPORTED : 0; }

static void tell(const char *text)
{
    const char *told = getenv("PRB_FAKE_NVML_TOLD");
    FILE *file = told ? fopen(told, "a") : NULL;
    if (file) {
        fprintf(file, "%s\n", text);
        fclose(file);
    }
}

int nvmlInit_v2(void)
{
    char pid[16];
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    tell(pid);
    ready = !says("driver");
    return ready ? SUCCESS : DRIVER;
}

int nvmlShutdown(void)
{
    if (held)
        tell("left");
    ready = 0;
    return SUCCESS;
}

const char *nvmlErrorString(int result)
{
    return result == DRIVER ? "Driver Not Loaded" : "another";
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = 2;
    return !ready ? UNINITIALIZED : says("uncounted") ? LOST : SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
    if (index > 1 || (index == 1 && says("lost")))
        return index > 1 ? INVALID : LOST;
    *device = &devices[index];
    return SUCCESS;
}

int nvmlDeviceGetUUID(void *device, char *out, unsigned cap)
{
    strncpy(out, index_of(device) != says("swapped") ? "GPU-1" : "GPU-0", cap);
    return SUCCESS;
}

int nvmlDeviceGetName(void *device, char *out, unsigned cap)
{
    (void)device;
    strncpy(out, "NVIDIA Fake 9000", cap);
    return SUCCESS;
}

int nvmlDeviceGetUtilizationRates(void *device, unsigned out[2])
{
    out[0] = index_of(device) ? 0 : 87;
    out[1] = index_of(device) ? 0 : 40;
    return supported();
}

int nvmlDeviceGetMemoryInfo(void *device, unsigned long long out[3])
{
    out[0] = 80ull << 30;
    out[2] = index_of(device) ? 1ull << 20 : 10ull << 30;
    out[1] = out[0] - out[2];
    return supported();
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts)
{
    *milliwatts = index_of(device) ? 70000 : 651500;
    return supported();
}

int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules)
{
    (void)device;
    *millijoules = 1234567000ull;
    return supported();
}

int nvmlDeviceGetTemperature(void *device, unsigned sensor, unsigned *out)
{
    *out = index_of(device) ? 35 : 71;
    return sensor ? INVALID : supported();
}

int nvmlDeviceGetClockInfo(void *device, unsigned which, unsigned *mhz)
{
    (void)device;
    *mhz = which == 1 ? 1980 : which == 2 ? 2619 : 0;
    return supported();
}

/* The older name alone: an old driver. */
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *bits)
{
    *bits = index_of(device) ? 0x1 : 0x24; /* idle; power cap and software thermal */
    return supported();
}

int nvmlDeviceGetTotalEccErrors(void *device, unsigned kind, unsigned since,
                                unsigned long long *count)
{
    *count = kind == 1 && since == 0 ? 3 : 99;
    return index_of(device) ? NOT_SUPPORTED : supported();
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, struct process_info *out)
{
    const char *script = getenv("PRB_FAKE_NVML");
    unsigned pid = script ? (unsigned)atoi(script) : 0, room = *count;
    *count = pid && index_of(device) == 0 ? 2 : 0;
    if (room < *count)
        return SMALL;
    if (*count) {
        out[0] = (struct process_info){pid, 512ull << 20, ~0u, ~0u};
        out[1] = (struct process_info){1, ~0ull, ~0u, ~0u};
    }
    return supported();
}

int nvmlDeviceGetProcessUtilization(void *device, struct process_sample *out, unsigned *count,
                                    unsigned long long since)
{
    const char *script = getenv("PRB_FAKE_NVML");
    unsigned pid = script ? (unsigned)atoi(script) : 0, room = *count;
    (void)device;
    (void)since;
    *count = 2;
    if (!out || room < 2)
        return SMALL;
    out[0] = (struct process_sample){pid, 2000, 63, 1, 0, 0};
    out[1] = (struct process_sample){pid, 1000, 11, 1, 0, 0};
    return SUCCESS;
}

/* ---- NVLink ---- */

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

/* The second device has no links. */
int nvmlDeviceGetFieldValues(void *device, int count, struct field *fields)
{
    for (int i = 0; i < count; i++) {
        unsigned number = fields[i].number;
        int known = (number == 138 || number == 139) && fields[i].scope == ~0u;
        fields[i].result = !known ? INVALID : index_of(device) ? NOT_SUPPORTED : SUCCESS;
        if (says("nonsense")) {
            fields[i].type = number == 138 ? 3 : 77;
            fields[i].value.large = number == 138 ? 1ull << 60 : 5; /* KiB: more than 2^63 bytes */
        } else if (number == 138) {
            fields[i].type = 3;
            fields[i].value.large = (5ull << 32) / 1024; /* KiB sent: 20 GiB */
        } else {
            fields[i].type = 1;
            fields[i].value.large = ~0ull;
            fields[i].value.small = 3 << 20; /* received: 3 GiB */
        }
    }
    return supported();
}

/* ---- counters of the first device ---- */

struct sample {
    void *device;
    double time;
};
struct support {
    unsigned version, supported;
};
struct metrics {
    unsigned version, count;
    struct sample *before, *after;
    struct {
        unsigned number;
        int result;
        double value;
        const char *names[3];
    } metrics[333];
};

int nvmlDeviceGetMigMode(void *device, unsigned *now, unsigned *pending)
{
    *now = *pending = says("mig") && index_of(device) == 0;
    return supported();
}

int nvmlGpmQueryDeviceSupport(void *device, struct support *out)
{
    out->supported = index_of(device) == 0;
    return out->version == 1 ? supported() : INVALID;
}

int nvmlGpmSampleAlloc(struct sample **out)
{
    *out = calloc(1, sizeof **out);
    held++;
    return *out ? SUCCESS : INVALID;
}

int nvmlGpmSampleFree(struct sample *sample)
{
    free(sample);
    held--;
    return SUCCESS;
}

int nvmlGpmSampleGet(void *device, struct sample *sample)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    *sample = (struct sample){device, (double)now.tv_sec + (double)now.tv_nsec * 1e-9};
    return supported();
}

/* 37.5 % of its SMs; of samples in the wrong order, too close, or of nothing: an error. */
int nvmlGpmMetricsGet(struct metrics *asked)
{
    static const double nonsense[] = {(double)NAN, 1e300, -5};
    static unsigned calls;
    const struct sample *before = asked->before, *after = asked->after;
    int good = before->device == &devices[0] && after->device == &devices[0] &&
               after->time - before->time >= 0.1 && asked->metrics[0].number == 2;
    if (asked->version != 1 || asked->count != 1)
        return INVALID;
    asked->metrics[0].value = says("nonsense") ? nonsense[calls++ % 3] : 37.5;
    asked->metrics[0].result = good ? SUCCESS : INVALID;
    return SUCCESS;
}

/* ---- events ---- */

struct event {
    void *device;
    unsigned long long type, data;
    unsigned gpu_instance, compute_instance;
};
struct set {
    void *device;
    int waits;
};

int nvmlEventSetCreate(struct set **out)
{
    *out = calloc(1, sizeof **out);
    held++;
    return *out ? SUCCESS : INVALID;
}

int nvmlEventSetFree(struct set *set)
{
    free(set);
    held--;
    return SUCCESS;
}

int nvmlDeviceRegisterEvents(void *device, unsigned long long types, struct set *set)
{
    set->device = device;
    return types == 8 ? supported() : INVALID;
}

/* At the first look none; at the second Xid 31, 79 and a change of clocks. */
int nvmlEventSetWait_v2(struct set *set, struct event *out, unsigned milliseconds)
{
    static const struct event errors[] = {
        {.type = 8, .data = 31}, {.type = 8, .data = 79}, {.type = 16, .data = 5}};
    int at = set->waits++ - 1;
    if (milliseconds)
        return INVALID;
    if (says("nonsense")) {
        *out = (struct event){.device = (void *)1, .type = 8, .data = ~0ull};
        return SUCCESS;
    }
    if (!says("xid") || index_of(set->device) || at < 0 || at > 2)
        return TIMEOUT;
    *out = errors[at];
    out->device = set->device;
    return SUCCESS;
}
