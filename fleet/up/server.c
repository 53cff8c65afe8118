/* The process that keeps nats-server running (up.h). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "fleet/up/up.h"
#include "proc/stat.h"

#define LOG_FILE "server.log"
#define LOG_MAX (1 << 20)
#define STARTS 15.0    /* s that a server may take until it listens */
#define ENDS 5.0       /* s that it may take to end */
#define LOOK_MS 20     /* between two looks for its file of ports */
#define PAUSE_MS 200   /* before it is started again ... */
#define PAUSE_MAX 1500 /* ... and again */
#define STEADY 30.0    /* s: one that ran so long did not fail at once */

/* ---- the program ---- */

bool prb_bus_server_program(char out[PATH_MAX], struct prb_error *err)
{
    static const char more[] = ":/usr/sbin:/usr/local/sbin:/usr/local/bin:/usr/bin";
    const char *given = getenv("PATH");
    char path[8192];
    struct stat info;
    snprintf(path, sizeof path, "%.*s%s", (int)(sizeof path - sizeof more), given ? given : "",
             more);
    for (char *at = path, *folder; (folder = strsep(&at, ":"));) {
        if (*folder != '/' || snprintf(out, PATH_MAX, "%s/nats-server", folder) >= PATH_MAX)
            continue;
        if (stat(out, &info) == 0 && S_ISREG(info.st_mode) && access(out, X_OK) == 0)
            return true;
    }
    prb_fail(err, PRB_UNSUPPORTED, "nats-server, which the hosts of a job meet at, is not here");
    return prb_error_remedy(err,
                            "install nats-server (Debian and Ubuntu: apt install nats-server)");
}

/* ---- its output ---- */

struct keeper {
    struct prb_bus_place *place;
    const char *program;
    int told, ends, log, from; /* from: its output; -1: none */
    size_t log_size;
    pid_t server;
    char cause[200]; /* its last error */
};

static int open_log(struct keeper *keeper)
{
    char path[PATH_MAX], old[PATH_MAX];
    struct stat info;
    prb_bus_path(keeper->place->folder, LOG_FILE, path);
    prb_bus_path(keeper->place->folder, LOG_FILE ".1", old);
    if (stat(path, &info) == 0 && info.st_size > LOG_MAX)
        rename(path, old);
    keeper->log = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    keeper->log_size =
        keeper->log >= 0 && fstat(keeper->log, &info) == 0 ? (size_t)info.st_size : 0;
    return keeper->log;
}

/* Lines "[PID] DATE [FTL] what is wrong". */
static void remember_cause(struct keeper *keeper, const char *text)
{
    for (const char *at = text; (at = strstr(at, "[")); at++) {
        if (strncmp(at, "[FTL] ", 6) == 0 || strncmp(at, "[ERR] ", 6) == 0)
            snprintf(keeper->cause, sizeof keeper->cause, "%.*s", (int)strcspn(at + 6, "\r\n"),
                     at + 6);
    }
    if (!keeper->cause[0] && strncmp(text, "nats-server: ", 13) == 0)
        snprintf(keeper->cause, sizeof keeper->cause, "%.*s", (int)strcspn(text + 13, "\r\n"),
                 text + 13);
}

static bool take_output(struct keeper *keeper)
{
    char text[4096];
    ssize_t n = read(keeper->from, text, sizeof text - 1);
    if (n <= 0)
        return n < 0 && (errno == EINTR || errno == EAGAIN);
    text[n] = '\0';
    remember_cause(keeper, text);
    if (keeper->log >= 0 && prb_write_all(keeper->log, text, (size_t)n))
        keeper->log_size += (size_t)n;
    if (keeper->log_size > LOG_MAX) {
        close(keeper->log);
        open_log(keeper);
    }
    return true;
}

/* ---- one run ---- */

static void become_server(const struct keeper *keeper, int output)
{
    char configuration[PATH_MAX];
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prb_bus_path(keeper->place->folder, PRB_BUS_CONFIGURATION, configuration);
    /* It must not outlive us: the next keeper could not have the port. */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (dup2(output, 1) == 1 && dup2(output, 2) == 2)
        execl(keeper->program, "nats-server", "-c", configuration, (char *)NULL);
    _exit(127);
}

