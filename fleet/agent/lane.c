/* Requests wait, and those who ask the same share a look: lane.h. */
#include "fleet/agent/lane.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

#define QUEUE_MAX 256                 /* requests that wait */
#define REQUEST_MAX (512 << 10)       /* bytes */
#define SHARES 0.02                   /* s that a look serves those who ask the same */
#define SHARED_MOST ((size_t)4 << 20) /* bytes of one */
#define REST 0.1                      /* s without a question, and nothing is kept … */
#define REST_SQL 2.0                  /* … but children that have tables open */

/* Lanes of the looks of a pace; quick ones are worked on in that of their class. */
static const struct {
    int first, count;
} lanes_of[PRB_FLEET_PACES] = {
    [PRB_FLEET_SQL] = {PRB_LANE_CLASSES, 2}, /* beside one that is heavy */
    [PRB_FLEET_LONG] = {PRB_LANE_CLASSES + 2, PRB_LANES - PRB_LANE_CLASSES - 2},
};

/* ---- queues ---- */

void prb_item_free(struct prb_item *item)
{
    if (!item)
        return;
    free(item->reply);
    free(item->data);
    free(item->same);
    free(item);
}

static struct prb_item *item_of(enum prb_fleet_class class, const struct prb_bus_message *message)
{
    struct prb_item *item = calloc(1, sizeof *item);
    if (!item)
        return NULL;
    *item = (struct prb_item){.class = class,
                              .came = prb_clock_s(),
                              .len = message->len,
                              .reply = strdup(message->reply),
                              .data = malloc(message->len + 1)};
    if (!item->reply || !item->data) {
        prb_item_free(item);
        return NULL;
    }
    memcpy(item->data, message->data, message->len);
    item->data[message->len] = '\0';
    return item;
}

/* With the lock.  False: it waits for nobody, and is the caller's. */
static bool push(struct prb_lane *lane, struct prb_item *item)
{
    if (lane->count >= QUEUE_MAX || lane->work->ends)
        return false;
    item->next = NULL;
    *lane->last = item;
    lane->last = &item->next;
    lane->count++;
    pthread_cond_signal(&lane->more);
    return true;
}

/* Without a body a message only asks whether we are there: answered here and now, whatever is
 * worked on. */
static void give_sign(struct prb_agent_work *work, const char *reply)
{
    const struct prb_bus_message sign = {.subject = reply, .data = ""};
    pthread_rwlock_rdlock(&work->bus_lock);
    if (work->bus)
        prb_bus_publish(work->bus, &sign, NULL);
    pthread_rwlock_unlock(&work->bus_lock);
}

static void take(struct prb_agent_work *work, enum prb_fleet_class class,
                 const struct prb_bus_message *message)
{
    if (!message->reply || message->len > REQUEST_MAX)
        return;
    if (!message->len) {
        give_sign(work, message->reply);
        return;
    }
    struct prb_item *item = item_of(class, message);
    struct prb_lane *lane = &work->lanes[work->options.allowed[class] ? class : PRB_FLEET_LOOK];
    pthread_mutex_lock(&work->lock);
    bool taken = item && push(lane, item);
    pthread_mutex_unlock(&work->lock);
    if (!taken)
        prb_item_free(item);
}

void prb_agent_work_look(void *context, const struct prb_bus_message *message)
{
    take(context, PRB_FLEET_LOOK, message);
}

void prb_agent_work_control(void *context, const struct prb_bus_message *message)
{
    take(context, PRB_FLEET_CONTROL, message);
}

void prb_agent_work_eval(void *context, const struct prb_bus_message *message)
{
    take(context, PRB_FLEET_EVAL, message);
}

static bool has_id(char ids[PRB_LANE_IDS][PRB_FLEET_ID], const char *id)
{
    for (int i = 0; i < PRB_LANE_IDS; i++)
        if (strcmp(ids[i], id) == 0)
            return true;
    return false;
}

void prb_agent_work_cancel(void *context, const struct prb_bus_message *message)
{
    struct prb_agent_work *work = context;
    PRB_AUTO(json_t)
    json_t *object = message->len < 1024 ? json_loadb(message->data, message->len, 0, NULL) : NULL;
    const char *id = json_string_value(json_object_get(object, "id"));
    if (!id || strlen(id) != PRB_FLEET_ID - 1)
        return;
    pthread_mutex_lock(&work->lock);
    snprintf(work->cancelled[work->next_cancelled++ % PRB_LANE_IDS], PRB_FLEET_ID, "%s", id);
    pthread_mutex_unlock(&work->lock);
}

/* ---- those who ask the same ---- */

char *prb_lane_same(const struct prb_fleet_request *request)
{
    struct prb_fleet_request other = *request;
    memset(other.id, '0', sizeof other.id - 1);
    return prb_fleet_request_text(&other, NULL);
}

void prb_lane_forget_shared(struct prb_lane *lane)
{
    for (size_t i = 0; i < PRB_LANE_SHARED; i++) {
        free(lane->shared[i].same);
        prb_buf_deinit(&lane->shared[i].body);
        lane->shared[i] = (struct prb_shared){0};
    }
}

