/* The control group of a process: see cgroup.h. */
#include "host/cgroup.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"

#define TEXT_MAX 8192
#define MOUNTS_MAX (1u << 20)
#define NO_LIMIT (INT64_C(1) << 60) /* version 1 says "none" by a number near 2^63 */
#define LEVELS_MAX 64
#define DESCRIPTORS_MAX 512 /* from there on they are for others */

/* ---- where it lies ---- */

/* One line that ends with a line feed or the text. */
struct line {
    const char *at, *end;
};

static bool next_line(const char **text, struct line *out)
{
    if (!**text)
        return false;
    out->at = *text;
    out->end = *text + strcspn(*text, "\n");
    *text = out->end + (*out->end == '\n');
    return true;
}

/* Whether a word of a comma-separated list is this one. */
static bool lists(const char *list, const char *end, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = list; at < end;) {
        const char *stop = memchr(at, ',', (size_t)(end - at));
        stop = stop ? stop : end;
        if ((size_t)(stop - at) == len && memcmp(at, word, len) == 0)
            return true;
        at = stop + 1;
    }
    return false;
}

/* "4:memory:/path" of version 1, "0::/path" of version 2. */
static bool path_in(const char *text, const char *controller, bool second,
                    char out[PRB_CGROUP_PATH_MAX])
{
    struct line line;
    while (next_line(&text, &line)) {
        size_t len = (size_t)(line.end - line.at);
        const char *list = memchr(line.at, ':', len);
        const char *path = list ? memchr(list + 1, ':', (size_t)(line.end - list - 1)) : NULL;
        if (!path)
            continue;
        bool none = path == list + 1;
        if (second ? !none || line.at[0] != '0' : none || !lists(list + 1, path, controller))
            continue;
        len = (size_t)(line.end - path - 1);
        if (len == 0 || len >= PRB_CGROUP_PATH_MAX || path[1] != '/')
            return false;
        memcpy(out, path + 1, len);
        out[len] = '\0';
        /* Outside of what this namespace shows. */
        return strncmp(out, "/..", 3) != 0;
    }
    return false;
}

/* The path below a mount's root; NULL: it is not in it. */
static const char *below(const char *path, const char *root)
{
    size_t len = strcmp(root, "/") == 0 ? 0 : strlen(root);
    if (strncmp(path, root, len) != 0 || (path[len] && path[len] != '/'))
        return NULL;
    return path[len] == '/' && !path[len + 1] ? "" : path + len;
}

/* Fields of a line of mountinfo, proc_pid_mountinfo(5): 4 root, 5 mount point; behind " - " the type,
 * the source and the options. */
static bool is_mount(const struct line *line, const char *controller, bool second, const char *path,
                     struct prb_cgroup_place *out)
{
    char text[4 * PRB_CGROUP_PATH_MAX], root[PRB_CGROUP_PATH_MAX], point[PRB_CGROUP_PATH_MAX];
    char type[16], options[PRB_CGROUP_PATH_MAX];
    size_t len = (size_t)(line->end - line->at);
    if (len >= sizeof text)
        return false;
    memcpy(text, line->at, len);
    text[len] = '\0';
    const char *rest = strstr(text, " - ");
    if (!rest || sscanf(text, "%*s %*s %*s %511s %511s", root, point) != 2 ||
        sscanf(rest, " - %15s %*s %511s", type, options) != 2)
        return false;
    if (strcmp(type, second ? "cgroup2" : "cgroup") != 0 ||
        (!second && !lists(options, options + strlen(options), controller)))
        return false;
    const char *inside = below(path, root);
    if (!inside)
        return false;
    int n = snprintf(out->folder, sizeof out->folder, "%s%s", point, inside);
    out->mount_len = strlen(point);
    return n > 0 && (size_t)n < sizeof out->folder;
}

bool prb_cgroup_find(const char *cgroup, const char *mountinfo, const char *controller,
                     struct prb_cgroup_place *out)
{
    *out = (struct prb_cgroup_place){0};
    for (int version = 1; version <= 2; version++) {
        const char *mounts = mountinfo;
        struct line line;
        if (!path_in(cgroup, controller, version == 2, out->path))
            continue;
        while (next_line(&mounts, &line)) {
            if (is_mount(&line, controller, version == 2, out->path, out)) {
                out->version = version;
                return true;
            }
        }
    }
    return false;
}

/* ---- its numbers ---- */

static void drop_file(struct prb_cgroup_mounts *mounts, size_t index)
{
    close(mounts->files[index].fd);
    free(mounts->files[index].path);
    mounts->files[index] = mounts->files[--mounts->file_count];
}

/* By the descriptor of an earlier time: a third of the cost.  A group that was removed meanwhile has
 * none to read; there may be a new one of the name. */
