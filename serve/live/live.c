/* Feeds, and who is subscribed to them (live.h). */
#include "serve/live/live.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/index.h"
#include "format/json.h"
#include "serve/doors/life.h"
#include "serve/http/words.h"
#include "serve/live/runs.h"

#define FEEDS_MAX 256
#define SUBSCRIPTIONS_MAX 32 /* of a client */
#define EVERY 1.0            /* s */
#define EVERY_MIN 0.1
#define EVERY_MAX 60.0
#define REPLIES_MAX 65536 /* bytes that a client has not taken: it is dropped */
#define BUSY_SECONDS 1.0  /* when too many questions wait */

/* A body of JSON, for all who are to get it. */
struct value {
    unsigned shares;
    double time; /* s since the epoch */
    uint64_t hash;
    struct prb_buf body;
};

struct feed {
    struct feed *next;
    char *key; /* equal for equal questions */
    const struct topic *topic;
    char target[128];
    char *sql;
    bool native, locals;
    char run[PRB_RUN_NAME]; /* flame */
    bool own_run;           /* it ends with the feed */
    char from[64];          /* where the next question goes on; "": at the beginning */
    struct subscription *first;
    struct prb_work_item *item; /* under way */
    double due;                 /* s, monotonic */
};

struct subscription {
    struct subscription *next;      /* of the feed */
    struct subscription *next_mine; /* of the client */
    struct prb_live_client *client;
    struct feed *feed;
    json_int_t id;
    double every;
    double due;         /* s, monotonic: no value before */
    struct value *slot; /* to be sent; NULL: nothing is */
    unsigned skipped;
    uint64_t hash; /* of the last value that was sent; 0: none was */
};

struct prb_live_client {
    struct prb_live *live;
    void *owner;
    struct prb_guest *guest;
    bool proxied;
    unsigned grants;
    struct subscription *subscriptions;
    size_t count;
    struct prb_buf message; /* as far as it has come */
    struct prb_buf replies; /* a line each */
    /* What is being sent. */
    struct prb_buf head;
    struct value *value; /* behind head; NULL: head is all */
    size_t sent;
};

struct prb_live {
    const struct prb_serve *serve;
    struct prb_work *work;
    void (*writable)(void *owner);
    struct feed *feeds;
    size_t feed_count;
};

/* ---- topics ---- */

struct topic {
    const char *name;
    const char *path; /* of the route, behind the target's */
    bool target;
    const char *options; /* of those that a subscription may have */
    const char *from;    /* what says where to go on: a feed for each subscription; NULL: none */
};

static const struct topic topics[] = {
    {"processes", "/api/v1/processes", false, NULL, NULL},
    {"stacks", "/stacks", true, "native locals", NULL},
    {"tasks", "/tasks", true, NULL, NULL},
    {"query", "/query", true, "sql", NULL},
    {"history", "/history", true, NULL, "after"},
    {"flame", "/api/v1/profiles/", false, "target profile rate mode native", "from"},
};

static const struct topic *topic_named(const char *name)
{
    for (size_t i = 0; i < sizeof topics / sizeof *topics; i++)
        if (strcmp(topics[i].name, name) == 0)
            return topics + i;
    return NULL;
}

/* ---- values ---- */

static void release(struct value *value)
{
    if (!value || --value->shares)
        return;
    prb_buf_deinit(&value->body);
    free(value);
}

/* Takes the body. */
static struct value *value_of(struct prb_answer *answer)
{
    struct value *value = calloc(1, sizeof *value);
    if (!value)
        return NULL;
    value->shares = 1;
    value->time = prb_clock_epoch_s();
    value->body = answer->body;
    answer->body = (struct prb_buf){0};
    const char *same = *answer->etag ? answer->etag : value->body.data;
    value->hash =
        same ? prb_hash_bytes(same, *answer->etag ? strlen(same) : value->body.len) | 1 : 1;
    return value;
}

/* ---- feeds ---- */

static void feed_free(struct prb_live *live, struct feed *feed)
{
    struct feed **at = &live->feeds;
    while (*at != feed)
        at = &(*at)->next;
    *at = feed->next;
    live->feed_count--;
    if (feed->item) {
        feed->item->owner = NULL;
        prb_work_item_leave(feed->item);
        prb_work_item_release(feed->item);
    }
    if (feed->own_run)
        prb_runs_end(live->serve->runs, feed->run, NULL);
    free(feed->key);
    free(feed->sql);
    free(feed);
}

