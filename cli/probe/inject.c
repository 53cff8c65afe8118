/* probing inject: load the probe into a live process, or give the one that is there settings. */
#include <string.h>

#include "cli/fleet/act.h"
#include "cli/options.h"
#include "cli/print/out.h"
#include "cli/probe/evaluate.h"
#include "cli/serve/program.h"

#define HOLD_SECONDS 3600

enum { PPROF, CRASH, HOLD, LISTEN, BACKGROUND, ADDRESS, DEFINE, DLL, METHOD, FORCE, WAIT };

static const struct prb_option options[] = {
    [PPROF] = {'P', "pprof", NULL, "sample its stacks from now on: `profile` without -d", NULL},
    [CRASH] = {'c', "crash", NULL, "write a dump when it crashes", NULL},
    [HOLD] = {0, "hold", "[SECONDS]", "-c: keep it for a debugger after its dump (3600)", NULL},
    [LISTEN] = {'l', "listen", "ADDR", "start a server for it there, HOST:PORT, that ends with it",
                NULL},
    [BACKGROUND] = {'b', "background", NULL, "start one on loopback, on a free port", NULL},
    [ADDRESS] = {'a', "address", "ADDR", "the same as --listen", NULL},
    [DEFINE] = {'D', "define", "KEY=VALUE", "a setting of the probe; may be repeated", NULL},
    [DLL] = {0, "dll", "PATH", "load this library instead of the probe", NULL},
    [METHOD] = {0, "method", "METHOD",
                "auto (the default), thread (a parked thread makes one that loads), remote-exec "
                "(CPython's own interface, 3.14 on)",
                "auto thread remote-exec"},
    [FORCE] = {0, "force", NULL, "even if the target is not Python, or no stack seems safe", NULL},
    [WAIT] = {0, "wait", "SECONDS", "wait so long for a safe thread (2)", NULL},
    {0},
};

/* The dump is written by this program, where the target's root has it at the same place. */
static bool crash_settings(const struct prb_run *run, FILE *to, struct prb_error *err)
{
    const struct prb_option_value *hold = &run->options[HOLD];
    char program[512];
    double seconds = HOLD_SECONDS;
    if (!to || (!run->options[CRASH].count && !hold->count))
        return true;
    if (hold->count && !run->options[CRASH].count)
        return prb_usage(run, err, "--hold goes with -c");
    if (!prb_run_number(run, HOLD, PRB_SECONDS_LEAST, PRB_SECONDS_MOST, &seconds, err))
        return false;
    ssize_t len = readlink("/proc/self/exe", program, sizeof program);
    if (len > 0 && (size_t)len < sizeof program && !memchr(program, '\n', (size_t)len))
        fprintf(to, "probing.crash_program=%.*s\n", (int)len, program);
    if (hold->count)
        fprintf(to, "probing.crash_hold=%g\n", seconds);
    fputs("probing.crash=on\n", to);
    return true;
}

/* "key=value" lines, what the user defined last; "" when there is none. */
static char *settings_text(const struct prb_run *run, struct prb_error *err)
{
    PRB_AUTO_FREE char *text = NULL;
    size_t size = 0;
    bool ok = true;
    FILE *to = open_memstream(&text, &size);
    if (to && run->options[PPROF].count)
        fputs("probing.pprof=on\n", to);
    ok = crash_settings(run, to, err);
    for (unsigned i = 0; to && ok && i < run->options[DEFINE].count; i++) {
        const char *one = run->options[DEFINE].texts[i], *equals = strchr(one, '=');
        ok = (equals && equals != one && !strchr(one, '\n')) ||
             prb_usage(run, err, "-D %s: must be KEY=VALUE", one);
        ok = ok && prb_config_check(one, err);
        fprintf(to, "%s\n", one);
    }
    if (!to || fclose(to) != 0) {
        prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
        return NULL;
    }
    return ok ? PRB_STEAL(text) : NULL;
}

/* A probe that was there before gets the settings by its socket. */
static bool set_all(pid_t pid, char *settings, struct prb_error *err)
{
    char *state = NULL;
    PRB_AUTO(prb_control) struct prb_control *control = prb_control_open(pid, err);
    if (!control)
        return false;
    for (char *key = strtok_r(settings, "\n", &state); key; key = strtok_r(NULL, "\n", &state)) {
        char *equals = strchr(key, '=');
        *equals = '\0';
        if (!prb_control_config_set(control, key, equals + 1, err))
            return false;
    }
    return true;
}

