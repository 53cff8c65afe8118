/* Which target the user means: one pid, file or name; several get a list to choose from. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/syscalls.h"
#include "cli/command.h"
#include "cli/fleet/job.h"
#include "cli/print/out.h"
#include "cli/probe/probe.h"

#define TARGETS_MAX 64   /* so many are compared; more are only counted */
#define COMMAND_SHOWN 40 /* bytes of a command line in a message */

struct prb_wanted_target {
    enum prb_global_option how;
    const char *word; /* the first; of the command line */
    pid_t pids[TARGETS_MAX];
    size_t pid_count;
    size_t count; /* different targets named */
};

static const char separators[] = " \t\n,";

static bool is_pids(const char *word)
{
    return strpbrk(word, "0123456789") && word[strspn(word, "0123456789 \t\n,")] == '\0';
}

bool prb_word_is_pid(const char *word) { return *word && word[strspn(word, "0123456789")] == '\0'; }

/* HOST:PORT, [V6]:PORT */
static bool is_address(const char *word)
{
    const char *colon = strrchr(word, ':');
    return colon && colon != word && colon[1] &&
           colon[1 + strspn(colon + 1, "0123456789")] == '\0' && !strchr(word, '/');
}

/* serve.sock, serve-HOST:PORT.sock: a probe's has another name. */
static bool is_server_socket(const char *word)
{
    struct stat status;
    const char *slash = strrchr(word, '/'), *name = slash ? slash + 1 : word;
    size_t len = strlen(name);
    return strncmp(name, "serve", 5) == 0 && len >= 10 && strcmp(name + len - 5, ".sock") == 0 &&
           stat(word, &status) == 0 && S_ISSOCK(status.st_mode);
}

bool prb_word_is_server(const char *word)
{
    if (prb_fleet_is(word))
        return false;
    return strncmp(word, "http://", 7) == 0 || strncmp(word, "https://", 8) == 0 ||
           is_server_socket(word) || (is_address(word) && access(word, F_OK) != 0);
}

bool prb_word_is_target(const char *word, bool first)
{
    return is_pids(word) || (first && (prb_fleet_is(word) || is_address(word) ||
                                       strchr(word, '/') || access(word, F_OK) == 0));
}

static bool add_pid(struct prb_wanted_target *wanted, const char *digits, struct prb_error *err)
{
    errno = 0;
    long number = strtol(digits, NULL, 10);
    if (errno || number <= 0 || number > INT_MAX)
        return prb_cli_fail(err, PRB_USAGE, "", "\"%.*s\" is not a process id",
                            (int)strcspn(digits, separators), digits);
    for (size_t i = 0; i < wanted->pid_count; i++)
        if (wanted->pids[i] == number)
            return true;
    if (wanted->pid_count < TARGETS_MAX)
        wanted->pids[wanted->pid_count++] = (pid_t)number;
    wanted->count++;
    return true;
}

bool prb_wanted_target_add(struct prb_wanted_target **wanted, const char *word,
                           enum prb_global_option how, struct prb_error *err)
{
    if (!*wanted && !(*wanted = calloc(1, sizeof **wanted)))
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    struct prb_wanted_target *one = *wanted;
    if (!word[0] || word[strspn(word, separators)] == '\0')
        return prb_cli_fail(err, PRB_USAGE,
                            "pgrep found nothing? `probing list` shows the Python processes",
                            "the target is empty");
    if (how == PRB_GLOBAL_PID && !is_pids(word))
        return prb_cli_fail(err, PRB_USAGE, "use -n for a part of the command line, -t for a file",
                            "\"%s\" is not a process id", word);
    if (!one->word) {
        one->word = word;
        one->how = how == PRB_GLOBAL_TARGET && is_pids(word) ? PRB_GLOBAL_PID : how;
    }
    if (how == PRB_GLOBAL_NAME || !is_pids(word)) {
        one->count++;
        return true;
    }
    for (const char *at = word + strspn(word, separators); *at; at += strspn(at, separators)) {
        if (!add_pid(one, at, err))
            return false;
        at += strcspn(at, separators);
    }
    return true;
}

bool prb_run_take_target_options(struct prb_run *run, struct prb_error *err)
{
    static const enum prb_global_option ways[] = {PRB_GLOBAL_TARGET, PRB_GLOBAL_PID,
                                                  PRB_GLOBAL_NAME};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const struct prb_option_value *value = &run->globals[ways[i]];
        if (value->count == 1 && ways[i] == PRB_GLOBAL_TARGET && prb_word_is_server(value->text)) {
            run->server = value->text;
            continue;
        }
        if (value->count > 1)
            return prb_cli_fail(err, PRB_USAGE, "give one target", "--%s was given %u times",
                                prb_global_options[ways[i]].name, value->count);
        if (value->count && !prb_wanted_target_add(&run->target, value->text, ways[i], err))
            return false;
    }
    return true;
}

void prb_wanted_target_free(struct prb_wanted_target *wanted) { free(wanted); }