static void subscription_free(struct subscription *subscription)
{
    struct feed *feed = subscription->feed;
    struct prb_live_client *client = subscription->client;
    struct subscription **at = &feed->first;
    while (*at != subscription)
        at = &(*at)->next;
    *at = subscription->next;
    for (at = &client->subscriptions; *at != subscription;)
        at = &(*at)->next_mine;
    *at = subscription->next_mine;
    client->count--;
    release(subscription->slot);
    if (!feed->first)
        feed_free(client->live, feed);
    free(subscription);
}

static bool add_parameter(struct prb_question *question, const char *name, const char *value)
{
    struct prb_parameter *one = question->query + question->query_count++;
    one->name = strdup(name);
    one->value = strdup(value);
    return one->name && one->value;
}

static bool fill_question(const struct feed *feed, struct prb_question *question)
{
    char path[192];
    if (feed->topic->target)
        snprintf(path, sizeof path, "/api/v1/p/%s%s", feed->target, feed->topic->path);
    else
        snprintf(path, sizeof path, "%s%s", feed->topic->path, feed->run);
    question->method = PRB_GET;
    question->grants = PRB_MAY_LOOK;
    question->path = strdup(path);
    return question->path && (!feed->native || add_parameter(question, "native", "1")) &&
           (!feed->locals || add_parameter(question, "locals", "1")) &&
           (!feed->sql || add_parameter(question, "sql", feed->sql)) &&
           (!*feed->from || add_parameter(question, feed->topic->from, feed->from));
}

/* BUSY: later.  Else the feed's question is with the workers. */
static bool ask(struct prb_live *live, struct feed *feed, struct prb_error *err)
{
    int status = 0;
    struct prb_work_item *item = prb_work_item_new(feed);
    if (!item)
        return prb_nomem(err);
    item->feed = true;
    bool ok =
        (fill_question(feed, &item->question) || prb_nomem(err)) &&
        prb_route_find(&item->job, &status, err) &&
        (prb_work_add(live->work, item) || prb_fail(err, PRB_BUSY, "too many questions wait"));
    if (ok)
        feed->item = item;
    else
        prb_work_item_release(item);
    return ok;
}

/* ---- what is sent ---- */

static void reply(struct prb_live_client *client, json_t *value)
{
    char *text = value ? json_dumps(value, JSON_COMPACT) : NULL;
    json_decref(value);
    if (text) {
        prb_buf_adds(&client->replies, text);
        prb_buf_addc(&client->replies, '\n');
    }
    free(text);
    client->live->writable(client->owner);
}

static bool reply_ok(struct prb_live_client *client, json_int_t id)
{
    reply(client, json_pack("{s:I,s:b}", "id", id, "ok", 1));
    return true;
}

static void reply_error(struct prb_live_client *client, json_int_t id, const struct prb_error *err,
                        bool retryable)
{
    reply(client, json_pack("{s:I,s:{s:s,s:o,s:o,s:b}}", "id", id, "error", "code",
                            prb_code_name(err->code), "message", prb_json_text(err->text), "remedy",
                            prb_json_text(err->remedy), "retryable", retryable));
}

static void begin_reply(struct prb_live_client *client)
{
    struct prb_buf *replies = &client->replies;
    size_t len = strcspn(replies->data, "\n");
    prb_buf_add(&client->head, replies->data, len);
    memmove(replies->data, replies->data + len + 1, replies->len - len);
    replies->len -= len + 1;
    if (!replies->len)
        prb_buf_deinit(replies);
}

