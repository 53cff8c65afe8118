/* Which hosts there are, and what ranks they have: from themselves, else from the roster. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "fleet/ask/nats.h"
#include "fleet/settings.h"

#define FIND 2.0       /* s that hosts have to tell of themselves */
#define FIND_MOST 10.0 /* s, as long as others tell */
#define QUIET                                                                                      \
    0.15 /* s: nobody else is waited for after such a pause, where nobody is known to lack */

struct finding {
    struct prb_nats *nats;
    struct prb_bus_inbox *inbox;
    bool answered, roster; /* the roster: it answered; there is one */
    bool nobody, told;     /* no agent is there; one has told of itself */
    double began, last;    /* s, monotonic: the question; when a host told of itself */
    double slowest;        /* s that an answer to the question took */
    double server;         /* s since the epoch by the server; 0: not known */
};

static bool list_host(void *context, const char *key)
{
    struct finding *finding = context;
    struct prb_nats_host *host = prb_nats_add_host(finding->nats, key);
    if (host)
        host->listed = true;
    return host != NULL;
}

static void take_entry(struct finding *finding, const struct prb_bus_message *message, bool alive)
{
    PRB_AUTO(prb_roster_entry) struct prb_roster_entry entry;
    if (!prb_roster_parse(message->data, message->len, &entry, NULL))
        return;
    struct prb_nats_host *host = prb_nats_add_host(finding->nats, entry.key);
    if (!host || host->told)
        return;
    prb_roster_entry_deinit(&host->entry);
    host->entry = entry;
    entry = (struct prb_roster_entry){0};
    host->told = alive;
    host->quiet = host->quiet && !alive;
    host->listed = true;
    if (host->entry.members.count)
        prb_bus_token(host->entry.members.items[0].job, host->job);
    if (!alive) {
        double taken = prb_roster_taken(message);
        host->ago = taken > 0 && finding->server > taken ? finding->server - taken : 0;
        host->absent = host->absent || host->ago > prb_fleet_setting(PRB_FLEET_stale);
        return;
    }
    finding->told = true;
    finding->last = prb_clock_s();
    /* Told some time between the question and now. */
    host->clock_error = (finding->last - finding->began) / 2;
    host->clock = host->entry.clock - (prb_clock_epoch_s() - host->clock_error);
}

static void hear(struct prb_nats_host *host)
{
    host->heard = prb_clock_s();
    host->quiet = false;
}

static void take_found(struct finding *finding, const struct prb_bus_message *message)
{
    unsigned tag = prb_bus_inbox_tag(finding->inbox, message->subject);
    unsigned number = tag & ~PRB_NATS_KIND;
    struct prb_nats *nats = finding->nats;
    struct prb_nats_host *host = number < nats->count ? nats->hosts[number] : NULL;
    switch (tag & PRB_NATS_KIND) {
    case PRB_NATS_ALL:
        finding->slowest = prb_clock_s() - finding->began;
        finding->nobody = finding->nobody || message->nobody;
        if (!message->nobody)
            take_entry(finding, message, true);
        break;
    case PRB_NATS_ROSTER:
        finding->slowest = prb_clock_s() - finding->began;
        finding->answered = true;
        finding->roster =
            !message->nobody && prb_roster_hosts(message, list_host, finding, &finding->server);
        break;
    case PRB_NATS_ENTRY:
        /* Empty, or a status without a body: it has left. */
        if (!message->nobody && message->len)
            take_entry(finding, message, false);
        if (host && !host->job[0] && !host->told)
            host->absent = true;
        break;
    case PRB_NATS_DOUBT:
        if (message->nobody && host)
            host->absent = true;
        else if (host)
            hear(host);
        break;
    }
}

/* Where others are slow, so may one be that has not told yet. */
static double patience(const struct finding *finding, double least)
{
    return least > 3 * finding->slowest ? least : 3 * finding->slowest;
}

/*
 * Who gives no sign of life is asked all the same, as it may only be slow: its answer counts where
 * it comes while others work on theirs, but here and there it is waited for only once, and no longer
 * than least behind the last of the others: that is what it costs.
 */
static bool is_quiet(const struct finding *finding, struct prb_nats_host *host, double now)
{
    double least = host->was_quiet ? PRB_NATS_QUIET_AGAIN : PRB_NATS_QUIET;
    double wait = patience(finding, least);
    if (wait > finding->slowest + least)
        wait = finding->slowest + least;
    host->quiet = host->heard <= 0 && host->began > 0 && now > finding->began + wait;
    return host->quiet;
}

