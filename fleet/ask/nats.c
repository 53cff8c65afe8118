/*
 * The transport of many hosts: agents on a bus (transport.h).
 *
 * A host that the server has lost costs no time: whoever does not answer is asked again on the
 * subject that only its agent hears, and the server says at once that nobody does.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "fleet/ask/transport.h"
#include "fleet/bus/go.h"
#include "fleet/bus/roster.h"
#include "fleet/cluster.h"

#define SHARDS PRB_BUS_SHARDS
#define IN_FLIGHT ((size_t)16 << 20) /* bytes that may be on their way to us */
#define UNKNOWN ((size_t)64 << 10)   /* bytes of an answer, before there is any */
#define ONE_BY_ONE 16                /* hosts: so many are asked each for itself */
#define AFTER_BUDGET 0.2             /* s */
#define DOUBT 0.15                   /* s without an answer: is its agent there at all? */
#define DOUBT_AGAIN 0.5
#define SLICE 0.05 /* s: between two looks at what else may have happened */
#define FIND 2.0   /* s that hosts have to tell of themselves */
#define QUIET 0.15 /* s: without a roster, nobody else is waited for after such a pause */
#define READY 2.0  /* s that agents have to get ready to act */
/* Which message an answer answers: its kind, and the number of a host. */
#define TAG_ALL 0x00000000u
#define TAG_ROSTER 0x10000000u
#define TAG_ENTRY 0x20000000u
#define TAG_HOST 0x30000000u
#define TAG_DOUBT 0x40000000u
#define TAG_KIND 0xf0000000u

struct host {
    unsigned number; /* in nats.hosts */
    char key[PRB_ROSTER_KEY];
    char name[80];             /* unique among hosts */
    char job[PRB_BUS_TOKEN];   /* one of its jobs, as a part of subjects; "": none */
    bool told, listed, absent; /* of itself; in the roster; the server has lost it */
    struct prb_roster_entry entry;
    double clock, clock_error; /* s: its clock less ours */
    /* of the question that runs: */
    bool asked, done;
    double began, doubt; /* s, monotonic: since when; when it is asked whether it is there */
    struct prb_bus_parts parts;
    char nonce[PRB_GO_NONCE];
};

struct nats {
    struct prb_fleet_transport base; /* first */
    char *named;                     /* the bus, or NULL */
    struct prb_bus_file file;
    struct prb_bus *bus;
    enum prb_bus_class class;      /* of file and bus */
    struct host **hosts, **sorted; /* by number, by key */
    size_t count, cap, sorted_cap;
};

/* ---- hosts ---- */