static bool begin_value(struct prb_live_client *client)
{
    struct subscription *one = client->subscriptions;
    while (one && !one->slot)
        one = one->next_mine;
    if (!one)
        return false;
    struct value *value = one->slot;
    one->slot = NULL;
    bool same = one->hash == value->hash;
    one->hash = value->hash;
    prb_buf_addf(&client->head, "{\"id\":%lld,\"topic\":\"%s\",\"time\":%.6f", (long long)one->id,
                 one->feed->topic->name, value->time);
    if (one->skipped)
        prb_buf_addf(&client->head, ",\"skipped\":%u", one->skipped);
    one->skipped = 0;
    if (same) {
        prb_buf_adds(&client->head, ",\"same\":true}");
        release(value);
    } else {
        prb_buf_adds(&client->head, ",\"value\":");
        client->value = value;
    }
    /* The next client to be served is another subscription of this one. */
    struct subscription **at = &client->subscriptions;
    while (*at != one)
        at = &(*at)->next_mine;
    *at = one->next_mine;
    one->next_mine = NULL;
    for (at = &client->subscriptions; *at;)
        at = &(*at)->next_mine;
    *at = one;
    return true;
}

size_t prb_live_next(struct prb_live_client *client, void *out, size_t room, bool *first,
                     bool *last)
{
    if (!client->head.len) {
        client->sent = 0;
        if (client->replies.len)
            begin_reply(client);
        else if (!begin_value(client))
            return 0;
    }
    const struct prb_buf *head = &client->head, *body = client->value ? &client->value->body : NULL;
    size_t total = head->len + (body ? body->len + 1 : 0), count = 0;
    *first = client->sent == 0;
    while (count < room && client->sent < total) {
        size_t at = client->sent, part;
        const char *from = "}";
        if (at < head->len) {
            from = head->data + at;
            part = head->len - at;
        } else if (at < head->len + (body ? body->len : 0)) {
            from = body->data + (at - head->len);
            part = body->len - (at - head->len);
        } else {
            part = 1;
        }
        part = part < room - count ? part : room - count;
        memcpy((char *)out + count, from, part);
        count += part;
        client->sent += part;
    }
    *last = client->sent == total;
    if (*last) {
        prb_buf_deinit(&client->head);
        release(client->value);
        client->value = NULL;
        client->live->writable(client->owner); /* for what may be behind it */
    }
    return count;
}

/* ---- answers ---- */

static void give(struct prb_live *live, struct feed *feed, struct value *value)
{
    double now = prb_clock_s();
    for (struct subscription *one = feed->first; one; one = one->next) {
        if (one->due - now > one->every / 2) /* those that ask as often get the same values */
            continue;
        one->due = now + one->every;
        if (one->slot)
            one->skipped++;
        release(one->slot);
        one->slot = value;
        value->shares++;
        live->writable(one->client->owner);
    }
    release(value);
}

static void end_with(struct feed *feed, const struct prb_answer *answer)
{
    json_t *root =
        json_loadb(answer->body.data ? answer->body.data : "", answer->body.len, 0, NULL);
    json_t *error = json_object_get(root, "error");
    bool retry = json_is_true(json_object_get(error, "retryable"));
    size_t count = 0;
    for (struct subscription *one = feed->first; one; one = one->next)
        count++;
    while (count--) {
        struct subscription *one = feed->first;
        struct prb_live_client *client = one->client;
        reply(client, json_pack("{s:I,s:O}", "id", one->id, "error", error));
        if (retry) { /* to the end of the list */
            struct subscription **at = &feed->first;
            *at = one->next;
            one->next = NULL;
            while (*at)
                at = &(*at)->next;
            *at = one;
        } else {
            subscription_free(one);
        }
    }
    if (retry)
        feed->due = prb_clock_s() + BUSY_SECONDS;
    json_decref(root);
}

void prb_live_finished(struct prb_live *live, struct prb_work_item *item)
{
    struct feed *feed = item->owner;
    if (feed) {
        feed->item = NULL;
        if (item->answer.status >= 400) {
            end_with(feed, &item->answer);
        } else {
            struct value *value = value_of(&item->answer);
            while (value && value->body.len && value->body.data[value->body.len - 1] == '\n')
                value->body.len--;
            if (*item->answer.next)
                snprintf(feed->from, sizeof feed->from, "%s", item->answer.next);
            if (value)
                give(live, feed, value);
        }
        prb_work_item_release(item); /* the feed's share */
    }
    prb_work_item_release(item);
}

/* ---- turns ---- */

/* When a feed is to be asked; HUGE_VAL: its subscribers have enough. */
static double when(const struct feed *feed)
{
    double due = HUGE_VAL;
    if (feed->item)
        return due;
    for (const struct subscription *one = feed->first; one; one = one->next)
        if (!one->slot && one->due < due)
            due = one->due;
    return due > feed->due ? due : feed->due;
}