static bool start(struct keeper *keeper, struct prb_error *err)
{
    int output[2];
    if (pipe2(output, O_CLOEXEC) != 0)
        return prb_fail_sys(err, errno, "a pipe");
    keeper->cause[0] = '\0';
    keeper->server = fork();
    if (keeper->server == 0)
        become_server(keeper, output[1]);
    close(output[1]);
    keeper->from = output[0];
    if (keeper->server > 0)
        return true;
    close(output[0]);
    keeper->from = -1;
    return prb_fail_sys(err, errno, "starting %.160s", keeper->program);
}

static bool has_ended(struct keeper *keeper)
{
    if (keeper->server > 0 && waitpid(keeper->server, NULL, WNOHANG) == keeper->server)
        keeper->server = 0;
    if (keeper->server)
        return false;
    while (keeper->from >= 0 && take_output(keeper))
        ;
    if (keeper->from >= 0)
        close(keeper->from);
    keeper->from = -1;
    return true;
}

/* Output, an end, or a signal: false when we are to end. */
static bool wait_some(struct keeper *keeper, int ms)
{
    struct pollfd fds[] = {{.fd = keeper->ends, .events = POLLIN},
                           {.fd = keeper->from, .events = POLLIN}};
    struct signalfd_siginfo info;
    if (poll(fds, 2, ms) <= 0)
        return true;
    if (fds[1].revents && !take_output(keeper)) {
        close(keeper->from);
        keeper->from = -1;
    }
    while (read(keeper->ends, &info, sizeof info) == sizeof info)
        if (info.ssi_signo != SIGCHLD && info.ssi_signo != SIGHUP)
            return false;
    return true;
}

static void end_server(struct keeper *keeper)
{
    double until = prb_clock_s() + ENDS;
    if (keeper->server > 0)
        kill(keeper->server, SIGTERM);
    while (!has_ended(keeper) && prb_clock_s() < until)
        wait_some(keeper, LOOK_MS);
    if (keeper->server > 0) {
        kill(keeper->server, SIGKILL);
        waitpid(keeper->server, NULL, 0);
    }
}

/* ---- its port ---- */

static void forget_ports(const char *folder)
{
    char run[PATH_MAX];
    prb_bus_path(folder, PRB_BUS_RUN, run);
    PRB_AUTO(dir) DIR *dir = opendir(run);
    for (const struct dirent *entry; dir && (entry = readdir(dir));)
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(dir), entry->d_name, 0);
}

/* From {"nats": ["tls://10.0.0.1:4222"]}, which the server writes when it listens; 0: not yet. */
static int port_of(const struct keeper *keeper)
{
    char run[PATH_MAX], path[PATH_MAX], text[4096];
    prb_bus_path(keeper->place->folder, PRB_BUS_RUN, run);
    snprintf(path, sizeof path, "%.*s/nats-server_%d.ports", PATH_MAX - 60, run,
             (int)keeper->server);
    if (prb_read_text(path, text, sizeof text) <= 0)
        return 0;
    json_t *ports = json_loads(text, 0, NULL);
    const char *url = json_string_value(json_array_get(json_object_get(ports, "nats"), 0));
    const char *colon = url ? strrchr(url, ':') : NULL;
    int port = colon ? atoi(colon + 1) : 0;
    json_decref(ports);
    return port;
}

static bool wait_until_it_listens(struct keeper *keeper, int *port_out, struct prb_error *err)
{
    double until = prb_clock_s() + STARTS;
    while (prb_clock_s() < until) {
        if (has_ended(keeper))
            return prb_fail(err, strstr(keeper->cause, "in use") ? PRB_BUSY : PRB_IO,
                            "nats-server ended: %s",
                            keeper->cause[0] ? keeper->cause : "it did not say why");
        if ((*port_out = port_of(keeper)) > 0)
            return true;
        if (!wait_some(keeper, LOOK_MS))
            return prb_fail(err, PRB_TIMEOUT, "asked to end");
    }
    return prb_fail(err, PRB_TIMEOUT, "nats-server does not listen after %.0f s", STARTS);
}

