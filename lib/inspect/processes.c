/*
 * The Python processes of this machine, from /proc alone: nothing is attached to and no memory is
 * read.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/file.h"
#include "base/secret.h"
#include "inspect/ranks.h"
#include "inspect/target.h"
#include "proc/environment.h"
#include "proc/ranks.h"
#include "proc/stat.h"

/* ---- is it Python? ---- */

/* "3.11" behind "python" or "libpython" in a file name. */
static bool version_in_name(const char *name, char version[16])
{
    const char *at = strstr(name, "python");
    if (!at)
        return false;
    version[0] = '\0';
    at += strlen("python");
    size_t n = 0;
    while (n < 15 &&
           (isdigit((unsigned char)at[n]) || (at[n] == '.' && isdigit((unsigned char)at[n + 1]))))
        n++;
    memcpy(version, at, n);
    version[n] = '\0';
    return true;
}

/* base: the descriptor of /proc, where link is short; or none, and link is whole. */
static bool read_executable(int base, const char *link, char out[PATH_MAX])
{
    ssize_t n = readlinkat(base, link, out, PATH_MAX - 1);
    if (n <= 0)
        return false;
    out[n] = '\0';
    char *suffix = strstr(out, " (deleted)"); /* the file is gone from its path */
    if (suffix)
        *suffix = '\0';
    return true;
}

static bool executable_of(pid_t pid, char out[PATH_MAX])
{
    char link[64];
    snprintf(link, sizeof link, "/proc/%d/exe", (int)pid);
    return read_executable(AT_FDCWD, link, out);
}

#define LIBPYTHON "libpython"

/* A libpython whose code is mapped, where the executable does not say it.  Tools like ours map the
 * file alone, to read its symbols. */
static bool has_libpython(const struct prb_maps *maps, char version[16])
{
    for (size_t i = 0; i < maps->count; i++)
        if (maps->items[i].executable &&
            strncmp(prb_base_name(maps->items[i].path), LIBPYTHON, strlen(LIBPYTHON)) == 0)
            return version_in_name(prb_base_name(maps->items[i].path), version);
    return false;
}

static bool mapped_python(struct prb_proc *proc, char version[16])
{
    PRB_AUTO(prb_maps) struct prb_maps maps = {0};
    return prb_proc_code_maps(proc, &maps, NULL) && has_libpython(&maps, version);
}

static bool is_python(struct prb_proc *proc, char version[16])
{
    char path[PATH_MAX];
    bool known = executable_of(prb_proc_pid(proc), path);
    if (known && version_in_name(prb_base_name(path), version)) {
        if (!version[0])
            mapped_python(proc, version);
        return true;
    }
    if (known)
        return mapped_python(proc, version);
    /* We may not read it: its first argument is all we know. */
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    return prb_proc_text(proc, "cmdline", &text, NULL) && text.data &&
           version_in_name(prb_base_name(text.data), version);
}

bool prb_process_is_python(pid_t pid, char version[16])
{
    char unused[16];
    PRB_AUTO(prb_proc) struct prb_proc *proc = prb_proc_open(pid, NULL);
    return proc && is_python(proc, version ? version : unused);
}

/* ---- one process ---- */

char *prb_process_command(struct prb_proc *proc, struct prb_arena *arena)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    if (!prb_proc_text(proc, "cmdline", &text, NULL) || !text.len)
        return NULL;
    while (text.len && text.data[text.len - 1] == '\0')
        text.len--;
    PRB_AUTO(prb_buf) struct prb_buf shown = {0};
    prb_secret_mask(PRB_SECRET_ARGUMENTS, text.data, text.len, &shown);
    for (size_t i = 0; i < shown.len; i++) {
        if (shown.data[i] == '\0')
            shown.data[i] = ' ';
        else if ((unsigned char)shown.data[i] < ' ' || shown.data[i] == 0x7f)
            shown.data[i] = '?';
    }
    return prb_buf_ok(&shown) ? prb_arena_strndup(arena, shown.data, shown.len) : NULL;
}

