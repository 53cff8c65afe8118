/* The folder of the demo, and what runs in it: see demo.h. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "cli/demo/demo.h"
#include "cli/print/out.h"
#include "cli/python.h"

#define LOOK_SECONDS 0.01
#define END_SECONDS 5  /* for orphans to end by themselves */
#define FOLDER_TEXT 40 /* a socket's path below the folder must fit sockaddr_un */
#define WORDS_MAX 16
#define OPEN_FOLDERS 16

static const char job_text[] = {
#include "cli/demo/job.inc"
};

/* ---- the folder ---- */

/* What decides where probes, tools and tables keep files: all below the folder. */
static const struct {
    const char *name, *below;
} places[] = {
    {"XDG_RUNTIME_DIR", ""},
    {"XDG_CACHE_HOME", ""},
    {"XDG_STATE_HOME", ""},
    {"PROBING_DATA_DIR", "/tables"},
    {"PROBING_CRASH_DIR", "/crashes"},
    {"TMPDIR", ""},
};

extern char **environ;

/* The user's own settings would change what is shown. */
static void forget_settings(void)
{
    for (char **at = environ; *at;) {
        char name[80];
        size_t len = strcspn(*at, "=");
        bool ours = strncmp(*at, "PROBING", 7) == 0 || strncmp(*at, "PROBE", 5) == 0;
        snprintf(name, sizeof name, "%.*s", (int)len, *at);
        if (!ours || strcmp(name, PRB_PYTHON_VARIABLE) == 0 || len >= sizeof name ||
            unsetenv(name) != 0)
            at++;
    }
}

static bool write_script(struct prb_demo *demo, struct prb_error *err)
{
    snprintf(demo->script, sizeof demo->script, "%s/train.py", demo->folder);
    PRB_AUTO_FD int fd = open(demo->script, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0 && write(fd, job_text, sizeof job_text) == (ssize_t)sizeof job_text)
        return true;
    return prb_cli_fail(err, PRB_IO, "", "%s cannot be written: %s", demo->script, strerror(errno));
}

static bool make_folder(struct prb_demo *demo, struct prb_error *err)
{
    const char *temporary = getenv("TMPDIR");
    if (!temporary || *temporary != '/' || strlen(temporary) > FOLDER_TEXT)
        temporary = "/tmp";
    snprintf(demo->folder, sizeof demo->folder, "%s/probing-demo-XXXXXX", temporary);
    if (mkdtemp(demo->folder))
        return true;
    int sys = errno;
    demo->folder[0] = '\0';
    return prb_cli_fail(err, PRB_IO, "TMPDIR names another folder", "no folder in %s: %s",
                        temporary, strerror(sys));
}

bool prb_demo_begin(struct prb_demo *demo, struct prb_error *err)
{
    if (!prb_find_python(demo->python, err) || !make_folder(demo, err))
        return false;
    forget_settings();
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char path[sizeof demo->folder + 16];
        snprintf(path, sizeof path, "%s%s", demo->folder, places[i].below);
        if (setenv(places[i].name, path, 1) != 0)
            return prb_cli_fail(err, PRB_NOMEM, "", "the environment cannot be made");
    }
    /* What a child leaves behind is ours to end. */
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    return write_script(demo, err);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *walk)
{
    (void)st, (void)kind, (void)walk;
    remove(path);
    return 0;
}

/* Children and orphans: a while to end by themselves, then not. */
static void end_children(double seconds)
{
    double until = prb_clock_s() + seconds;
    pid_t ended;
    while ((ended = waitpid(-1, NULL, WNOHANG)) >= 0) {
        if (ended > 0)
            continue;
        if (prb_clock_s() > until) {
            siginfo_t info = {0};
            char path[64];
            snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
            PRB_AUTO(file) FILE *children = fopen(path, "re");
            for (int pid; children && fscanf(children, "%d", &pid) == 1;)
                kill(pid, SIGKILL);
            waitid(P_ALL, 0, &info, WEXITED | WNOWAIT);
            continue;
        }
        poll(NULL, 0, (int)(LOOK_SECONDS * 1e3));
    }
}

void prb_demo_end(struct prb_demo *demo)
{
    if (demo->job)
        kill(demo->job, SIGKILL);
    if (demo->lines >= 0)
        close(demo->lines);
    end_children(END_SECONDS);
    /* Not FTW_MOUNT: on overlayfs a file may have another st_dev than its folder. */
    if (*demo->folder)
        nftw(demo->folder, remove_one, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS);
}

/* ---- children ---- */

static void become(const struct prb_demo *demo, const char *const *words, int in, int out,
                   bool quiet)
{
    const struct rlimit none = {0, 0};
    sigset_t all;
    sigfillset(&all);
    PRB_AUTO_FD int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    sigprocmask(SIG_UNBLOCK, &all, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    /* The demo and its other children may look at it: ptrace_scope 1 (Yama). */
    prctl(PR_SET_PTRACER, (unsigned long)getppid(), 0, 0, 0);
    setrlimit(RLIMIT_CORE, &none);
    if (chdir(demo->folder) != 0 || dup2(in >= 0 ? in : null, STDIN_FILENO) < 0 ||
        dup2(out >= 0 ? out : null, STDOUT_FILENO) < 0 ||
        dup2(quiet || out < 0 ? null : out, STDERR_FILENO) < 0)
        return;
    execvp(words[0], (char *const *)words);
}

pid_t prb_demo_start(const struct prb_demo *demo, const char *const *words, int in, int out,
                     bool quiet, struct prb_error *err)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        become(demo, words, in, out, quiet);
        _exit(127);
    }
    if (child < 0)
        prb_cli_fail(err, PRB_IO, "", "%s cannot be started: %s", words[0], strerror(errno));
    return child;
}

