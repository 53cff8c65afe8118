/* The connection: see bus.h. */
#include "fleet/bus/bus.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "config.h"

void prb_bus_token(const char *name, char out[PRB_BUS_TOKEN])
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    size_t len = 0;
    for (; *name && len + 4 <= PRB_BUS_TOKEN; name++)
        if (strchr(plain, *name))
            out[len++] = *name;
        else
            len += (size_t)sprintf(out + len, "=%02X", (unsigned char)*name);
    out[len] = '\0';
}

unsigned prb_bus_shard(const char *host)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    while (*host)
        hash = (hash ^ (unsigned char)*host++) * 16777619u;
    return (hash ^ hash >> 16) % PRB_BUS_SHARDS;
}

#ifdef PRB_SONAME_NATS

#include <nats/nats.h>

#include "base/clock.h"
#include "base/dlopen_note.h"
#include "base/hex.h"
#include "base/lazy.h"
#include "fleet/settings.h"

#define FUNCTIONS(F)                                                                               \
    F(natsOptions_Create)                                                                          \
    F(natsOptions_Destroy)                                                                         \
    F(natsOptions_SetServers)                                                                      \
    F(natsOptions_SetNoRandomize)                                                                  \
    F(natsOptions_SetIgnoreDiscoveredServers)                                                      \
    F(natsOptions_SetTimeout)                                                                      \
    F(natsOptions_SetName)                                                                         \
    F(natsOptions_SetSecure)                                                                       \
    F(natsOptions_SetCATrustedCertificates)                                                        \
    F(natsOptions_SetExpectedHostname)                                                             \
    F(natsOptions_SetNKey)                                                                         \
    F(natsOptions_SetUserCredentialsFromFiles)                                                     \
    F(natsOptions_SetUserInfo)                                                                     \
    F(natsOptions_SetSendAsap)                                                                     \
    F(natsOptions_SetPingInterval)                                                                 \
    F(natsOptions_SetMaxPingsOut)                                                                  \
    F(natsOptions_SetMaxReconnect)                                                                 \
    F(natsOptions_SetReconnectWait)                                                                \
    F(natsOptions_SetReconnectJitter)                                                              \
    F(natsOptions_SetMaxPendingMsgs)                                                               \
    F(natsOptions_SetErrorHandler)                                                                 \
    F(natsOptions_SetClosedCB)                                                                     \
    F(natsOptions_SetDisconnectedCB)                                                               \
    F(natsOptions_SetReconnectedCB)                                                                \
    F(natsOptions_UseGlobalMessageDelivery)                                                        \
    F(natsConnection_Connect)                                                                      \
    F(natsConnection_IsClosed)                                                                     \
    F(natsConnection_Close)                                                                        \
    F(natsConnection_Destroy)                                                                      \
    F(natsConnection_FlushTimeout)                                                                 \
    F(natsConnection_GetLastError)                                                                 \
    F(natsConnection_PublishMsg)                                                                   \
    F(natsConnection_Subscribe)                                                                    \
    F(natsSubscription_SetPendingLimits)                                                           \
    F(natsSubscription_SetOnCompleteCB)                                                            \
    F(natsSubscription_Unsubscribe)                                                                \
    F(natsSubscription_Destroy)                                                                    \
    F(natsMsg_Create)                                                                              \
    F(natsMsg_Destroy)                                                                             \
    F(natsMsg_GetSubject)                                                                          \
    F(natsMsg_GetReply)                                                                            \
    F(natsMsg_GetData)                                                                             \
    F(natsMsg_GetDataLength)                                                                       \
    F(natsMsg_IsNoResponders)                                                                      \
    F(natsMsgHeader_Set)                                                                           \
    F(natsMsgHeader_Get)                                                                           \
    F(natsStatus_GetText)                                                                          \
    F(nats_GetLastError)
static struct {
    FUNCTIONS(PRB_LAZY_POINTER)
} nats;
static const char *const names[] = {FUNCTIONS(PRB_LAZY_NAME)};
PRB_DLOPEN_NOTE(nats, PRB_SONAME_NATS, "suggested", "jobs of many machines");
static struct prb_lazy library = {PRB_SONAME_NATS, names, &nats, sizeof names / sizeof *names,
                                  false};

