/*
 * probing-serve, which `probing serve` becomes: a program of its own, so that the command line links
 * neither libwebsockets nor what that needs.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/signalfd.h>

#include "base/cleanup.h"
#include "collect/thread.h"
#include "format/format.h"
#include "format/log_file.h"
#include "serve/command_line.h"
#include "serve/doors/access.h"
#include "serve/doors/life.h"
#include "serve/doors/tokens.h"
#include "serve/http/http.h"
#include "serve/live/runs.h"
#include "serve/live/watch.h"
#include "serve/mcp/mcp.h"
#include "serve/text/command.h"
#include "serve/text/text.h"
#include "serve/work/agent.h"
#include "serve/work/debuggers.h"

#define DESCRIPTORS 8192

struct server {
    struct prb_serve serve;
    struct prb_doors doors;
    struct prb_http *http;
};

/* ---- the doorman's thread ---- */

static void give(void *context, struct prb_guest *guest, enum prb_first_bytes speaks)
{
    struct server *server = context;
    if (speaks == PRB_FIRST_TEXT)
        prb_text_begin(&server->serve, guest);
    else
        prb_http_give(server->http, guest, speaks == PRB_FIRST_TLS);
}

static void *doorman(void *context)
{
    struct server *server = context;
    prb_doors_run(&server->serve, &server->doors, give, server);
    prb_http_end(server->http);
    return NULL;
}

/* ---- life ---- */

static void print_lines(const char *text, const char *before)
{
    for (; *text; text += strspn(text, "\n")) {
        char line[sizeof((struct prb_error *)NULL)->text];
        size_t len = strcspn(text, "\n");
        snprintf(line, sizeof line, "%.*s", (int)len, text);
        fputs(before, stderr);
        prb_out_text(stderr, line);
        fputc('\n', stderr);
        before = "  ";
        text += len;
    }
}

static int report(const struct prb_error *err)
{
    print_lines(err->text, "probing: ");
    print_lines(err->remedy, "  ");
    return prb_code_exit(err->code);
}

static void print_address(const struct server *server)
{
    char text[PRB_ADDRESS_TEXT];
    bool token = *server->serve.token != '\0';
    if (server->doors.tcp >= 0) {
        prb_address_print(&server->serve.address, text);
        printf("%s://%s/%s%s\n", server->serve.certificate ? "https" : "http", text,
               token ? "#token=" : "", server->serve.token);
    } else {
        printf("%s\n", server->doors.local_path);
    }
    if (server->serve.options->target) /* who started it may have to let it look */
        printf("process %d\n", (int)getpid());
    fflush(stdout);
}

/* The server of this user that runs already is as good. */
static int already(const struct prb_error *err)
{
    if (err->code != PRB_BUSY || !err->remedy[0])
        return report(err);
    fprintf(stderr, "probing: note: %s\n", err->text);
    puts(err->remedy);
    return 0;
}

static void collector_says(void *log, const char *line)
{
    prb_log_file_add(log, "collector: %s", line);
}

static bool run(struct server *server, const char *const *files, struct prb_error *err)
{
    pthread_t thread;
    server->serve.watch = prb_watch_new(&server->serve, err);
    server->serve.runs = server->serve.watch ? prb_runs_new(err) : NULL;
    if (!server->serve.runs) {
        prb_watch_free(server->serve.watch);
        return false;
    }
    server->http = prb_http_new(&server->serve, files, err);
    if (!server->http) {
        prb_runs_free(server->serve.runs);
        prb_watch_free(server->serve.watch);
        return false;
    }
    bool ok = pthread_create(&thread, NULL, doorman, server) == 0 ||
              prb_fail(err, PRB_NOMEM, "no thread can be made");
    if (ok) {
        print_address(server);
        if (prb_access_is_open(&server->serve))
            fputs("probing: note: who can listen in on the way reads what is asked and answered: "
                  "--cert and --key encrypt it\n",
                  stderr);
        prb_log_file_add(server->serve.log, "started, process %d", (int)getpid());
        struct prb_error why = {0};
        struct prb_collecting *collecting =
            prb_collecting_begin(collector_says, server->serve.log, &why);
        if (why.code)
            prb_log_file_add(server->serve.log, "no collector: %s", why.text);
        prb_http_run(server->http);
        pthread_join(thread, NULL);
        prb_collecting_end(collecting);
        prb_text_end();
        prb_debuggers_end();
        prb_log_file_add(server->serve.log, "ended");
    }
    prb_http_free(server->http);
    prb_runs_free(server->serve.runs);
    prb_watch_free(server->serve.watch);
    return ok;
}

