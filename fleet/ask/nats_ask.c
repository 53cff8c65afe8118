/* One question to hosts: asked, answered in parts, or, where it acts, prepared and let go. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "fleet/ask/nats.h"
#include "fleet/settings.h"

#define SHARDS PRB_BUS_SHARDS
#define UNKNOWN ((size_t)64 << 10) /* bytes of an answer, before there is any */
#define ONE_BY_ONE 16              /* hosts: so many are asked each for itself */
#define AFTER_BUDGET 0.2           /* s */
#define DOUBT 0.15                 /* s without an answer: is its agent there at all? */
#define READY 2.0                  /* s that agents have to get ready to act */

struct asking {
    struct prb_nats *nats;
    const struct prb_fleet_request *request;
    struct prb_bus_inbox *inbox;
    const char *text, *class;
    char job[PRB_BUS_TOKEN];
    size_t open;               /* hosts asked that are not done */
    size_t slow;               /* of them: those that are in doubt */
    size_t quiet;              /* of them: those that are not waited for */
    bool silent;               /* one has let its time pass */
    size_t left;               /* hosts not asked yet */
    unsigned next_part, parts; /* of the shards */
    double in_flight;          /* bytes that may be on their way to us */
    size_t bytes, answers;     /* of replies so far: how large is the next? */
    prb_fleet_got_fn *got;
    void *context;
    bool ended; /* got says: enough */
};

static bool has_rank(const struct asking *asking, const struct prb_fleet_member *one)
{
    return prb_fleet_request_has(asking->request, one);
}

static void finish(struct asking *asking, struct prb_nats_host *host)
{
    if (!host->done && host->asked) {
        asking->open--;
        asking->quiet -= host->quiet && asking->quiet;
    }
    host->done = true;
    prb_bus_parts_deinit(&host->parts);
}

static bool is_of(const struct asking *asking, const struct prb_nats_host *host, int rank)
{
    const struct prb_fleet_members *members = &host->entry.members;
    for (size_t i = 0; i < members->count; i++)
        if (members->items[i].rank == rank && has_rank(asking, &members->items[i]))
            return true;
    return false;
}

