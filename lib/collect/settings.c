/* What a process that records wishes of its collector: it is read again whenever it changes. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/words.h"
#include "collect/parts.h"

#define SECONDS_DEFAULT 1.0
#define SECONDS_MIN 0.1

static const struct {
    enum prb_ring_setting setting;
    enum prb_store_wish wish;
} wishes[] = {
    {PRB_RING_RETENTION, PRB_STORE_WISH_SECONDS},
    {PRB_RING_STORE_RAW, PRB_STORE_WISH_RAW},
    {PRB_RING_STORE_MINUTES, PRB_STORE_WISH_MINUTES},
    {PRB_RING_STORE_MEMORY, PRB_STORE_WISH_MEMORY},
};

/* s, bytes, 1: on; negative: nobody gave it. */
static double value_of(const struct prb_collected *process, enum prb_ring_setting setting)
{
    return prb_ring_setting_value(setting, process->settings[setting]);
}

static bool tell_file(const struct prb_collected *process, bool *changed_out)
{
    struct prb_store_file *file = process->file;
    for (size_t i = 0; i < sizeof wishes / sizeof *wishes; i++) {
        double wished = value_of(process, wishes[i].setting);
        if (wished < 0 || wished == prb_store_wish(file, wishes[i].wish))
            continue;
        *changed_out = true;
        if (!prb_store_set_wish(file, wishes[i].wish, wished, NULL))
            return false;
    }
    return true;
}

static double of_environment(enum prb_collect_what what)
{
    static const char *const names[] = {[PRB_COLLECT_CPU] = "PROBING_CPU_SAMPLE_MS",
                                        [PRB_COLLECT_GPU] = "PROBING_GPU_SAMPLE_MS"};
    const char *text = getenv(names[what]);
    char *end = NULL;
    double ms = text ? strtod(text, &end) : -1;
    return !text || end == text || *end || !(ms >= 0 && ms < 1e9) ? SECONDS_DEFAULT : ms / 1e3;
}

static void take_samples(struct prb_collected *process)
{
    static const enum prb_ring_setting settings[] = {[PRB_COLLECT_CPU] = PRB_RING_CPU_INTERVAL,
                                                     [PRB_COLLECT_GPU] = PRB_RING_GPU_INTERVAL};
    for (size_t i = 0; i < PRB_COLLECT_WHATS; i++) {
        double seconds = value_of(process, settings[i]);
        if (seconds < 0)
            seconds = of_environment((enum prb_collect_what)i);
        process->seconds[i] = seconds > 0 && seconds < SECONDS_MIN ? SECONDS_MIN : seconds;
    }
    double gil = value_of(process, PRB_RING_GIL), pprof = value_of(process, PRB_RING_PPROF);
    process->wants_gil = process->seconds[PRB_COLLECT_CPU] > 0 &&
                         (gil >= 0 ? gil > 0 : prb_words_is_on(getenv("PROBING_GIL")));
    process->wants_stacks = pprof >= 0 ? pprof > 0 : prb_words_is_on(getenv("PROBING_PPROF"));
    if (!process->wants_gil) {
        prb_collect_gil_free(process->gil);
        process->gil = NULL;
    }
}

void prb_collect_settings_begin(struct prb_collected *process)
{
    for (size_t i = 0; i < PRB_RING_SETTINGS_COUNT; i++)
        process->settings[i] = -1;
    take_samples(process);
}

bool prb_collect_settings(struct prb_collected *process)
{
    struct stat st;
    bool changed = false;
    if (fstatat(process->folder, PRB_RING_SETTINGS, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return false;
    if (st.st_ino != process->settings_inode ||
        memcmp(&st.st_mtim, &process->settings_time, sizeof st.st_mtim) != 0) {
        prb_ring_settings_read(process->folder, process->settings);
        take_samples(process);
        process->settings_inode = st.st_ino;
        process->settings_time = st.st_mtim;
        process->settings_told = false;
    }
    if (process->settings_told || !process->file || !prb_store_begin(process->file, NULL))
        return false;
    process->settings_told = tell_file(process, &changed) && prb_store_commit(process->file, NULL);
    if (!process->settings_told) {
        prb_store_rollback(process->file);
        prb_store_refresh(process->file, NULL);
    }
    return changed && process->settings_told;
}