const struct prb_shared *prb_lane_shared(const struct prb_lane *lane, const char *same, double came)
{
    for (size_t i = 0; i < PRB_LANE_SHARED && same; i++) {
        const struct prb_shared *one = &lane->shared[i];
        if (one->same && came <= one->began + SHARES && strcmp(one->same, same) == 0)
            return one;
    }
    return NULL;
}

void prb_lane_share(struct prb_lane *lane, char **same, double began, struct prb_buf *body)
{
    if (!*same || body->len > SHARED_MOST)
        return;
    struct prb_shared *one = &lane->shared[lane->next_shared++ % PRB_LANE_SHARED];
    free(one->same);
    prb_buf_deinit(&one->body);
    *one = (struct prb_shared){.same = PRB_STEAL(*same), .began = began, .body = *body};
    *body = (struct prb_buf){0};
}

/* Where the same is asked already, and not yet for long; else where least is to do.  Its lock is
 * held. */
static struct prb_lane *lane_of(struct prb_agent_work *work, const struct prb_item *item,
                                enum prb_fleet_pace pace)
{
    struct prb_lane *best = NULL, *first = &work->lanes[lanes_of[pace].first];
    size_t least = 0;
    for (struct prb_lane *lane = first; lane < first + lanes_of[pace].count; lane++) {
        size_t load = lane->count + (lane->same != NULL);
        bool same =
            lane->same && item->came <= lane->began + SHARES && strcmp(lane->same, item->same) == 0;
        for (const struct prb_item *other = lane->first; other && !same; other = other->next)
            same = strcmp(other->same, item->same) == 0;
        if (same)
            return lane;
        if (!best || load < least) {
            best = lane;
            least = load;
        }
    }
    return best;
}

bool prb_lane_pass_on(struct prb_agent_work *work, struct prb_item *item,
                      const struct prb_fleet_request *request)
{
    if (!(item->same = prb_lane_same(request)))
        return false;
    pthread_mutex_lock(&work->lock);
    bool taken = push(lane_of(work, item, request->kind->pace), item);
    pthread_mutex_unlock(&work->lock);
    return taken;
}

bool prb_lane_is_beside(const struct prb_lane *lane)
{
    return lane >= &lane->work->lanes[PRB_LANE_CLASSES];
}

static bool is_sql(const struct prb_lane *lane)
{
    return prb_lane_is_beside(lane) && lane < &lane->work->lanes[lanes_of[PRB_FLEET_LONG].first];
}

/* ---- the thread's life ---- */

/* Memory and children are not kept for whoever may ask some day. */
static void rest(struct prb_lane *lane)
{
    bool first = lane->keeps;
    prb_lane_forget_shared(lane);
    lane->keeps = false;
    if (!lane->children || (first && is_sql(lane)))
        return;
    prb_fleet_host_rest(lane->host);
    lane->children = false;
}

/* With the lock. */
static void wait_for_more(struct prb_lane *lane)
{
    struct prb_agent_work *work = lane->work;
    double rests = lane->keeps ? REST : REST_SQL;
    struct timespec until = prb_clock_timespec(prb_clock_s() + rests);
    if (!lane->keeps && !lane->children) {
        pthread_cond_wait(&lane->more, &work->lock);
        return;
    }
    if (pthread_cond_timedwait(&lane->more, &work->lock, &until) != ETIMEDOUT)
        return;
    pthread_mutex_unlock(&work->lock);
    rest(lane);
    pthread_mutex_lock(&work->lock);
}

struct prb_item *prb_lane_next(struct prb_lane *lane)
{
    struct prb_agent_work *work = lane->work;
    pthread_mutex_lock(&work->lock);
    lane->id[0] = '\0';
    free(lane->same);
    lane->same = NULL;
    while (!lane->first && !work->ends)
        wait_for_more(lane);
    struct prb_item *item = work->ends ? NULL : lane->first;
    if (item) {
        lane->first = item->next;
        lane->count--;
        if (!lane->first)
            lane->last = &lane->first;
        lane->same = item->same;
        lane->began = prb_clock_s();
        item->same = NULL;
    }
    pthread_mutex_unlock(&work->lock);
    return item;
}

bool prb_lane_begin(struct prb_lane *lane, const char *id)
{
    struct prb_agent_work *work = lane->work;
    pthread_mutex_lock(&work->lock);
    bool new = !has_id(work->came, id) && !has_id(work->cancelled, id);
    if (new) {
        snprintf(work->came[work->next_came++ % PRB_LANE_IDS], PRB_FLEET_ID, "%s", id);
        snprintf(lane->id, sizeof lane->id, "%s", id);
    }
    pthread_mutex_unlock(&work->lock);
    return new;
}

bool prb_lane_goes_on(void *context)
{
    struct prb_lane *lane = context;
    pthread_mutex_lock(&lane->work->lock);
    bool ends = lane->work->ends || has_id(lane->work->cancelled, lane->id);
    pthread_mutex_unlock(&lane->work->lock);
    return !ends;
}