#define CONNECT_MS 3000
#define SOON 1.5 /* s that a server is waited for at first */
#define SOON_MS 100
#define PING_MS 10000
#define PINGS_OUT 2
#define CLOSES 5                   /* s */
#define PENDING_MESSAGES (1 << 20) /* libnats counts 1 KB for each, as an int */
#define PENDING_BYTES (1 << 30)

static const char *const header_names[] = {
#define HEADER(name, text) [PRB_BUS_##name] = text,
    PRB_BUS_HEADERS(HEADER)
#undef HEADER
};

struct prb_bus {
    natsConnection *connection;
    struct prb_nkey key;
    const char *class; /* of the bus file; "": it does not say */
    char inbox[40];    /* what replies to us are sent below */
    void (*event)(void *context, enum prb_bus_event event, const char *text);
    void *context;
    pthread_mutex_t lock;
    pthread_cond_t end;
    char refused[200]; /* guarded by lock */
    bool closed;       /* the same */
};

struct prb_bus_subscription {
    natsSubscription *subscription;
    prb_bus_fn *fn;
    void *context;
    void (*gone)(void *context); /* or NULL */
};

static bool failed(struct prb_error *err, natsStatus status, const char *what)
{
    natsStatus last = status;
    const char *more = nats.nats_GetLastError(&last);
    enum prb_code code = status == NATS_NOT_PERMITTED || status == NATS_CONNECTION_AUTH_FAILED ||
                                 status == NATS_SSL_ERROR
                             ? PRB_PERMISSION
                         : status == NATS_NO_MEMORY ? PRB_NOMEM
                         : status == NATS_TIMEOUT   ? PRB_TIMEOUT
                                                    : PRB_IO;
    return prb_fail(err, code, "%s: %s%s%.160s", what, nats.natsStatus_GetText(status),
                    more ? ": " : "", more ? more : "");
}

/* ---- what happens to it ---- */

static void tell(struct prb_bus *bus, enum prb_bus_event event, const char *text)
{
    if (bus->event)
        bus->event(bus->context, event, text);
}

static void on_error(natsConnection *connection, natsSubscription *subscription, natsStatus status,
                     void *context)
{
    struct prb_bus *bus = context;
    const char *text = NULL;
    (void)subscription;
    nats.natsConnection_GetLastError(connection, &text);
    if (status == NATS_SLOW_CONSUMER)
        text = "replies came faster than they were read, and some were dropped";
    if (!text || !*text)
        text = nats.natsStatus_GetText(status);
    pthread_mutex_lock(&bus->lock);
    snprintf(bus->refused, sizeof bus->refused, "%s", text);
    pthread_mutex_unlock(&bus->lock);
    tell(bus, PRB_BUS_REFUSED, text);
}

static void on_lost(natsConnection *connection, void *context)
{
    (void)connection;
    tell(context, PRB_BUS_LOST, NULL);
}

static void on_back(natsConnection *connection, void *context)
{
    (void)connection;
    tell(context, PRB_BUS_BACK, NULL);
}

/* The last that libnats tells of it. */
static void on_closed(natsConnection *connection, void *context)
{
    struct prb_bus *bus = context;
    (void)connection;
    tell(bus, PRB_BUS_CLOSED, NULL);
    pthread_mutex_lock(&bus->lock);
    bus->closed = true;
    pthread_cond_signal(&bus->end);
    pthread_mutex_unlock(&bus->lock);
}

/* False: it does not come, and libnats may still use the bus. */
static bool wait_closed(struct prb_bus *bus)
{
    struct timespec until = prb_clock_in(CLOSES);
    int wait = 0;
    pthread_mutex_lock(&bus->lock);
    while (!bus->closed && wait == 0)
        wait = pthread_cond_timedwait(&bus->end, &bus->lock, &until);
    bool closed = bus->closed;
    pthread_mutex_unlock(&bus->lock);
    return closed;
}

bool prb_bus_check(struct prb_bus *bus, struct prb_error *err)
{
    pthread_mutex_lock(&bus->lock);
    bool refused = bus->refused[0];
    if (refused)
        prb_fail(err, PRB_PERMISSION, "the bus refuses: %s", bus->refused);
    if (refused && *bus->class && strstr(bus->refused, "ermissions "))
        prb_error_remedy(err,
                         "the bus file is of class %s: to look takes the file look, to act "
                         "control, to run code eval; --bus FOLDER takes each as it is needed",
                         bus->class);
    bus->refused[0] = '\0';
    pthread_mutex_unlock(&bus->lock);
    return !refused;
}

