/*
 * A host's agent: it joins the bus, tells of the ranks that run here, and answers for them.  It is
 * the host's collector, too, unless another process is.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/syscalls.h"
#include "collect/thread.h"
#include "fleet/agent/agent.h"
#include "fleet/history/history.h"
#include "fleet/host/starter.h"
#include "fleet/settings.h"

#define FRESH 1.0      /* s: a look serves those who ask so long */
#define ENDED 3600.0   /* s that a rank that ended is remembered */
#define AGAIN 5.0      /* s until a closed connection is opened anew */
#define ASKERS_MAX 256 /* that wait for an answer to find */

/* One subject that is heard. */
struct heard {
    char subject[PRB_BUS_SUBJECT];
    struct prb_bus_subscription *subscription;
    bool wanted;
};

struct agent {
    const struct prb_cluster_agent_options *options;
    struct prb_log_file *log;
    struct prb_agent_work *work;
    struct prb_publisher *publisher; /* NULL: nothing is published */
    struct prb_publisher_options publishes;
    struct prb_agent_crashes *crashes;
    struct prb_agent_crashes_options tells;
    struct prb_agent_metrics *metrics; /* NULL: no file */
    struct prb_agent_metrics_options measures;
    struct prb_bus_file file;
    struct prb_bus *bus;
    struct prb_roster_entry entry; /* this host's */
    char *text;                    /* the same */
    struct heard *heard;
    size_t heard_count, heard_cap;
    unsigned char trusted[PRB_FLEET_EVAL + 1][PRB_NKEY_BYTES];
    double scanned, put, used, opened; /* s, monotonic: the last of each */
    double scan, heartbeat;            /* s between two */
    bool roster;                       /* the server keeps one */
    int ends, *pidfds;                 /* readable when a rank ends: an epoll of these */
    int beside;                        /* pidfd of options->beside, while that runs; -1 */
    bool alone;                        /* that has ended */
    bool served;                       /* a rank runs here */
    size_t pidfd_count, pidfd_cap;
    int wake;
    /* Guarded by lock: what libnats's threads tell. */
    pthread_mutex_t lock;
    char *askers[ASKERS_MAX]; /* where to answer find */
    unsigned asker_count;
    bool back, closed, end;
    struct prb_collecting *collecting;
};

static void say(struct agent *agent, const char *line)
{
    prb_log_file_add(agent->log, "%s", line);
    if (agent->options->say)
        agent->options->say(agent->options->context, line);
}

/* ---- what comes, on threads of libnats ---- */

static void wake(struct agent *agent)
{
    uint64_t one = 1;
    prb_write_all(agent->wake, &one, sizeof one);
}

static void on_event(void *context, enum prb_bus_event event, const char *text)
{
    struct agent *agent = context;
    static const char *const words[] = {"the bus is lost", "the bus is back", "the bus has closed",
                                        "the bus refuses"};
    prb_log_file_add(agent->log, "%s%s%s", words[event], text ? ": " : "", text ? text : "");
    pthread_mutex_lock(&agent->lock);
    agent->back |= event == PRB_BUS_BACK;
    agent->closed |= event == PRB_BUS_CLOSED;
    pthread_mutex_unlock(&agent->lock);
    wake(agent);
}

static void on_find(void *context, const struct prb_bus_message *message)
{
    struct agent *agent = context;
    char *reply = message->reply ? strdup(message->reply) : NULL;
    pthread_mutex_lock(&agent->lock);
    bool taken = reply && agent->asker_count < ASKERS_MAX;
    if (taken)
        agent->askers[agent->asker_count++] = reply;
    pthread_mutex_unlock(&agent->lock);
    if (taken)
        wake(agent);
    else
        free(reply);
}

static void on_end(void *context, const struct prb_bus_message *message)
{
    struct agent *agent = context;
    (void)message;
    pthread_mutex_lock(&agent->lock);
    agent->end = true;
    pthread_mutex_unlock(&agent->lock);
    wake(agent);
}

/* ---- subjects ---- */

