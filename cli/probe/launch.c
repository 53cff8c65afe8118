/* probing launch: start a program with the probe in it from its first moment. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/words.h"
#include "cli/cluster/cluster.h"
#include "cli/print/out.h"
#include "cli/probe/probe.h"
#include "cli/store/start.h"

#define STATUS_NOT_RUN 126 /* as env(1), nohup(1) and timeout(1) have them */
#define STATUS_NOT_FOUND 127

enum { RECURSIVE, DEFINE, CLUSTER };

static const struct prb_option options[] = {
    [RECURSIVE] = {'r', "recursive", NULL, "in the processes that it starts, too", NULL},
    [DEFINE] = {'D', "define", "KEY=VALUE", "a setting of the probe; may be repeated", NULL},
    [CLUSTER] = {0, "cluster", NULL, "with this host's agent beside it, on the bus, until it ends",
                 NULL},
    {0},
};

static bool set_variable(const char *name, const char *value, struct prb_error *err)
{
    return setenv(name, value, 1) == 0 ||
           prb_cli_fail(err, PRB_NOMEM, "", "the environment cannot be made: %s", strerror(errno));
}

/* probing.max_memory=1GB is PROBING_MAX_MEMORY=1GB in the environment. */
static bool define(const struct prb_run *run, const char *setting, struct prb_error *err)
{
    static const char prefix[] = "probing.";
    const char *equals = strchr(setting, '=');
    if (!equals || strncmp(setting, prefix, sizeof prefix - 1) != 0 ||
        equals == setting + sizeof prefix - 1)
        return prb_usage(run, err, "-D %s: must be probing.KEY=VALUE", setting);
    if (!prb_config_check(setting, err))
        return false;
    PRB_AUTO_FREE char *name = strndup(setting, (size_t)(equals - setting));
    if (!name)
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    for (char *at = name; *at; at++)
        *at = *at == '.' ? '_' : *at >= 'a' && *at <= 'z' ? (char)(*at - 'a' + 'A') : *at;
    return set_variable(name, equals + 1, err);
}

static bool preload(struct prb_error *err)
{
    char library[PATH_MAX];
    const char *others = getenv("LD_PRELOAD");
    PRB_AUTO_FREE char *all = NULL;
    if (!prb_inject_library(library, sizeof library, err))
        return false;
    if (strpbrk(library, " :"))
        return prb_cli_fail(err, PRB_UNSUPPORTED, "install Probing elsewhere, or use `inject`",
                            "LD_PRELOAD cannot contain the path %s", library);
    if (asprintf(&all, "%s%s%s", library, others && *others ? ":" : "", others ? others : "") < 0)
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    return set_variable("LD_PRELOAD", all, err);
}

/* NCCL loads a plugin before its first communicator or never; ours does nothing until it is switched on. */
static bool offer_nccl(struct prb_error *err)
{
    char library[PATH_MAX];
    if (getenv("NCCL_PROFILER_PLUGIN") || !prb_inject_library(library, sizeof library, err))
        return true;
    char *name = strrchr(library, '/');
    size_t room = sizeof library - (size_t)(name ? name - library : 0);
    if (!name || snprintf(name, room, "/libprobing-nccl.so") >= (int)room ||
        access(library, R_OK) != 0)
        return true;
    return set_variable("NCCL_PROFILER_PLUGIN", library, err);
}

/* A job is not kept from its work by a bus that is not there. */
static void attach(const struct prb_run *run)
{
    struct prb_error why = {0};
    struct prb_cluster_attached attached;
    const struct prb_cluster_agent_options beside = {
        .bus = run->globals[PRB_GLOBAL_BUS].text, .stop_fd = -1, .beside = getpid()};
    char text[sizeof why.text + 40];
    if (prb_agent_attach(&beside, &attached, &why))
        return;
    snprintf(text, sizeof text, "this host is not on the bus: %s", why.text);
    prb_out_note(text);
}

static bool run_launch(const struct prb_run *run, struct prb_error *err)
{
    PRB_AUTO_FREE char **words = calloc(run->argument_count + 1, sizeof *words);
    if (!words)
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    for (size_t i = 0; i < run->argument_count; i++)
        words[i] = (char *)run->arguments[i];
    for (unsigned i = 0; i < run->options[DEFINE].count; i++)
        if (!define(run, run->options[DEFINE].texts[i], err))
            return false;
    if (run->options[CLUSTER].count)
        attach(run);
    /* As the package's start-up hook does it; the program may have none. */
    if (prb_words_is_on(getenv("PROBING_STORE")))
        prb_start_collector(getpid());
    if (!preload(err) || !offer_nccl(err) ||
        !set_variable("PROBING", run->options[RECURSIVE].count ? "nested" : "followed", err))
        return false;
    execvp(words[0], words);
    *run->status = errno == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_RUN;
    return prb_cli_fail(err, PRB_NOT_FOUND, "", "%s cannot be started: %s", words[0],
                        strerror(errno));
}

const struct prb_command prb_command_launch = {
    .name = "launch",
    .aliases = "",
    .summary = "start a program with the probe in it",
    .arguments = "PROGRAM [ARGUMENT]...",
    .arguments_min = 1,
    .arguments_max = PRB_WORDS_MAX,
    .program = true,
    .target = PRB_USES_NO_TARGET,
    .description =
        "Becomes the program, with the probe loaded by LD_PRELOAD and PROBING set: signals and "
        "the exit status are the program's own. Options after PROGRAM are the program's. When it "
        "cannot be started the status is 127 (not found) or 126.\n\n"
        "--cluster starts this host's agent, as `cluster attach` does, where none runs; it ends "
        "once "
        "the program has, and no rank runs here.",
    .options = options,
    .examples = "probing launch python train.py --lr 0.001\n"
                "probing launch -r torchrun --nproc-per-node 2 train.py  # in every rank\n"
                "probing launch --cluster torchrun --nproc-per-node 2 train.py  # on each host\n",
    .run = run_launch,
};