double prb_live_turn(struct prb_live *live)
{
    double now = prb_clock_s(), next = now + EVERY_MAX;
    for (struct feed *feed = live->feeds, *after; feed; feed = after) {
        struct prb_error err = {0};
        after = feed->next;
        double due = when(feed);
        if (due <= now && !ask(live, feed, &err)) {
            feed->due = due = now + BUSY_SECONDS;
            if (err.code != PRB_BUSY && err.code != PRB_NOMEM)
                while (feed) { /* the last one ends the feed */
                    struct subscription *one = feed->first;
                    bool last = !one->next;
                    reply_error(one->client, one->id, &err, false);
                    subscription_free(one);
                    if (last)
                        feed = NULL;
                }
        }
        if (due > now && due < next)
            next = due;
    }
    return next - now;
}

/* ---- messages ---- */

static struct subscription *subscription_of(const struct prb_live_client *client, json_int_t id)
{
    struct subscription *one = client->subscriptions;
    while (one && one->id != id)
        one = one->next_mine;
    return one;
}

static bool take_every(const json_t *message, double *out, struct prb_error *err)
{
    const json_t *value = json_object_get(message, "every");
    if (!value)
        return true;
    double every = json_number_value(value);
    if (!json_is_number(value) || !(every >= EVERY_MIN && every <= EVERY_MAX))
        return prb_fail(err, PRB_USAGE, "every is a number from %g to %g, in seconds", EVERY_MIN,
                        EVERY_MAX);
    *out = every;
    return true;
}

static bool check_keys(const json_t *message, const struct topic *topic, struct prb_error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)message, key, value)
    {
        if (prb_has_word("id op topic every", key) || (topic->target && !strcmp(key, "target")) ||
            prb_has_word(topic->options, key))
            continue;
        return prb_fail(err, PRB_USAGE, "%s has no \"%.40s\"", topic->name, key);
    }
    return true;
}

static bool take_target(const json_t *message, const struct topic *topic, char *out, size_t size,
                        struct prb_error *err)
{
    const json_t *value = json_object_get(message, "target");
    const char *text = json_is_string(value) ? json_string_value(value) : "";
    *out = '\0';
    if (!topic->target)
        return true;
    int n = json_is_integer(value)
                ? snprintf(out, size, "%lld", (long long)json_integer_value(value))
                : snprintf(out, size, "%s", text);
    return (*out && n < (int)size && !strchr(out, '/')) ||
           prb_fail(err, PRB_USAGE, "target: PID, PID.STARTTIME or file:NAME");
}

static struct feed *feed_of(struct prb_live *live, const struct feed *wanted, const char *key)
{
    for (struct feed *feed = live->feeds; feed; feed = feed->next)
        if (!feed->topic->from && strcmp(feed->key, key) == 0)
            return feed;
    struct feed *feed = live->feed_count < FEEDS_MAX ? malloc(sizeof *feed) : NULL;
    if (!feed)
        return NULL;
    *feed = *wanted;
    feed->key = strdup(key);
    feed->sql = wanted->sql ? strdup(wanted->sql) : NULL;
    if (!feed->key || (wanted->sql && !feed->sql)) {
        free(feed->key);
        free(feed->sql);
        free(feed);
        return NULL;
    }
    feed->next = live->feeds;
    live->feeds = feed;
    live->feed_count++;
    return feed;
}

