/* probing crash: the dumps that crashed processes left, and how they come to be written. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/crash/crash.h"
#include "cli/fleet/crashes.h"
#include "cli/print/out.h"
#include "format/format.h"

#define PIPE 3          /* of the process that crashes: inject/probe/crash/write.c */
#define DUMPS_MAX 10000 /* of a folder, the newest */
#define WRITTEN 'w'
#define FAILED 'f'

enum { ALL, OUTPUT, FORMAT, PULL };

static const struct prb_option options[] = {
    [ALL] = {0, "all", NULL, "list: a line for each dump, equal ones too", NULL},
    [OUTPUT] = {'o', "output", "FILE", "show, export: write there instead of standard output",
                NULL},
    [FORMAT] = {'f', "format", "FORMAT", "list of a job: a table (the default), json, jsonl or csv",
                PRB_ROW_FORMATS},
    [PULL] = {0, "pull", "FOLDER", "list of a job: fetch one dump of each line into it", NULL},
    {0},
};

/* ---- which dumps ---- */

static bool folder_of(const struct prb_run *run, char out[PRB_CRASH_PATH_MAX],
                      struct prb_error *err)
{
    const char *given = run->argument_count > 1 ? run->arguments[1] : getenv("PROBING_CRASH_DIR");
    if (given && *given) {
        snprintf(out, PRB_CRASH_PATH_MAX, "%s", given);
        return true;
    }
    return prb_crash_dump_folder("", out, err);
}

static bool read_folder(const char *folder, struct prb_crash_files *out, struct prb_error *err)
{
    struct prb_error why;
    if (prb_crash_files_read(folder, DUMPS_MAX, NULL, NULL, out, &why))
        return true;
    return prb_cli_fail(err, why.code,
                        why.sys == ENOTDIR
                            ? "`probing crash show FILE` shows one dump"
                            : "PROBING_CRASH_DIR, or an argument, names another folder",
                        "%s", why.text);
}

static bool list_job(const struct prb_run *run, struct prb_error *err)
{
    const struct prb_job_crashes how = {
        .all = run->options[ALL].count,
        .format = run->options[FORMAT].text,
        .pull = run->options[PULL].text,
    };
    if (run->argument_count > 1)
        return prb_usage(run, err, "of a job its hosts' own folders are listed: name none");
    return prb_job_crash_list(run, &how, err);
}

static bool list(const struct prb_run *run, struct prb_error *err)
{
    if (prb_run_job(run))
        return list_job(run, err);
    if (run->options[FORMAT].count || run->options[PULL].count)
        return prb_usage(run, err, "--format and --pull are for the list of a job: -t @JOB");
    PRB_AUTO(prb_crash_files) struct prb_crash_files files = {0};
    char folder[PRB_CRASH_PATH_MAX];
    if (!folder_of(run, folder, err) || !read_folder(folder, &files, err))
        return false;
    if (files.count)
        return prb_crash_list(&files, run->options[ALL].count, err);
    fputs("no crash dumps in ", stdout);
    prb_out_text(stdout, folder);
    fputc('\n', stdout);
    return true;
}

/* A file as it is named, or the latest of a folder. */
static bool one_path(const struct prb_run *run, char out[PRB_CRASH_PATH_MAX], struct prb_error *err)
{
    PRB_AUTO(prb_crash_files) struct prb_crash_files files = {0};
    char folder[PRB_CRASH_PATH_MAX];
    struct stat st;
    if (!folder_of(run, folder, err))
        return false;
    if (stat(folder, &st) == 0 && S_ISREG(st.st_mode)) {
        strcpy(out, folder);
        return true;
    }
    if (!read_folder(folder, &files, err))
        return false;
    for (size_t i = files.count; i-- > 0;)
        if (files.items[i].crashed) {
            int n = snprintf(out, PRB_CRASH_PATH_MAX, "%s/%s", folder, files.items[i].name);
            return n < PRB_CRASH_PATH_MAX ||
                   prb_cli_fail(err, PRB_IO, "", "the path of %s is too long", folder);
        }
    return prb_cli_fail(err, PRB_NOT_FOUND, "", "there is no crash dump in %s", folder);
}

static bool print_one(const struct prb_run *run,
                      bool (*print)(struct prb_target *target, const char *path, FILE *out,
                                    struct prb_error *err),
                      struct prb_error *err)
{
    char path[PRB_CRASH_PATH_MAX];
    const struct prb_target_options where = {
        .exe = run->globals[PRB_GLOBAL_EXE].text,
        .sysroot = run->globals[PRB_GLOBAL_SYSROOT].text,
    };
    const char *to = run->options[OUTPUT].text;
    if (!one_path(run, path, err))
        return false;
    PRB_AUTO(prb_target) struct prb_target *target = prb_target_open(path, &where, err);
    if (!target)
        return false;
    if (!to)
        return print(target, path, stdout, err);
    FILE *out = fopen(to, "we");
    bool ok = out && print(target, path, out, err);
    if (out && fclose(out) == 0 && ok)
        return true;
    return ok || !out ? prb_cli_fail(err, PRB_IO, "", "%s: %s", to, strerror(errno)) : false;
}

