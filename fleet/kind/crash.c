/*
 * Crash dumps of the job's processes in the folders of a host.  args: nothing (all are listed), or
 * file and offset (a part of one).  result: struct prb_crash_answers.
 *
 * The host's part of a list is {"dumps": […], "left_out": N}; of a file a line {"bytes": of it all},
 * and the bytes.  Of a dump that is not the job's, or not in these folders, nothing is given.
 */
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "fleet/crashes.h"
#include "fleet/host/host.h"
#include "fleet/message/kind.h"
#include "proc/job_name.h"

#define DUMPS_MAX 1000           /* of a folder, the newest */
#define PART ((size_t)512 << 10) /* bytes of a file at a time */
#define DAY 86400.0              /* s: so long back a job's name is the same job */
#define AFTER 60.0 /* s that a dump may be written after its process was seen to end */
#define NOBODY 65534u

PRB_DEFINE_AUTO(prb_crash_files, struct prb_crash_files, prb_crash_files_free)
PRB_DEFINE_AUTO_PTR(prb_target, struct prb_target, prb_target_close)
PRB_DEFINE_AUTO_PTR(prb_db, struct prb_db, prb_db_close)

/* ---- whose a dump is ---- */

struct job {
    const char *name;
    const json_t *ranks;
    double until; /* s, monotonic */
    double since; /* s since the epoch: its first rank began, or a day ago */
};

