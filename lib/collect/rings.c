/* The rings of one process: which of them are due, and moving them. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "collect/parts.h"
#include "ring/folder.h"
#include "ring/format.h"

#define RINGS_MAX 1000
#define AGE_MAX 60.0 /* s: older rows are moved, however few they are */
#define PAUSE_MIN 0.25
#define PAUSE_MAX 5.0 /* s, between two looks at a ring */

static void ring_deinit(struct prb_collect_ring *ring)
{
    prb_ring_close(ring->reader);
    prb_ring_mark_deinit(&ring->mark);
    free(ring->codecs);
}

void prb_collected_deinit(struct prb_collected *process)
{
    for (size_t i = 0; i < process->ring_count; i++)
        ring_deinit(&process->rings[i]);
    free(process->rings);
    free(process->path);
    free((char *)process->process.command);
    prb_collect_host_free(process->host);
    prb_collect_gil_free(process->gil);
    prb_collect_stacks_free(process->stacks);
    if (process->folder >= 0)
        close(process->folder);
    if (process->pidfd >= 0)
        close(process->pidfd);
    *process = (struct prb_collected){.folder = -1, .pidfd = -1};
}

/* ---- finding ---- */

static struct prb_collect_ring *find_ring(struct prb_collected *process, const char *name)
{
    for (size_t i = 0; i < process->ring_count; i++)
        if (strcmp(process->rings[i].name, name) == 0)
            return &process->rings[i];
    return NULL;
}

static bool open_ring(struct prb_collected *process, const char *name, uint64_t inode,
                      struct prb_error *err)
{
    struct prb_collect_ring *ring = find_ring(process, name);
    if (ring && ring->inode == inode)
        return true;
    if (ring) {
        ring_deinit(ring);
    } else {
        if (process->ring_count >= RINGS_MAX)
            return true;
        if (!PRB_GROW(process->rings, process->ring_count, process->ring_cap))
            return prb_nomem(err);
        ring = &process->rings[process->ring_count++];
    }
    *ring = (struct prb_collect_ring){.inode = inode, .pause = PAUSE_MIN};
    snprintf(ring->name, sizeof ring->name, "%s", name);
    ring->reader = prb_ring_open(process->folder, name, NULL);
    return !ring->reader || !process->file ||
           prb_store_mark(process->file, process->id, prb_ring_name(ring->reader), inode,
                          &ring->mark, err);
}

/* A name that comes or goes changes the folder's time, but for one that comes within the clock's tick
 * of the last: that is seen by the next look. */
static bool is_listed(struct prb_collected *process)
{
    struct stat st;
    struct timespec now;
    if (fstat(process->folder, &st) != 0)
        return false;
    bool same = memcmp(&st.st_mtim, &process->listed, sizeof st.st_mtim) == 0;
    clock_gettime(CLOCK_REALTIME, &now);
    bool settled = now.tv_sec > st.st_mtim.tv_sec + 1;
    process->listed = settled ? st.st_mtim : (struct timespec){0};
    return same;
}

static bool find_rings(struct prb_collected *process, struct prb_error *err)
{
    if (is_listed(process))
        return true;
    int copy = openat(process->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    PRB_AUTO(dir) DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
    if (!dir && copy >= 0)
        close(copy);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        size_t len = strlen(entry->d_name), suffix = strlen(PRB_RING_SUFFIX);
        struct stat st;
        if (len <= suffix || len > PRB_RING_NAME_MAX + suffix ||
            strcmp(entry->d_name + len - suffix, PRB_RING_SUFFIX) != 0 ||
            fstatat(process->folder, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(st.st_mode))
            continue;
        if (!open_ring(process, entry->d_name, st.st_ino, err)) {
            process->listed = (struct timespec){0};
            return false;
        }
    }
    return true;
}

/* ---- moving ---- */

static bool is_due(struct prb_collect_ring *ring, bool all, double now)
{
    if (!all && now < ring->next)
        return false;
    uint64_t before = ring->waiting;
    ring->waiting = prb_ring_waiting(ring->reader, &ring->mark);
    if (!ring->waiting) {
        ring->since = 0;
        ring->pause = 2 * ring->pause < PAUSE_MAX ? 2 * ring->pause : PAUSE_MAX;
        ring->next = now + ring->pause;
        return false;
    }
    if (ring->since == 0)
        ring->since = now;
    uint64_t room = prb_ring_room(ring->reader),
             wanted = (uint64_t)(ring->row_bytes * PRB_STORE_CHUNK_ROWS);
    /* Half of the room would be filled before the next look but one.  Our own rows do not come in
     * bursts. */
    bool own = prb_host_is_ring(ring->name);
    bool fast = !own && ring->waiting > before && (ring->waiting - before) > room / 8;
    ring->pause = fast ? PAUSE_MIN : 2 * ring->pause < PAUSE_MAX ? 2 * ring->pause : PAUSE_MAX;
    ring->next = now + ring->pause;
    uint64_t full = own ? room / 2 : room / 4;
    return all || now - ring->since >= AGE_MAX || ring->waiting > full ||
           (wanted && ring->waiting >= wanted);
}

static bool move(struct prb_collected *process, struct prb_collect_ring *ring, uint64_t *rows_out,
                 struct prb_error *err)
{
    struct prb_drained drained = {.more = true};
    bool host = prb_host_is_ring(ring->name);
    size_t columns;
    prb_ring_columns(ring->reader, &columns);
    if (!ring->codecs && !(ring->codecs = calloc(columns, sizeof *ring->codecs)))
        return prb_nomem(err);
    while (drained.more) {
        if (!prb_store_drain(process->file, process->id, host ? PRB_HOST_SCHEMA : "python",
                             ring->reader, ring->inode, ring->codecs, &drained, err))
            return false;
        *rows_out += host ? 0 : drained.rows;
        if (drained.rows && !drained.more)
            ring->row_bytes = (double)ring->waiting / (double)drained.rows;
    }
    ring->since = 0;
    ring->waiting = 0;
    prb_ring_mark_deinit(&ring->mark);
    return prb_store_mark(process->file, process->id, prb_ring_name(ring->reader), ring->inode,
                          &ring->mark, err);
}

bool prb_collect_rings(struct prb_collected *process, bool all, uint64_t *rows_out,
                       struct prb_error *err)
{
    double now = prb_clock_s();
    bool good = find_rings(process, err);
    for (size_t i = 0; i < process->ring_count; i++) {
        struct prb_collect_ring *ring = &process->rings[i];
        if (ring->row_bytes <= 0 && ring->reader)
            ring->row_bytes = prb_ring_row_bytes(ring->reader);
        if (ring->reader && is_due(ring, all || process->ended, now))
            good = move(process, ring, rows_out, err) && good;
    }
    return good;
}