static bool read_again(struct prb_cgroup_mounts *mounts, const char *path, char out[TEXT_MAX])
{
    for (size_t i = 0; i < mounts->file_count; i++) {
        if (strcmp(mounts->files[i].path, path) != 0)
            continue;
        ssize_t len = pread(mounts->files[i].fd, out, TEXT_MAX - 1, 0);
        if (len > 0) {
            out[len] = '\0';
            return true;
        }
        drop_file(mounts, i);
        return false;
    }
    return false;
}

static void keep_file(struct prb_cgroup_mounts *mounts, const char *path, int fd)
{
    if (mounts->file_count == PRB_CGROUP_FILES || fd >= DESCRIPTORS_MAX)
        return;
    char *copy = strdup(path);
    int again = copy ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (again < 0) {
        free(copy);
        return;
    }
    mounts->files[mounts->file_count].path = copy;
    mounts->files[mounts->file_count++].fd = again;
}

static bool read_file(const struct prb_cgroup_place *place, const char *name, char out[TEXT_MAX])
{
    char path[sizeof place->folder + 64];
    snprintf(path, sizeof path, "%s/%s", place->folder, name);
    if (!place->mounts)
        return prb_read_text(path, out, TEXT_MAX) > 0;
    if (read_again(place->mounts, path, out))
        return true;
    PRB_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : pread(fd, out, TEXT_MAX - 1, 0);
    if (len <= 0)
        return false;
    out[len] = '\0';
    keep_file(place->mounts, path, fd);
    return true;
}

/* "max" is -1, as what is not there. */
static int64_t number(const struct prb_cgroup_place *place, const char *name)
{
    char text[TEXT_MAX], *end;
    if (!read_file(place, name, text))
        return -1;
    long long value = strtoll(text, &end, 10);
    return end == text || value < 0 || value >= NO_LIMIT ? -1 : value;
}

/* The number behind a key at the beginning of a line. */
static int64_t keyed(const char *text, const char *key)
{
    struct line line;
    size_t len = strlen(key);
    while (next_line(&text, &line))
        if (strncmp(line.at, key, len) == 0 && line.at[len] == ' ')
            return strtoll(line.at + len + 1, NULL, 10);
    return -1;
}

/* From its own group upwards. */
static bool go_up(struct prb_cgroup_place *place)
{
    char *slash = strrchr(place->folder, '/');
    if (!slash || (size_t)(slash - place->folder) < place->mount_len)
        return false;
    *slash = '\0';
    return true;
}

static void find_memory_limit(struct prb_cgroup_kept *kept)
{
    struct prb_cgroup_place place = kept->memory;
    struct prb_cgroup *limits = &kept->limits;
    kept->limiting = place;
    snprintf(limits->path, sizeof limits->path, "%s", place.path);
    limits->version = place.version;
    for (int level = 0; level < LEVELS_MAX; level++) {
        int64_t limit = number(&place, place.version == 2 ? "memory.max" : "memory.limit_in_bytes");
        if (limit >= 0 && (limits->memory_limit < 0 || limit < limits->memory_limit)) {
            limits->memory_limit = limit;
            kept->limiting = place;
            snprintf(limits->limited_by, sizeof limits->limited_by, "%.*s",
                     (int)(PRB_CGROUP_PATH_MAX - 1),
                     place.folder[place.mount_len] ? place.folder + place.mount_len : "/");
        }
        if (!go_up(&place))
            break;
    }
}

static void read_memory(const struct prb_cgroup_kept *kept, struct prb_cgroup *out)
{
    bool second = kept->memory.version == 2;
    char text[TEXT_MAX];
    out->memory_used = number(&kept->limiting, second ? "memory.current" : "memory.usage_in_bytes");
    if (read_file(&kept->memory, second ? "memory.events" : "memory.oom_control", text))
        out->oom_kills = keyed(text, "oom_kill");
}

/* CPUs that a level allows: "max 100000" or "50000 100000"; -1: no limit. */
static double quota(const struct prb_cgroup_place *place)
{
    char text[TEXT_MAX];
    long long allowed = -1, period = 0;
    if (place->version == 2) {
        if (!read_file(place, "cpu.max", text) || sscanf(text, "%lld %lld", &allowed, &period) != 2)
            return -1;
    } else {
        allowed = number(place, "cpu.cfs_quota_us");
        period = number(place, "cpu.cfs_period_us");
    }
    return allowed > 0 && period > 0 ? (double)allowed / (double)period : -1;
}

static void find_quota(struct prb_cgroup_kept *kept)
{
    struct prb_cgroup_place place = kept->cpu;
    struct prb_cgroup *limits = &kept->limits;
    for (int level = 0; level < LEVELS_MAX; level++) {
        double cpus = quota(&place);
        if (cpus > 0 && (limits->cpus < 0 || cpus < limits->cpus))
            limits->cpus = cpus;
        if (!go_up(&place))
            break;
    }
}

static double pressure(const struct prb_cgroup_place *place, const char *name)
{
    char text[TEXT_MAX];
    double share;
    return read_file(place, name, text) && sscanf(text, "some avg10=%lf", &share) == 1 ? share : -1;
}