/* The profile that a flame graph grows from: one that was begun by POST, or of its own. */
static bool begin_run(struct prb_live *live, const json_t *message, struct feed *wanted,
                      struct prb_error *err)
{
    static const struct topic target = {.target = true};
    struct prb_run_options options = {.shared = true, .rate = 100};
    const char *profile = json_string_value(json_object_get(message, "profile"));
    const char *mode = json_string_value(json_object_get(message, "mode"));
    const json_t *rate = json_object_get(message, "rate");
    char *end;
    if (profile) {
        snprintf(wanted->run, sizeof wanted->run, "%s", profile);
        return (*profile && !strchr(profile, '/')) || prb_fail(err, PRB_USAGE, "profile: its id");
    }
    if (!take_target(message, &target, wanted->target, sizeof wanted->target, err))
        return false;
    if (rate)
        options.rate = json_number_value(rate);
    if (!(options.rate >= 1 && options.rate <= 1000))
        return prb_fail(err, PRB_USAGE, "rate is a number from 1 to 1000");
    if (mode && !prb_run_mode(mode, &options.mode))
        return prb_fail(err, PRB_USAGE, "mode is active, wall, cpu or gil");
    long pid = strtol(wanted->target, &end, 10);
    uint64_t started = *end == '.' ? strtoull(end + 1, &end, 10) : 0;
    options.pid = pid > 0 && pid <= INT_MAX && !*end ? (pid_t)pid : 0;
    uint64_t now = options.pid ? prb_serve_started(options.pid) : 0;
    if (!now || (started && started != now))
        return prb_fail(err, started ? PRB_GONE : PRB_NOT_FOUND, "there is no process %.40s",
                        wanted->target);
    if (!prb_serve_check_has(live->serve, options.pid, err))
        return false;
    options.native = json_is_true(json_object_get(message, "native"));
    wanted->own_run = prb_runs_begin(live->serve->runs, &options, wanted->run, err);
    return wanted->own_run;
}

static bool subscribe(struct prb_live_client *client, const json_t *message, json_int_t id,
                      struct prb_error *err)
{
    const char *name = json_string_value(json_object_get(message, "topic"));
    struct feed wanted = {.topic = topic_named(name ? name : "")};
    double every = EVERY;
    if (!wanted.topic)
        return prb_fail(err, PRB_NOT_FOUND, "there is no topic \"%.40s\"", name ? name : "") ||
               prb_error_remedy(err, "topics: processes stacks tasks query history flame");
    if (subscription_of(client, id) || client->count == SUBSCRIPTIONS_MAX)
        return prb_fail(err, PRB_USAGE,
                        client->count == SUBSCRIPTIONS_MAX ? "too many subscriptions"
                                                           : "there is a subscription of that id");
    if (!check_keys(message, wanted.topic, err) || !take_every(message, &every, err) ||
        !take_target(message, wanted.topic, wanted.target, sizeof wanted.target, err))
        return false;
    if (strcmp(wanted.topic->name, "flame") == 0 && !begin_run(client->live, message, &wanted, err))
        return false;
    wanted.native = !*wanted.run && json_is_true(json_object_get(message, "native"));
    wanted.locals = json_is_true(json_object_get(message, "locals"));
    wanted.sql = (char *)json_string_value(json_object_get(message, "sql"));
    if (!wanted.sql && prb_has_word(wanted.topic->options, "sql"))
        return prb_fail(err, PRB_USAGE, "sql: a statement");
    PRB_AUTO(prb_buf) struct prb_buf key = {0};
    prb_buf_addf(&key, "%s %s %d %d ", wanted.topic->name, wanted.target, wanted.native,
                 wanted.locals);
    prb_buf_adds(&key, wanted.sql ? wanted.sql : "");
    struct subscription *one = calloc(1, sizeof *one);
    struct feed *feed = one && prb_buf_ok(&key) ? feed_of(client->live, &wanted, key.data) : NULL;
    if (!feed) {
        free(one);
        if (wanted.own_run)
            prb_runs_end(client->live->serve->runs, wanted.run, NULL);
        return prb_fail(err, PRB_BUSY, "too many things are asked for");
    }
    *one = (struct subscription){.next = feed->first,
                                 .next_mine = client->subscriptions,
                                 .client = client,
                                 .feed = feed,
                                 .id = id,
                                 .every = every};
    feed->first = client->subscriptions = one;
    client->count++;
    return reply_ok(client, id);
}

static bool set(struct prb_live_client *client, const json_t *message, json_int_t id,
                struct prb_error *err)
{
    struct subscription *one = subscription_of(client, id);
    if (!one)
        return prb_fail(err, PRB_NOT_FOUND, "there is no subscription %lld", (long long)id);
    if (!take_every(message, &one->every, err))
        return false;
    one->due = 0;
    return reply_ok(client, id);
}

static bool unsubscribe(struct prb_live_client *client, json_int_t id, struct prb_error *err)
{
    struct subscription *one = subscription_of(client, id);
    if (!one)
        return prb_fail(err, PRB_NOT_FOUND, "there is no subscription %lld", (long long)id);
    subscription_free(one);
    return reply_ok(client, id);
}