/* ---- opening ---- */

static natsStatus sign(char **error, unsigned char **signature, int *len, const char *nonce,
                       void *context)
{
    struct prb_bus *bus = context;
    *error = NULL;
    *signature = malloc(PRB_NKEY_SIGNATURE);
    *len = PRB_NKEY_SIGNATURE;
    /* One of 256 signatures begins with a zero, which nats_Base64RawURL_EncodeString() of libnats
     * takes for the end of an empty one: the server would refuse.  The next login has another nonce
     * to sign. */
    if (*signature && prb_nkey_sign(&bus->key, nonce, strlen(nonce), *signature, NULL) &&
        (*signature)[0] != 0)
        return NATS_OK;
    free(*signature);
    *signature = NULL;
    return NATS_ERR;
}

static bool wants_tls(const struct prb_bus_file *file, bool insecure, bool *out,
                      struct prb_error *err)
{
    *out = false;
    for (size_t i = 0; i < file->server_count; i++) {
        const char *server = file->servers[i];
        *out = *out || prb_bus_server_is_tls(server);
        if (prb_bus_server_is_tls(server) || prb_bus_server_is_loopback(server) || insecure)
            continue;
        prb_fail(err, PRB_PERMISSION, "the bus at %.120s is without TLS", server);
        return prb_error_remedy(err, "give it TLS (tls://), or take the risk by --insecure");
    }
    return true;
}

static natsStatus let_in(struct prb_bus *bus, const struct prb_bus_file *file, natsOptions *options)
{
    char public[PRB_NKEY_TEXT_SIZE];
    if (file->has_key) {
        bus->key = file->key;
        prb_nkey_text(bus->key.public, public);
        return nats.natsOptions_SetNKey(options, public, sign, bus);
    }
    if (file->creds)
        return nats.natsOptions_SetUserCredentialsFromFiles(options, file->creds, NULL);
    return file->user ? nats.natsOptions_SetUserInfo(options, file->user, file->password) : NATS_OK;
}

#define TRY(status, call)                                                                          \
    do {                                                                                           \
        if ((status) == NATS_OK)                                                                   \
            (status) = (call);                                                                     \
    } while (0)

static natsStatus set_all(struct prb_bus *bus, const struct prb_bus_file *file,
                          const struct prb_bus_options *want, bool tls, natsOptions *options)
{
    natsStatus status =
        nats.natsOptions_SetServers(options, (const char **)file->servers, (int)file->server_count);
    /* 2 s for 1,000 hosts that may come back at once is 2 ms for each. */
    int64_t jitter = (int64_t)(prb_fleet_setting(PRB_FLEET_reconnect_jitter) * want->hosts) + 100;
    TRY(status, nats.natsOptions_SetNoRandomize(options, true));
    TRY(status, nats.natsOptions_SetIgnoreDiscoveredServers(options, true));
    TRY(status, nats.natsOptions_SetTimeout(options, CONNECT_MS));
    TRY(status, nats.natsOptions_SetName(options, want->name));
    TRY(status, nats.natsOptions_SetSendAsap(options, true));
    TRY(status, nats.natsOptions_SetPingInterval(options, PING_MS));
    TRY(status, nats.natsOptions_SetMaxPingsOut(options, PINGS_OUT));
    TRY(status, nats.natsOptions_SetMaxReconnect(options, want->keep ? -1 : 20));
    TRY(status, nats.natsOptions_SetReconnectWait(
                    options, (int64_t)(prb_fleet_setting(PRB_FLEET_reconnect_wait) * 1e3)));
    TRY(status, nats.natsOptions_SetReconnectJitter(options, jitter, jitter));
    TRY(status, nats.natsOptions_SetMaxPendingMsgs(options, PENDING_MESSAGES));
    TRY(status, nats.natsOptions_UseGlobalMessageDelivery(options, true));
    TRY(status, nats.natsOptions_SetErrorHandler(options, on_error, bus));
    TRY(status, nats.natsOptions_SetClosedCB(options, on_closed, bus));
    TRY(status, nats.natsOptions_SetDisconnectedCB(options, on_lost, bus));
    TRY(status, nats.natsOptions_SetReconnectedCB(options, on_back, bus));
    if (tls) {
        TRY(status, nats.natsOptions_SetSecure(options, true));
        /* Without an authority of its own the server has a name that the system's ones vouch for. */
        if (file->ca) {
            TRY(status, nats.natsOptions_SetCATrustedCertificates(options, file->ca));
            TRY(status, nats.natsOptions_SetExpectedHostname(options, file->name ? file->name
                                                                                 : PRB_BUS_NAME));
        }
    }
    TRY(status, let_in(bus, file, options));
    return status;
}