static double number_of(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

/* One of the processes that were its ranks here. */
static bool is_of_rank(const struct job *job, pid_t pid, double time, uid_t uid)
{
    for (size_t i = 0; i < json_array_size(job->ranks); i++) {
        const json_t *one = json_array_get(job->ranks, i);
        double ended = number_of(one, "ended");
        if (number_of(one, "pid") == pid && number_of(one, "uid") == uid &&
            time >= number_of(one, "started") - 1 && (ended <= 0 || time <= ended + AFTER))
            return true;
    }
    return false;
}

static bool add_variable(void *context, size_t columns, const char *const *names,
                         const struct prb_value *row)
{
    struct prb_buf *out = context;
    (void)names;
    if (row && columns == 2)
        prb_buf_addf(out, "%s=%s%c", row[0].text, row[1].text, '\0');
    return true;
}

/* By the environment that is in the dump: also a worker's of a rank, and an earlier attempt's. */
static bool names_job(const struct job *job, const char *path)
{
    char name[128];
    PRB_AUTO(prb_buf) struct prb_buf environment = {0};
    PRB_AUTO(prb_target) struct prb_target *target = prb_target_open(path, NULL, NULL);
    PRB_AUTO(prb_db) struct prb_db *db = target ? prb_db_open(target, NULL) : NULL;
    return db &&
           prb_db_query(db, "SELECT name, value FROM system.environment WHERE value NOT NULL",
                        add_variable, &environment, NULL) &&
           prb_buf_ok(&environment) && environment.len &&
           prb_job_name(environment.data, environment.len, name, sizeof name) &&
           strcmp(name, job->name) == 0;
}

/* "crash-TIME-rankN-pidN.txt" says the rest where the file does not. */
static void take_name(struct prb_crash_file *file)
{
    const char *rank = strstr(file->name, "-rank"), *pid = strstr(file->name, "-pid");
    if (file->crashed)
        return;
    file->rank = rank ? (int)strtol(rank + 5, NULL, 10) : -1;
    file->pid = pid ? (pid_t)strtol(pid + 4, NULL, 10) : 0;
}

static bool is_of_job(const struct job *job, const char *folder, struct prb_crash_file *file,
                      uid_t uid)
{
    char path[PRB_CRASH_PATH_MAX + 256];
    double time = file->time > 0 ? file->time : file->written;
    take_name(file);
    if (!file->crashed && !file->text)
        return false; /* a snapshot of no crash, or broken */
    if (is_of_rank(job, file->pid, time, uid))
        return true;
    snprintf(path, sizeof path, "%s/%s", folder, file->name);
    return file->crashed && time >= job->since && prb_clock_s() < job->until &&
           names_job(job, path);
}

static void take_job(const struct prb_fleet_seat *seat, const json_t *host, struct job *out)
{
    *out = (struct job){.name = json_string_value(json_object_get(host, "job")),
                        .ranks = json_object_get(host, "ranks"),
                        .until = prb_clock_s() + seat->budget * 0.8,
                        .since = (double)time(NULL) - DAY};
    for (size_t i = 0; i < json_array_size(out->ranks); i++) {
        double started = number_of(json_array_get(out->ranks, i), "started");
        if (started > 0 && started < out->since)
            out->since = started;
    }
}

/* ---- folders, with no more rights than whose they are ---- */

struct rights {
    bool taken;
};

static bool take_rights(uid_t uid, struct rights *out)
{
    *out = (struct rights){.taken = geteuid() == 0 && uid != 0};
    if (!out->taken)
        return geteuid() == uid;
    /* This child needs no more groups, not even as root: they stay given up. */
    if (setgroups(0, NULL) == 0 && setegid(NOBODY) == 0 && seteuid(uid) == 0)
        return true;
    bool back = setegid(getgid()) == 0;
    out->taken = false;
    return back && false;
}

static void give_back(const struct rights *rights)
{
    if (rights->taken && (seteuid(getuid()) != 0 || setegid(getgid()) != 0))
        _exit(1); /* this child is no more of use */
}

/* The whole path of a folder as the host named it. */
static bool folder_of(const json_t *one, char out[PRB_CRASH_PATH_MAX])
{
    const char *folder = json_string_value(json_object_get(one, "folder"));
    if (folder && *folder) {
        snprintf(out, PRB_CRASH_PATH_MAX, "%s", folder);
        return true;
    }
    return prb_crash_dump_folder("", out, NULL);
}

static bool goes_on(void *context)
{
    const struct job *job = context;
    return prb_clock_s() < job->until;
}

/* ---- the list ---- */

static bool list_folder(struct job *job, const char *folder, uid_t uid, struct prb_buf *out,
                        size_t *left_out, struct prb_error *err)
{
    PRB_AUTO(prb_crash_files) struct prb_crash_files files = {0};
    if (!prb_crash_files_read(folder, DUMPS_MAX, goes_on, job, &files, err))
        return err->code == PRB_NOT_FOUND; /* there is none yet */
    *left_out += files.left_out;
    for (size_t i = 0; i < files.count; i++) {
        if (!is_of_job(job, folder, &files.items[i], uid))
            continue;
        if (out->data[out->len - 1] != '[')
            prb_buf_addc(out, ',');
        if (!prb_fleet_crash_json(out, folder, &files.items[i]))
            return prb_nomem(err);
    }
    return true;
}

static bool list(struct job *job, const json_t *folders, struct prb_buf *out, struct prb_error *err)
{
    size_t left_out = 0;
    prb_buf_adds(out, "{\"dumps\":[");
    for (size_t i = 0; i < json_array_size(folders); i++) {
        const json_t *one = json_array_get(folders, i);
        uid_t uid = (uid_t)json_integer_value(json_object_get(one, "uid"));
        char folder[PRB_CRASH_PATH_MAX];
        struct rights rights;
        if (!take_rights(uid, &rights))
            return prb_fail(err, PRB_PERMISSION, "dumps of another user");
        bool good = !folder_of(one, folder) || list_folder(job, folder, uid, out, &left_out, err);
        give_back(&rights);
        if (!good)
            return false;
    }
    prb_buf_addf(out, "],\"left_out\":%zu}", left_out);
    return prb_buf_ok(out) || prb_nomem(err);
}

/* ---- a part of one ---- */

static bool is_dump(const char *name)
{
    size_t len = strlen(name);
    return strncmp(name, "crash-", 6) == 0 && !strchr(name, '/') && len > 11 &&
           (strcmp(name + len - 5, ".snap") == 0 || strcmp(name + len - 4, ".txt") == 0);
}

static bool read_part(int fd, uint64_t size, uint64_t offset, struct prb_buf *out,
                      struct prb_error *err)
{
    prb_buf_addf(out, "{\"bytes\":%llu}\n", (unsigned long long)size);
    PRB_AUTO_FREE char *bytes = malloc(PART);
    ssize_t got = bytes ? pread(fd, bytes, PART, (off_t)offset) : -1;
    if (got < 0)
        return prb_fail(err, PRB_IO, "the dump cannot be read");
    prb_buf_add(out, bytes, (size_t)got);
    return prb_buf_ok(out) || prb_nomem(err);
}

/* What is of the job, as it is listed. */
static bool is_listed(struct job *job, const char *folder, const char *name, uid_t uid,
                      const struct stat *info)
{
    struct prb_crash_file file = {
        .name = (char *)name, .rank = -1, .written = (double)info->st_mtim.tv_sec};
    take_name(&file);
    file.crashed = strcmp(name + strlen(name) - 5, ".snap") == 0;
    file.text = !file.crashed;
    return is_of_job(job, folder, &file, uid);
}

static bool part_of(struct job *job, const json_t *folders, const char *path, uint64_t offset,
                    struct prb_buf *out, struct prb_error *err)
{
    const char *slash = strrchr(path, '/');
    bool good = true;
    for (size_t i = 0; good && slash && is_dump(slash + 1) && i < json_array_size(folders); i++) {
        const json_t *one = json_array_get(folders, i);
        uid_t uid = (uid_t)json_integer_value(json_object_get(one, "uid"));
        char folder[PRB_CRASH_PATH_MAX];
        struct rights rights;
        struct stat info;
        if (!take_rights(uid, &rights))
            continue;
        bool here = folder_of(one, folder) && strlen(folder) == (size_t)(slash - path) &&
                    strncmp(folder, path, strlen(folder)) == 0;
        PRB_AUTO_FD int fd =
            here ? open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY) : -1;
        if (fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == uid &&
            (uint64_t)info.st_size <= PRB_FLEET_DUMP_MOST && !out->len &&
            is_listed(job, folder, slash + 1, uid, &info))
            good = read_part(fd, (uint64_t)info.st_size, offset, out, err);
        give_back(&rights);
    }
    if (good && !out->len)
        prb_buf_adds(out, "{}\n");
    return good;
}