static bool hear(struct agent *agent, const char *subject, prb_bus_fn *fn, void *context,
                 struct prb_error *err)
{
    for (size_t i = 0; i < agent->heard_count; i++)
        if (strcmp(agent->heard[i].subject, subject) == 0)
            return agent->heard[i].wanted = true;
    if (!PRB_GROW(agent->heard, agent->heard_count, agent->heard_cap))
        return prb_nomem(err);
    struct heard *one = &agent->heard[agent->heard_count];
    *one = (struct heard){.wanted = true};
    snprintf(one->subject, sizeof one->subject, "%s", subject);
    one->subscription = prb_bus_subscribe(agent->bus, subject, fn, context, err);
    agent->heard_count += one->subscription != NULL;
    return one->subscription != NULL;
}

static bool hear_class(struct agent *agent, const char *job, const char *class, prb_bus_fn *fn,
                       struct prb_error *err)
{
    char subject[PRB_BUS_SUBJECT];
    snprintf(subject, sizeof subject, PRB_BUS_ALL, job, class);
    if (!hear(agent, subject, fn, agent->work, err))
        return false;
    snprintf(subject, sizeof subject, PRB_BUS_SHARD, job, class, prb_bus_shard(agent->entry.key));
    if (!hear(agent, subject, fn, agent->work, err))
        return false;
    snprintf(subject, sizeof subject, PRB_BUS_HOST, job, class, agent->entry.key);
    return hear(agent, subject, fn, agent->work, err);
}

static bool hear_job(struct agent *agent, const char *name, struct prb_error *err)
{
    char job[PRB_BUS_TOKEN], subject[PRB_BUS_SUBJECT];
    prb_bus_token(name, job);
    snprintf(subject, sizeof subject, PRB_BUS_CANCEL, job);
    /* Also what is not allowed: who asks for it is told so. */
    return hear_class(agent, job, "look", prb_agent_work_look, err) &&
           hear_class(agent, job, "control", prb_agent_work_control, err) &&
           hear_class(agent, job, "eval", prb_agent_work_eval, err) &&
           hear(agent, subject, prb_agent_work_cancel, agent->work, err);
}

static bool hear_rank(struct agent *agent, const struct prb_fleet_member *member,
                      struct prb_error *err)
{
    char job[PRB_BUS_TOKEN], subject[PRB_BUS_SUBJECT];
    prb_bus_token(member->job, job);
    snprintf(subject, sizeof subject, PRB_BUS_RANK, job, "look", member->rank);
    return hear(agent, subject, prb_agent_work_look, agent->work, err);
}

static void forget_heard(struct agent *agent)
{
    for (size_t i = 0; i < agent->heard_count; i++)
        prb_bus_unsubscribe(agent->heard[i].subscription);
    agent->heard_count = 0;
}

/* What concerns the jobs and ranks that are here, and nothing else. */
static bool hear_all(struct agent *agent, struct prb_error *err)
{
    const struct prb_fleet_members *members = &agent->entry.members;
    for (size_t i = 0; i < agent->heard_count; i++)
        agent->heard[i].wanted = false;
    bool good = hear(agent, "probing.v1.find", on_find, agent, err) &&
                hear(agent, "probing.v1.end", on_end, agent, err);
    for (size_t i = 0; good && i < members->count; i++)
        good = (i && strcmp(members->items[i].job, members->items[i - 1].job) == 0
                    ? true
                    : hear_job(agent, members->items[i].job, err)) &&
               hear_rank(agent, &members->items[i], err);
    for (size_t i = 0; i < agent->heard_count;) {
        if (agent->heard[i].wanted) {
            i++;
            continue;
        }
        prb_bus_unsubscribe(agent->heard[i].subscription);
        agent->heard[i] = agent->heard[--agent->heard_count];
    }
    return good;
}

/* ---- ranks ---- */

/* Those of other users are none of ours, unless that was wanted. */
static void keep_own(struct agent *agent)
{
    struct prb_fleet_members *members = &agent->entry.members;
    size_t kept = 0;
    for (size_t i = 0; i < members->count; i++)
        if (agent->options->all_users || members->items[i].uid == geteuid())
            members->items[kept++] = members->items[i];
    members->count = kept < PRB_ROSTER_MEMBERS ? kept : PRB_ROSTER_MEMBERS;
}