static bool cannot_connect(const char *server, natsStatus status, struct prb_error *err)
{
    struct prb_error why = {0};
    failed(&why, status, "the bus cannot be reached");
    const char *when = strstr(why.text, "certificate has expired")  ? "has expired"
                       : strstr(why.text, "certificate is not yet") ? "is not valid yet"
                                                                    : NULL;
    if (status == NATS_SSL_ERROR && when) {
        prb_fail(err, PRB_PERMISSION,
                 "the certificate of the server at %.120s %s by this host's clock", server, when);
        return prb_error_remedy(err, "set the clock; else end the bus, remove its folder, and "
                                     "begin anew by `probing cluster up`");
    }
    if (err)
        *err = why;
    if (status == NATS_SSL_ERROR) {
        prb_fail(err, PRB_PERMISSION,
                 "the server at %.120s is not that of this bus file: its "
                 "certificate is another's",
                 server);
        return prb_error_remedy(err, "take the bus file that `cluster up` wrote last");
    }
    if (err && err->code == PRB_PERMISSION)
        return prb_error_remedy(err, "the server does not know the key of this bus file: take the "
                                     "one that `cluster up` wrote last");
    return prb_error_remedy(err,
                            "is it running? `probing cluster up` on its host; it should be at "
                            "%.120s",
                            server);
}

static bool is_refusal(natsStatus status)
{
    return status == NATS_SSL_ERROR || status == NATS_CONNECTION_AUTH_FAILED;
}

/* A server that was just killed is back soon. */
static natsStatus connect_soon(struct prb_bus *bus, natsOptions *options)
{
    double until = prb_clock_s() + SOON;
    natsStatus status;
    while ((status = nats.natsConnection_Connect(&bus->connection, options)) != NATS_OK &&
           !is_refusal(status) && prb_clock_s() < until)
        poll(NULL, 0, SOON_MS);
    return status;
}

/* Of some servers libnats tells what the last one did: one that refuses says more than one that is not there. */
static natsStatus connect_each(struct prb_bus *bus, const struct prb_bus_file *file,
                               natsOptions *options, const char **server_out)
{
    natsStatus status = connect_soon(bus, options);
    *server_out = file->servers[0];
    for (size_t i = 0; i < file->server_count && status != NATS_OK && !is_refusal(status); i++) {
        natsStatus one = nats.natsOptions_SetServers(options, (const char **)&file->servers[i], 1);
        TRY(one, nats.natsConnection_Connect(&bus->connection, options));
        if (one != NATS_OK && !is_refusal(one))
            continue;
        status = one;
        *server_out = file->servers[i];
    }
    return status;
}

struct prb_bus *prb_bus_open(const struct prb_bus_file *file, const struct prb_bus_options *want,
                             struct prb_error *err)
{
    bool tls;
    natsOptions *options = NULL;
    if (!wants_tls(file, want->insecure, &tls, err))
        return NULL;
    if (!prb_lazy_open(&library, err)) {
        prb_error_remedy(err, "install libnats (Debian and Ubuntu: apt install libnats3.4)");
        return NULL;
    }
    prb_crypto_open(NULL); /* libnats says whether it goes on without */
    struct prb_bus *bus = calloc(1, sizeof *bus);
    if (!bus)
        return PRB_NULL(prb_nomem(err));
    pthread_mutex_init(&bus->lock, NULL);
    prb_clock_cond_init(&bus->end);
    bus->event = want->event;
    bus->context = want->context;
    bus->class = file->has_class ? prb_bus_class_name(file->class) : "";
    snprintf(bus->inbox, sizeof bus->inbox, "_INBOX%s%s", *bus->class ? "." : "", bus->class);
    const char *server = file->servers[0];
    natsStatus status = nats.natsOptions_Create(&options);
    TRY(status, set_all(bus, file, want, tls, options));
    TRY(status, connect_each(bus, file, options, &server));
    if (options)
        nats.natsOptions_Destroy(options);
    if (status == NATS_OK)
        return bus;
    cannot_connect(server, status, err);
    prb_bus_close(bus);
    return NULL;
}

