/* GPUs of the kernel's amdgpu driver, from sysfs: see gpu.h. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "host/gpu.h"

#define AMD 0x1002 /* the vendor's number on PCI */
#define CARDS_MAX 256
#define FOLDER_MAX 512

static bool read_line(const char *folder, const char *name, char *out, size_t cap)
{
    char path[2 * FOLDER_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (prb_read_text(path, out, cap) <= 0)
        return false;
    out[strcspn(out, "\n")] = '\0';
    return true;
}

static int64_t number(const char *folder, const char *name)
{
    char text[64], *end;
    if (!read_line(folder, name, text, sizeof text))
        return -1;
    long long value = strtoll(text, &end, 0);
    return end == text || value < 0 ? -1 : value;
}

static double scaled(int64_t value, double unit) { return value < 0 ? -1 : (double)value * unit; }

/* The sensors: the first folder below hwmon/. */
static void read_sensors(const char *device, struct prb_gpu *gpu)
{
    char folder[FOLDER_MAX];
    snprintf(folder, sizeof folder, "%.480s/hwmon", device);
    PRB_AUTO(dir) DIR *list = opendir(folder);
    const struct dirent *entry;
    while (list && (entry = readdir(list))) {
        char sensors[2 * FOLDER_MAX];
        if (strncmp(entry->d_name, "hwmon", 5) != 0)
            continue;
        snprintf(sensors, sizeof sensors, "%s/%s", folder, entry->d_name);
        int64_t power = number(sensors, "power1_average");
        gpu->temperature = scaled(number(sensors, "temp1_input"), 1e-3);
        gpu->power = scaled(power >= 0 ? power : number(sensors, "power1_input"), 1e-6);
        gpu->sm_clock = number(sensors, "freq1_input");
        gpu->memory_clock = number(sensors, "freq2_input");
        gpu->sm_clock = gpu->sm_clock < 0 ? -1 : gpu->sm_clock / 1000000;
        gpu->memory_clock = gpu->memory_clock < 0 ? -1 : gpu->memory_clock / 1000000;
        return;
    }
}

static bool add_card(const char *device, unsigned index, struct prb_gpus *out,
                     struct prb_error *err)
{
    if (!PRB_GROW(out->items, out->count, out->cap))
        return prb_nomem(err);
    struct prb_gpu *gpu = &out->items[out->count++];
    *gpu = (struct prb_gpu){.backend = "amdgpu",
                            .index = index,
                            .busy = scaled(number(device, "gpu_busy_percent"), 1),
                            .memory_busy = scaled(number(device, "mem_busy_percent"), 1),
                            .memory_used = number(device, "mem_info_vram_used"),
                            .memory_total = number(device, "mem_info_vram_total"),
                            .temperature = -1,
                            .power = -1,
                            .energy = -1,
                            .sm_clock = -1,
                            .memory_clock = -1,
                            .ecc_errors = -1,
                            .nvlink_received = -1,
                            .nvlink_sent = -1,
                            .sm_active = -1,
                            .xid = -1};
    read_line(device, "unique_id", gpu->uuid, sizeof gpu->uuid);
    read_line(device, "product_name", gpu->name, sizeof gpu->name);
    read_sensors(device, gpu);
    return true;
}

static int by_number(const void *left, const void *right)
{
    unsigned a = *(const unsigned *)left, b = *(const unsigned *)right;
    return a < b ? -1 : a > b;
}

bool prb_gpus_amd(const char *folder, struct prb_gpus *out, struct prb_error *err)
{
    unsigned cards[CARDS_MAX], index = 0;
    size_t count = 0;
    PRB_AUTO(dir) DIR *list = opendir(folder);
    const struct dirent *entry;
    while (list && (entry = readdir(list)) && count < CARDS_MAX) {
        char more;
        if (sscanf(entry->d_name, "card%u%c", &cards[count], &more) == 1)
            count++;
    }
    if (count)
        qsort(cards, count, sizeof *cards, by_number);
    for (size_t i = 0; i < count; i++) {
        char device[FOLDER_MAX];
        snprintf(device, sizeof device, "%.400s/card%u/device", folder, cards[i]);
        if (number(device, "vendor") == AMD && !add_card(device, index++, out, err))
            return false;
    }
    return true;
}
