/*
 * A stand-in for the management library of an old driver: one device, by the functions' first names,
 * and nothing beyond its name.
 */
#include <stdio.h>

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* no header here declares them */
#pragma GCC visibility push(default)

enum { SUCCESS, INVALID = 2 };
static int device;

int nvmlInit(void) { return SUCCESS; }
int nvmlShutdown(void) { return SUCCESS; }

int nvmlDeviceGetCount(unsigned *count)
{
    *count = 1;
    return SUCCESS;
}

int nvmlDeviceGetHandleByIndex(unsigned index, void **out)
{
    *out = &device;
    return index ? INVALID : SUCCESS;
}

int nvmlDeviceGetName(void *handle, char *out, unsigned cap)
{
    (void)handle;
    snprintf(out, cap, "NVIDIA Fake 100");
    return SUCCESS;
}