static void fill_from_stat(struct prb_proc *proc, struct prb_process *process)
{
    struct prb_stat stat;
    if (!prb_stat_read(proc, "stat", &stat) || stat.count < PRB_STAT_RSS)
        return;
    int64_t ticks = stat.field[PRB_STAT_UTIME] + stat.field[PRB_STAT_STIME];
    process->ppid = (pid_t)stat.field[PRB_STAT_PPID];
    process->cpu = (double)ticks / (double)sysconf(_SC_CLK_TCK);
    process->threads = (int)stat.field[PRB_STAT_THREADS];
    process->started = prb_stat_started(&stat);
    process->rss = stat.field[PRB_STAT_RSS] * sysconf(_SC_PAGESIZE);
}

static void fill_ranks(struct prb_proc *proc, const struct prb_maps *code, struct prb_buf *environ,
                       struct prb_process *process)
{
    struct prb_ranks ranks = {-1, -1, -1};
    if (prb_proc_environment(proc, code, environ) && environ->data)
        prb_ranks_of(environ, &ranks);
    process->rank = ranks.rank;
    process->local_rank = ranks.local_rank;
    process->world_size = ranks.world_size;
}

void prb_process_ranks(struct prb_proc *proc, struct prb_process *process)
{
    PRB_AUTO(prb_buf) struct prb_buf environ = {0};
    fill_ranks(proc, NULL, &environ, process);
}

char *prb_process_environment(pid_t pid, size_t *len_out, struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf environ = {0};
    PRB_AUTO(prb_proc) struct prb_proc *proc = prb_proc_open(pid, err);
    if (!proc)
        return NULL;
    if (!prb_proc_environment(proc, NULL, &environ))
        return PRB_NULL(prb_fail(err, PRB_PERMISSION,
                                 "the environment of process %d cannot be read", (int)pid));
    *len_out = environ.len;
    prb_buf_add(&environ, "", 1);
    char *text = prb_buf_steal(&environ);
    return text ? text : PRB_NULL(prb_nomem(err));
}

int prb_process_rank(pid_t pid)
{
    struct prb_process process = {.rank = -1};
    PRB_AUTO(prb_proc) struct prb_proc *proc = prb_proc_open(pid, NULL);
    if (proc)
        prb_process_ranks(proc, &process);
    return process.rank;
}

/* A memory file and a copy in another root have something before the name. */
static bool is_probe(const char *path)
{
    size_t len = strlen(path), tail = strlen("libprobe.so");
    return len >= tail && strcmp(path + len - tail, "libprobe.so") == 0;
}

static bool probe_mapped(const struct prb_maps *code)
{
    for (size_t i = 0; i < code->count; i++)
        if (is_probe(code->items[i].path))
            return true;
    return false;
}

static char *comm_of(struct prb_proc *proc, struct prb_arena *arena)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    if (!prb_proc_text(proc, "comm", &text, NULL) || !text.data)
        return prb_arena_strdup(arena, "");
    text.data[strcspn(text.data, "\n")] = '\0';
    return prb_arena_strdup(arena, text.data);
}

/* for_ranks: its maps are read only where its rank is not known without. */
static void describe(struct prb_proc *proc, const char *version, bool for_ranks,
                     struct prb_arena *arena, struct prb_buf *environ, struct prb_process *process)
{
    char path[PATH_MAX], folder[64];
    struct stat st;
    *process = (struct prb_process){.pid = prb_proc_pid(proc)};
    snprintf(folder, sizeof folder, "/proc/%d", (int)process->pid);
    process->uid = stat(folder, &st) == 0 ? st.st_uid : (uid_t)-1;
    process->name = comm_of(proc, arena);
    process->command = prb_process_command(proc, arena);
    if (!process->command)
        process->command = process->name;
    process->python = version[0] ? prb_arena_strdup(arena, version) : NULL;
    process->executable = executable_of(process->pid, path) ? prb_arena_strdup(arena, path) : NULL;
    fill_from_stat(proc, process);
    PRB_AUTO(prb_maps) struct prb_maps code = {0};
    if (!for_ranks)
        prb_proc_code_maps(proc, &code, NULL);
    fill_ranks(proc, for_ranks ? NULL : &code, environ, process);
    process->has_probe = probe_mapped(&code);
}