/* Where the key is, or belongs. */
static size_t place_of(const struct nats *nats, const char *key)
{
    size_t low = 0, high = nats->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (strcmp(nats->sorted[middle]->key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct host *host_of(const struct nats *nats, const char *key)
{
    size_t at = key ? place_of(nats, key) : nats->count;
    return at < nats->count && strcmp(nats->sorted[at]->key, key) == 0 ? nats->sorted[at] : NULL;
}

/* NULL: out of memory. */
static struct host *add_host(struct nats *nats, const char *key)
{
    struct host *host = host_of(nats, key);
    if (host)
        return host;
    if (!PRB_GROW(nats->hosts, nats->count, nats->cap) ||
        !PRB_GROW(nats->sorted, nats->count, nats->sorted_cap) || !(host = calloc(1, sizeof *host)))
        return NULL;
    size_t at = place_of(nats, key);
    memmove(nats->sorted + at + 1, nats->sorted + at, (nats->count - at) * sizeof *nats->sorted);
    host->number = (unsigned)nats->count;
    snprintf(host->key, sizeof host->key, "%s", key);
    nats->sorted[at] = nats->hosts[nats->count++] = host;
    return host;
}

static void forget_hosts(struct nats *nats)
{
    for (size_t i = 0; i < nats->count; i++) {
        prb_roster_entry_deinit(&nats->hosts[i]->entry);
        prb_bus_parts_deinit(&nats->hosts[i]->parts);
        free(nats->hosts[i]);
    }
    nats->count = 0;
}

static int by_name(const void *a, const void *b)
{
    const struct host *const *x = a, *const *y = b;
    int order = strcmp((*x)->entry.host, (*y)->entry.host);
    return order ? order : strcmp((*x)->key, (*y)->key);
}

/* node1, node1#2: two agents whose node has one name. */
static bool name_hosts(struct nats *nats, struct prb_error *err)
{
    PRB_AUTO_FREE struct host **all = calloc(nats->count + 1, sizeof(struct host *));
    unsigned same = 1;
    if (!all)
        return prb_nomem(err);
    memcpy(all, nats->hosts, nats->count * sizeof *all);
    qsort(all, nats->count, sizeof *all, by_name);
    for (size_t i = 0; i < nats->count; i++) {
        same = i && strcmp(all[i]->entry.host, all[i - 1]->entry.host) == 0 ? same + 1 : 1;
        if (same == 1)
            snprintf(all[i]->name, sizeof all[i]->name, "%s", all[i]->entry.host);
        else
            snprintf(all[i]->name, sizeof all[i]->name, "%.66s#%u", all[i]->entry.host, same);
    }
    return true;
}

static bool goes_on(const struct prb_fleet_transport *base, struct prb_error *err)
{
    return !base->go_on || base->go_on(base->context) ||
           prb_fail(err, PRB_TIMEOUT, "ended before all hosts answered");
}

static bool publish(struct nats *nats, struct prb_bus_inbox *inbox, unsigned tag,
                    const char *subject, const char *text, struct prb_error *err)
{
    char reply[PRB_BUS_SUBJECT];
    prb_bus_inbox_subject(inbox, tag, reply);
    const struct prb_bus_message message = {
        .subject = subject, .reply = reply, .data = text, .len = strlen(text)};
    return prb_bus_publish(nats->bus, &message, err);
}

/* Nobody hears what only this host's agent hears? */
static bool doubt(struct nats *nats, struct prb_bus_inbox *inbox, struct host *host,
                  struct prb_error *err)
{
    char subject[PRB_BUS_SUBJECT];
    host->doubt = prb_clock_s() + DOUBT_AGAIN;
    snprintf(subject, sizeof subject, PRB_BUS_HOST, host->job, "look", host->key);
    return publish(nats, inbox, TAG_DOUBT | host->number, subject, "", err);
}

/* ---- find ---- */

struct finding {
    struct nats *nats;
    struct prb_bus_inbox *inbox;
    bool answered, roster, nobody; /* the roster: it answered; there is one; no agent is there */
    double began, last;            /* s, monotonic: the question; when a host told of itself */
};

static bool list_host(void *context, const char *key)
{
    struct finding *finding = context;
    struct host *host = add_host(finding->nats, key);
    if (host)
        host->listed = true;
    return host != NULL;
}

static double real_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void take_entry(struct finding *finding, const struct prb_bus_message *message, bool alive)
{
    PRB_AUTO(prb_roster_entry) struct prb_roster_entry entry;
    if (!prb_roster_parse(message->data, message->len, &entry, NULL))
        return;
    struct host *host = add_host(finding->nats, entry.key);
    if (!host || host->told)
        return;
    prb_roster_entry_deinit(&host->entry);
    host->entry = entry;
    entry = (struct prb_roster_entry){0};
    host->told = alive;
    host->listed = true;
    if (host->entry.members.count)
        prb_bus_token(host->entry.members.items[0].job, host->job);
    if (!alive)
        return;
    finding->last = prb_clock_s();
    /* Told some time between the question and now. */
    host->clock_error = (finding->last - finding->began) / 2;
    host->clock = host->entry.clock - (real_time() - host->clock_error);
}

static void take_found(struct finding *finding, const struct prb_bus_message *message)
{
    unsigned tag = prb_bus_inbox_tag(finding->inbox, message->subject);
    unsigned number = tag & ~TAG_KIND;
    struct nats *nats = finding->nats;
    struct host *host = number < nats->count ? nats->hosts[number] : NULL;
    switch (tag & TAG_KIND) {
    case TAG_ALL:
        finding->nobody = finding->nobody || message->nobody;
        if (!message->nobody)
            take_entry(finding, message, true);
        break;
    case TAG_ROSTER:
        finding->answered = true;
        finding->roster = !message->nobody && prb_roster_hosts(message, list_host, finding);
        break;
    case TAG_ENTRY:
        /* Empty, or a status without a body: it has left. */
        if (!message->nobody && message->len)
            take_entry(finding, message, false);
        if (host && !host->job[0] && !host->told)
            host->absent = true;
        break;
    case TAG_DOUBT:
        if (message->nobody && host)
            host->absent = true;
        break;
    }
}

/* Whom the roster has, and who does not tell of itself: its entry, then whether it is there. */
static bool doubt_silent(struct finding *finding, size_t *waits_out, struct prb_error *err)
{
    struct nats *nats = finding->nats;
    double now = prb_clock_s();
    *waits_out = 0;
    for (size_t i = 0; i < nats->count; i++) {
        struct host *host = nats->hosts[i];
        if (host->told || host->absent || !host->listed)
            continue;
        ++*waits_out;
        if (now < finding->last + SLICE || now < host->doubt)
            continue;
        if (host->job[0]) {
            if (!doubt(nats, finding->inbox, host, err))
                return false;
        } else if (host->doubt == 0) {
            host->doubt = now + DOUBT_AGAIN;
            if (!prb_roster_ask_entry(nats->bus, finding->inbox, TAG_ENTRY | host->number,
                                      host->key, err))
                return false;
        }
        /* As soon as its entry is here. */
        host->doubt = host->job[0] ? host->doubt : now + SLICE;
    }
    return true;
}

static bool find_all(struct finding *finding, struct prb_error *err)
{
    struct nats *nats = finding->nats;
    double end = prb_clock_s() + FIND, now;
    size_t waits = 0;
    struct prb_bus_message message;
    finding->began = finding->last = prb_clock_s();
    if (!publish(nats, finding->inbox, TAG_ALL, "probing.v1.find", "{\"v\":1}", err) ||
        !prb_roster_ask_hosts(nats->bus, finding->inbox, TAG_ROSTER, err))
        return false;
    while ((now = prb_clock_s()) < end) {
        struct prb_error why = {0};
        if (prb_bus_inbox_next(finding->inbox, SLICE / 2, &message, &why)) {
            take_found(finding, &message);
            prb_bus_message_free(&message);
            if (prb_clock_s() < now + SLICE / 4)
                continue;
        } else if (why.code != PRB_TIMEOUT) {
            *err = why;
            return false;
        }
        if (!prb_bus_check(nats->bus, err) || !goes_on(&nats->base, err) ||
            !doubt_silent(finding, &waits, err))
            return false;
        bool quiet = finding->nobody || now > finding->last + QUIET;
        if (finding->answered && !waits && (finding->roster || quiet))
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
static bool collect(struct nats *nats, const char *job, struct prb_fleet_members *out,
                    struct prb_error *err)
{
    size_t live = 0;
    out->count = out->stale = 0;
    if (!name_hosts(nats, err))
        return false;
    for (int told = 1; told >= 0; told--) {
        for (size_t i = 0; i < nats->count; i++) {
            struct host *host = nats->hosts[i];
            for (size_t k = 0; k < host->entry.members.count && host->told == (bool)told; k++) {
                struct prb_fleet_member *one = &host->entry.members.items[k];
                if ((job && strcmp(one->job, job) != 0) ||
                    (!told && !is_remembered(out, live, one)))
                    continue;
                if (!PRB_GROW(out->items, out->count, out->cap))
                    return prb_nomem(err);
                snprintf(one->host, sizeof one->host, "%s", host->name);
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
static void note_releases(struct nats *nats)
{
    const struct host *first = NULL;
    size_t others = 0;
    nats->base.note[0] = '\0';
    for (size_t i = 0; i < nats->count; i++) {
        const struct host *host = nats->hosts[i];
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

static bool nats_find(struct prb_fleet_transport *transport, const char *job,
                      struct prb_fleet_members *out, struct prb_error *err)
{
    struct nats *nats = (struct nats *)transport;
    PRB_AUTO(prb_bus_inbox) struct prb_bus_inbox *inbox = prb_bus_inbox_new(nats->bus, err);
    struct finding finding = {.nats = nats, .inbox = inbox};
    if (!inbox)
        return false;
    forget_hosts(nats);
    if (!find_all(&finding, err) || !collect(nats, job, out, err))
        return false;
    note_releases(nats);
    return true;
}

/* ---- ask ---- */

struct asking {
    struct nats *nats;
    const struct prb_fleet_request *request;
    struct prb_bus_inbox *inbox;
    const char *text, *class;
    char job[PRB_BUS_TOKEN];
    size_t open; /* hosts asked that are not done */
    size_t slow; /* of them: those that are in doubt */
    bool silent; /* one has let its time pass */
    size_t left; /* hosts not asked yet */
    unsigned next_shard;
    size_t bytes, answers; /* of replies so far: how large is the next? */
    prb_fleet_got_fn *got;
    void *context;
    bool ended; /* got says: enough */
};

static bool has_rank(const struct asking *asking, const struct prb_fleet_member *one)
{
    return strcmp(one->job, asking->request->job) == 0 &&
           (!asking->request->ranks.count || prb_rank_set_has(&asking->request->ranks, one->rank));
}

static void finish(struct asking *asking, struct host *host)
{
    if (!host->done && host->asked)
        asking->open--;
    host->done = true;
    prb_bus_parts_deinit(&host->parts);
}

static bool is_of(const struct asking *asking, const struct host *host, int rank)
{
    const struct prb_fleet_members *members = &host->entry.members;
    for (size_t i = 0; i < members->count; i++)
        if (members->items[i].rank == rank && has_rank(asking, &members->items[i]))
            return true;
    return false;
}

/* Its answer is nothing that can be used. */
static void refuse(struct asking *asking, struct host *host, const char *reason)
{
    const struct prb_fleet_members *members = &host->entry.members;
    struct prb_fleet_reply reply = {.states = calloc(members->count + 1, sizeof *reply.states)};
    snprintf(reply.host, sizeof reply.host, "%s", host->name);
    for (size_t i = 0; reply.states && i < members->count; i++) {
        if (!has_rank(asking, &members->items[i]))
            continue;
        struct prb_fleet_state *state = &reply.states[reply.state_count++];
        *state = (struct prb_fleet_state){.rank = members->items[i].rank,
                                          .pid = members->items[i].pid,
                                          .state = PRB_COVERAGE_FAILED};
        snprintf(state->reason, sizeof state->reason, "%s", reason);
    }
    asking->ended = !asking->got(asking->context, &reply, 0) || asking->ended;
    prb_fleet_reply_deinit(&reply);
}

/* A host speaks for the ranks that it said it has, and once for each. */
static bool is_honest(const struct asking *asking, const struct host *host,
                      const struct prb_fleet_reply *reply)
{
    PRB_AUTO(prb_rank_set) struct prb_rank_set seen = {0};
    for (size_t i = 0; i < reply->state_count; i++) {
        int rank = reply->states[i].rank;
        if (!is_of(asking, host, rank) || prb_rank_set_has(&seen, rank) ||
            !prb_rank_set_add(&seen, rank, rank))
            return false;
    }
    return true;
}

static void give(struct asking *asking, struct host *host, const struct prb_buf *body)
{
    struct prb_error why = {0};
    PRB_AUTO(prb_fleet_reply) struct prb_fleet_reply reply = {0};
    char text[sizeof why.text + 40];
    if (!prb_fleet_reply_parse(body->data ? body->data : "", body->len, asking->request->id, &reply,
                               &why)) {
        snprintf(text, sizeof text, "its host's answer: %s", why.text);
        refuse(asking, host, text);
    } else if (!is_honest(asking, host, &reply)) {
        refuse(asking, host, "its host answered for ranks that it does not have");
    } else {
        snprintf(reply.host, sizeof reply.host, "%s", host->name);
        asking->ended = !asking->got(asking->context, &reply, body->len) || asking->ended;
    }
}

/* Parts of the answer to this question, from a host that was asked; anything else is not counted. */
static void take_part(struct asking *asking, struct prb_bus_message *message)
{
    struct host *host = host_of(asking->nats, message->headers[PRB_BUS_HOST_HEADER]);
    const char *id = message->headers[PRB_BUS_ID];
    PRB_AUTO(prb_buf) struct prb_buf body = {0};
    struct prb_error why = {0};
    bool whole = false;
    if (!host || !host->asked || host->done || !id || strcmp(id, asking->request->id) != 0)
        return;
    asking->bytes += message->len;
    bool good =
        prb_bus_parts_add(&host->parts, message, asking->request->max_bytes, &body, &whole, &why);
    if (good && !whole) {
        host->doubt = prb_clock_s() + DOUBT_AGAIN;
        return;
    }
    asking->answers++;
    if (good)
        give(asking, host, &body);
    else
        refuse(asking, host, why.text);
    finish(asking, host);
}

static void take_answer(struct asking *asking, struct prb_bus_message *message)
{
    unsigned tag = prb_bus_inbox_tag(asking->inbox, message->subject), number = tag & ~TAG_KIND;
    struct nats *nats = asking->nats;
    if (!message->nobody) {
        if ((tag & TAG_KIND) != TAG_DOUBT)
            take_part(asking, message);
        return;
    }
    /* Nobody heard it: of one host, or of all. */
    if ((tag & TAG_KIND) != TAG_ALL) {
        if (number < nats->count && nats->hosts[number]->asked)
            finish(asking, nats->hosts[number]);
        return;
    }
    for (size_t i = 0; i < nats->count; i++)
        if (nats->hosts[i]->asked)
            finish(asking, nats->hosts[i]);
}

/* Each host has the whole budget, from when it was asked; whether it is there at all is asked
 * sooner. */
static bool doubt_slow(struct asking *asking, struct prb_error *err)
{
    struct nats *nats = asking->nats;
    double now = prb_clock_s(), budget = asking->request->budget + AFTER_BUDGET;
    asking->slow = 0;
    for (size_t i = 0; i < nats->count; i++) {
        struct host *host = nats->hosts[i];
        if (!host->asked || host->done)
            continue;
        if (now >= host->began + budget) {
            asking->silent = true;
            finish(asking, host);
            continue;
        }
        asking->slow += now > host->began + DOUBT;
        if (now > host->doubt && !doubt(nats, asking->inbox, host, err))
            return false;
    }
    return true;
}

static void mark_asked(struct asking *asking, struct host *host)
{
    host->asked = true;
    host->began = prb_clock_s();
    host->doubt = host->began + DOUBT;
    asking->open++;
    asking->left--;
}

/* All at once, each for itself where they are few, or shard by shard where much may come. */
static bool send_some(struct asking *asking, struct prb_error *err)
{
    struct nats *nats = asking->nats;
    char subject[PRB_BUS_SUBJECT];
    if (asking->left && asking->left + asking->open <= ONE_BY_ONE) {
        for (size_t i = 0; i < nats->count; i++) {
            struct host *host = nats->hosts[i];
            if (host->asked || host->done)
                continue;
            snprintf(subject, sizeof subject, PRB_BUS_HOST, asking->job, asking->class, host->key);
            mark_asked(asking, host);
            if (!publish(nats, asking->inbox, TAG_HOST | host->number, subject, asking->text, err))
                return false;
        }
        return true;
    }
    if (asking->left && !asking->request->kind->large) {
        for (size_t i = 0; i < nats->count; i++)
            if (!nats->hosts[i]->asked && !nats->hosts[i]->done)
                mark_asked(asking, nats->hosts[i]);
        snprintf(subject, sizeof subject, PRB_BUS_ALL, asking->job, asking->class);
        return publish(nats, asking->inbox, TAG_ALL, subject, asking->text, err);
    }
    while (asking->left && asking->next_shard < SHARDS) {
        /* Those that are slow hold up nobody. */
        size_t each = asking->answers ? asking->bytes / asking->answers + 1 : UNKNOWN;
        size_t comes = asking->open > asking->slow ? asking->open - asking->slow : 0;
        if (comes && (comes + 1) * each > IN_FLIGHT)
            break;
        unsigned shard = asking->next_shard++;
        size_t before = asking->left;
        for (size_t i = 0; i < nats->count; i++)
            if (!nats->hosts[i]->asked && !nats->hosts[i]->done &&
                prb_bus_shard(nats->hosts[i]->key) == shard)
                mark_asked(asking, nats->hosts[i]);
        snprintf(subject, sizeof subject, PRB_BUS_SHARD, asking->job, asking->class, shard);
        /* A shard without hosts that we know is none that we wait for. */
        if (before != asking->left &&
            !publish(nats, asking->inbox, TAG_HOST | ~TAG_KIND, subject, asking->text, err))
            return false;
    }
    return true;
}

static bool wait_for_all(struct asking *asking, struct prb_error *err)
{
    struct nats *nats = asking->nats;
    double looked = 0;
    struct prb_bus_message message;
    while ((asking->open || asking->left) && !asking->ended) {
        struct prb_error why = {0};
        if (!send_some(asking, err))
            return false;
        double now = prb_clock_s();
        if (prb_bus_inbox_next(asking->inbox, SLICE, &message, &why)) {
            take_answer(asking, &message);
            prb_bus_message_free(&message);
        } else if (why.code != PRB_TIMEOUT) {
            *err = why;
            return false;
        }
        if (now < looked + SLICE)
            continue;
        looked = now;
        if (!prb_bus_check(nats->bus, err) || !goes_on(&nats->base, err) ||
            !doubt_slow(asking, err))
            return false;
    }
    return true;
}

/* Whom the question is for: hosts that have such ranks, and are there. */
static void choose_hosts(struct asking *asking)
{
    struct nats *nats = asking->nats;
    for (size_t i = 0; i < nats->count; i++) {
        struct host *host = nats->hosts[i];
        bool has = false;
        for (size_t k = 0; k < host->entry.members.count && !has; k++)
            has = has_rank(asking, &host->entry.members.items[k]);
        host->asked = false;
        host->done = !has || host->absent;
        prb_bus_parts_deinit(&host->parts);
        asking->left += !host->done;
    }
}

static void cancel(struct asking *asking)
{
    char subject[PRB_BUS_SUBJECT], text[PRB_FLEET_ID + 20];
    snprintf(subject, sizeof subject, PRB_BUS_CANCEL, asking->job);
    snprintf(text, sizeof text, "{\"v\":1,\"id\":\"%s\"}", asking->request->id);
    const struct prb_bus_message message = {.subject = subject, .data = text, .len = strlen(text)};
    prb_bus_publish(asking->nats->bus, &message, NULL);
}

/* ---- acting ---- */

static void take_ready(struct asking *asking, struct prb_bus_message *message)
{
    unsigned tag = prb_bus_inbox_tag(asking->inbox, message->subject), number = tag & ~TAG_KIND;
    struct nats *nats = asking->nats;
    struct host *host = number < nats->count ? nats->hosts[number] : NULL;
    if (!host || !host->asked || host->done || host->nonce[0])
        return;
    if (message->nobody ||
        !prb_go_ready(message->data, message->len, asking->request->id, host->nonce)) {
        take_answer(asking, message); /* a refusal is an answer */
        return;
    }
    asking->open--;
}

/* All that are asked get ready, or say why not. */
static bool prepare(struct asking *asking, struct prb_error *err)
{
    struct nats *nats = asking->nats;
    PRB_AUTO_FREE char *text = prb_go_prepare(asking->request->id, asking->text, err);
    char subject[PRB_BUS_SUBJECT];
    double end = prb_clock_s() + READY;
    struct prb_bus_message message;
    for (size_t i = 0; text && i < nats->count; i++) {
        struct host *host = nats->hosts[i];
        host->nonce[0] = '\0';
        if (host->done)
            continue;
        mark_asked(asking, host);
        snprintf(subject, sizeof subject, PRB_BUS_HOST, asking->job, asking->class, host->key);
        if (!publish(nats, asking->inbox, TAG_HOST | host->number, subject, text, err))
            return false;
    }
    while (text && asking->open && prb_clock_s() < end) {
        struct prb_error why = {0};
        if (prb_bus_inbox_next(asking->inbox, SLICE, &message, &why)) {
            take_ready(asking, &message);
            prb_bus_message_free(&message);
        } else if (why.code != PRB_TIMEOUT) {
            *err = why;
            return false;
        }
        if (!prb_bus_check(nats->bus, err) || !goes_on(&nats->base, err))
            return false;
    }
    return text != NULL;
}

/* Each agent that is ready gets its own go. */
static bool go(struct asking *asking, struct prb_error *err)
{
    struct nats *nats = asking->nats;
    char subject[PRB_BUS_SUBJECT];
    asking->open = 0;
    for (size_t i = 0; i < nats->count; i++) {
        struct host *host = nats->hosts[i];
        if (!host->asked || host->done)
            continue;
        if (!host->nonce[0]) {
            host->done = true; /* silent */
            continue;
        }
        PRB_AUTO_FREE char *text = prb_go_text(&nats->file.key, asking->request->id, host->key,
                                               host->nonce, asking->text, err);
        snprintf(subject, sizeof subject, PRB_BUS_HOST, asking->job, asking->class, host->key);
        if (!text || !publish(nats, asking->inbox, TAG_HOST | host->number, subject, text, err))
            return false;
        asking->open++;
        host->began = prb_clock_s();
        host->doubt = host->began + DOUBT;
    }
    return true;
}

/* The connection of a class: where the bus is a folder, each has a file of its own. */
static bool connect(struct nats *nats, enum prb_bus_class class, struct prb_error *err)
{
    PRB_AUTO(prb_bus_file) struct prb_bus_file file = {0};
    bool found;
    if (nats->bus && nats->class == class)
        return true;
    if (!prb_bus_file_find(nats->named, class, &file, &found, err))
        return false;
    if (!found)
        return prb_fail(err, PRB_NOT_FOUND, "no bus is configured");
    if (nats->bus && file.path && nats->file.path && strcmp(file.path, nats->file.path) == 0)
        return true; /* one file, which may what it may */
    const struct prb_bus_options options = {.name = "probing"};
    struct prb_bus *bus = prb_bus_open(&file, &options, err);
    if (!bus)
        return false;
    prb_bus_close(nats->bus);
    prb_bus_file_deinit(&nats->file);
    nats->bus = bus;
    nats->file = file;
    nats->class = class;
    file = (struct prb_bus_file){0};
    return true;
}

static bool ask_to_act(struct asking *asking, struct prb_error *err)
{
    struct nats *nats = asking->nats;
    if (!nats->file.has_key) {
        prb_fail(err, PRB_UNSUPPORTED,
                 "acting on ranks needs a bus file with an nkey, which signs");
        return false;
    }
    if (!prepare(asking, err) || !go(asking, err))
        return false;
    asking->left = 0;
    return wait_for_all(asking, err);
}

static bool nats_ask(struct prb_fleet_transport *transport, const struct prb_fleet_request *request,
                     const struct prb_fleet_members *members, prb_fleet_got_fn *got, void *context,
                     struct prb_error *err)
{
    static const struct {
        const char *name;
        enum prb_bus_class class;
    } classes[] = {[PRB_FLEET_LOOK] = {"look", PRB_BUS_look},
                   [PRB_FLEET_CONTROL] = {"control", PRB_BUS_control},
                   [PRB_FLEET_EVAL] = {"eval", PRB_BUS_eval}};
    struct nats *nats = (struct nats *)transport;
    PRB_AUTO_FREE char *text = prb_fleet_request_text(request, err);
    (void)members;
    if (!text || !connect(nats, classes[request->kind->needs].class, err))
        return false;
    PRB_AUTO(prb_bus_inbox) struct prb_bus_inbox *inbox = prb_bus_inbox_new(nats->bus, err);
    struct asking asking = {.nats = nats,
                            .request = request,
                            .inbox = inbox,
                            .text = text,
                            .class = classes[request->kind->needs].name,
                            .got = got,
                            .context = context};
    if (!inbox)
        return false;
    prb_bus_token(request->job, asking.job);
    choose_hosts(&asking);
    bool good = request->kind->needs == PRB_FLEET_LOOK ? wait_for_all(&asking, err)
                                                       : ask_to_act(&asking, err);
    if (asking.open || asking.silent)
        cancel(&asking);
    for (size_t i = 0; i < nats->count; i++)
        prb_bus_parts_deinit(&nats->hosts[i]->parts);
    return good;
}

/* ---- opening ---- */

static void nats_close(struct prb_fleet_transport *transport)
{
    struct nats *nats = (struct nats *)transport;
    forget_hosts(nats);
    prb_bus_close(nats->bus);
    prb_bus_file_deinit(&nats->file);
    free(nats->named);
    free(nats->hosts);
    free(nats->sorted);
    free(nats);
}

static struct prb_fleet_line nats_line(struct prb_fleet_transport *transport)
{
    struct nats *nats = (struct nats *)transport;
    return (struct prb_fleet_line){nats->bus, nats->file.has_key ? &nats->file.key : NULL};
}

static const struct prb_fleet_transport_ops ops = {"nats", nats_find, nats_ask, nats_close,
                                                   nats_line};

struct prb_fleet_transport *prb_fleet_nats_open(const char *bus, struct prb_error *err)
{
    PRB_AUTO(prb_bus_file) struct prb_bus_file file = {0};
    bool found;
    if (!prb_bus_file_find(bus, PRB_BUS_look, &file, &found, err) || !found)
        return NULL;
    struct nats *nats = calloc(1, sizeof *nats);
    if (!nats)
        return PRB_NULL(prb_nomem(err));
    nats->base.ops = &ops;
    if (bus && !(nats->named = strdup(bus)))
        prb_nomem(err);
    else if (connect(nats, PRB_BUS_look, err))
        return &nats->base;
    nats_close(&nats->base);
    return NULL;
}

/* ---- who is on the bus ---- */

void prb_cluster_hosts_deinit(struct prb_cluster_hosts *hosts)
{
    for (size_t i = 0; i < hosts->count; i++)
        free(hosts->items[i].members);
    free(hosts->items);
    *hosts = (struct prb_cluster_hosts){0};
}

static void list_one(struct prb_roster_entry *entry, const char *name, struct prb_cluster_host *out)
{
    *out = (struct prb_cluster_host){
        .pid = entry->pid, .members = entry->members.items, .count = entry->members.count};
    snprintf(out->host, sizeof out->host, "%s", name);
    snprintf(out->release, sizeof out->release, "%s", entry->release);
    entry->members = (struct prb_fleet_members){0};
}

static int by_host(const void *a, const void *b)
{
    const struct prb_cluster_host *x = a, *y = b;
    return strcmp(x->host, y->host);
}

bool prb_cluster_own(struct prb_cluster_hosts *out, struct prb_error *err)
{
    PRB_AUTO(prb_roster_entry) struct prb_roster_entry entry = {0};
    *out = (struct prb_cluster_hosts){0};
    if (!prb_roster_own(&entry, err) || !prb_fleet_members_find(&entry.members, err))
        return false;
    if (!(out->items = calloc(1, sizeof *out->items)))
        return prb_nomem(err);
    list_one(&entry, entry.host, &out->items[out->count++]);
    return true;
}

bool prb_cluster_hosts(const char *bus, struct prb_cluster_hosts *out, struct prb_error *err)
{
    struct prb_error why = {0};
    struct prb_fleet_transport *transport = prb_fleet_nats_open(bus, &why);
    struct nats *nats = (struct nats *)transport;
    PRB_AUTO(prb_fleet_members) struct prb_fleet_members members = {0};
    *out = (struct prb_cluster_hosts){0};
    if (!transport && why.code == PRB_OK)
        return prb_cluster_own(out, err);
    if (!transport) {
        *err = why;
        return false;
    }
    bool good = nats_find(transport, NULL, &members, err) &&
                ((out->items = calloc(nats->count + 1, sizeof *out->items)) || prb_nomem(err));
    for (size_t i = 0; good && i < nats->count; i++) {
        struct host *host = nats->hosts[i];
        if (!host->entry.host[0])
            continue;
        struct prb_cluster_host *one = &out->items[out->count++];
        list_one(&host->entry, host->name, one);
        one->silent = !host->told;
        one->clock = host->clock;
        one->clock_error = host->clock_error;
    }
    transport->ops->close(transport);
    if (good)
        qsort(out->items, out->count, sizeof *out->items, by_host);
    return good;
}