static bool of_rank(struct prb_fleet_seat *seat, const json_t *args, struct prb_buf *out,
                    struct prb_error *err)
{
    const json_t *host = json_object_get(args, "host"), *folders = json_object_get(host, "folders");
    const json_t *file = json_object_get(args, "file");
    json_int_t offset = json_integer_value(json_object_get(args, "offset"));
    struct job job;
    take_job(seat, host, &job);
    if (!job.name)
        return prb_fail(err, PRB_INTERNAL, "the host does not say which job");
    if (!file)
        return list(&job, folders, out, err);
    if (!json_is_string(file) || offset < 0)
        return prb_fail(err, PRB_USAGE, "file is a path, offset a number");
    return part_of(&job, folders, json_string_value(file), (uint64_t)offset, out, err);
}

/* ---- at the asker ---- */

static bool add_list(struct prb_fleet_crashes *crashes, const char *host, const json_t *list,
                     struct prb_error *err)
{
    const json_t *dumps = json_object_get(list, "dumps");
    json_int_t left_out = json_integer_value(json_object_get(list, "left_out"));
    for (size_t i = 0; i < json_array_size(dumps); i++)
        if (!prb_fleet_crashes_add(crashes, host, json_array_get(dumps, i), false, err))
            return false;
    crashes->left_out += left_out > 0 && left_out < INT32_MAX ? (size_t)left_out : 0;
    return json_is_array(dumps) ||
           prb_fail(err, PRB_CORRUPT, "the reply of %s cannot be parsed", host);
}

static bool add_part(struct prb_crash_answers *answers, const struct prb_fleet_part *part,
                     const char *host, struct prb_error *err)
{
    const char *line = memchr(part->data, '\n', part->len);
    if (strcmp(host, answers->host) != 0)
        return true;
    PRB_AUTO(json_t)
    json_t *head = line ? json_loadb(part->data, (size_t)(line - part->data), 0, NULL) : NULL;
    const json_t *bytes = json_object_get(head, "bytes");
    if (!json_is_object(head) || (bytes && json_integer_value(bytes) < 0))
        return prb_fail(err, PRB_CORRUPT, "the reply of %s cannot be parsed", host);
    answers->found = bytes != NULL;
    answers->total = (uint64_t)json_integer_value(bytes);
    prb_buf_add(answers->bytes, line + 1, part->len - (size_t)(line + 1 - part->data));
    return prb_buf_ok(answers->bytes) || prb_nomem(err);
}

static bool at_root(const json_t *args, const struct prb_fleet_reply *reply, void *result,
                    struct prb_error *err)
{
    struct prb_crash_answers *answers = result;
    (void)args;
    if (reply->part_count != 1)
        return prb_fail(err, PRB_CORRUPT, "the reply of %s cannot be parsed", reply->host);
    const struct prb_fleet_part *part = &reply->parts[0];
    if (!answers->list)
        return add_part(answers, part, reply->host, err);
    PRB_AUTO(json_t) json_t *list = json_loadb(part->data, part->len, 0, NULL);
    size_t before = answers->list->count;
    if (add_list(answers->list, reply->host, list, err))
        return true;
    prb_fleet_crashes_cut(answers->list, before);
    return false;
}

const struct prb_fleet_kind prb_fleet_kind_crash = {
    .name = "crash",
    .budget = 5,
    .pace = PRB_FLEET_SQL, /* a folder may have a thousand */
    .of_host = true,
    .of_rank = of_rank,
    .at_root = at_root,
};