/* Many clients and processes have many descriptors. */
static void take_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < DESCRIPTORS) {
        limit.rlim_cur = limit.rlim_max < DESCRIPTORS ? limit.rlim_max : DESCRIPTORS;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static void end_itself(void) { kill(getpid(), SIGTERM); }

/* Of a server for some processes, or beside one that shows its page. */
static bool begin_life(struct server *server, struct prb_error *err)
{
    const struct prb_serve_options *options = server->serve.options;
    int pid = options->target ? options->target : options->while_pid;
    if (!pid)
        return true;
    const char *linger = getenv("PROBING_SERVE_LINGER");
    double seconds = linger && *linger ? strtod(linger, NULL) : PRB_LIFE_LINGER;
    server->serve.life =
        prb_life_new(options->stop_fd, options->target,
                     seconds >= 0 && seconds < 1e6 ? seconds : PRB_LIFE_LINGER, end_itself, err);
    return server->serve.life && prb_life_add(server->serve.life, pid, err);
}

/* What is allowed holds for those who ask over the bus, too, where keys are trusted for it. */
static bool begin_agent(struct server *server, struct prb_error *err)
{
    const struct prb_serve_options *options = server->serve.options;
    struct prb_cluster_attached attached;
    if (options->target)
        return true;
    server->serve.agent = prb_serve_agent_new(&server->serve, err);
    if (!server->serve.agent || !options->agent)
        return server->serve.agent;
    if (!prb_serve_agent_begin(server->serve.agent, &attached, err))
        return false;
    if (attached.already)
        fprintf(stderr, "probing: note: process %d is this host's agent, and stays it\n",
                attached.pid);
    return true;
}

/* Ranks have the same address: one of them listens there, and the others are served by it. */
static bool joined(const struct prb_serve_options *options)
{
    char url[400];
    int pid = 0;
    struct prb_error err = {0};
    if (!options->target || !options->address ||
        !prb_join(options->address, options->target, url, sizeof url, &pid, &err))
        return false;
    printf("%s\nprocess %d\n", url, pid);
    explicit_bzero(url, sizeof url);
    return true;
}

/* Before anything listens: a wrong file is told at once. */
static bool take_certificate(struct server *server, struct prb_error *err)
{
    const struct prb_serve_options *options = server->serve.options;
    if (!options->certificate)
        return !options->key || prb_fail(err, PRB_USAGE, "--key needs --cert");
    if (!options->address)
        return prb_fail(err, PRB_USAGE, "--cert is for TCP, and there is none");
    server->serve.certificate = prb_certificate_load(options->certificate, options->key, err);
    if (!server->serve.certificate)
        return false;
    const char *untimely = prb_certificate_untimely(server->serve.certificate);
    if (untimely && !options->target) /* its first line is its address */
        fprintf(stderr, "probing: note: %s\n", untimely);
    return true;
}

static int serve(struct prb_serve_options *options, const char *const *files)
{
    PRB_AUTO_FREE struct server *server = calloc(1, sizeof *server);
    struct prb_error err = {0};
    sigset_t ends;
    if (!server)
        return prb_code_exit(PRB_NOMEM);
    signal(SIGPIPE, SIG_IGN);
    take_descriptors();
    server->serve.options = options;
    /* Either may wait for a pipe, which Ctrl-C ends. */
    if (!take_certificate(server, &err) || !prb_doors_token(&server->serve, &err))
        return report(&err);
    PRB_AUTO(prb_certificate) struct prb_certificate *certificate = server->serve.certificate;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &ends, NULL);
    PRB_AUTO_FD int stop = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
    options->stop_fd = stop;
    server->serve.grants = options->grants;
    if (stop < 0) {
        prb_fail_sys(&err, errno, "taking signals");
        return report(&err);
    }
    if (!prb_command_program(server->serve.program, sizeof server->serve.program, &err))
        return report(&err);
    PRB_AUTO_FD int turn = options->target ? prb_doors_turn() : -1;
    if (joined(options))
        return 0;
    if (!prb_doors_open(&server->serve, &server->doors, &err))
        return already(&err);
    if (turn >= 0)
        flock(turn, LOCK_UN);
    PRB_AUTO(prb_log_file)
    struct prb_log_file *log = prb_log_file_open(server->serve.folder, "serve.log", &err);
    server->serve.log = log;
    server->serve.tokens = prb_tokens_new();
    server->serve.guests = prb_guests_new();
    bool made = (server->serve.tokens && server->serve.guests) || prb_nomem(&err);
    /* The agent first, as threads begin with the life. */
    bool lives = !log || (begin_agent(server, &err) && begin_life(server, &err));
    bool ok = log && made && lives && run(server, files, &err);
    if (!ok && server->serve.life)
        end_itself(); /* its thread waits for that */
    prb_serve_agent_free(server->serve.agent);
    prb_life_free(server->serve.life);
    prb_tokens_free(server->serve.tokens);
    prb_guests_free(server->serve.guests);
    prb_doors_close(&server->doors);
    explicit_bzero(server->serve.token, sizeof server->serve.token);
    return ok ? 0 : report(&err);
}