bool prb_thread_is(const struct prb_thread *thread, pid_t pid, const char *word)
{
    char *end = NULL;
    errno = 0;
    unsigned long long number = strtoull(word, &end, 0);
    if (!errno && end != word && !*end && *word != '-' && number)
        return thread->thread_id == number || (uint64_t)thread->os_thread_id == number;
    /* A program that never imported threading has no names for its threads. */
    return (thread->name && strcmp(thread->name, word) == 0) ||
           (thread->os_thread_id == pid && strcmp(word, "MainThread") == 0);
}

bool prb_run_has_target(const struct prb_run *run) { return run->target != NULL; }

/* Also one that its parent has not collected: what it kept is there. */
static bool has_ended(pid_t pid)
{
    PRB_AUTO_FD int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd end = {.fd = fd, .events = POLLIN};
    return fd >= 0 ? poll(&end, 1, 0) > 0 : kill(pid, 0) != 0 && errno == ESRCH;
}

const char *prb_run_ended(const struct prb_run *run)
{
    const struct prb_wanted_target *wanted = run->target;
    struct stat st;
    if (!wanted || wanted->count != 1 || wanted->how == PRB_GLOBAL_NAME)
        return NULL;
    if (wanted->how == PRB_GLOBAL_PID)
        return has_ended(wanted->pids[0]) ? wanted->word : NULL;
    return stat(wanted->word, &st) == 0 && S_ISDIR(st.st_mode) ? wanted->word : NULL;
}

const char *prb_run_word(const struct prb_run *run)
{
    const struct prb_wanted_target *wanted = run->target;
    bool word = wanted && wanted->count == 1 && wanted->how != PRB_GLOBAL_PID;
    return word && !prb_run_job(run) ? wanted->word : NULL;
}

const char *prb_run_job(const struct prb_run *run)
{
    const struct prb_wanted_target *wanted = run->target;
    bool one = wanted && wanted->count == 1 && wanted->how == PRB_GLOBAL_TARGET;
    return one && prb_fleet_is(wanted->word) ? wanted->word : NULL;
}

const char *prb_run_profile(const struct prb_run *run)
{
    const struct prb_wanted_target *wanted = run->target;
    bool file = wanted && wanted->count == 1 && wanted->how == PRB_GLOBAL_TARGET;
    return file && prb_profile_is(wanted->word) ? wanted->word : NULL;
}

/* "12 (rank 0, python train.py)" */
static void describe(const struct prb_process *one, char *text, size_t size)
{
    char command[COMMAND_SHOWN + 8], rank[32] = "";
    prb_process_short_command(one, COMMAND_SHOWN, command, sizeof command);
    if (one->rank >= 0)
        snprintf(rank, sizeof rank, "rank %d, ", one->rank);
    snprintf(text, size, "%d (%s%s)", (int)one->pid, rank, command);
}

/* Say which of the many are Python, by rank and command, as many as fit into the message. */
static bool several(const struct prb_run *run, struct prb_error *err)
{
    const struct prb_wanted_target *wanted = run->target;
    struct prb_process_list *list = prb_process_list(NULL);
    char remedy[sizeof err->remedy] = "", text[2 * COMMAND_SHOWN + 80];
    size_t python = 0, len = 0;
    pid_t example = 0;
    for (size_t i = 0; i < wanted->pid_count; i++) {
        const struct prb_process *one = list ? prb_process_find(list, wanted->pids[i]) : NULL;
        if (!one)
            continue;
        describe(one, text, sizeof text);
        example = one->pid;
        if (len + strlen(text) + 24 < sizeof remedy)
            len += (size_t)sprintf(remedy + len, "%s%s", python ? ", " : "choose one: ", text);
        else if (len && remedy[len - 1] != '.')
            len += (size_t)sprintf(remedy + len, ", ...");
        python++;
    }
    prb_process_list_free(list);
    if (python == 1)
        snprintf(remedy, sizeof remedy, "only %d of them is Python: probing %d %s", (int)example,
                 (int)example, run->command->name);
    else if (python == 0)
        snprintf(remedy, sizeof remedy,
                 "none of them is a Python process that you may see; see `probing list`");
    return prb_cli_fail(err, PRB_USAGE, remedy, "%zu targets were given, and `%s` takes one",
                        wanted->count, run->command->name);
}

/* Exactly one target was named. */
static bool named_one(const struct prb_run *run, struct prb_error *err)
{
    if (!run->target)
        return prb_cli_fail(err, PRB_USAGE, "`probing list` shows the Python processes",
                            "%s needs a target: probing PID %s", run->command->name,
                            run->command->name);
    return run->target->count == 1 || several(run, err);
}

bool prb_run_target_words(const struct prb_run *run, const char **pid_out, const char **name_out,
                          struct prb_error *err)
{
    const struct prb_wanted_target *wanted = run->target;
    bool pid = wanted && wanted->how == PRB_GLOBAL_PID;
    *pid_out = pid ? wanted->word : NULL;
    *name_out = wanted && !pid ? wanted->word : NULL;
    return !wanted || wanted->count == 1 || several(run, err);
}

