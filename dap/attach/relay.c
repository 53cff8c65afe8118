/* A session that is relayed to another server: see relay.h.  Requests of the client keep their
 * numbers.  Messages of the server get numbers of our own, as all that goes to the client; so its
 * requests are stored, to number the answers. */
#include "dap/attach/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "dap/requests/capabilities.h"

#define CONNECT_MS 10000
#define ROUND_MS 100
#define READ_AT_ONCE (64u << 10)
#define INITIALIZE_SEQ (-1) /* of our own initialize; clients begin at 1 */

struct prb_dap_relay {
    struct prb_dap_session *session;
    int fd;
    char address[300];
    struct prb_dap_wire wire;
    pthread_t reader;
    bool reading;
    pthread_mutex_t writing;
    pthread_mutex_t lock; /* of what follows; never held while we write to the server */
    json_t *unanswered;   /* {number: command} of the client's requests */
    json_t *asked;        /* {our number: the server's} of its requests to the client */
    json_t *capabilities; /* that the client knows */
    bool ending, terminated;
    double until; /* s: the end of ending */
};

/* ---- to the server ---- */

static bool write_all(int fd, const char *data, size_t len)
{
    while (len) {
        ssize_t n = send(fd, data, len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false; /* the reader notices it, too */
        data += n;
        len -= (size_t)n;
    }
    return true;
}

static void key_of(const json_t *message, const char *name, char key[32])
{
    snprintf(key, 32, "%lld", (long long)json_integer_value(json_object_get(message, name)));
}

bool prb_dap_relay_is_open(struct prb_dap_session *session)
{
    pthread_mutex_lock(&session->lock);
    bool open = session->relay != NULL;
    pthread_mutex_unlock(&session->lock);
    return open;
}

/* Give the answer the number of the server's request; false: the server made none. */
static bool number_answer(struct prb_dap_relay *relay, json_t *answer)
{
    char key[32];
    key_of(answer, "request_seq", key);
    json_t *theirs = json_incref(json_object_get(relay->asked, key));
    json_object_del(relay->asked, key);
    return theirs && json_object_set_new(answer, "request_seq", theirs) == 0;
}

void prb_dap_relay_pass(struct prb_dap_session *session, const json_t *message)
{
    struct prb_dap_relay *relay = session->relay;
    PRB_AUTO(prb_buf) struct prb_buf out = {0};
    json_t *copy = json_copy((json_t *)message);
    const char *type = json_string_value(json_object_get(message, "type"));
    char key[32];
    pthread_mutex_lock(&relay->lock);
    bool good = true;
    if (strcmp(type, "response") == 0) {
        good = number_answer(relay, copy);
    } else {
        key_of(message, "seq", key);
        json_object_set(relay->unanswered, key, json_object_get(message, "command"));
    }
    pthread_mutex_unlock(&relay->lock);
    pthread_mutex_lock(&relay->writing);
    if (good && prb_dap_wire_write(&out, copy))
        write_all(relay->fd, out.data, out.len);
    pthread_mutex_unlock(&relay->writing);
    json_decref(copy);
}

/* ---- to the client ---- */

/* Announce capabilities of the server that differ from ours. */
static void send_capabilities(struct prb_dap_relay *relay, const json_t *body)
{
    json_t *changed = json_object(), *value;
    const char *name;
    json_object_foreach((json_t *)body, name, value)
    {
        if (!json_equal(value, json_object_get(relay->capabilities, name)))
            json_object_set(changed, name, value);
    }
    if (json_object_size(changed))
        prb_dap_send(relay->session, "capabilities", json_pack("{s:O}", "capabilities", changed));
    json_decref(changed);
}

/* Takes message. */
static void take(struct prb_dap_relay *relay, json_t *message)
{
    const char *type = json_string_value(json_object_get(message, "type"));
    const char *event = json_string_value(json_object_get(message, "event"));
    json_int_t answered = json_integer_value(json_object_get(message, "request_seq"));
    char key[32];
    pthread_mutex_lock(&relay->lock);
    if (type && strcmp(type, "response") == 0) {
        key_of(message, "request_seq", key);
        json_object_del(relay->unanswered, key);
    }
    relay->terminated |= event && strcmp(event, "terminated") == 0;
    json_int_t theirs = json_integer_value(json_object_get(message, "seq"));
    bool initialized = type && strcmp(type, "response") == 0 && answered == INITIALIZE_SEQ;
    bool asks = type && strcmp(type, "request") == 0;
    if (initialized)
        send_capabilities(relay, json_object_get(message, "body"));
    json_int_t ours =
        initialized ? 0 : prb_dap_outbox_put(relay->session->outbox, json_incref(message), false);
    if (asks) {
        snprintf(key, sizeof key, "%lld", (long long)ours);
        json_object_set_new(relay->asked, key, json_integer(theirs));
    }
    pthread_mutex_unlock(&relay->lock);
    json_decref(message);
}

static bool take_messages(struct prb_dap_relay *relay)
{
    const char *body;
    size_t len;
    enum prb_dap_taken taken;
    while ((taken = prb_dap_wire_take(&relay->wire, &body, &len, NULL)) == PRB_DAP_TAKEN) {
        json_t *message = prb_dap_wire_parse(body, len, NULL);
        if (!message)
            return false;
        take(relay, message);
        if (!prb_dap_outbox_drain(relay->session->outbox))
            return false;
    }
    return taken == PRB_DAP_TAKEN_MORE;
}

static bool is_over(struct prb_dap_relay *relay)
{
    pthread_mutex_lock(&relay->lock);
    bool over = relay->ending && prb_clock_s() >= relay->until;
    pthread_mutex_unlock(&relay->lock);
    return over;
}

/* Answer the open requests with an error, and end the session. */
static void send_end(struct prb_dap_relay *relay)
{
    char text[400];
    const char *number;
    json_t *command;
    snprintf(text, sizeof text, "the server at %s closed the connection", relay->address);
    pthread_mutex_lock(&relay->lock);
    json_object_foreach(relay->unanswered, number, command)
    {
        json_int_t seq = (json_int_t)strtoll(number, NULL, 10);
        json_t *answer =
            json_pack("{s:s, s:I, s:O, s:b, s:s, s:{s:{s:i, s:s}}}", "type", "response",
                      "request_seq", seq, "command", command, "success", false, "message", text,
                      "body", "error", "id", (int)PRB_GONE, "format", text);
        prb_dap_outbox_put(relay->session->outbox, answer, false);
    }
    bool report = !relay->terminated && !relay->ending;
    pthread_mutex_unlock(&relay->lock);
    if (report)
        prb_dap_send(relay->session, "terminated", NULL);
}

static void *run(void *context)
{
    struct prb_dap_relay *relay = context;
    PRB_AUTO_FREE char *chunk = malloc(READ_AT_ONCE);
    while (chunk && !is_over(relay)) {
        struct pollfd fd = {.fd = relay->fd, .events = POLLIN};
        if (poll(&fd, 1, ROUND_MS) <= 0)
            continue;
        ssize_t n = recv(relay->fd, chunk, READ_AT_ONCE, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0 || !prb_dap_wire_add(&relay->wire, chunk, (size_t)n) || !take_messages(relay))
            break;
    }
    send_end(relay);
    prb_dap_session_leave(relay->session);
    return NULL;
}

/* ---- the connection ---- */

static bool take_address(const json_t *connect, char host[256], char port[16],
                         struct prb_error *err)
{
    const json_t *number = json_object_get(connect, "port");
    const char *name = NULL;
    if (!json_is_object(connect))
        return prb_fail(err, PRB_USAGE,
                        "connect must be an object: {\"host\": ..., \"port\": ...}");
    if (!prb_dap_get_string(connect, "host", &name, err))
        return false;
    snprintf(host, 256, "%s", name && *name ? name : "127.0.0.1");
    if (json_is_string(number))
        snprintf(port, 16, "%s", json_string_value(number));
    else
        snprintf(port, 16, "%lld", (long long)json_integer_value(number));
    char *end;
    long value = strtol(port, &end, 10);
    return (!*end && value > 0 && value < 65536) ||
           prb_fail(err, PRB_USAGE, "the port of connect must be between 1 and 65535");
}

static int connect_to(const struct addrinfo *where)
{
    int fd = socket(where->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int failed = 0, on = 1;
    socklen_t size = sizeof failed;
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    if (fd < 0)
        return -1;
    if (connect(fd, where->ai_addr, where->ai_addrlen) != 0 && errno != EINPROGRESS)
        failed = errno;
    else if (poll(&ready, 1, CONNECT_MS) != 1)
        failed = ETIMEDOUT;
    else
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &size);
    if (failed) {
        close(fd);
        errno = failed;
        return -1;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    return fd;
}

static int find_server(const char *host, const char *port, struct prb_error *err)
{
    const struct addrinfo hints = {.ai_flags = AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int failed = getaddrinfo(host, port, &hints, &found), fd = -1;
    if (failed) {
        prb_fail(err, PRB_NOT_FOUND, "the host %.200s was not found: %s", host,
                 gai_strerror(failed));
        return -1;
    }
    for (const struct addrinfo *at = found; at && fd < 0; at = at->ai_next)
        fd = connect_to(at);
    int sys = errno;
    freeaddrinfo(found);
    if (fd < 0) {
        prb_fail(err, PRB_NOT_FOUND, "no debug server answers at %.200s:%s: %s", host, port,
                 strerror(sys));
        prb_error_remedy(err, "start one there: `probing PID debug --listen`");
    }
    return fd;
}

bool prb_dap_relay_wanted(const struct prb_dap_session *session, const json_t *arguments)
{
    static const char *const own[] = {"processId", "processName", "core", "snapshot"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (prb_dap_get(arguments, own[i]))
            return false;
    return session->host->relays && prb_dap_get(arguments, "connect");
}

static void release(struct prb_dap_relay *relay)
{
    if (relay->fd >= 0)
        close(relay->fd);
    prb_dap_wire_deinit(&relay->wire);
    json_decref(relay->unanswered);
    json_decref(relay->asked);
    json_decref(relay->capabilities);
    pthread_mutex_destroy(&relay->writing);
    pthread_mutex_destroy(&relay->lock);
    free(relay);
}

static bool begin(struct prb_dap_relay *relay, struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf out = {0};
    json_t *initialize =
        json_pack("{s:i, s:s, s:s, s:O}", "seq", INITIALIZE_SEQ, "type", "request", "command",
                  "initialize", "arguments", relay->session->initialize);
    bool sent = prb_dap_wire_write(&out, initialize) && write_all(relay->fd, out.data, out.len);
    json_decref(initialize);
    if (!sent)
        return prb_fail(err, PRB_GONE, "the server at %s closed the connection", relay->address);
    int failed = pthread_create(&relay->reader, NULL, run, relay);
    relay->reading = !failed;
    return !failed || prb_fail_sys(err, failed, "starting a thread");
}

bool prb_dap_relay_open(struct prb_dap_session *session, const json_t *arguments,
                        struct prb_error *err)
{
    char host[256], port[16];
    if (!take_address(prb_dap_get(arguments, "connect"), host, port, err))
        return false;
    int fd = find_server(host, port, err);
    struct prb_dap_relay *relay = fd < 0 ? NULL : calloc(1, sizeof *relay);
    if (!relay) {
        if (fd >= 0)
            close(fd);
        return fd < 0 ? false : prb_fail(err, PRB_NOMEM, "out of memory");
    }
    *relay = (struct prb_dap_relay){.session = session,
                                    .fd = fd,
                                    .unanswered = json_object(),
                                    .asked = json_object(),
                                    .capabilities = prb_dap_capabilities_announced(session)};
    snprintf(relay->address, sizeof relay->address, "%s:%s", host, port);
    pthread_mutex_init(&relay->writing, NULL);
    pthread_mutex_init(&relay->lock, NULL);
    if (!begin(relay, err)) {
        release(relay);
        return false;
    }
    pthread_mutex_lock(&session->lock);
    session->relay = relay;
    pthread_mutex_unlock(&session->lock);
    return true;
}

void prb_dap_relay_end(struct prb_dap_session *session)
{
    struct prb_dap_relay *relay = session->relay;
    if (!relay)
        return;
    shutdown(relay->fd, SHUT_WR); /* a thread that is writing to it continues */
    pthread_mutex_lock(&relay->lock);
    relay->ending = true;
    relay->until = prb_clock_s() + PRB_DAP_GOODBYE_MS / 1000.0;
    pthread_mutex_unlock(&relay->lock);
    if (relay->reading)
        pthread_join(relay->reader, NULL);
    relay->reading = false;
}

void prb_dap_relay_close(struct prb_dap_session *session)
{
    if (session->relay)
        release(session->relay);
    session->relay = NULL;
}