/* Whether a host told, or the roster says, that the job runs that is asked for; any, where none is named. */
static bool is_found(const struct prb_nats *nats)
{
    const char *job = nats->base.job;
    for (size_t i = 0; i < nats->count; i++)
        for (size_t k = 0; k < nats->hosts[i]->entry.members.count; k++)
            if (!job || strcmp(nats->hosts[i]->entry.members.items[k].job, job) == 0)
                return true;
    return false;
}

/* Whom the roster has, and who does not tell of itself: its entry, then whether it is there. */
static bool doubt_silent(struct finding *finding, size_t *waits_out, struct prb_error *err)
{
    struct prb_nats *nats = finding->nats;
    double now = prb_clock_s();
    /* A machine that is slow gets no flood of questions beside. */
    double pause = PRB_NATS_SLICE > finding->slowest ? PRB_NATS_SLICE : finding->slowest;
    pause = pause < PRB_NATS_QUIET / 2 ? pause : PRB_NATS_QUIET / 2;
    bool found = is_found(nats);
    *waits_out = 0;
    for (size_t i = 0; i < nats->count; i++) {
        struct prb_nats_host *host = nats->hosts[i];
        if (host->told || host->absent || !host->listed)
            continue;
        /* The job that nobody has told of may be this one's. */
        *waits_out += !is_quiet(finding, host, now) || !found;
        if (now < finding->last + pause || now < host->doubt)
            continue;
        if (host->job[0]) {
            host->began = host->began > 0 ? host->began : now;
            if (!prb_nats_doubt(nats, finding->inbox, host, err))
                return false;
        } else if (host->doubt == 0) {
            host->doubt = now + PRB_NATS_DOUBT_AGAIN;
            if (!prb_roster_ask_entry(nats->bus, finding->inbox, PRB_NATS_ENTRY | host->number,
                                      host->key, err))
                return false;
        }
        /* As soon as its entry is here. */
        host->doubt = host->job[0] ? host->doubt : now + PRB_NATS_SLICE;
    }
    return true;
}

/* Whether all ranks of the own job that is asked for run, by what hosts told; not known of a job that is not named. */
static bool is_whole(const struct prb_nats *nats)
{
    PRB_AUTO(prb_rank_set) struct prb_rank_set ranks = {0};
    const char *job = nats->base.job;
    int world = 0;
    for (size_t i = 0; job && i < nats->count; i++)
        for (size_t k = 0; k < nats->hosts[i]->entry.members.count && nats->hosts[i]->told; k++) {
            const struct prb_fleet_member *one = &nats->hosts[i]->entry.members.items[k];
            if (strcmp(one->job, job) != 0 || one->uid != geteuid() || one->ended > 0)
                continue;
            world = one->world_size > world ? one->world_size : world;
            if (one->rank < 0 || !prb_rank_set_add(&ranks, one->rank, one->rank))
                return false;
        }
    return world > 0 && prb_rank_set_size(&ranks) >= (unsigned)world;
}

/* Whether all have told, by what is known without a roster: an agent hears the question. */
static bool is_over(const struct finding *finding, double now)
{
    double least = finding->nats->base.job ? PRB_NATS_QUIET : QUIET;
    return finding->nobody || is_whole(finding->nats) ||
           (finding->told && now > finding->last + patience(finding, least));
}

static bool has_time(const struct finding *finding, double now)
{
    double most = finding->nats->base.patience;
    return now < finding->began + FIND ||
           (now < finding->began + most && !finding->nobody && !is_found(finding->nats)) ||
           (finding->told && now < finding->last + patience(finding, QUIET) &&
            now < finding->began + FIND_MOST);
}

static bool find_all(struct finding *finding, struct prb_error *err)
{
    struct prb_nats *nats = finding->nats;
    double now;
    size_t waits = 0;
    struct prb_bus_message message;
    finding->began = finding->last = prb_clock_s();
    if (!prb_nats_publish(nats, finding->inbox, PRB_NATS_ALL, "probing.v1.find", "{\"v\":1}",
                          err) ||
        !prb_roster_ask_hosts(nats->bus, finding->inbox, PRB_NATS_ROSTER, err))
        return false;
    while (has_time(finding, now = prb_clock_s())) {
        struct prb_error why = {0};
        if (prb_bus_inbox_next(finding->inbox, PRB_NATS_SLICE / 2, &message, &why)) {
            take_found(finding, &message);
            prb_bus_message_free(&message);
            if (prb_clock_s() < now + PRB_NATS_SLICE / 4)
                continue;
        } else if (why.code != PRB_TIMEOUT) {
            *err = why;
            return false;
        }
        if (!prb_bus_check(nats->bus, err) || !prb_nats_goes_on(&nats->base, err) ||
            !doubt_silent(finding, &waits, err))
            return false;
        if (finding->answered && !waits && (finding->roster || is_over(finding, now)))
            break;
    }
    return true;
}