static void read_cpu(const struct prb_cgroup_kept *kept, struct prb_cgroup *out)
{
    char text[TEXT_MAX];
    if (read_file(&kept->cpu, "cpu.stat", text)) {
        int64_t us = keyed(text, "throttled_usec"), ns = keyed(text, "throttled_time");
        out->throttled_periods = keyed(text, "nr_throttled");
        out->throttled = us >= 0 ? (double)us * 1e-6 : ns >= 0 ? (double)ns * 1e-9 : -1;
    }
    if (kept->cpu.version == 2) {
        out->pressure_cpu = pressure(&kept->cpu, "cpu.pressure");
        out->pressure_memory = pressure(&kept->cpu, "memory.pressure");
        out->pressure_io = pressure(&kept->cpu, "io.pressure");
    }
}

/* ---- mounts ---- */

void prb_cgroup_mounts_deinit(struct prb_cgroup_mounts *mounts)
{
    if (mounts->open)
        close(mounts->fd);
    while (mounts->file_count)
        drop_file(mounts, mounts->file_count - 1);
    free(mounts->text);
    *mounts = (struct prb_cgroup_mounts){0};
}

/* Lines whose type begins with "cgroup", to the text's beginning. */
static void keep_groups(char *text)
{
    const char *rest = text;
    char *to = text;
    struct line line;
    while (next_line(&rest, &line)) {
        size_t len = (size_t)(line.end - line.at);
        if (!memmem(line.at, len, " - cgroup", strlen(" - cgroup")))
            continue;
        memmove(to, line.at, len);
        to += len;
        *to++ = '\n';
    }
    *to = '\0';
}

static bool read_mounts(struct prb_cgroup_mounts *mounts, struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    while (mounts->file_count) /* another mount may be at the path */
        drop_file(mounts, mounts->file_count - 1);
    free(mounts->text);
    mounts->text = NULL;
    /* What is longer is cut. */
    if (lseek(mounts->fd, 0, SEEK_SET) == 0)
        prb_buf_read(&text, mounts->fd, MOUNTS_MAX);
    if (!text.len)
        return prb_fail(err, PRB_UNSUPPORTED, "/proc/self/mountinfo cannot be read");
    keep_groups(text.data);
    return (mounts->text = strdup(text.data)) || prb_nomem(err);
}

/* Its text is there, and as it is now. */
static bool refresh_mounts(struct prb_cgroup_mounts *mounts, struct prb_error *err)
{
    if (!mounts->open) {
        mounts->fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
        mounts->open = mounts->fd >= 0;
    }
    if (!mounts->open)
        return prb_fail(err, PRB_UNSUPPORTED, "/proc/self/mountinfo cannot be opened");
    struct pollfd changed = {.fd = mounts->fd, .events = POLLPRI};
    bool same = poll(&changed, 1, 0) == 0 || !(changed.revents & (POLLERR | POLLPRI));
    return (same && mounts->text) || read_mounts(mounts, err);
}

static bool look_anew(struct prb_proc *proc, struct prb_cgroup_mounts *mounts,
                      struct prb_cgroup_kept *kept, struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf groups = {0};
    *kept = (struct prb_cgroup_kept){.limits = {.memory_used = -1,
                                                .memory_limit = -1,
                                                .oom_kills = -1,
                                                .cpus = -1,
                                                .throttled = -1,
                                                .throttled_periods = -1,
                                                .pressure_cpu = -1,
                                                .pressure_memory = -1,
                                                .pressure_io = -1}};
    if (!refresh_mounts(mounts, err) || !prb_proc_text(proc, "cgroup", &groups, err))
        return false;
    bool has_memory = prb_cgroup_find(groups.data, mounts->text, "memory", &kept->memory);
    bool has_cpu = prb_cgroup_find(groups.data, mounts->text, "cpu", &kept->cpu);
    if (!has_memory && !has_cpu) {
        prb_fail(err, PRB_UNSUPPORTED, "process %d is in no control group that is mounted here",
                 (int)prb_proc_pid(proc));
        return prb_error_remedy(err, "run probing where /sys/fs/cgroup is mounted, as on the host");
    }
    kept->memory.mounts = kept->cpu.mounts = mounts;
    if (has_memory)
        find_memory_limit(kept);
    if (has_cpu)
        find_quota(kept);
    kept->anew = prb_clock_s() + PRB_CGROUP_ANEW;
    return true;
}

bool prb_cgroup_read(struct prb_proc *proc, struct prb_cgroup_mounts *mounts,
                     struct prb_cgroup_kept *kept, struct prb_cgroup *out, struct prb_error *err)
{
    struct prb_cgroup_kept once = {0};
    kept = kept ? kept : &once;
    if (prb_clock_s() >= kept->anew && !look_anew(proc, mounts, kept, err))
        return false;
    *out = kept->limits;
    if (kept->memory.version)
        read_memory(kept, out);
    if (kept->cpu.version)
        read_cpu(kept, out);
    if (kept->memory.version && out->memory_used < 0)
        kept->anew = 0; /* it may be in another one now */
    return true;
}