static bool same_members(const struct prb_fleet_members *a, const struct prb_fleet_members *b)
{
    bool same = a->count == b->count;
    for (size_t i = 0; same && i < a->count; i++)
        same = a->items[i].rank == b->items[i].rank && a->items[i].pid == b->items[i].pid &&
               (a->items[i].ended > 0) == (b->items[i].ended > 0) &&
               a->items[i].attempt == b->items[i].attempt &&
               strcmp(a->items[i].job, b->items[i].job) == 0 &&
               strcmp(a->items[i].refused, b->items[i].refused) == 0;
    return same;
}

static bool put(struct agent *agent)
{
    struct prb_error err = {0};
    agent->put = prb_clock_s();
    if (!agent->bus || !agent->roster || !agent->text)
        return false;
    if (prb_roster_put(agent->bus, agent->entry.key, agent->text, &err))
        return true;
    prb_log_file_add(agent->log, "the roster: %s", err.text);
    return false;
}

/* Ranks of before that are no more, until another process is that rank. */
static void keep_ended(struct prb_fleet_members *now, const struct prb_fleet_members *before)
{
    size_t live = now->count;
    double time = prb_clock_epoch_s();
    for (size_t i = 0; i < before->count && now->count < PRB_ROSTER_MEMBERS; i++) {
        const struct prb_fleet_member *one = &before->items[i];
        bool again = one->ended > 0 && one->ended < time - ENDED;
        for (size_t k = 0; k < live && !again; k++)
            again = now->items[k].rank == one->rank && now->items[k].uid == one->uid &&
                    strcmp(now->items[k].job, one->job) == 0;
        if (again || !PRB_GROW(now->items, now->count, now->cap))
            continue;
        now->items[now->count] = *one;
        now->items[now->count].refused[0] = '\0';
        if (one->ended <= 0)
            now->items[now->count].ended = time;
        now->count++;
    }
    prb_fleet_members_settle(now);
}

/* What is known of this host, as text. */
static void renew_text(struct agent *agent)
{
    agent->entry.clock = prb_clock_epoch_s();
    char *text = prb_roster_pack(&agent->entry, NULL);
    if (text) {
        free(agent->text);
        agent->text = text;
    }
}

static void forget_ends(struct agent *agent)
{
    while (agent->pidfd_count)
        close(agent->pidfds[--agent->pidfd_count]);
}

/* Where that is not possible, the next scan sees it. */
static void watch_ends(struct agent *agent)
{
    const struct prb_fleet_members *members = &agent->entry.members;
    forget_ends(agent);
    for (size_t i = 0; i < members->count; i++) {
        if (members->items[i].ended > 0 ||
            !PRB_GROW(agent->pidfds, agent->pidfd_count, agent->pidfd_cap))
            continue;
        int fd = (int)syscall(SYS_pidfd_open, members->items[i].pid, 0);
        struct epoll_event event = {.events = EPOLLIN};
        if (fd < 0)
            continue;
        epoll_ctl(agent->ends, EPOLL_CTL_ADD, fd, &event);
        agent->pidfds[agent->pidfd_count++] = fd;
    }
}

static void scan(struct agent *agent)
{
    struct prb_error err = {0};
    struct prb_fleet_members before = agent->entry.members;
    agent->entry.members = (struct prb_fleet_members){0};
    if (!prb_fleet_members_find(agent->options->all_users, &agent->entry.members, &err)) {
        prb_log_file_add(agent->log, "looking for ranks: %s", err.text);
        prb_fleet_members_deinit(&agent->entry.members);
        agent->entry.members = before;
        before = (struct prb_fleet_members){0};
    }
    keep_own(agent);
    agent->scanned = prb_clock_s();
    agent->served = agent->entry.members.count > 0;
    if (agent->served)
        agent->used = agent->scanned;
    keep_ended(&agent->entry.members, &before);
    bool same = before.items && same_members(&before, &agent->entry.members);
    renew_text(agent);
    prb_fleet_members_deinit(&before);
    if (same)
        return;
    watch_ends(agent);
    prb_agent_work_ranks(agent->work, &agent->entry.members);
    prb_agent_crashes_ranks(agent->crashes, &agent->entry.members);
    prb_agent_metrics_ranks(agent->metrics);
    if (agent->bus && !hear_all(agent, &err))
        prb_log_file_add(agent->log, "hearing the bus: %s", err.text);
    put(agent);
}

