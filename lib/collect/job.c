/* Which job a process belongs to, and so which file of the store. */
#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "base/file.h"
#include "collect/parts.h"
#include "inspect/target.h"
#include "proc/stat.h"
#include "ring/folder.h"

#define DEPTH_MAX 64
#define NAME_MAX_ 48

void prb_collect_job_deinit(struct prb_collect_job *job)
{
    free(job->path);
    free((char *)job->process.command);
}

/* What /proc says of one process. */
struct facts {
    pid_t pid, parent;
    uint64_t started;
    int rank, world_size;
    char *command;
};

static void facts_deinit(struct facts *facts) { free(facts->command); }
PRB_DEFINE_AUTO(facts, struct facts, facts_deinit)

static bool read_facts(pid_t pid, struct facts *out)
{
    char folder[32];
    struct prb_stat stat;
    struct prb_process process = {.rank = -1, .world_size = -1};
    PRB_AUTO(prb_arena) struct prb_arena arena = {0};
    PRB_AUTO(prb_proc) struct prb_proc *proc = pid > 0 ? prb_proc_open(pid, NULL) : NULL;
    *out = (struct facts){.pid = pid};
    snprintf(folder, sizeof folder, "/proc/%d", (int)pid);
    if (!proc || !prb_stat_of(folder, &stat) || stat.count < PRB_STAT_STARTTIME)
        return false;
    out->parent = (pid_t)stat.field[PRB_STAT_PPID];
    out->started = (uint64_t)stat.field[PRB_STAT_STARTTIME];
    prb_process_ranks(proc, &process);
    out->rank = process.rank;
    out->world_size = process.world_size;
    const char *command = prb_process_command(proc, &arena);
    out->command = strdup(command ? command : "");
    return out->command != NULL;
}

static bool is_part_of(const struct facts *process, const struct facts *parent)
{
    if (process->rank >= 0)
        return parent->rank == process->rank && parent->world_size == process->world_size;
    return parent->rank < 0 && *process->command &&
           (strcmp(parent->command, process->command) == 0 ||
            strstr(process->command, "multiprocessing"));
}

/* The process that stands for the job: facts becomes those of it. */
static void climb(struct facts *facts)
{
    for (int depth = 0; depth < DEPTH_MAX; depth++) {
        PRB_AUTO(facts) struct facts parent = {0};
        if (!read_facts(facts->parent, &parent) || !is_part_of(facts, &parent))
            break;
        struct facts swap = *facts;
        *facts = parent;
        parent = swap;
    }
    PRB_AUTO(facts) struct facts launcher = {0};
    if (facts->rank >= 0 && facts->parent > 1 && read_facts(facts->parent, &launcher)) {
        struct facts swap = *facts;
        *facts = launcher;
        launcher = swap;
    }
}

/* "train.py": the first word that looks like a script or follows -m, else the program. */
static void name_of(const char *command, char *out, size_t cap)
{
    size_t first = strcspn(command, " "), begin = 0, len = first;
    for (size_t at = 0; command[at];) {
        size_t word = strcspn(command + at, " ");
        bool script = word > 3 && memcmp(command + at + word - 3, ".py", 3) == 0;
        bool module = at >= 3 && memcmp(command + at - 3, "-m ", 3) == 0;
        if (script || module) {
            begin = at;
            len = word;
            break;
        }
        at += word + strspn(command + at + word, " ");
    }
    for (size_t at = begin; at < begin + len; at++)
        if (command[at] == '/') {
            len -= at + 1 - begin;
            begin = at + 1;
        }
    snprintf(out, cap, "%.*s", (int)(len < NAME_MAX_ ? len : NAME_MAX_), command + begin);
    for (char *at = out; *at; at++)
        if (!isalnum((unsigned char)*at) && !strchr("._-", *at))
            *at = '_';
    if (!*out || *out == '.')
        snprintf(out, cap, "process");
}

/* A process that ended told its folder who it was (inject/probe/tables). */
static bool read_about(int folder, struct facts *out)
{
    struct prb_ring_about about;
    if (!prb_ring_about_read(folder, &about))
        return false;
    out->rank = about.rank;
    out->world_size = about.world_size;
    out->command = about.command;
    about.command = NULL;
    return true;
}

bool prb_collect_job_of(const char *store, pid_t pid, uint64_t started, int folder,
                        struct prb_collect_job *out, struct prb_error *err)
{
    PRB_AUTO(facts) struct facts facts = {0};
    *out = (struct prb_collect_job){0};
    bool lives = read_facts(pid, &facts) && facts.started == started;
    if (!lives) {
        facts_deinit(&facts);
        facts = (struct facts){.pid = pid, .started = started, .rank = -1, .world_size = -1};
        read_about(folder, &facts);
    }
    out->process =
        (struct prb_store_process){.pid = pid,
                                   .started = (int64_t)started,
                                   .rank = facts.rank,
                                   .world_size = facts.world_size,
                                   .command = strdup(facts.command ? facts.command : "")};
    if (lives)
        climb(&facts);
    name_of(facts.command ? facts.command : "", out->name, sizeof out->name);
    if (!out->process.command || asprintf(&out->path, "%s/%s-%d-%" PRIu64 PRB_STORE_SUFFIX, store,
                                          out->name, (int)facts.pid, facts.started) < 0)
        return prb_nomem(err);
    return true;
}