/* The one process that "@JOB:RANK" means, on this host. */
static pid_t rank_process(const struct prb_run *run, struct prb_error *err)
{
    PRB_AUTO(prb_fleet) struct prb_fleet *fleet = prb_run_open_job_here(run, err);
    const struct prb_fleet_info *info = fleet ? prb_fleet_info(fleet) : NULL;
    if (!info)
        return 0;
    int rank = prb_rank_set_next(info->asked, -1);
    if (prb_rank_set_size(info->asked) != 1) {
        prb_cli_fail(err, PRB_USAGE, "name one rank: @JOB:0", "%s needs one process, and %s has %u",
                     run->command->name, prb_run_job(run), prb_rank_set_size(info->asked));
        return 0;
    }
    for (size_t i = 0; i < info->member_count; i++)
        if (info->members[i].rank == rank && !info->members[i].refused[0])
            return info->members[i].pid;
    prb_cli_fail(err, PRB_NOT_FOUND, "`probing cluster ranks` says on which",
                 "rank %d is not on this host, and %s needs its process", rank, run->command->name);
    return 0;
}

static bool is_socket(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISSOCK(status.st_mode);
}

/* What no file has, or only one that holds no target, is a part of a command line. */
static bool is_name(const char *word)
{
    struct stat status;
    if (stat(word, &status) == 0)
        return S_ISREG(status.st_mode) && !prb_target_is_file(word);
    return !is_address(word) && !strchr(word, '/');
}

static struct prb_target *open_named(const struct prb_run *run, bool whole_job,
                                     struct prb_error *err)
{
    const struct prb_wanted_target *wanted = run->target;
    const struct prb_target_options options = {
        .exe = run->globals[PRB_GLOBAL_EXE].text,
        .sysroot = run->globals[PRB_GLOBAL_SYSROOT].text,
    };
    if (wanted->how == PRB_GLOBAL_NAME || is_name(wanted->word)) {
        char note[PRB_NOTE_MAX];
        pid_t pid = prb_process_by_name(wanted->word, note, err);
        if (note[0] && !whole_job)
            prb_out_note(note);
        if (pid)
            return prb_target_open_pid(pid, err);
        bool file = wanted->how != PRB_GLOBAL_NAME && access(wanted->word, F_OK) == 0;
        if (!file || (err && err->code != PRB_NOT_FOUND))
            return NULL;
    }
    return prb_target_open(wanted->word, &options, err);
}

bool prb_run_process_or_job(const struct prb_run *run, bool whole_job, pid_t *pid_out,
                            const char **socket_out, struct prb_error *err)
{
    const struct prb_wanted_target *wanted = run->target;
    if (!named_one(run, err))
        return false;
    *socket_out = NULL;
    *pid_out = 0;
    if (wanted->how == PRB_GLOBAL_PID) {
        *pid_out = wanted->pids[0];
        return true;
    }
    if (prb_run_job(run))
        return (*pid_out = rank_process(run, err)) > 0;
    if (wanted->how == PRB_GLOBAL_TARGET && is_socket(wanted->word)) {
        *socket_out = wanted->word;
        return true;
    }
    PRB_AUTO(prb_target) struct prb_target *target = open_named(run, whole_job, err);
    if (!target)
        return false;
    const struct prb_target_info *info = prb_target_info(target);
    if (info->kind != PRB_TARGET_PROCESS && run->command == &prb_command_debug)
        return prb_cli_fail(err, PRB_USAGE, "of a file: probing debug --core FILE",
                            "debug needs a live process, and %s is a file", wanted->word);
    if (info->kind != PRB_TARGET_PROCESS)
        return prb_usage(run, err, "%s needs a live process, and %s is a file", run->command->name,
                         wanted->word);
    *pid_out = info->pid;
    return true;
}

bool prb_run_process(const struct prb_run *run, pid_t *pid_out, const char **socket_out,
                     struct prb_error *err)
{
    return prb_run_process_or_job(run, false, pid_out, socket_out, err);
}

/* The process whose probe listens there. */
static struct prb_target *open_socket(const char *path, struct prb_error *err)
{
    PRB_AUTO(prb_control) struct prb_control *control = prb_control_open_path(path, err);
    pid_t pid = control ? prb_control_pid(control) : 0;
    if (control && !pid)
        prb_cli_fail(err, PRB_UNSUPPORTED, "give its process id",
                     "the process behind %s is not visible from here", path);
    return pid ? prb_target_open_pid(pid, err) : NULL;
}

struct prb_target *prb_run_open(const struct prb_run *run, struct prb_error *err)
{
    const struct prb_wanted_target *wanted = run->target;
    if (!named_one(run, err))
        return NULL;
    if (wanted->how == PRB_GLOBAL_PID)
        return prb_target_open_pid(wanted->pids[0], err);
    if (prb_run_job(run)) {
        pid_t pid = rank_process(run, err);
        return pid ? prb_target_open_pid(pid, err) : NULL;
    }
    if (wanted->how == PRB_GLOBAL_TARGET && is_socket(wanted->word))
        return open_socket(wanted->word, err);
    return open_named(run, false, err);
}