/* The first of a job among members that are settled; count: there is none. */
static size_t first_of(const struct prb_fleet_members *members, size_t count,
                       const struct prb_fleet_member *of)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const struct prb_fleet_member *one = &members->items[middle];
        int order = strcmp(one->job, of->job);
        if (order < 0 || (order == 0 && one->uid < of->uid))
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < count && strcmp(members->items[low].job, of->job) == 0 &&
                 members->items[low].uid == of->uid;
    return found ? low : count;
}

/*
 * Whether what the roster remembers of a rank still counts, beside what hosts tell now (the first
 * live of out): not where another host has it, nor beyond the size that the job has now.
 */
static bool is_remembered(const struct prb_fleet_members *out, size_t live,
                          struct prb_fleet_member *one)
{
    size_t first = first_of(out, live, one);
    int world = -1;
    for (size_t i = first;
         i < live && strcmp(out->items[i].job, one->job) == 0 && out->items[i].uid == one->uid;
         i++) {
        if (out->items[i].rank == one->rank)
            return false;
        world = out->items[i].world_size > world ? out->items[i].world_size : world;
    }
    if (first < live)
        one->attempt = out->items[first].attempt;
    return world <= 0 || one->rank < world;
}

/* What hosts told; of those that the server has lost, or that do not answer, what the roster had. */
static bool collect(struct prb_nats *nats, const char *job, struct prb_fleet_members *out,
                    struct prb_error *err)
{
    size_t live = 0;
    out->count = out->stale = 0;
    if (!prb_nats_name_hosts(nats, err))
        return false;
    for (int told = 1; told >= 0; told--) {
        for (size_t i = 0; i < nats->count; i++) {
            struct prb_nats_host *host = nats->hosts[i];
            for (size_t k = 0; k < host->entry.members.count && host->told == (bool)told; k++) {
                struct prb_fleet_member *one = &host->entry.members.items[k];
                if ((job && strcmp(one->job, job) != 0) ||
                    (!told && !is_remembered(out, live, one)))
                    continue;
                if (!PRB_GROW(out->items, out->count, out->cap))
                    return prb_nomem(err);
                snprintf(one->host, sizeof one->host, "%s", host->name);
                one->ago = told ? 0 : host->ago;
                out->items[out->count] = *one;
                if (one->ended > 0)
                    out->items[out->count].ended -= host->clock;
                out->count++;
            }
        }
        prb_fleet_members_settle(out);
        live = out->count;
    }
    return true;
}

/* Hosts that are of another release than this program. */
static void note_releases(struct prb_nats *nats)
{
    const struct prb_nats_host *first = NULL;
    size_t others = 0;
    nats->base.note[0] = '\0';
    for (size_t i = 0; i < nats->count; i++) {
        const struct prb_nats_host *host = nats->hosts[i];
        if (!host->told || strcmp(host->entry.release, prb_version()) == 0)
            continue;
        if (!first || strcmp(host->name, first->name) < 0)
            first = host;
        others++;
    }
    if (first)
        snprintf(nats->base.note, sizeof nats->base.note,
                 "%zu host%s of another release than this %s: %s has %s", others,
                 others == 1 ? " is" : "s are", prb_version(), first->name, first->entry.release);
}

/* Who is there and did not tell: a job that was not found may be there all the same. */
static void count_unheard(const struct finding *finding)
{
    struct prb_nats *nats = finding->nats;
    nats->base.unheard = 0;
    for (size_t i = 0; i < nats->count; i++)
        nats->base.unheard +=
            nats->hosts[i]->listed && !nats->hosts[i]->told && !nats->hosts[i]->absent;
    nats->base.unheard_all = !finding->told && !finding->nobody;
    nats->base.waited = prb_clock_s() - finding->began;
}

bool prb_nats_find(struct prb_fleet_transport *transport, const char *job,
                   struct prb_fleet_members *out, struct prb_error *err)
{
    struct prb_nats *nats = (struct prb_nats *)transport;
    PRB_AUTO(prb_bus_inbox) struct prb_bus_inbox *inbox = prb_bus_inbox_new(nats->bus, err);
    struct finding finding = {.nats = nats, .inbox = inbox};
    if (!inbox)
        return false;
    prb_nats_forget_hosts(nats);
    if (!find_all(&finding, err) || !collect(nats, job, out, err))
        return false;
    count_unheard(&finding);
    note_releases(nats);
    return true;
}