void prb_bus_close(struct prb_bus *bus)
{
    if (!bus)
        return;
    if (bus->connection) {
        nats.natsConnection_FlushTimeout(bus->connection, 500);
        nats.natsConnection_Close(bus->connection);
        bool closed = wait_closed(bus);
        nats.natsConnection_Destroy(bus->connection);
        if (!closed)
            return;
    }
    pthread_cond_destroy(&bus->end);
    pthread_mutex_destroy(&bus->lock);
    explicit_bzero(&bus->key, sizeof bus->key);
    free(bus);
}

/* ---- messages ---- */

bool prb_bus_publish(struct prb_bus *bus, const struct prb_bus_message *message,
                     struct prb_error *err)
{
    natsMsg *made = NULL;
    natsStatus status = nats.natsMsg_Create(&made, message->subject, message->reply, message->data,
                                            (int)message->len);
    for (int i = 0; i < PRB_BUS_HEADER_COUNT; i++)
        if (message->headers[i])
            TRY(status, nats.natsMsgHeader_Set(made, header_names[i], message->headers[i]));
    TRY(status, nats.natsConnection_PublishMsg(bus->connection, made));
    if (made)
        nats.natsMsg_Destroy(made);
    return status == NATS_OK || failed(err, status, "sending to the bus");
}

bool prb_bus_flush(struct prb_bus *bus, double seconds, struct prb_error *err)
{
    natsStatus status =
        nats.natsConnection_FlushTimeout(bus->connection, (int64_t)(seconds * 1e3) + 1);
    return status == NATS_OK || failed(err, status, "the bus does not answer");
}

static void fill(struct prb_bus_message *out, natsMsg *msg)
{
    *out = (struct prb_bus_message){
        .subject = nats.natsMsg_GetSubject(msg),
        .reply = nats.natsMsg_GetReply(msg),
        .data = nats.natsMsg_GetData(msg),
        .len = (size_t)nats.natsMsg_GetDataLength(msg),
        .nobody = nats.natsMsg_IsNoResponders(msg),
        .held = msg,
    };
    for (int i = 0; i < PRB_BUS_HEADER_COUNT; i++)
        if (nats.natsMsgHeader_Get(msg, header_names[i], &out->headers[i]) != NATS_OK)
            out->headers[i] = NULL;
}

void prb_bus_message_free(struct prb_bus_message *message)
{
    if (message->held)
        nats.natsMsg_Destroy(message->held);
    *message = (struct prb_bus_message){0};
}

/* ---- subscriptions ---- */

static void on_message(natsConnection *connection, natsSubscription *from, natsMsg *msg,
                       void *context)
{
    struct prb_bus_subscription *subscription = context;
    struct prb_bus_message message;
    (void)connection, (void)from;
    fill(&message, msg);
    subscription->fn(subscription->context, &message);
    prb_bus_message_free(&message);
}

struct prb_bus_subscription *prb_bus_subscribe(struct prb_bus *bus, const char *subject,
                                               prb_bus_fn *fn, void *context, struct prb_error *err)
{
    struct prb_bus_subscription *made = calloc(1, sizeof *made);
    if (!made)
        return PRB_NULL(prb_nomem(err));
    *made = (struct prb_bus_subscription){.fn = fn, .context = context};
    natsStatus status = nats.natsConnection_Subscribe(&made->subscription, bus->connection, subject,
                                                      on_message, made);
    if (status == NATS_OK)
        return made;
    free(made);
    return PRB_NULL(failed(err, status, "hearing the bus"));
}

static void forget(void *context)
{
    struct prb_bus_subscription *subscription = context;
    if (subscription->gone)
        subscription->gone(subscription->context);
    free(subscription);
}

