/*
 * A stand-in for NVIDIA's management library: two devices, scripted by words of PRB_FAKE_NVML:
 *   driver       nvmlInit fails: the driver does not answer
 *   lost         the second device is lost
 *   silent       nothing is supported but the names
 *   PID          this process uses the first device, with 512 MB; as a second one, of unknown memory, pid 1
 * PRB_FAKE_NVML_TOLD: a file in which each process that begins writes its pid.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* no header here declares them */
#pragma GCC visibility push(default)

enum { SUCCESS, UNINITIALIZED, INVALID, NOT_SUPPORTED, SMALL = 7, DRIVER = 9, LOST = 15 };
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
static int ready;

static int says(const char *word)
{
    const char *script = getenv("PRB_FAKE_NVML");
    return script && strstr(script, word) != NULL;
}

static int index_of(void *device) { return (int)((int *)device - devices); }
static int supported(void) { return !ready ? UNINITIALIZED : says("silent") ? NOT_SUPPORTED : 0; }

int nvmlInit_v2(void)
{
    const char *told = getenv("PRB_FAKE_NVML_TOLD");
    FILE *file = told ? fopen(told, "a") : NULL;
    if (file) {
        fprintf(file, "%d\n", (int)getpid());
        fclose(file);
    }
    ready = !says("driver");
    return ready ? SUCCESS : DRIVER;
}

int nvmlShutdown(void)
{
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
    return ready ? SUCCESS : UNINITIALIZED;
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
    strncpy(out, index_of(device) ? "GPU-1" : "GPU-0", cap);
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
