/* See folder.h. */
#include "store/folder.h"

#include <errno.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/state_folder.h"

#define FILES_MAX 10000

/* ---- the folder ---- */

static bool is_good(const char *path, bool make, struct prb_error *err)
{
    struct stat st;
    struct statfs fs;
    if (lstat(path, &st) != 0)
        return prb_fail_sys(err, errno, "%s", path);
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022)) {
        prb_fail(err, PRB_PERMISSION, "%s is not a folder that only this user can write to", path);
        return prb_error_remedy(err, "set XDG_STATE_HOME to a folder of yours");
    }
    if (make && statfs(path, &fs) == 0 && fs.f_type == NFS_SUPER_MAGIC) {
        prb_fail(err, PRB_UNSUPPORTED, "%s is on NFS, where several machines would write", path);
        return prb_error_remedy(err, "set XDG_STATE_HOME to a folder of this machine");
    }
    return true;
}

bool prb_store_folder(bool make, char **out, struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf path = {0};
    PRB_AUTO_FREE char *above = prb_state_folder(make, err);
    if (!above)
        return false;
    prb_buf_addf(&path, "%s/store", above);
    if (!prb_buf_ok(&path))
        return prb_nomem(err);
    if (make && mkdir(path.data, 0700) != 0 && errno != EEXIST)
        return prb_fail_sys(err, errno, "%s", path.data);
    if (!is_good(path.data, make, err))
        return false;
    *out = prb_buf_steal(&path);
    return *out || prb_nomem(err);
}

/* ---- finding ---- */

struct search {
    const char *job;      /* what was asked, or NULL */
    int64_t pid, started; /* -1: any */
    struct prb_store_file *best;
    int64_t process;
    struct timespec newest;
    size_t found;
};

/* The process of the file that is meant: its id, 0: the whole job, -1: none. */
static int64_t matches(const struct search *search, const struct prb_store_file *file)
{
    size_t count;
    int64_t last = -1;
    const struct prb_store_process *processes = prb_store_processes(file, &count);
    for (size_t i = 0; i < count; i++) {
        if (search->pid >= 0 && processes[i].pid == search->pid &&
            (search->started < 0 || processes[i].started == search->started))
            last = processes[i].id; /* the latest of several with this pid */
        if (search->pid < 0 && strstr(processes[i].command, search->job))
            return 0;
    }
    if (search->pid < 0 && strstr(prb_store_job(file), search->job))
        return 0;
    return last;
}

static bool is_newer(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

static void look_at(struct search *search, const char *path)
{
    struct stat st;
    PRB_AUTO(prb_store_file)
    struct prb_store_file *file =
        lstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid()
            ? prb_store_open(path, false, NULL)
            : NULL;
    int64_t process = file ? matches(search, file) : -1;
    if (process < 0)
        return;
    search->found++;
    if (search->best && !is_newer(&st.st_mtim, &search->newest))
        return;
    prb_store_close(search->best);
    search->best = PRB_STEAL(file);
    search->process = process;
    search->newest = st.st_mtim;
}

static bool look(struct search *search, const char *folder, struct prb_error *err)
{
    PRB_AUTO(dir) DIR *dir = opendir(folder);
    if (!dir)
        return prb_fail_sys(err, errno, "%s", folder);
    size_t files = 0, suffix = strlen(PRB_STORE_SUFFIX);
    for (struct dirent *entry; files < FILES_MAX && (entry = readdir(dir));) {
        size_t len = strlen(entry->d_name);
        PRB_AUTO_FREE char *path = NULL;
        if (len <= suffix || strcmp(entry->d_name + len - suffix, PRB_STORE_SUFFIX) != 0)
            continue;
        if (asprintf(&path, "%s/%s", folder, entry->d_name) < 0)
            return prb_nomem(err);
        look_at(search, path);
        files++;
    }
    return true;
}

struct prb_store_file *prb_store_find(const char *job, int64_t *process_out, size_t *others_out,
                                      struct prb_error *err)
{
    PRB_AUTO_FREE char *folder = NULL;
    struct search search = {.job = job, .pid = -1, .started = -1};
    if (job[strspn(job, "0123456789")] == '\0')
        search.pid = strtoll(job, NULL, 10);
    if (!prb_store_folder(false, &folder, err) || !look(&search, folder, err))
        return NULL;
    if (!search.best)
        return PRB_NULL(prb_fail(err, PRB_NOT_FOUND, "no job in %s is called %.200s", folder, job));
    *process_out = search.process;
    *others_out = search.found - 1;
    return search.best;
}

struct prb_store_file *prb_store_of(int64_t pid, int64_t started, int64_t *process_out)
{
    PRB_AUTO_FREE char *folder = NULL;
    struct search search = {.pid = pid, .started = started};
    if (!prb_store_folder(false, &folder, NULL) || !look(&search, folder, NULL))
        return NULL;
    *process_out = search.process;
    return search.best;
}