void prb_bus_unsubscribe_then(struct prb_bus_subscription *subscription,
                              void (*gone)(void *context))
{
    natsSubscription *held = subscription ? subscription->subscription : NULL;
    if (!held)
        return;
    subscription->gone = gone;
    /* A message may be on its way to it. */
    nats.natsSubscription_SetOnCompleteCB(held, forget, subscription);
    nats.natsSubscription_Unsubscribe(held);
    nats.natsSubscription_Destroy(held);
}

void prb_bus_unsubscribe(struct prb_bus_subscription *subscription)
{
    prb_bus_unsubscribe_then(subscription, NULL);
}

/* ---- inboxes ---- */

bool prb_bus_own_subject(const struct prb_bus *bus, char out[PRB_BUS_OWN], struct prb_error *err)
{
    unsigned char random[12];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return prb_fail(err, PRB_IO, "no random number for an inbox");
    int len = snprintf(out, PRB_BUS_OWN, "%s.", bus->inbox);
    prb_hex(random, sizeof random, out + len);
    return true;
}

/* Not libnats's own queue: that one hides which question nobody heard. */
struct letter {
    struct letter *next;
    natsMsg *msg;
};

struct prb_bus_inbox {
    struct prb_bus *bus;
    natsSubscription *subscription;
    char subject[PRB_BUS_OWN];
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct letter *first, **last; /* guarded by lock */
};

static void on_letter(natsConnection *connection, natsSubscription *from, natsMsg *msg,
                      void *context)
{
    struct prb_bus_inbox *inbox = context;
    struct letter *letter = calloc(1, sizeof *letter);
    (void)connection, (void)from;
    if (!letter) {
        nats.natsMsg_Destroy(msg);
        return;
    }
    letter->msg = msg;
    pthread_mutex_lock(&inbox->lock);
    *inbox->last = letter;
    inbox->last = &letter->next;
    pthread_cond_signal(&inbox->more);
    pthread_mutex_unlock(&inbox->lock);
}

static void end_inbox(void *context)
{
    struct prb_bus_inbox *inbox = context;
    for (struct letter *letter; (letter = inbox->first);) {
        inbox->first = letter->next;
        nats.natsMsg_Destroy(letter->msg);
        free(letter);
    }
    pthread_cond_destroy(&inbox->more);
    pthread_mutex_destroy(&inbox->lock);
    free(inbox);
}

struct prb_bus_inbox *prb_bus_inbox_new(struct prb_bus *bus, struct prb_error *err)
{
    char all[PRB_BUS_OWN + 2];
    struct prb_bus_inbox *inbox = calloc(1, sizeof *inbox);
    if (!inbox)
        return PRB_NULL(prb_nomem(err));
    if (!prb_bus_own_subject(bus, inbox->subject, err)) {
        free(inbox);
        return NULL;
    }
    inbox->bus = bus;
    inbox->last = &inbox->first;
    pthread_mutex_init(&inbox->lock, NULL);
    prb_clock_cond_init(&inbox->more);
    snprintf(all, sizeof all, "%s.*", inbox->subject);
    natsStatus status =
        nats.natsConnection_Subscribe(&inbox->subscription, bus->connection, all, on_letter, inbox);
    if (status != NATS_OK) {
        end_inbox(inbox);
        return PRB_NULL(failed(err, status, "an inbox"));
    }
    nats.natsSubscription_SetPendingLimits(inbox->subscription, PENDING_MESSAGES, PENDING_BYTES);
    return inbox;
}

void prb_bus_inbox_free(struct prb_bus_inbox *inbox)
{
    natsSubscription *held = inbox ? inbox->subscription : NULL;
    if (!held)
        return;
    /* A letter may be on its way to it. */
    nats.natsSubscription_SetOnCompleteCB(held, end_inbox, inbox);
    nats.natsSubscription_Unsubscribe(held);
    nats.natsSubscription_Destroy(held);
}

void prb_bus_inbox_subject(const struct prb_bus_inbox *inbox, unsigned tag,
                           char out[PRB_BUS_SUBJECT])
{
    snprintf(out, PRB_BUS_SUBJECT, "%s.%u", inbox->subject, tag);
}

unsigned prb_bus_inbox_tag(const struct prb_bus_inbox *inbox, const char *subject)
{
    size_t len = strlen(inbox->subject);
    return strncmp(subject, inbox->subject, len) == 0 && subject[len] == '.'
               ? (unsigned)strtoul(subject + len + 1, NULL, 10)
               : 0;
}

