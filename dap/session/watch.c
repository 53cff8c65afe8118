/* Threads that start and exit: the kernel's list is read now and then, and when the target has
 * stopped; the target does not notice.  The back end is asked which threads run Python only when
 * the list has changed, or when an unknown thread has stopped. */
#include "dap/session/watch.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "dap/session/births.h"

#define ROUND_MS 250
#define CHILDREN_EVERY 8 /* rounds */
#define THREADS_MAX 4096
#define ALONE_S 1 /* a step of one thread that takes longer may wait for one that is held */
#define NAMES_MAX 8

struct prb_dap_watch {
    struct prb_dap_session *session;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool ending, look_now;
    long long stopped; /* the thread that stopped; 0: none since the last round */
    json_t *known;     /* {id as text: true} of Python's threads */
    uint64_t tasks;    /* a sum over the kernel's list */
    struct prb_dap_children children;
    struct prb_dap_births *births;
};

/* A sum over the ids in the kernel's list: another list has another sum. */
static uint64_t sum_tasks(pid_t pid)
{
    char path[40];
    uint64_t sum = 0;
    int count = 0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    PRB_AUTO(dir) DIR *folder = opendir(path);
    for (const struct dirent *one; folder && count < THREADS_MAX && (one = readdir(folder));
         count++)
        sum += ((uint64_t)atoll(one->d_name) + 1) * UINT64_C(0x9E3779B97F4A7C15);
    return sum;
}

/* {id as text: true} of an answer; NULL: it has none. */
static json_t *threads_of(const json_t *answer)
{
    const json_t *list = json_object_get(answer, "threads");
    json_t *found = list ? json_object() : NULL, *one;
    size_t i;
    char key[32];
    json_array_foreach(list, i, one)
    {
        snprintf(key, sizeof key, "%lld",
                 (long long)json_integer_value(json_object_get(one, "id")));
        json_object_set_new(found, key, json_true());
    }
    return found;
}

static json_t *python_threads(struct prb_dap_session *session)
{
    json_t *answer = prb_dap_ask(session, "threads", NULL, 0, NULL), *found = threads_of(answer);
    json_decref(answer);
    return found;
}

/* Events for the threads of one set that the other does not have. */
static void send_threads(struct prb_dap_session *session, json_t *these, const json_t *others,
                         const char *reason)
{
    const char *key;
    json_t *unused;
    json_object_foreach(these, key, unused)
    {
        if (!json_object_get(others, key))
            prb_dap_send(session, "thread",
                         json_pack("{s:s, s:I}", "reason", reason, "threadId",
                                   (json_int_t)strtoll(key, NULL, 10)));
    }
}

static bool wait_a_moment(struct prb_dap_watch *watch)
{
    struct timespec until = prb_clock_in(ROUND_MS * 1e-3);
    pthread_mutex_lock(&watch->lock);
    while (!watch->ending && !watch->look_now &&
           pthread_cond_timedwait(&watch->changed, &watch->lock, &until) != ETIMEDOUT)
        continue;
    bool go_on = !watch->ending;
    watch->look_now = false;
    pthread_mutex_unlock(&watch->lock);
    return go_on;
}

/* A thread may stop before a round has found it. */
static bool stopped_unknown(struct prb_dap_watch *watch)
{
    char key[32];
    pthread_mutex_lock(&watch->lock);
    long long thread = watch->stopped;
    watch->stopped = 0;
    pthread_mutex_unlock(&watch->lock);
    snprintf(key, sizeof key, "%lld", thread);
    return thread && watch->known && !json_object_get(watch->known, key);
}

/* A thread is in the kernel's list before Python knows it: after a change, ask once more. */
static void check_threads(struct prb_dap_watch *watch, bool *again)
{
    uint64_t tasks = sum_tasks(watch->session->pid);
    bool unknown = stopped_unknown(watch);
    if (tasks == watch->tasks && !*again && !unknown)
        return;
    *again = tasks != watch->tasks;
    watch->tasks = tasks;
    json_t *now = python_threads(watch->session);
    if (!now)
        return;
    if (watch->known) {
        send_threads(watch->session, now, watch->known, "started");
        send_threads(watch->session, watch->known, now, "exited");
    }
    json_decref(watch->known);
    watch->known = now;
}