/* An empty token is none: the handshake has decided.  False: it is not let in. */
static bool take_token(struct prb_live_client *client, const json_t *message, json_int_t id)
{
    int status = 0;
    struct prb_error err = {0};
    const char *op = json_string_value(json_object_get(message, "op"));
    const char *token = json_string_value(json_object_get(message, "token"));
    if (!op || strcmp(op, "token") != 0 || !token)
        return false;
    if (!*token)
        return client->grants && reply_ok(client, id);
    char name[PRB_TOKEN_NAME];
    struct prb_shown shown = {.guest = client->guest, .proxied = client->proxied};
    snprintf(shown.token, sizeof shown.token, "%s", token);
    client->grants = prb_access_grants(client->live->serve, &shown, name, &status, &err);
    explicit_bzero(&shown.token, sizeof shown.token);
    return client->grants && reply_ok(client, id);
}

static bool take_message(struct prb_live_client *client, const json_t *message)
{
    struct prb_error err = {0};
    const char *op = json_string_value(json_object_get(message, "op"));
    json_int_t id = json_integer_value(json_object_get(message, "id"));
    if (!client->grants)
        return take_token(client, message, id);
    bool ok = false;
    if (id <= 0 || !op)
        prb_fail(&err, PRB_USAGE,
                 "a message is {\"id\": N, \"op\": \"sub\", \"unsub\" or \"set\", …}");
    else if (strcmp(op, "token") == 0)
        ok = take_token(client, message, id);
    else if (strcmp(op, "sub") == 0)
        ok = subscribe(client, message, id, &err);
    else if (strcmp(op, "unsub") == 0)
        ok = unsubscribe(client, id, &err);
    else if (strcmp(op, "set") == 0)
        ok = set(client, message, id, &err);
    else
        prb_fail(&err, PRB_USAGE, "there is no op \"%.40s\"", op);
    if (!ok && err.code)
        reply_error(client, id, &err, false);
    return client->grants != 0;
}

int prb_live_take(struct prb_live_client *client, const void *bytes, size_t count, bool whole)
{
    enum { TOO_BIG = 1009, NOT_ALLOWED = 1008, NO_MEMORY = 1011 };
    if (client->message.len + count > PRB_LIVE_MESSAGE_MAX)
        return TOO_BIG;
    if (client->replies.len > REPLIES_MAX)
        return NOT_ALLOWED;
    prb_buf_add(&client->message, bytes, count);
    if (!whole)
        return prb_buf_ok(&client->message) ? 0 : NO_MEMORY;
    json_t *message = json_loadb(client->message.data ? client->message.data : "",
                                 client->message.len, JSON_REJECT_DUPLICATES, NULL);
    if (client->message.data)
        explicit_bzero(client->message.data, client->message.len); /* it may be the token */
    prb_buf_deinit(&client->message);
    bool goes_on = json_is_object(message) && take_message(client, message);
    json_decref(message);
    return goes_on ? 0 : NOT_ALLOWED;
}

/* ---- clients ---- */

struct prb_live_client *prb_live_client_new(struct prb_live *live, void *owner,
                                            const struct prb_shown *shown, unsigned grants)
{
    struct prb_live_client *client = calloc(1, sizeof *client);
    if (!client)
        return NULL;
    client->live = live;
    client->owner = owner;
    client->guest = shown->guest;
    client->proxied = shown->proxied;
    client->grants = grants;
    return client;
}

void prb_live_client_free(struct prb_live_client *client)
{
    while (client->subscriptions)
        subscription_free(client->subscriptions);
    prb_buf_deinit(&client->message);
    prb_buf_deinit(&client->replies);
    prb_buf_deinit(&client->head);
    release(client->value);
    free(client);
}

bool prb_live_client_is_known(const struct prb_live_client *client) { return client->grants; }

struct prb_live *prb_live_new(const struct prb_serve *serve, struct prb_work *work,
                              void (*writable)(void *owner), struct prb_error *err)
{
    struct prb_live *live = calloc(1, sizeof *live);
    if (!live)
        return PRB_NULL(prb_nomem(err));
    live->serve = serve;
    live->work = work;
    live->writable = writable;
    return live;
}

void prb_live_free(struct prb_live *live) { free(live); }