static void answer_find(struct agent *agent)
{
    char *askers[ASKERS_MAX];
    pthread_mutex_lock(&agent->lock);
    unsigned count = agent->asker_count;
    memcpy(askers, agent->askers, count * sizeof *askers);
    agent->asker_count = 0;
    pthread_mutex_unlock(&agent->lock);
    /* A rank that ended may have begun again since. */
    bool ended = false;
    for (size_t i = 0; i < agent->entry.members.count; i++)
        ended = ended || agent->entry.members.items[i].ended > 0;
    if (count && prb_clock_s() > agent->scanned + (ended ? FRESH / 10 : FRESH))
        scan(agent);
    if (count)
        renew_text(agent); /* with the time */
    for (unsigned i = 0; i < count; i++) {
        const struct prb_bus_message message = {.subject = askers[i],
                                                .data = agent->text,
                                                .len = agent->text ? strlen(agent->text) : 0};
        if (agent->bus && agent->text)
            prb_bus_publish(agent->bus, &message, NULL);
        free(askers[i]);
    }
}

/* ---- the connection ---- */

static void close_bus(struct agent *agent)
{
    if (agent->work)
        prb_agent_work_use(agent->work, NULL);
    prb_publisher_use(agent->publisher, NULL);
    prb_agent_crashes_use(agent->crashes, NULL);
    forget_heard(agent);
    prb_bus_close(agent->bus);
    agent->bus = NULL;
    prb_bus_file_deinit(&agent->file);
}

static bool open_file(struct agent *agent, struct prb_error *err)
{
    bool found;
    if (!prb_bus_file_find(agent->options->bus, PRB_BUS_agent, &agent->file, &found, err))
        return false;
    if (found)
        return true;
    prb_fail(err, PRB_NOT_FOUND, "no bus is configured");
    return prb_error_remedy(err, "`probing cluster up` on one host makes one, and prints how to "
                                 "join; or --bus FILE, PROBING_BUS");
}

static bool open_bus(struct agent *agent, struct prb_error *err)
{
    char name[120];
    snprintf(name, sizeof name, "probing agent %s", agent->entry.host);
    const struct prb_bus_options options = {.name = name,
                                            .insecure = agent->options->insecure,
                                            .keep = true,
                                            .hosts = 1000,
                                            .event = on_event,
                                            .context = agent};
    agent->opened = prb_clock_s();
    agent->bus = prb_bus_open(&agent->file, &options, err);
    if (!agent->bus)
        return false;
    struct prb_error why = {0};
    agent->roster = prb_roster_begin(agent->bus, &why);
    if (!agent->roster)
        prb_log_file_add(agent->log, "no roster: %s", why.text);
    return true;
}

static bool begin_bus(struct agent *agent, struct prb_error *err)
{
    if (!open_bus(agent, err))
        return false;
    prb_agent_work_use(agent->work, agent->bus);
    prb_publisher_use(agent->publisher, agent->bus);
    prb_agent_crashes_use(agent->crashes, agent->bus);
    return hear_all(agent, err) && prb_bus_flush(agent->bus, 5, err) &&
           (prb_bus_check(agent->bus, err) ||
            prb_error_remedy(err, "is this the bus file for agents?"));
}

/* Keys and address may be new: the file is read again. */
static void open_again(struct agent *agent)
{
    struct prb_error err = {0};
    if (agent->bus || prb_clock_s() < agent->opened + AGAIN)
        return;
    agent->opened = prb_clock_s();
    if (!open_file(agent, &err) || !begin_bus(agent, &err)) {
        prb_log_file_add(agent->log, "the bus: %s", err.text);
        close_bus(agent);
        return;
    }
    put(agent);
}

/* ---- the collector ---- */

static void collector_says(void *context, const char *line)
{
    struct agent *agent = context;
    prb_log_file_add(agent->log, "collector: %s", line);
}

/* ---- life ---- */

/* What it runs beside has ended. */
static void begin_alone(struct agent *agent)
{
    if (agent->beside >= 0)
        close(agent->beside);
    agent->beside = -1;
    agent->alone = true;
    agent->scanned = 0;
}

static void watch_beside(struct agent *agent)
{
    agent->beside = -1;
    if (!agent->options->beside)
        return;
    agent->beside = (int)syscall(SYS_pidfd_open, agent->options->beside, 0);
    if (agent->beside < 0 && errno == ESRCH)
        begin_alone(agent);
}

