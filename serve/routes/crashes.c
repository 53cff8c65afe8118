/* GET /api/v1/crashes: the dumps of the user's crash folder, the newest first. */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "format/json.h"
#include "serve/routes/by_command.h"
#include "serve/work/targets.h"

#define DUMPS_MAX 200 /* told; more are counted */
#define FILES_MAX 20000

PRB_DEFINE_AUTO_PTR(prb_target, struct prb_target, prb_target_close)

struct dump {
    char name[256];
    double written; /* s since the epoch */
    long long bytes;
};

static int newest_first(const void *a, const void *b)
{
    const struct dump *x = a, *y = b;
    return x->written != y->written ? (x->written < y->written ? 1 : -1) : strcmp(x->name, y->name);
}

/* The dumps there, sorted; the caller frees them. */
static struct dump *read_folder(const char *folder, size_t *count_out, struct prb_error *err)
{
    struct dump *dumps = NULL;
    size_t cap = 0;
    *count_out = 0;
    PRB_AUTO(dir) DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && *count_out < FILES_MAX && (entry = readdir(dir));) {
        struct stat info;
        size_t len = strlen(entry->d_name);
        if (strncmp(entry->d_name, "crash-", 6) != 0 || len < 6 ||
            strcmp(entry->d_name + len - 5, ".snap") != 0 ||
            fstatat(dirfd(dir), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(info.st_mode))
            continue;
        if (*count_out == cap && !prb_grow_((void **)&dumps, sizeof *dumps, *count_out, &cap)) {
            free(dumps);
            return PRB_NULL(prb_nomem(err));
        }
        struct dump *dump = dumps + (*count_out)++;
        *dump = (struct dump){.written =
                                  (double)info.st_mtim.tv_sec + (double)info.st_mtim.tv_nsec * 1e-9,
                              .bytes = (long long)info.st_size};
        snprintf(dump->name, sizeof dump->name, "%s", entry->d_name);
    }
    if (*count_out)
        qsort(dumps, *count_out, sizeof *dumps, newest_first);
    return dumps ? dumps : calloc(1, sizeof *dumps);
}

static json_t *tell(const char *folder, const struct dump *dump)
{
    char path[PRB_CRASH_PATH_MAX + 300], id[300];
    snprintf(path, sizeof path, "%s/%s", folder, dump->name);
    snprintf(id, sizeof id, "file:%s", dump->name);
    json_t *row =
        json_pack("{s:o,s:o,s:I,s:f}", "id", prb_json_text(id), "file", prb_json_text(dump->name),
                  "bytes", (json_int_t)dump->bytes, "written", dump->written);
    PRB_AUTO(prb_target) struct prb_target *target = prb_target_open(path, NULL, NULL);
    const struct prb_crash *crash = target ? prb_target_crash(target) : NULL;
    if (!crash || !row)
        return row;
    json_object_set_new(row, "time", json_real(crash->time));
    json_object_set_new(row, "kind", prb_json_text(crash->kind));
    json_object_set_new(row, "title", prb_json_text(crash->title));
    json_object_set_new(row, "where", prb_json_text(crash->place));
    json_object_set_new(row, "group", prb_json_text(crash->group));
    json_object_set_new(row, "pid", json_integer(crash->pid));
    json_object_set_new(row, "rank", crash->rank < 0 ? json_null() : json_integer(crash->rank));
    return row;
}

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    char folder[PRB_CRASH_PATH_MAX];
    size_t count;
    if (job->format[0] == 't')
        return prb_answer_by_command(job, (const char *const[]){"crash", "list", NULL},
                                     "text/plain; charset=utf-8", err);
    if (!prb_serve_crash_folder(folder, err))
        return false;
    PRB_AUTO_FREE struct dump *dumps = read_folder(folder, &count, err);
    if (!dumps)
        return false;
    json_t *rows = json_array();
    for (size_t i = 0; i < count && i < DUMPS_MAX && prb_serve_job_goes_on(job); i++)
        json_array_append_new(rows, tell(folder, dumps + i));
    bool cut = json_array_size(rows) < count;
    return prb_answer_json(
        job->answer,
        json_pack("{s:o,s:I,s:b}", "crashes", rows, "count", (json_int_t)count, "truncated", cut),
        err);
}

const struct prb_route prb_route_crashes = {
    .methods = PRB_GET,
    .path = "/api/v1/crashes",
    .summary = "crash dumps, the newest first; each is a target, file:NAME",
    .grant = PRB_MAY_LOOK,
    .formats = "json text",
    .slow = true,
    .seconds = 20,
    .answer = answer,
};
