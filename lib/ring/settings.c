/* What a process wishes of its collector: a file in its folder of rings (folder.h). */
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "base/file.h"
#include "ring/folder.h"

#define TEXT_MAX 4096
#define NUMBER_MAX (INT64_C(1) << 60)

#define MS 1e-3

static const struct {
    const char *key;
    double unit; /* of the file's number */
} settings[PRB_RING_SETTINGS_COUNT] = {
    [PRB_RING_CPU_INTERVAL] = {"probing.cpu.sample_interval", MS},
    [PRB_RING_GPU_INTERVAL] = {"probing.gpu.sample_interval", MS},
    [PRB_RING_RETENTION] = {"probing.retention_days", MS},
    [PRB_RING_STORE_RAW] = {"probing.store_raw", MS},
    [PRB_RING_STORE_MINUTES] = {"probing.store_minutes", MS},
    [PRB_RING_STORE_MEMORY] = {"probing.store_memory", 1},
    [PRB_RING_GIL] = {"probing.gil", 1},
    [PRB_RING_PPROF] = {"probing.pprof", 1},
};

const char *prb_ring_setting_key(enum prb_ring_setting setting) { return settings[setting].key; }

int64_t prb_ring_setting_number(enum prb_ring_setting setting, double value)
{
    return value < 0 ? -1 : (int64_t)(value / settings[setting].unit + 0.5);
}

double prb_ring_setting_value(enum prb_ring_setting setting, int64_t number)
{
    return number < 0 ? -1 : (double)number * settings[setting].unit;
}

void prb_ring_settings_read(int folder, int64_t out[PRB_RING_SETTINGS_COUNT])
{
    char text[TEXT_MAX], *rest = text;
    PRB_AUTO_FD int fd =
        openat(folder, PRB_RING_SETTINGS, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    size_t len = fd >= 0 ? prb_read_at(fd, text, sizeof text - 1, 0) : 0;
    text[len] = '\0';
    for (size_t i = 0; i < PRB_RING_SETTINGS_COUNT; i++)
        out[i] = -1;
    for (char *line; (line = strsep(&rest, "\n"));) {
        size_t key = strcspn(line, " ");
        long long number = line[key] ? strtoll(line + key, NULL, 10) : -1;
        for (size_t i = 0; i < PRB_RING_SETTINGS_COUNT; i++)
            if (strlen(settings[i].key) == key && number >= 0 && number < NUMBER_MAX &&
                memcmp(settings[i].key, line, key) == 0)
                out[i] = number;
    }
}

bool prb_ring_settings_write(int folder, const int64_t values[PRB_RING_SETTINGS_COUNT])
{
    static const char new[] = PRB_RING_SETTINGS ".new";
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    for (size_t i = 0; i < PRB_RING_SETTINGS_COUNT; i++)
        if (values[i] >= 0)
            prb_buf_addf(&text, "%s %" PRId64 "\n", settings[i].key, values[i]);
    if (!prb_buf_ok(&text))
        return false;
    unlinkat(folder, new, 0);
    PRB_AUTO_FD int fd =
        openat(folder, new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    return fd >= 0 && (!text.len || prb_write_all(fd, text.data, text.len)) &&
           renameat(folder, new, folder, PRB_RING_SETTINGS) == 0;
}