static bool wait_some(struct agent *agent)
{
    double now = prb_clock_s(), next = agent->scanned + agent->scan;
    if (agent->put + agent->heartbeat < next)
        next = agent->put + agent->heartbeat;
    if (!agent->bus && agent->opened + AGAIN < next)
        next = agent->opened + AGAIN;
    struct pollfd fds[] = {{.fd = agent->options->stop_fd, .events = POLLIN},
                           {.fd = agent->wake, .events = POLLIN},
                           {.fd = agent->ends, .events = POLLIN},
                           {.fd = agent->beside, .events = POLLIN}};
    uint64_t count;
    int ready = poll(fds, 4, next > now ? (int)((next - now) * 1e3) + 1 : 0);
    if (ready > 0 && fds[2].revents) {
        forget_ends(agent); /* until the ranks are others: a zombie may be listed for long */
        agent->scanned = 0;
    }
    if (ready > 0 && fds[3].revents)
        begin_alone(agent);
    if (ready > 0 && fds[1].revents && read(agent->wake, &count, sizeof count) < 0)
        return true;
    return ready <= 0 || !fds[0].revents;
}

static bool turn(struct agent *agent)
{
    pthread_mutex_lock(&agent->lock);
    bool back = agent->back, closed = agent->closed, end = agent->end;
    agent->back = agent->closed = false;
    pthread_mutex_unlock(&agent->lock);
    if (end) {
        say(agent, "the bus is to end, and so does this host's agent");
        return false;
    }
    if (closed)
        close_bus(agent);
    open_again(agent);
    answer_find(agent);
    double now = prb_clock_s();
    if (now >= agent->scanned + agent->scan)
        scan(agent);
    /* A server that came back may have an empty store. */
    if (back && agent->bus)
        agent->roster = prb_roster_begin(agent->bus, NULL);
    if (back || now >= agent->put + agent->heartbeat) {
        renew_text(agent);
        put(agent);
    }
    if (agent->alone && !agent->served) {
        say(agent, "what this host's agent was started with has ended, and so does it");
        return false;
    }
    double linger =
        agent->options->linger > 0 ? agent->options->linger : prb_fleet_setting(PRB_FLEET_linger);
    if (now < agent->used + linger)
        return true;
    say(agent, "no rank has run here for long: this host's agent ends");
    return false;
}

static void publisher_says(void *context, const char *line)
{
    struct agent *agent = context;
    prb_log_file_add(agent->log, "history: %s", line);
}

static bool begin_publisher(struct agent *agent, struct prb_error *err)
{
    const struct prb_cluster_agent_options *options = agent->options;
    const char *tables =
        options->history ? options->history : getenv("PROBING_CLUSTER_HISTORY_TABLES");
    if (!tables || !*tables || strcmp(tables, "none") == 0)
        return true;
    agent->publishes = (struct prb_publisher_options){
        .tables = tables,
        .host = agent->entry.host,
        .key = agent->entry.key,
        .all_users = options->all_users,
        .every = options->history_every > 0 ? options->history_every
                                            : prb_fleet_setting(PRB_FLEET_history_every),
        .say = publisher_says,
        .context = agent,
    };
    return (agent->publisher = prb_publisher_new(&agent->publishes, err)) != NULL;
}

static bool begin_metrics(struct agent *agent, struct prb_error *err)
{
    const char *file =
        agent->options->metrics ? agent->options->metrics : getenv("PROBING_CLUSTER_METRICS");
    if (!file || !*file)
        return true;
    agent->measures = (struct prb_agent_metrics_options){
        .log = agent->log,
        .file = file,
        .host = agent->entry.host,
        .all_users = agent->options->all_users,
        .every = prb_fleet_setting(PRB_FLEET_metrics_every),
    };
    return (agent->metrics = prb_agent_metrics_new(&agent->measures, err)) != NULL;
}