/* False: nobody is held yet, as one in native code is only when that returns. */
static bool say_held(struct prb_dap_session *session)
{
    json_t *answer = prb_dap_ask(session, "threads", NULL, 0, NULL), *one;
    PRB_AUTO(prb_buf) struct prb_buf names = {0};
    size_t i, held = 0;
    json_array_foreach(json_object_get(answer, "threads"), i, one)
    {
        const char *name = json_string_value(json_object_get(one, "name"));
        if (json_is_true(json_object_get(one, "parked")) && held++ < NAMES_MAX)
            prb_buf_addf(&names, "%s%.100s", names.len ? ", " : "", name ? name : "a thread");
    }
    json_decref(answer);
    if (!held || !names.data)
        return false;
    prb_dap_say(session, false,
                "probing: the step has not ended yet; these threads are held meanwhile: %s%s; "
                "Continue lets all threads run",
                names.data, held > NAMES_MAX ? ", ..." : "");
    return true;
}

/* Once for a step of one thread that takes long. */
static void check_alone(struct prb_dap_session *session)
{
    double now = prb_clock_s();
    pthread_mutex_lock(&session->lock);
    double since = session->alone_since;
    bool late = since > 0 && !session->alone_said && now >= since + ALONE_S &&
                now >= session->alone_looked + ALONE_S;
    if (late)
        session->alone_looked = now;
    pthread_mutex_unlock(&session->lock);
    if (!late || !say_held(session))
        return;
    pthread_mutex_lock(&session->lock);
    session->alone_said |= session->alone_since == since;
    pthread_mutex_unlock(&session->lock);
}

static void *watch_all(void *context)
{
    struct prb_dap_watch *watch = context;
    bool again = true, children = prb_dap_children_wanted(watch->session);
    unsigned rounds = 0;
    do {
        if (rounds) /* not beside the client's first questions */
            check_threads(watch, &again);
        check_alone(watch->session);
        if (children && rounds % CHILDREN_EVERY == 0)
            prb_dap_children_announce(watch->session, &watch->children);
        rounds++;
    } while (wait_a_moment(watch));
    return NULL;
}

struct prb_dap_watch *prb_dap_watch_open(struct prb_dap_session *session)
{
    struct prb_dap_watch *watch =
        prb_dap_session_is_live(session) ? calloc(1, sizeof *watch) : NULL;
    if (!watch)
        return NULL;
    watch->session = session;
    pthread_mutex_init(&watch->lock, NULL);
    prb_clock_cond_init(&watch->changed);
    pthread_mutex_init(&watch->children.lock, NULL);
    /* As they were before the client knows that it is attached: threads that start later are
     * reported.  Those without Python are not among the attach's facts. */
    watch->known = threads_of(session->facts);
    if (!watch->known || json_is_true(prb_dap_get(session->settings, "showNativeThreads")))
        check_threads(watch, &(bool){true});
    watch->births = prb_dap_births_open(session, &watch->children);
    if (pthread_create(&watch->thread, NULL, watch_all, watch) == 0)
        return watch;
    prb_dap_births_close(watch->births);
    json_decref(watch->known);
    free(watch);
    return NULL;
}

void prb_dap_watch_now(struct prb_dap_watch *watch, long long thread)
{
    if (!watch)
        return;
    pthread_mutex_lock(&watch->lock);
    watch->look_now = true;
    watch->stopped = thread;
    pthread_cond_broadcast(&watch->changed);
    pthread_mutex_unlock(&watch->lock);
}

void prb_dap_watch_refused(struct prb_dap_watch *watch, pid_t pid)
{
    if (watch)
        prb_dap_births_refused(watch->births, pid);
}

void prb_dap_watch_gone(struct prb_dap_watch *watch)
{
    if (watch)
        prb_dap_births_gone(watch->births);
}

void prb_dap_watch_close(struct prb_dap_watch *watch)
{
    if (!watch)
        return;
    pthread_mutex_lock(&watch->lock);
    watch->ending = true;
    pthread_cond_broadcast(&watch->changed);
    pthread_mutex_unlock(&watch->lock);
    pthread_join(watch->thread, NULL);
    prb_dap_births_close(watch->births);
    pthread_mutex_destroy(&watch->children.lock);
    json_decref(watch->known);
    pthread_cond_destroy(&watch->changed);
    pthread_mutex_destroy(&watch->lock);
    free(watch);
}