/* Its answer is nothing that can be used. */
static void refuse(struct asking *asking, struct prb_nats_host *host, const char *reason)
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
static bool is_honest(const struct asking *asking, const struct prb_nats_host *host,
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

static void give(struct asking *asking, struct prb_nats_host *host, const struct prb_buf *body)
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

/* A host of which signs of life are known gave one; an agent of an older release gives none. */
static void hear(struct prb_nats_host *host)
{
    if (host->heard > 0)
        host->heard = prb_clock_s();
}

/* Parts of the answer to this question, from a host that was asked; anything else is not counted. */
static void take_part(struct asking *asking, struct prb_bus_message *message)
{
    struct prb_nats_host *host =
        prb_nats_host_of(asking->nats, message->headers[PRB_BUS_HOST_HEADER]);
    const char *id = message->headers[PRB_BUS_ID];
    PRB_AUTO(prb_buf) struct prb_buf body = {0};
    struct prb_error why = {0};
    bool whole = false;
    if (!host || !host->asked || host->done || !id || strcmp(id, asking->request->id) != 0)
        return;
    asking->bytes += message->len;
    hear(host);
    bool good =
        prb_bus_parts_add(&host->parts, message, asking->request->max_bytes, &body, &whole, &why);
    if (good && !whole) {
        host->doubt = prb_clock_s() + PRB_NATS_DOUBT_AGAIN;
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
    unsigned tag = prb_bus_inbox_tag(asking->inbox, message->subject),
             number = tag & ~PRB_NATS_KIND;
    struct prb_nats *nats = asking->nats;
    if (!message->nobody) {
        if ((tag & PRB_NATS_KIND) != PRB_NATS_DOUBT)
            take_part(asking, message);
        else if (number < nats->count)
            nats->hosts[number]->heard = prb_clock_s();
        return;
    }
    /* Nobody heard it: of one host, or of all. */
    if ((tag & PRB_NATS_KIND) != PRB_NATS_ALL) {
        if (number < nats->count && nats->hosts[number]->asked)
            finish(asking, nats->hosts[number]);
        return;
    }
    for (size_t i = 0; i < nats->count; i++)
        if (nats->hosts[i]->asked)
            finish(asking, nats->hosts[i]);
}

/* Whether it is not waited for: whoever works on an answer gives signs of life. */
static bool is_quiet(struct prb_nats_host *host, double now)
{
    if (host->heard > 0)
        host->quiet = now > host->heard + PRB_NATS_QUIET_LATER;
    else if (!host->told && now > host->began + PRB_NATS_QUIET)
        host->quiet = true;
    return host->quiet;
}

/* Each host has the whole budget, from when it was asked; whether it is there at all is asked
 * sooner. */
static bool doubt_slow(struct asking *asking, struct prb_error *err)
{
    struct prb_nats *nats = asking->nats;
    double now = prb_clock_s(), budget = asking->request->budget + AFTER_BUDGET;
    asking->slow = asking->quiet = 0;
    for (size_t i = 0; i < nats->count; i++) {
        struct prb_nats_host *host = nats->hosts[i];
        if (!host->asked || host->done)
            continue;
        if (now >= host->began + budget) {
            asking->silent = true;
            finish(asking, host);
            continue;
        }
        asking->slow += now > host->began + DOUBT;
        asking->quiet += is_quiet(host, now);
        if (now > host->doubt && !prb_nats_doubt(nats, asking->inbox, host, err))
            return false;
    }
    return true;
}

static void mark_asked(struct asking *asking, struct prb_nats_host *host)
{
    host->asked = true;
    host->began = prb_clock_s();
    host->doubt = host->began + DOUBT;
    hear(host);
    asking->open++;
    asking->left--;
}

static bool send_shard(struct asking *asking, unsigned shard, struct prb_error *err)
{
    struct prb_nats *nats = asking->nats;
    char subject[PRB_BUS_SUBJECT];
    size_t before = asking->left;
    for (size_t i = 0; i < nats->count; i++)
        if (!nats->hosts[i]->asked && !nats->hosts[i]->done &&
            prb_bus_shard(nats->hosts[i]->key) == shard)
            mark_asked(asking, nats->hosts[i]);
    snprintf(subject, sizeof subject, PRB_BUS_SHARD, asking->job, asking->class, shard);
    /* A shard without hosts that we know is none that we wait for. */
    return before == asking->left ||
           prb_nats_publish(nats, asking->inbox, PRB_NATS_HOST | ~PRB_NATS_KIND, subject,
                            asking->text, err);
}

/* All at once, each for itself where they are few, or shard by shard where much may come. */
static bool send_some(struct asking *asking, struct prb_error *err)
{
    struct prb_nats *nats = asking->nats;
    char subject[PRB_BUS_SUBJECT];
    if (asking->left && asking->left + asking->open <= ONE_BY_ONE) {
        for (size_t i = 0; i < nats->count; i++) {
            struct prb_nats_host *host = nats->hosts[i];
            if (host->asked || host->done)
                continue;
            snprintf(subject, sizeof subject, PRB_BUS_HOST, asking->job, asking->class, host->key);
            mark_asked(asking, host);
            if (!prb_nats_publish(nats, asking->inbox, PRB_NATS_HOST | host->number, subject,
                                  asking->text, err))
                return false;
        }
        return true;
    }
    if (asking->left && !asking->request->kind->large) {
        for (size_t i = 0; i < nats->count; i++)
            if (!nats->hosts[i]->asked && !nats->hosts[i]->done)
                mark_asked(asking, nats->hosts[i]);
        snprintf(subject, sizeof subject, PRB_BUS_ALL, asking->job, asking->class);
        return prb_nats_publish(nats, asking->inbox, PRB_NATS_ALL, subject, asking->text, err);
    }
    while (asking->left && asking->next_part < asking->parts) {
        /* Those that are slow hold up nobody. */
        size_t each = asking->answers ? asking->bytes / asking->answers + 1 : UNKNOWN;
        size_t comes = asking->open > asking->slow ? asking->open - asking->slow : 0;
        if (comes && (double)(comes + 1) * (double)each > asking->in_flight)
            break;
        unsigned part = asking->next_part++, parts = asking->parts;
        for (unsigned shard = part * SHARDS / parts; shard < (part + 1) * SHARDS / parts; shard++)
            if (!send_shard(asking, shard, err))
                return false;
    }
    return true;
}

static bool wait_for_all(struct asking *asking, struct prb_error *err)
{
    struct prb_nats *nats = asking->nats;
    double looked = 0;
    struct prb_bus_message message;
    while ((asking->open > asking->quiet || asking->left) && !asking->ended) {
        struct prb_error why = {0};
        if (!send_some(asking, err))
            return false;
        double now = prb_clock_s();
        if (prb_bus_inbox_next(asking->inbox, PRB_NATS_SLICE, &message, &why)) {
            take_answer(asking, &message);
            prb_bus_message_free(&message);
        } else if (why.code != PRB_TIMEOUT) {
            *err = why;
            return false;
        }
        if (now < looked + PRB_NATS_SLICE)
            continue;
        looked = now;
        if (!prb_bus_check(nats->bus, err) || !prb_nats_goes_on(&nats->base, err) ||
            !doubt_slow(asking, err))
            return false;
    }
    return true;
}

/* Whom the question is for: hosts that have such ranks, and are there. */
static void choose_hosts(struct asking *asking)
{
    struct prb_nats *nats = asking->nats;
    for (size_t i = 0; i < nats->count; i++) {
        struct prb_nats_host *host = nats->hosts[i];
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
    unsigned tag = prb_bus_inbox_tag(asking->inbox, message->subject),
             number = tag & ~PRB_NATS_KIND;
    struct prb_nats *nats = asking->nats;
    struct prb_nats_host *host = number < nats->count ? nats->hosts[number] : NULL;
    if (!host || !host->asked || host->done || host->nonce[0])
        return;
    host->told = host->told || !message->nobody;
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
    struct prb_nats *nats = asking->nats;
    PRB_AUTO_FREE char *text = prb_go_prepare(asking->request->id, asking->text, err);
    char subject[PRB_BUS_SUBJECT];
    double end = prb_clock_s() + READY;
    struct prb_bus_message message;
    for (size_t i = 0; text && i < nats->count; i++) {
        struct prb_nats_host *host = nats->hosts[i];
        host->nonce[0] = '\0';
        if (host->done)
            continue;
        mark_asked(asking, host);
        snprintf(subject, sizeof subject, PRB_BUS_HOST, asking->job, asking->class, host->key);
        if (!prb_nats_publish(nats, asking->inbox, PRB_NATS_HOST | host->number, subject, text,
                              err))
            return false;
    }
    while (text && asking->open > asking->quiet && prb_clock_s() < end) {
        struct prb_error why = {0};
        if (prb_bus_inbox_next(asking->inbox, PRB_NATS_SLICE, &message, &why)) {
            take_ready(asking, &message);
            prb_bus_message_free(&message);
        } else if (why.code != PRB_TIMEOUT) {
            *err = why;
            return false;
        }
        if (!prb_bus_check(nats->bus, err) || !prb_nats_goes_on(&nats->base, err) ||
            !doubt_slow(asking, err))
            return false;
    }
    return text != NULL;
}

/* Each agent that is ready gets its own go. */
static bool go(struct asking *asking, struct prb_error *err)
{
    struct prb_nats *nats = asking->nats;
    char subject[PRB_BUS_SUBJECT];
    asking->open = asking->quiet = 0;
    for (size_t i = 0; i < nats->count; i++) {
        struct prb_nats_host *host = nats->hosts[i];
        if (!host->asked || host->done)
            continue;
        if (!host->nonce[0]) {
            host->done = true; /* silent */
            continue;
        }
        PRB_AUTO_FREE char *text = prb_go_text(&nats->file.key, asking->request->id, host->key,
                                               host->nonce, asking->text, err);
        snprintf(subject, sizeof subject, PRB_BUS_HOST, asking->job, asking->class, host->key);
        if (!text || !prb_nats_publish(nats, asking->inbox, PRB_NATS_HOST | host->number, subject,
                                       text, err))
            return false;
        asking->open++;
        host->began = prb_clock_s();
        host->doubt = host->began + DOUBT;
        hear(host);
    }
    return true;
}

static bool ask_to_act(struct asking *asking, struct prb_error *err)
{
    struct prb_nats *nats = asking->nats;
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

bool prb_nats_ask(struct prb_fleet_transport *transport, const struct prb_fleet_request *request,
                  const struct prb_fleet_members *members, prb_fleet_got_fn *got, void *context,
                  struct prb_error *err)
{
    static const struct {
        const char *name;
        enum prb_bus_class class;
    } classes[] = {[PRB_FLEET_LOOK] = {"look", PRB_BUS_look},
                   [PRB_FLEET_CONTROL] = {"control", PRB_BUS_control},
                   [PRB_FLEET_EVAL] = {"eval", PRB_BUS_eval}};
    struct prb_nats *nats = (struct prb_nats *)transport;
    PRB_AUTO_FREE char *text = prb_fleet_request_text(request, err);
    (void)members;
    if (!text || !prb_nats_connect(nats, classes[request->kind->needs].class, err))
        return false;
    PRB_AUTO(prb_bus_inbox) struct prb_bus_inbox *inbox = prb_bus_inbox_new(nats->bus, err);
    struct asking asking = {.nats = nats,
                            .request = request,
                            .inbox = inbox,
                            .text = text,
                            .class = classes[request->kind->needs].name,
                            .got = got,
                            .parts = (unsigned)prb_fleet_setting(PRB_FLEET_shards),
                            .in_flight = prb_fleet_setting(PRB_FLEET_in_flight),
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