static bool begin(struct agent *agent, struct prb_error *err)
{
    struct prb_agent_work_options options = {.all_users = agent->options->all_users};
    agent->scan = prb_fleet_setting(PRB_FLEET_scan);
    agent->heartbeat = prb_fleet_setting(PRB_FLEET_heartbeat);
    if (!prb_fleet_settings_check(err) || !prb_roster_own(&agent->entry, err) ||
        !open_file(agent, err) || !(agent->log = prb_agent_log_open(agent->entry.host, err)))
        return false;
    options.log = agent->log;
    options.program = agent->options->program;
    options.key = agent->entry.key;
    options.host = agent->entry.host;
    options.allowed[PRB_FLEET_CONTROL] = agent->options->allow_control;
    options.allowed[PRB_FLEET_EVAL] = agent->options->allow_eval;
    for (int i = PRB_FLEET_CONTROL; i <= PRB_FLEET_EVAL; i++) {
        enum prb_bus_class class = i == PRB_FLEET_EVAL ? PRB_BUS_eval : PRB_BUS_control;
        if (!options.allowed[i])
            continue;
        if (!agent->file.trusts[class]) {
            prb_fail(err, PRB_USAGE, "the bus file does not say whose %s this host obeys",
                     prb_bus_class_name(class));
            return prb_error_remedy(err, "\"trusts\": {\"%s\": \"U...\"}, the public key",
                                    prb_bus_class_name(class));
        }
        memcpy(agent->trusted[i], agent->file.trusted[class], PRB_NKEY_BYTES);
        options.trusted[i] = agent->trusted[i];
    }
    agent->work = prb_agent_work_new(&options, err);
    agent->tells = (struct prb_agent_crashes_options){.log = agent->log,
                                                      .host = agent->entry.host,
                                                      .key = agent->entry.key,
                                                      .all_users = agent->options->all_users};
    if (!agent->work || !(agent->crashes = prb_agent_crashes_new(&agent->tells, err)))
        return false;
    scan(agent);
    if (!begin_publisher(agent, err) || !begin_metrics(agent, err) || !begin_bus(agent, err))
        return false;
    put(agent);
    return prb_bus_flush(agent->bus, 5, err);
}

static void end(struct agent *agent)
{
    if (agent->bus && agent->roster)
        prb_roster_put(agent->bus, agent->entry.key, NULL, NULL);
    close_bus(agent);
    prb_publisher_free(agent->publisher);
    prb_agent_crashes_free(agent->crashes);
    prb_agent_metrics_free(agent->metrics);
    prb_agent_work_free(agent->work);
    for (unsigned i = 0; i < agent->asker_count; i++)
        free(agent->askers[i]);
    prb_roster_entry_deinit(&agent->entry);
    free(agent->text);
    free(agent->heard);
    if (agent->wake >= 0)
        close(agent->wake);
    if (agent->beside >= 0)
        close(agent->beside);
    forget_ends(agent);
    free(agent->pidfds);
    if (agent->ends >= 0)
        close(agent->ends);
    pthread_mutex_destroy(&agent->lock);
    prb_log_file_close(agent->log);
}

bool prb_cluster_agent(const struct prb_cluster_agent_options *options, struct prb_error *err)
{
    PRB_AUTO_FREE struct agent *agent = calloc(1, sizeof *agent);
    if (!agent)
        return prb_nomem(err);
    agent->options = options;
    agent->used = prb_clock_s();
    pthread_mutex_init(&agent->lock, NULL);
    agent->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    agent->ends = epoll_create1(EPOLL_CLOEXEC);
    watch_beside(agent);
    bool good = agent->wake >= 0
                    ? (options->starter ? prb_fleet_starter_begin_as(options->starter, err)
                                        : prb_fleet_starter_begin(err)) &&
                          begin(agent, err)
                    : prb_fail_sys(err, errno, "an eventfd");
    if (good) {
        prb_log_file_add(agent->log, "started, process %d, key %s, allows look%s%s", (int)getpid(),
                         agent->entry.key, options->allow_control ? ",control" : "",
                         options->allow_eval ? ",eval" : "");
        struct prb_error why = {0};
        if (!options->no_collector)
            agent->collecting = prb_collecting_begin(collector_says, agent, &why);
        if (why.code)
            collector_says(agent, why.text);
        if (options->ready)
            options->ready(options->context);
        while (turn(agent) && wait_some(agent))
            ;
        prb_collecting_end(agent->collecting);
        prb_log_file_add(agent->log, "ended");
    }
    end(agent);
    prb_fleet_starter_end();
    return good;
}
