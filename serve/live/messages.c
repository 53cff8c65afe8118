/* What a client of live data says: its token, and which topics it wants (live.h). */
#include <limits.h>
#include <string.h>

#include "format/json.h"
#include "serve/doors/life.h"
#include "serve/http/words.h"
#include "serve/live/feeds.h"

#define SUBSCRIPTIONS_MAX 32 /* of a client */
#define EVERY 1.0            /* s */
#define REPLIES_MAX 65536    /* bytes that a client has not taken: it is dropped */

static const struct prb_live_topic topics[] = {
    {"processes", "/api/v1/processes", false, NULL, NULL},
    {"stacks", "/stacks", true, "native locals", NULL},
    {"tasks", "/tasks", true, NULL, NULL},
    {"query", "/query", true, "sql", NULL},
    {"history", "/history", true, NULL, "after"},
    {"flame", "/api/v1/profiles/", false, "target profile rate mode native", "from"},
};

static const struct prb_live_topic *topic_named(const char *name)
{
    for (size_t i = 0; i < sizeof topics / sizeof *topics; i++)
        if (strcmp(topics[i].name, name) == 0)
            return topics + i;
    return NULL;
}

static struct prb_live_subscription *subscription_of(const struct prb_live_client *client,
                                                     json_int_t id)
{
    struct prb_live_subscription *one = client->subscriptions;
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
    if (!json_is_number(value) || !(every >= PRB_LIVE_EVERY_MIN && every <= PRB_LIVE_EVERY_MAX))
        return prb_fail(err, PRB_USAGE, "every is a number from %g to %g, in seconds",
                        PRB_LIVE_EVERY_MIN, PRB_LIVE_EVERY_MAX);
    *out = every;
    return true;
}

static bool check_keys(const json_t *message, const struct prb_live_topic *topic,
                       struct prb_error *err)
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

static bool take_target(const json_t *message, const struct prb_live_topic *topic, char *out,
                        size_t size, struct prb_error *err)
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

/* The profile that a flame graph grows from: one that was begun by POST, or of its own. */
static bool begin_run(struct prb_live *live, const json_t *message, struct prb_live_feed *wanted,
                      struct prb_error *err)
{
    static const struct prb_live_topic target = {.target = true};
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
    struct prb_live_feed wanted = {.topic = topic_named(name ? name : "")};
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
    struct prb_live_subscription *one = calloc(1, sizeof *one);
    struct prb_live_feed *feed =
        one && prb_buf_ok(&key) ? prb_live_feed_of(client->live, &wanted, key.data) : NULL;
    if (!feed) {
        free(one);
        if (wanted.own_run)
            prb_runs_end(client->live->serve->runs, wanted.run, NULL);
        return prb_fail(err, PRB_BUSY, "too many things are asked for");
    }
    *one = (struct prb_live_subscription){.next = feed->first,
                                          .next_mine = client->subscriptions,
                                          .client = client,
                                          .feed = feed,
                                          .id = id,
                                          .every = every};
    feed->first = client->subscriptions = one;
    client->count++;
    return prb_live_reply_ok(client, id);
}

static bool set(struct prb_live_client *client, const json_t *message, json_int_t id,
                struct prb_error *err)
{
    struct prb_live_subscription *one = subscription_of(client, id);
    if (!one)
        return prb_fail(err, PRB_NOT_FOUND, "there is no subscription %lld", (long long)id);
    if (!take_every(message, &one->every, err))
        return false;
    one->due = 0;
    return prb_live_reply_ok(client, id);
}

static bool unsubscribe(struct prb_live_client *client, json_int_t id, struct prb_error *err)
{
    struct prb_live_subscription *one = subscription_of(client, id);
    if (!one)
        return prb_fail(err, PRB_NOT_FOUND, "there is no subscription %lld", (long long)id);
    prb_live_subscription_free(one);
    return prb_live_reply_ok(client, id);
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
        return client->grants && prb_live_reply_ok(client, id);
    char name[PRB_TOKEN_NAME];
    struct prb_shown shown = {.guest = client->guest, .proxied = client->proxied};
    snprintf(shown.token, sizeof shown.token, "%s", token);
    client->grants = prb_access_grants(client->live->serve, &shown, name, &status, &err);
    explicit_bzero(&shown.token, sizeof shown.token);
    return client->grants && prb_live_reply_ok(client, id);
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
        prb_live_reply_error(client, id, &err, false);
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
