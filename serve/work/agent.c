/* The server as this host's agent: agent.h. */
#include "serve/work/agent.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "format/log_file.h"

#define AS_LONG_AS_THE_SERVER 1e9 /* s */

struct prb_serve_agent {
    const struct prb_serve *serve;
    pthread_mutex_t lock; /* of what follows */
    struct prb_cluster_agent_options options;
    json_t *wanted;                    /* has the texts of options */
    struct prb_cluster_within *within; /* NULL: it is not the agent */
};

struct prb_serve_agent *prb_serve_agent_new(const struct prb_serve *serve, struct prb_error *err)
{
    struct prb_serve_agent *agent = calloc(1, sizeof *agent);
    if (!agent)
        return PRB_NULL(prb_nomem(err));
    agent->serve = serve;
    pthread_mutex_init(&agent->lock, NULL);
    return agent;
}

static void says(void *context, const char *line)
{
    const struct prb_serve_agent *agent = context;
    prb_log_file_add(agent->serve->log, "agent: %s", line);
}

/* With the lock. */
static bool end(struct prb_serve_agent *agent)
{
    bool was = agent->within && !prb_cluster_within_is_over(agent->within);
    prb_cluster_within_end(agent->within);
    agent->within = NULL;
    json_decref(agent->wanted);
    agent->wanted = NULL;
    return was;
}

/* With the lock.  Takes wanted. */
static bool begin(struct prb_serve_agent *agent, const struct prb_cluster_agent_options *options,
                  json_t *wanted, struct prb_cluster_attached *out, struct prb_error *err)
{
    if (!agent->within || prb_cluster_within_is_over(agent->within)) {
        end(agent);
        agent->wanted = wanted;
        agent->options = *options;
        agent->options.program = agent->serve->program;
        agent->options.say = says;
        agent->options.context = agent;
        return prb_cluster_within_begin(&agent->options, &agent->within, out, err);
    }
    json_decref(wanted);
    *out = (struct prb_cluster_attached){.pid = (int)getpid(), .already = true};
    return true;
}

bool prb_serve_agent_begin(struct prb_serve_agent *agent, struct prb_cluster_attached *out,
                           struct prb_error *err)
{
    const struct prb_cluster_agent_options options = {
        .allow_control = agent->serve->grants & PRB_MAY_CONTROL,
        .allow_eval = agent->serve->grants & PRB_MAY_EVAL,
        .linger = AS_LONG_AS_THE_SERVER,
    };
    pthread_mutex_lock(&agent->lock);
    bool good = begin(agent, &options, NULL, out, err);
    pthread_mutex_unlock(&agent->lock);
    return good;
}

static bool take(const json_t *wanted, struct prb_cluster_agent_options *out, struct prb_error *err)
{
    const char *allow = "", *all_users = NULL, *insecure = NULL, *every = NULL, *linger = NULL,
               *beside = NULL;
    unsigned grants = PRB_MAY_LOOK;
    json_error_t why;
    if (json_unpack_ex((json_t *)wanted, &why, JSON_STRICT,
                       "{s?s, s?s, s?s, s?s, s?s, s?s, s?s, s?s, s?s}", "bus", &out->bus, "allow",
                       &allow, "all_users", &all_users, "insecure", &insecure, "history",
                       &out->history, "every", &every, "metrics", &out->metrics, "linger", &linger,
                       "beside", &beside) != 0)
        return prb_fail(err, PRB_USAGE, "an agent as it is wanted: %s", why.text);
    if (*allow && !prb_grants_parse(allow, &grants, err))
        return false;
    out->allow_control = grants & PRB_MAY_CONTROL;
    out->allow_eval = grants & PRB_MAY_EVAL;
    out->all_users = all_users;
    out->insecure = insecure;
    out->history_every = every ? strtod(every, NULL) : 0;
    out->linger = linger ? strtod(linger, NULL) : 0;
    out->beside = beside ? (int)strtol(beside, NULL, 10) : 0;
    return true;
}

bool prb_serve_agent_attach(struct prb_serve_agent *agent, const json_t *wanted,
                            struct prb_cluster_attached *out, struct prb_error *err)
{
    static const char *const starter[] = {"/proc/self/exe", "--starter", NULL};
    json_t *kept = json_deep_copy(wanted);
    struct prb_cluster_agent_options options = {.starter = starter};
    if (!kept)
        return prb_nomem(err);
    if (!take(kept, &options, err)) {
        json_decref(kept);
        return false;
    }
    pthread_mutex_lock(&agent->lock);
    bool good = begin(agent, &options, kept, out, err);
    pthread_mutex_unlock(&agent->lock);
    return good;
}

bool prb_serve_agent_end(struct prb_serve_agent *agent)
{
    pthread_mutex_lock(&agent->lock);
    bool was = end(agent);
    pthread_mutex_unlock(&agent->lock);
    return was;
}

void prb_serve_agent_free(struct prb_serve_agent *agent)
{
    if (!agent)
        return;
    prb_serve_agent_end(agent);
    pthread_mutex_destroy(&agent->lock);
    free(agent);
}