static struct letter *take_letter(struct prb_bus_inbox *inbox)
{
    struct letter *letter = inbox->first;
    if (letter && !(inbox->first = letter->next))
        inbox->last = &inbox->first;
    return letter;
}

bool prb_bus_inbox_next(struct prb_bus_inbox *inbox, double seconds, struct prb_bus_message *out,
                        struct prb_error *err)
{
    struct timespec until = prb_clock_timespec(prb_clock_s() + (seconds > 0 ? seconds : 0));
    pthread_mutex_lock(&inbox->lock);
    struct letter *letter;
    int wait = 0;
    while (!(letter = take_letter(inbox)) && wait == 0)
        wait = pthread_cond_timedwait(&inbox->more, &inbox->lock, &until);
    pthread_mutex_unlock(&inbox->lock);
    *out = (struct prb_bus_message){0};
    if (letter) {
        fill(out, letter->msg);
        free(letter);
        return true;
    }
    if (nats.natsConnection_IsClosed(inbox->bus->connection))
        return prb_fail(err, PRB_IO, "the connection to the bus is closed");
    /* The usual case, and not worth a text. */
    if (err)
        err->code = PRB_TIMEOUT;
    return false;
}

#else

struct prb_bus *prb_bus_open(const struct prb_bus_file *file, const struct prb_bus_options *want,
                             struct prb_error *err)
{
    (void)file, (void)want;
    prb_fail(err, PRB_UNSUPPORTED,
             "this probing was built without libnats, which other hosts are "
             "reached by");
    prb_error_remedy(err, "install libnats-dev and build again; this host's ranks are @local");
    return NULL;
}

void prb_bus_close(struct prb_bus *bus) { (void)bus; }

bool prb_bus_check(struct prb_bus *bus, struct prb_error *err)
{
    (void)bus, (void)err;
    return true;
}

void prb_bus_message_free(struct prb_bus_message *message) { (void)message; }

bool prb_bus_publish(struct prb_bus *bus, const struct prb_bus_message *message,
                     struct prb_error *err)
{
    (void)bus, (void)message;
    return prb_fail(err, PRB_UNSUPPORTED, "no libnats");
}

bool prb_bus_flush(struct prb_bus *bus, double seconds, struct prb_error *err)
{
    (void)bus, (void)seconds;
    return prb_fail(err, PRB_UNSUPPORTED, "no libnats");
}

struct prb_bus_subscription *prb_bus_subscribe(struct prb_bus *bus, const char *subject,
                                               prb_bus_fn *fn, void *context, struct prb_error *err)
{
    (void)bus, (void)subject, (void)fn, (void)context;
    return PRB_NULL(prb_fail(err, PRB_UNSUPPORTED, "no libnats"));
}

void prb_bus_unsubscribe(struct prb_bus_subscription *subscription) { (void)subscription; }

void prb_bus_unsubscribe_then(struct prb_bus_subscription *subscription,
                              void (*gone)(void *context))
{
    (void)subscription, (void)gone;
}

bool prb_bus_own_subject(const struct prb_bus *bus, char out[PRB_BUS_OWN], struct prb_error *err)
{
    (void)bus;
    out[0] = '\0';
    return prb_fail(err, PRB_UNSUPPORTED, "no libnats");
}

struct prb_bus_inbox *prb_bus_inbox_new(struct prb_bus *bus, struct prb_error *err)
{
    (void)bus;
    return PRB_NULL(prb_fail(err, PRB_UNSUPPORTED, "no libnats"));
}

void prb_bus_inbox_free(struct prb_bus_inbox *inbox) { (void)inbox; }

void prb_bus_inbox_subject(const struct prb_bus_inbox *inbox, unsigned tag,
                           char out[PRB_BUS_SUBJECT])
{
    (void)inbox, (void)tag;
    out[0] = '\0';
}

unsigned prb_bus_inbox_tag(const struct prb_bus_inbox *inbox, const char *subject)
{
    (void)inbox, (void)subject;
    return 0;
}

bool prb_bus_inbox_next(struct prb_bus_inbox *inbox, double seconds, struct prb_bus_message *out,
                        struct prb_error *err)
{
    (void)inbox, (void)seconds, (void)out;
    return prb_fail(err, PRB_UNSUPPORTED, "no libnats");
}

#endif