static enum prb_inject_method method_of(const char *word)
{
    if (!word || strcmp(word, "auto") == 0)
        return PRB_INJECT_AUTO;
    return strcmp(word, "thread") == 0 ? PRB_INJECT_THREAD : PRB_INJECT_REMOTE_EXEC;
}

/* What needs a process of this host, and is not asked of ranks elsewhere. */
static bool is_here(const struct prb_run *run)
{
    return run->options[LISTEN].count || run->options[ADDRESS].count ||
           run->options[BACKGROUND].count || run->options[DLL].count;
}

static bool of_job(const struct prb_run *run, const struct prb_inject_options *wanted,
                   struct prb_error *err)
{
    struct prb_job_act act = {
        .kind = "inject",
        .question = "Load the probe",
        .args = json_pack("{s:s*, s:i, s:b, s:f}", "settings", wanted->settings, "method",
                          (int)wanted->method, "force", wanted->force, "wait", wanted->wait),
    };
    return prb_job_act(run, &act, err);
}

static bool run_inject(const struct prb_run *run, struct prb_error *err)
{
    PRB_AUTO_FREE char *settings = settings_text(run, err);
    const char *path;
    char text[160];
    pid_t pid;
    struct prb_inject_options wanted = {
        .method = method_of(run->options[METHOD].text),
        .library = run->options[DLL].text,
        .settings = settings,
        .force = run->options[FORCE].count,
    };
    struct prb_inject_report report = {0};
    if (!settings ||
        !prb_run_number(run, WAIT, PRB_SECONDS_LEAST, PRB_SECONDS_MOST, &wanted.wait, err))
        return false;
    if (prb_run_job(run) && !is_here(run))
        return of_job(run, &wanted, err);
    if (!prb_run_process(run, &pid, &path, err))
        return false;
    if (path)
        return prb_usage(run, err, "%s is the socket of a probe, which is loaded already", path);
    if (wanted.library && *settings)
        return prb_usage(run, err, "settings are the probe's, and --dll loads something else");
    if (!*settings)
        wanted.settings = NULL;
    if (!prb_inject(pid, &wanted, &report, err))
        return false;
    if (report.already && *settings && !set_all(pid, settings, err))
        return false;
    prb_report_text(&report, text, sizeof text);
    puts(text);
    const struct prb_option_value *const given[] = {run->options + LISTEN, run->options + ADDRESS};
    const char *address = given[0]->count                  ? given[0]->text
                          : given[1]->count                ? given[1]->text
                          : run->options[BACKGROUND].count ? "127.0.0.1:0"
                                                           : NULL;
    return !address || prb_serve_target(pid, address, err);
}

const struct prb_command prb_command_inject = {
    .name = "inject",
    .aliases = "in i",
    .summary = "load the probe into a live process",
    .arguments = "",
    .target = PRB_USES_TARGET,
    .description =
        "Loads the probe, a small library, into a running process. One thread that waits in the "
        "kernel is sent through a few instructions that make a new thread, for about a tenth of a "
        "millisecond; the new thread loads the library. No other thread is stopped and no code of "
        "the target is overwritten. Everything that speaks against it is found before the target "
        "is touched, and refused with the reason and what to do.\n\n"
        "Commands that need the probe load it by themselves. A second time it does nothing, but "
        "-D gives the probe that is there its settings. Reading (backtrace, query) needs no "
        "probe.\n\n"
        "With -t @JOB it is loaded into all ranks of the job, where agents run with `attach "
        "--allow control`. -l, -b and --dll need a process of this host.\n\n"
        "With -l a server for it is started beside it, as `probing serve` is one for all of your "
        "processes; it listens on this machine's side of a container.",
    .options = options,
    .examples = "probing 12345 inject\n"
                "probing 12345 inject -D probing.max_memory=1GB\n"
                "probing -t @llama inject -D probing.crash=on\n"
                "probing 12345 inject -l 127.0.0.1:3344\n"
                "probing 12345 inject -c -D probing.crash_dir=/shared/crashes\n",
    .run = run_inject,
};
