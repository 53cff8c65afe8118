/* probing demo: what Probing does, shown on a small job of its own. */
#include "cli/demo/demo.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "cli/ends.h"
#include "cli/print/out.h"

#define DUMP_LINES 24
#define SAY(text) printf("\n%s\n", text)

static bool look(const struct prb_demo *demo, const char *pid, struct prb_error *err)
{
    static const char sql[] =
        "SELECT thread_name, func, lineno FROM python.backtrace WHERE depth = 0";
    return prb_demo_show(demo, 0, (const char *const[]){pid, "backtrace", NULL}, err) &&
           prb_demo_show(demo, 0, (const char *const[]){pid, "query", sql, NULL}, err);
}

static bool profile(const struct prb_demo *demo, const char *pid, struct prb_error *err)
{
    SAY("Where its time goes: sampled from outside for a second.");
    return prb_demo_show(demo, 0, (const char *const[]){pid, "top", "--count", "1", NULL}, err);
}

static bool debug(const struct prb_demo *demo, const char *pid, struct prb_error *err)
{
    (void)pid;
    SAY("A debugger attaches, as VS Code does by `probing dap`; then it leaves, and the job goes "
        "on.");
    return prb_demo_debug(demo, err);
}

static bool evaluate(const struct prb_demo *demo, const char *pid, struct prb_error *err)
{
    SAY("Code runs inside.");
    return prb_demo_show(
        demo, 0,
        (const char *const[]){pid, "eval", "round(model.slope, 1), round(model.offset, 1)", NULL},
        err);
}

/* A signal that its own code raises ends the job; the probe writes the dump before. */
static bool crash(struct prb_demo *demo, const char *pid, struct prb_error *err)
{
    int status = 0;
    SAY("From here on a crash leaves a dump. This one is made: SIGSEGV in native code.");
    if (!prb_demo_show(demo, 0, (const char *const[]){pid, "inject", "--crash", NULL}, err) ||
        !prb_demo_show(demo, 0, (const char *const[]){pid, "eval", "model.broken = True", NULL},
                       err) ||
        !prb_demo_await_end(demo, demo->job, "the job that crashes", &status, err))
        return false;
    demo->job = 0;
    if (!WIFSIGNALED(status))
        return prb_cli_fail(err, PRB_INTERNAL, "", "the job did not crash: status %d", status);
    printf("the job ended by signal %d (%s)\n", WTERMSIG(status), strsignal(WTERMSIG(status)));
    return prb_demo_show(demo, DUMP_LINES, (const char *const[]){"crash", "show", NULL}, err);
}

static bool show_all(struct prb_demo *demo, struct prb_error *err)
{
    char pid[16];
    if (!prb_demo_start_job(demo, err))
        return false;
    snprintf(pid, sizeof pid, "%d", (int)demo->job);
    printf("A small job runs: process %s, ", pid);
    prb_out_text(stdout, demo->python);
    fputs(" train.py. Nothing was prepared in it.\n", stdout);
    return look(demo, pid, err) && profile(demo, pid, err) && debug(demo, pid, err) &&
           evaluate(demo, pid, err) && crash(demo, pid, err);
}

/* The signal that ends the demo early ends it as it would have; 0: none came. */
static int signal_that_came(const struct prb_demo *demo)
{
    struct signalfd_siginfo info;
    return read(demo->ends, &info, sizeof info) == sizeof info ? (int)info.ssi_signo : 0;
}

static bool run_demo(const struct prb_run *run, struct prb_error *err)
{
    struct prb_demo demo = {.lines = -1, .deadline = prb_clock_s() + PRB_DEMO_SECONDS};
    (void)run;
    PRB_AUTO_FD int ends = prb_take_ends();
    if (ends < 0)
        return prb_cli_fail(err, PRB_IO, "", "signals: %s", strerror(errno));
    demo.ends = ends;
    bool shown = prb_demo_begin(&demo, err) && show_all(&demo, err);
    prb_demo_end(&demo);
    int came = shown ? 0 : signal_that_came(&demo);
    if (came) {
        sigset_t all;
        sigfillset(&all);
        signal(came, SIG_DFL); /* a shell's background job begins with SIGINT ignored */
        raise(came);
        sigprocmask(SIG_UNBLOCK, &all, NULL);
    }
    if (shown)
        SAY("The job and its files are gone. Yours: `probing list` names its process, `probing "
            "help` the commands.");
    return shown;
}

const struct prb_command prb_command_demo = {
    .name = "demo",
    .aliases = "",
    .summary = "what Probing does, shown on a small job of its own",
    .arguments = "",
    .target = PRB_USES_NO_TARGET,
    .description =
        "Starts a small Python program and shows what the commands say of it: stacks, SQL, where "
        "its time goes, a breakpoint, code that runs inside, and the dump that a crash leaves. "
        "Nothing but Python 3.6 or later is needed, and nothing stays: no process and no file. "
        "The status is 0 when all of it worked.\n\n"
        "The Python is that of PROBING_PYTHON, else python3 on PATH.",
    .examples = "probing demo\n",
    .run = run_demo,
};
