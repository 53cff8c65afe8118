/* Feeds, and who is subscribed to them (live.h). */
#include "serve/live/live.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/index.h"
#include "format/json.h"
#include "serve/live/feeds.h"

#define FEEDS_MAX 256
#define BUSY_SECONDS 1.0 /* when too many questions wait */

/* ---- values ---- */

static void release(struct prb_live_value *value)
{
    if (!value || --value->shares)
        return;
    prb_buf_deinit(&value->body);
    free(value);
}

/* Takes the body. */
static struct prb_live_value *value_of(struct prb_answer *answer)
{
    struct prb_live_value *value = calloc(1, sizeof *value);
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

static void feed_free(struct prb_live *live, struct prb_live_feed *feed)
{
    struct prb_live_feed **at = &live->feeds;
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

struct prb_live_feed *prb_live_feed_of(struct prb_live *live, const struct prb_live_feed *wanted,
                                       const char *key)
{
    for (struct prb_live_feed *feed = live->feeds; feed; feed = feed->next)
        if (!feed->topic->from && strcmp(feed->key, key) == 0)
            return feed;
    struct prb_live_feed *feed = live->feed_count < FEEDS_MAX ? malloc(sizeof *feed) : NULL;
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

void prb_live_subscription_free(struct prb_live_subscription *subscription)
{
    struct prb_live_feed *feed = subscription->feed;
    struct prb_live_client *client = subscription->client;
    struct prb_live_subscription **at = &feed->first;
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

static bool fill_question(const struct prb_live_feed *feed, struct prb_question *question)
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
static bool ask(struct prb_live *live, struct prb_live_feed *feed, struct prb_error *err)
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

bool prb_live_reply_ok(struct prb_live_client *client, json_int_t id)
{
    reply(client, json_pack("{s:I,s:b}", "id", id, "ok", 1));
    return true;
}

void prb_live_reply_error(struct prb_live_client *client, json_int_t id,
                          const struct prb_error *err, bool retryable)
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
    struct prb_live_subscription *one = client->subscriptions;
    while (one && !one->slot)
        one = one->next_mine;
    if (!one)
        return false;
    struct prb_live_value *value = one->slot;
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
    struct prb_live_subscription **at = &client->subscriptions;
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

static void give(struct prb_live *live, struct prb_live_feed *feed, struct prb_live_value *value)
{
    double now = prb_clock_s();
    for (struct prb_live_subscription *one = feed->first; one; one = one->next) {
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

static void end_with(struct prb_live_feed *feed, const struct prb_answer *answer)
{
    json_t *root =
        json_loadb(answer->body.data ? answer->body.data : "", answer->body.len, 0, NULL);
    json_t *error = json_object_get(root, "error");
    bool retry = json_is_true(json_object_get(error, "retryable"));
    size_t count = 0;
    for (struct prb_live_subscription *one = feed->first; one; one = one->next)
        count++;
    while (count--) {
        struct prb_live_subscription *one = feed->first;
        struct prb_live_client *client = one->client;
        reply(client, json_pack("{s:I,s:O}", "id", one->id, "error", error));
        if (retry) { /* to the end of the list */
            struct prb_live_subscription **at = &feed->first;
            *at = one->next;
            one->next = NULL;
            while (*at)
                at = &(*at)->next;
            *at = one;
        } else {
            prb_live_subscription_free(one);
        }
    }
    if (retry)
        feed->due = prb_clock_s() + BUSY_SECONDS;
    json_decref(root);
}

void prb_live_finished(struct prb_live *live, struct prb_work_item *item)
{
    struct prb_live_feed *feed = item->owner;
    if (feed) {
        feed->item = NULL;
        if (item->answer.status >= 400) {
            end_with(feed, &item->answer);
        } else {
            struct prb_live_value *value = value_of(&item->answer);
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
static double when(const struct prb_live_feed *feed)
{
    double due = HUGE_VAL;
    if (feed->item)
        return due;
    for (const struct prb_live_subscription *one = feed->first; one; one = one->next)
        if (!one->slot && one->due < due)
            due = one->due;
    return due > feed->due ? due : feed->due;
}

double prb_live_turn(struct prb_live *live)
{
    double now = prb_clock_s(), next = now + PRB_LIVE_EVERY_MAX;
    for (struct prb_live_feed *feed = live->feeds, *after; feed; feed = after) {
        struct prb_error err = {0};
        after = feed->next;
        double due = when(feed);
        if (due <= now && !ask(live, feed, &err)) {
            feed->due = due = now + BUSY_SECONDS;
            if (err.code != PRB_BUSY && err.code != PRB_NOMEM)
                while (feed) { /* the last one ends the feed */
                    struct prb_live_subscription *one = feed->first;
                    bool last = !one->next;
                    prb_live_reply_error(one->client, one->id, &err, false);
                    prb_live_subscription_free(one);
                    if (last)
                        feed = NULL;
                }
        }
        if (due > now && due < next)
            next = due;
    }
    return next - now;
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
        prb_live_subscription_free(client->subscriptions);
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