bool prb_demo_await(const struct prb_demo *demo, int fd, const char *what, struct prb_error *err)
{
    struct pollfd fds[] = {{.fd = fd, .events = POLLIN}, {.fd = demo->ends, .events = POLLIN}};
    double left = demo->deadline - prb_clock_s();
    int ready = poll(fds, 2, left > 0 ? (int)(left * 1e3) : 0);
    if (ready > 0 && fds[1].revents)
        return prb_cli_fail(err, PRB_GONE, "", "stopped before its end");
    if (ready > 0)
        return true;
    return prb_cli_fail(err, ready < 0 ? PRB_IO : PRB_TIMEOUT, "", "%s: %s", what,
                        ready < 0 ? strerror(errno) : "it takes longer than a minute");
}

bool prb_demo_await_end(const struct prb_demo *demo, pid_t child, const char *what, int *status_out,
                        struct prb_error *err)
{
    struct pollfd end = {.fd = demo->ends, .events = POLLIN};
    pid_t ended;
    while ((ended = waitpid(child, status_out, WNOHANG)) == 0) {
        if (poll(&end, 1, (int)(LOOK_SECONDS * 1e3)) > 0)
            return prb_cli_fail(err, PRB_GONE, "", "stopped before its end");
        if (prb_clock_s() > demo->deadline)
            return prb_cli_fail(err, PRB_TIMEOUT, "", "%s does not end", what);
    }
    return ended == child || prb_cli_fail(err, PRB_IO, "", "%s: %s", what, strerror(errno));
}

/* ---- the job ---- */

bool prb_demo_start_job(struct prb_demo *demo, struct prb_error *err)
{
    const char *const words[] = {demo->python, "-B", "train.py", NULL};
    int ends[2];
    char line[80] = "";
    if (pipe2(ends, O_CLOEXEC) != 0)
        return prb_cli_fail(err, PRB_IO, "", "no pipe: %s", strerror(errno));
    demo->lines = ends[0];
    pid_t job = prb_demo_start(demo, words, -1, ends[1], true, err);
    close(ends[1]);
    if (job < 0)
        return false;
    demo->job = job;
    if (!prb_demo_await(demo, demo->lines, "the job's first step", err))
        return false;
    ssize_t got = read(demo->lines, line, sizeof line - 1);
    if (got > 0 && strncmp(line, "ready ", 6) == 0)
        return true;
    return prb_cli_fail(err, PRB_UNSUPPORTED,
                        "PROBING_PYTHON names another Python, of 3.6 or later",
                        "%s does not run the demo's script", demo->python);
}

/* ---- commands ---- */

static void print_command(const char *const *words)
{
    fputs("\n", stdout);
    prb_out_style(stdout, PRB_STYLE_TITLE);
    fputs("$ probing", stdout);
    for (size_t i = 0; words[i]; i++) {
        bool plain = words[i][strcspn(words[i], " ;()*'")] == '\0';
        fputs(plain ? " " : " \"", stdout);
        prb_out_text(stdout, words[i]);
        fputs(plain ? "" : "\"", stdout);
    }
    prb_out_style(stdout, PRB_STYLE_PLAIN);
    fputs("\n", stdout);
    fflush(stdout);
}

/* Up to lines_max lines of what is read, the rest counted. */
static bool copy_lines(const struct prb_demo *demo, int from, unsigned lines_max,
                       struct prb_error *err)
{
    struct prb_out_stream stream = {.file = stdout};
    char text[4096];
    unsigned lines = 0;
    for (;;) {
        size_t shown = 0;
        if (!prb_demo_await(demo, from, "a command", err))
            return false;
        ssize_t got = read(from, text, sizeof text);
        if (got <= 0)
            break;
        for (ssize_t i = 0; i < got; i++) {
            shown += !lines_max || lines < lines_max;
            lines += text[i] == '\n';
        }
        prb_out_stream(&stream, text, shown);
    }
    prb_out_stream_end(&stream);
    if (lines_max && lines > lines_max)
        printf("... %u more lines\n", lines - lines_max);
    fflush(stdout);
    return true;
}

bool prb_demo_show(const struct prb_demo *demo, unsigned lines_max, const char *const *words,
                   struct prb_error *err)
{
    const char *all[WORDS_MAX + 2] = {"/proc/self/exe"};
    int ends[2], status = 0;
    for (size_t i = 0; i < WORDS_MAX && words[i]; i++)
        all[i + 1] = words[i];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return prb_cli_fail(err, PRB_IO, "", "no pipe: %s", strerror(errno));
    PRB_AUTO_FD int from = ends[0];
    print_command(words);
    pid_t child = prb_demo_start(demo, all, -1, ends[1], false, err);
    close(ends[1]);
    if (child < 0 || !copy_lines(demo, from, lines_max, err) ||
        !prb_demo_await_end(demo, child, words[1], &status, err))
        return false;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    return prb_cli_fail(err, WIFEXITED(status) ? (enum prb_code)WEXITSTATUS(status) : PRB_INTERNAL,
                        "`probing doctor` says what works on this machine",
                        "this command failed: see above");
}