static bool show(const struct prb_run *run, struct prb_error *err)
{
    return print_one(run, prb_crash_show, err);
}

static bool export(const struct prb_run *run, struct prb_error *err)
{
    return print_one(run, prb_crash_json, err);
}

/* ---- writing one: by the probe of a process that crashes, in its child ---- */

/* PATH.snap's text is PATH.txt; nobody else's file is written to. */
static bool write_text(struct prb_target *target, const char *path, struct prb_error *err)
{
    char text[PRB_CRASH_PATH_MAX + 8];
    snprintf(text, sizeof text, "%.*s.txt", (int)(strlen(path) - strlen(".snap")), path);
    int fd = open(text, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!out)
        return prb_cli_fail(err, PRB_IO, "", "%s: %s", text, strerror(errno));
    bool ok = prb_crash_show(target, path, out, err), whole = !ferror(out);
    whole = fclose(out) == 0 && whole;
    if (whole)
        return ok;
    int wrong = errno;
    unlink(text); /* a full disk: half a text is none */
    return prb_cli_fail(err, PRB_IO, "", "%s: %s", text, strerror(wrong));
}

static void say(char word)
{
    ssize_t written = write(PIPE, &word, 1);
    (void)written; /* it does not wait any more */
}

/* In one piece: many ranks of a job may crash at once, and have one standard error. */
static void announce(const struct prb_crash_written *dump, struct prb_target *target)
{
    const struct prb_crash *crash = prb_target_crash(target);
    PRB_AUTO_FREE char *text = NULL;
    size_t size = 0;
    char bytes[16];
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return;
    prb_out_bytes(bytes, sizeof bytes, (double)dump->bytes);
    fprintf(out, "probing: process %d crashed: ", crash ? (int)crash->pid : 0);
    prb_out_text(out, crash && crash->title ? crash->title : "?");
    fputs("\nprobing: ", out);
    prb_out_text(out, dump->path);
    fprintf(out, " (%s); `probing crash show` reads it\n", bytes);
    if (fclose(out) == 0)
        fwrite(text, 1, size, stderr);
}

static bool write_dump(const struct prb_run *run, struct prb_error *err)
{
    struct prb_crash_written dump;
    char *end;
    if (run->argument_count != 3)
        return prb_usage(run, err, "write is what the probe runs");
    pid_t pid = (pid_t)strtol(run->arguments[1], NULL, 10);
    prb_addr record = strtoull(run->arguments[2], &end, 16);
    if (pid != getppid() || *end)
        return prb_usage(run, err, "write is what the probe runs, for the process that started it");
    signal(SIGPIPE,
           SIG_IGN); /* who waits for the word may be killed; the dump is told of all the same */
    bool ok = prb_crash_dump_write(pid, record, &dump, err);
    PRB_AUTO(prb_target)
    struct prb_target *target = ok ? prb_target_open(dump.path, NULL, err) : NULL;
    struct prb_error unwritten = {0};
    if (target && !write_text(target, dump.path, &unwritten))
        prb_out_error(&unwritten);
    say(target ? WRITTEN : FAILED); /* first: nobody may read what is announced */
    if (target)
        announce(&dump, target);
    if (ok)
        prb_crash_dump_told(&dump);
    return target != NULL;
}

static const struct {
    const char *name;
    bool (*run)(const struct prb_run *run, struct prb_error *err);
} actions[] = {{"list", list}, {"show", show}, {"export", export}, {"write", write_dump}};

static bool run_crash(const struct prb_run *run, struct prb_error *err)
{
    const char *wanted = run->argument_count ? run->arguments[0] : "list";
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
        if (strcmp(actions[i].name, wanted) == 0)
            return prb_run_job(run) && actions[i].run != list
                       ? prb_usage(run, err, "-t @JOB is for the list")
                       : actions[i].run(run, err);
    return prb_usage_word(run, err);
}

const struct prb_command prb_command_crash = {
    .name = "crash",
    .aliases = "",
    .summary = "crash dumps: list a folder of them, show one",
    .arguments = "list [FOLDER] | show|export [FOLDER|FILE]",
    .words = "list show export",
    .arguments_max = 3,
    .target = PRB_USES_JOB_IF_GIVEN,
    .description =
        "A process that crashes under `inject -c`, PROBING_CRASH=1 or probing.init(crash=True) "
        "leaves a dump, a snapshot of its last moment, and a text beside it. `list` shows those of "
        "a folder (PROBING_CRASH_DIR, else the default one), the earliest first, equal crashes of "
        "several ranks on one line; with -t @JOB those of its ranks on their hosts, and --pull "
        "fetches "
        "one of each line. `show` prints one as text: what happened, the exceptions, the "
        "stacks with their variables; of a folder the latest. `export` prints the same as "
        "JSON.\n\n"
        "Every other command reads a dump, too: `probing -t FILE backtrace`, query, tables, and "
        "`probing debug --core FILE` for VS Code.",
    .options = options,
    .examples = "probing crash list /shared/crashes  # what happened first, and on which ranks\n"
                "probing crash show  # the latest one\n"
                "probing -t @ crash list  # on all hosts of the job\n"
                "probing -t FILE query \"SELECT * FROM python.exception\"\n",
    .run = run_crash,
};