/* ---- all processes ---- */

struct list_box {
    struct prb_process_list list; /* first */
    struct prb_arena arena;
    size_t cap;
};

/* How the processes are looked for. */
struct search {
    struct list_box *box;
    int base;                   /* the descriptor of /proc */
    struct prb_hash_map others; /* files that are no libpython */
    prb_rank_fn *tell;          /* or NULL */
    void *context;
};

void prb_process_list_free(struct prb_process_list *list)
{
    if (!list)
        return;
    struct list_box *box = (struct list_box *)list;
    prb_arena_deinit(&box->arena);
    free(box->list.items);
    free(box);
}

static int by_pid(const void *a, const void *b)
{
    const struct prb_process *x = a, *y = b;
    return (x->pid > y->pid) - (x->pid < y->pid);
}

/* Most processes are not Python, and a few questions say so: what they execute, and which files
 * with code they map.  base: the descriptor of /proc.  others: files that are no libpython. */
static bool may_be_python(int base, pid_t pid, struct prb_hash_map *others)
{
    char name[32], path[PATH_MAX], version[16];
    bool found;
    snprintf(name, sizeof name, "%d/exe", (int)pid);
    if (!read_executable(base, name, path))
        return errno != ENOENT; /* a thread of the kernel, or who has ended, has none */
    if (version_in_name(prb_base_name(path), version))
        return true;
    snprintf(name, sizeof name, "%d/maps", (int)pid);
    PRB_AUTO_FD int fd = openat(base, name, O_RDONLY | O_CLOEXEC);
    return fd < 0 || !prb_code_maps_search(fd, LIBPYTHON, others, &found) || found;
}

static bool add(struct search *search, pid_t pid)
{
    char version[16];
    struct list_box *box = search->box;
    PRB_AUTO(prb_buf) struct prb_buf environ = {0};
    if (!may_be_python(search->base, pid, &search->others))
        return true;
    PRB_AUTO(prb_proc) struct prb_proc *proc = prb_proc_open(pid, NULL);
    if (!proc || !is_python(proc, version))
        return true;
    if (!PRB_GROW(box->list.items, box->list.count, box->cap))
        return false;
    struct prb_process *process = &box->list.items[box->list.count++];
    describe(proc, version, search->tell != NULL, &box->arena, &environ, process);
    if (search->tell && process->rank >= 0)
        search->tell(search->context, process, environ.data, environ.len);
    return true;
}

struct prb_process_list *prb_process_list(struct prb_error *err)
{
    return prb_process_list_ranks(NULL, NULL, err);
}

struct prb_process_list *prb_process_list_ranks(prb_rank_fn *tell, void *context,
                                                struct prb_error *err)
{
    struct list_box *box = calloc(1, sizeof *box);
    PRB_AUTO(dir) DIR *dir = opendir("/proc");
    struct search search = {box, dir ? dirfd(dir) : -1, {0}, tell, context};
    const pid_t own = getpid();
    bool ok = box && dir;
    for (struct dirent *entry; ok && (entry = readdir(dir));) {
        pid_t pid = isdigit((unsigned char)entry->d_name[0]) ? (pid_t)atoi(entry->d_name) : 0;
        if (pid > 0 && pid != own)
            ok = add(&search, pid);
    }
    prb_hash_map_deinit(&search.others);
    if (!ok) {
        prb_process_list_free(box ? &box->list : NULL);
        return PRB_NULL(prb_fail(err, dir ? PRB_NOMEM : PRB_IO, "the list of processes"));
    }
    if (box->list.count)
        qsort(box->list.items, box->list.count, sizeof *box->list.items, by_pid);
    return &box->list;
}