/* ---- what else it is started for ---- */

static void print_line(const char *url) { puts(url); }

static int print_url(const char *allow)
{
    char url[400];
    struct prb_error err = {0};
    if (allow ? !prb_second_url(allow, url, sizeof url, &err)
              : !prb_doors_url(url, sizeof url, &err))
        return !allow && err.code == PRB_NOT_FOUND && prb_doors_own_urls(print_line) ? 0
                                                                                     : report(&err);
    puts(url);
    explicit_bzero(url, sizeof url);
    return 0;
}

static int end_second(void)
{
    struct prb_error err = {0};
    int count = 0;
    if (!prb_second_revoke(&count, &err))
        return report(&err);
    printf("%d second token%s ended\n", count, count == 1 ? "" : "s");
    return 0;
}

/* "PID" or "PID already"; of the end "1" or "0". */
static int change_agent(const char *wanted)
{
    struct prb_error err = {0};
    int pid = 0;
    bool already = false;
    if (wanted ? !prb_server_attach(wanted, &pid, &already, &err)
               : !prb_server_detach(&already, &err))
        return report(&err);
    if (wanted)
        printf("%d%s\n", pid, already ? " already" : "");
    else
        printf("%d\n", already);
    return 0;
}

static int ask(struct prb_elsewhere *elsewhere)
{
    struct prb_error err = {0};
    signal(SIGPIPE, SIG_DFL);
    return prb_elsewhere(elsewhere, &err) ? 0 : report(&err);
}

int main(int argc, char **argv)
{
    struct prb_serve_words words;
    struct prb_error err = {0};
    if (!prb_serve_words_take(argc, argv, &words, &err))
        return report(&err);
    return words.elsewhere.where ? ask(&words.elsewhere)
           : words.mcp    ? prb_mcp_stdio(words.serve.grants, words.unasked, words.elsewhere.words)
           : words.revoke ? end_second()
           : words.attach || words.detach ? change_agent(words.attach)
           : words.url                    ? print_url(words.allow)
                                          : serve(&words.serve, words.elsewhere.words);
}
