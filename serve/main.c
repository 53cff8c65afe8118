/*
 * probing-serve, which `probing serve` becomes: a program of its own, so that the command line links
 * neither libwebsockets nor what that needs.
 */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>

#include "base/cleanup.h"
#include "format/format.h"
#include "serve/command.h"
#include "serve/http.h"
#include "serve/log.h"
#include "serve/text.h"
#include "serve/watch.h"

struct server {
    struct prb_serve serve;
    struct prb_doors doors;
    struct prb_http *http;
};

/* ---- the doorman's thread ---- */

static void give(void *context, int fd, enum prb_first_bytes speaks, const struct prb_peer *peer)
{
    struct server *server = context;
    if (speaks == PRB_FIRST_HTTP)
        prb_http_give(server->http, fd);
    else
        prb_text_begin(&server->serve, fd, peer);
}

static void *doorman(void *context)
{
    struct server *server = context;
    prb_doors_run(&server->doors, server->serve.options->stop_fd, server->serve.log, give, server);
    prb_http_end(server->http);
    return NULL;
}

/* ---- life ---- */

static int report(const struct prb_error *err)
{
    fputs("probing: ", stderr);
    prb_out_text(stderr, err->text);
    if (err->remedy[0]) {
        fputs("\n  ", stderr);
        prb_out_text(stderr, err->remedy);
    }
    fputc('\n', stderr);
    return prb_code_exit(err->code);
}

static void print_address(const struct server *server)
{
    char text[PRB_ADDRESS_TEXT];
    if (server->doors.tcp >= 0) {
        prb_address_print(&server->serve.address, text);
        printf("http://%s/#token=%s\n", text, server->serve.token);
    } else {
        printf("%s\n", server->doors.local_path);
    }
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

static bool run(struct server *server, const char *const *files, struct prb_error *err)
{
    pthread_t thread;
    server->serve.watch = prb_watch_new(err);
    if (!server->serve.watch)
        return false;
    server->http = prb_http_new(&server->serve, files, err);
    if (!server->http) {
        prb_watch_free(server->serve.watch);
        return false;
    }
    bool ok = pthread_create(&thread, NULL, doorman, server) == 0 ||
              prb_fail(err, PRB_NOMEM, "no thread can be made");
    if (ok) {
        print_address(server);
        prb_serve_log(server->serve.log, "started, process %d", (int)getpid());
        prb_http_run(server->http);
        pthread_join(thread, NULL);
        prb_text_end();
        prb_serve_log(server->serve.log, "ended");
    }
    prb_http_free(server->http);
    prb_watch_free(server->serve.watch);
    return ok;
}

static int serve(struct prb_serve_options *options, const char *const *files)
{
    PRB_AUTO_FREE struct server *server = calloc(1, sizeof *server);
    struct prb_error err = {0};
    sigset_t ends;
    if (!server)
        return prb_code_exit(PRB_NOMEM);
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &ends, NULL);
    PRB_AUTO_FD int stop = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
    options->stop_fd = stop;
    server->serve.options = options;
    server->serve.grants = options->grants;
    if (stop < 0) {
        prb_fail_sys(&err, errno, "taking signals");
        return report(&err);
    }
    if (!prb_command_program(server->serve.program, sizeof server->serve.program, &err))
        return report(&err);
    if (!prb_doors_open(&server->serve, &server->doors, &err))
        return already(&err);
    PRB_AUTO(prb_serve_log)
    struct prb_serve_log *log = prb_serve_log_open(server->serve.folder, &err);
    server->serve.log = log;
    bool ok = log && run(server, files, &err);
    prb_doors_close(&server->doors);
    explicit_bzero(server->serve.token, sizeof server->serve.token);
    return ok ? 0 : report(&err);
}

/* ---- the command line: `probing serve` passes its own words on ---- */

static int print_url(void)
{
    char url[400];
    struct prb_error err = {0};
    if (!prb_doors_url(url, sizeof url, &err))
        return report(&err);
    puts(url);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct option known[] = {{"address", required_argument, NULL, 'a'},
                                          {"unix", no_argument, NULL, 'u'},
                                          {"token-file", required_argument, NULL, 't'},
                                          {"allow", required_argument, NULL, 'A'},
                                          {"url", no_argument, NULL, 'U'},
                                          {0}};
    struct prb_serve_options options = {.address = "127.0.0.1:0", .grants = PRB_MAY_LOOK};
    struct prb_error err = {0};
    bool url = false;
    for (int got; (got = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        if (got == 'a')
            options.address = optarg;
        else if (got == 'u')
            options.address = NULL;
        else if (got == 't')
            options.token_file = optarg;
        else if (got == 'U')
            url = true;
        else if (got != 'A')
            return prb_code_exit(PRB_USAGE);
        else if (!prb_grants_parse(optarg, &options.grants, &err))
            return report(&err);
    }
    return url ? print_url() : serve(&options, (const char *const *)argv + optind);
}