/* ---- what others see of us ---- */

static bool write_state(const struct prb_bus_place *place, struct prb_error *err)
{
    char host[80] = "", boot[64] = "", path[PATH_MAX];
    struct prb_stat own;
    gethostname(host, sizeof host - 1);
    prb_read_text("/proc/sys/kernel/random/boot_id", boot, sizeof boot);
    boot[strcspn(boot, "\n")] = '\0';
    if (!prb_stat_of("/proc/self", &own))
        return prb_fail(err, PRB_INTERNAL, "/proc/self/stat cannot be read");
    json_t *state =
        json_pack("{ss ss si sI si}", "host", host, "boot", boot, "pid", (int)getpid(), "started",
                  (json_int_t)own.field[PRB_STAT_STARTTIME], "port", place->port);
    char *text = state ? json_dumps(state, 0) : NULL;
    prb_bus_path(place->folder, PRB_BUS_STATE, path);
    bool good = text ? prb_bus_write(path, text, err) : prb_nomem(err);
    free(text);
    json_decref(state);
    return good;
}

static void tell(struct keeper *keeper, const struct prb_error *err)
{
    char line[600];
    if (keeper->told < 0)
        return;
    int len = snprintf(line, sizeof line, err ? "%d %s\n" : "ready\n", err ? (int)err->code : 0,
                       err ? err->text : "");
    prb_write_all(keeper->told, line, (size_t)len < sizeof line ? (size_t)len : sizeof line - 1);
    close(keeper->told);
    keeper->told = -1;
}

/* The first run: with the port that it got in the files. */
static bool begin(struct keeper *keeper, struct prb_error *err)
{
    int port = 0;
    forget_ports(keeper->place->folder);
    if (!start(keeper, err) || !wait_until_it_listens(keeper, &port, err))
        return false;
    bool other = keeper->place->port != port;
    keeper->place->port = port;
    return (!other || prb_bus_write_files(keeper->place, err)) && write_state(keeper->place, err);
}

static void keep_running(struct keeper *keeper)
{
    int pause = PAUSE_MS;
    double began = prb_clock_s();
    struct prb_error err = {0};
    while (wait_some(keeper, -1)) {
        if (!has_ended(keeper))
            continue;
        if (prb_clock_s() - began > STEADY)
            pause = PAUSE_MS;
        double until = prb_clock_s() + pause / 1e3;
        for (double left; (left = until - prb_clock_s()) > 0;)
            if (!wait_some(keeper, (int)(left * 1e3) + 1))
                return;
        pause = 2 * pause < PAUSE_MAX ? 2 * pause : PAUSE_MAX;
        began = prb_clock_s();
        forget_ports(keeper->place->folder);
        if (!start(keeper, &err)) /* no memory, perhaps: again after the pause */
            keeper->server = 0;
    }
}

void prb_bus_keep_running(const char *program, struct prb_bus_place *place, int told)
{
    struct keeper keeper = {
        .place = place, .program = program, .told = told, .from = -1, .log = -1};
    struct prb_error err = {0};
    char path[PATH_MAX];
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGCHLD);
    signal(SIGPIPE, SIG_IGN);
    sigprocmask(SIG_BLOCK, &set, NULL);
    keeper.ends = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    open_log(&keeper);
    if (keeper.ends < 0) {
        prb_fail_sys(&err, errno, "taking signals");
        tell(&keeper, &err);
    } else if (!begin(&keeper, &err)) {
        end_server(&keeper);
        tell(&keeper, &err);
    } else {
        tell(&keeper, NULL);
        keep_running(&keeper);
        prb_bus_path(place->folder, PRB_BUS_STATE, path);
        unlink(path);
        end_server(&keeper);
    }
    if (keeper.log >= 0)
        close(keeper.log);
}
