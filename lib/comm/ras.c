/* The client of NCCL's RAS service: see ras.h. */
#include "comm/ras.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <poll.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "net/address.h"
#include "net/peer.h"

#define PLACES_MAX 8
#define LINE_MAX_BYTES 512
#define HELLO_S 1.0 /* until it accepts, and for its first line */
#define LINE_S 5.0  /* for each further one before the status */
#define TRIES 3     /* ranks share the port, and one of them may be stopped */

PRB_DEFINE_AUTO_PTR(ifaddrs, struct ifaddrs, freeifaddrs)
PRB_DEFINE_AUTO_PTR(addrinfo, struct addrinfo, freeaddrinfo)

/* ---- where ---- */

struct places {
    struct prb_address items[PLACES_MAX];
    size_t count;
};

static bool same_host(const struct sockaddr *a, const struct sockaddr *b)
{
    if (a->sa_family != b->sa_family)
        return false;
    if (a->sa_family == AF_INET)
        return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
               ((const struct sockaddr_in *)b)->sin_addr.s_addr;
    return a->sa_family == AF_INET6 &&
           memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr,
                  &((const struct sockaddr_in6 *)b)->sin6_addr, sizeof(struct in6_addr)) == 0;
}

/* The address comes from the target: it must not send us to other machines. */
static bool is_of_this_machine(const struct sockaddr *address)
{
    PRB_AUTO(ifaddrs) struct ifaddrs *all = NULL;
    if (prb_address_is_loopback(address))
        return true;
    if (getifaddrs(&all) != 0)
        return false;
    for (const struct ifaddrs *one = all; one; one = one->ifa_next)
        if (one->ifa_addr && same_host(one->ifa_addr, address))
            return true;
    return false;
}

/* One that listens at all addresses is asked at the loopback one. */
static void to_loopback(struct prb_address *place)
{
    if (place->any.sa_family == AF_INET && place->v4.sin_addr.s_addr == htonl(INADDR_ANY))
        place->v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    else if (place->any.sa_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&place->v6.sin6_addr))
        place->v6.sin6_addr = in6addr_loopback;
}

/* "HOST:PORT" or "[V6]:PORT", V6 maybe with "%interface". */
static bool split(const char *text, char host[PRB_RAS_ADDRESS_MAX], char port[8])
{
    const char *colon = strrchr(text, ':');
    size_t len = colon ? (size_t)(colon - text) : 0;
    char *end;
    if (len == 0 || len >= PRB_RAS_ADDRESS_MAX)
        return false;
    long number = strtol(colon + 1, &end, 10);
    if (end == colon + 1 || *end || number < 1 || number > 65535)
        return false;
    bool six = text[0] == '[' && text[len - 1] == ']';
    snprintf(host, PRB_RAS_ADDRESS_MAX, "%.*s", (int)(six ? len - 2 : len), text + six);
    snprintf(port, 8, "%ld", number);
    return true;
}

/* No name server is asked for a name that the target chose. */
static bool may_resolve(const char *host)
{
    char own[PRB_RAS_ADDRESS_MAX] = "";
    gethostname(own, sizeof own - 1);
    return strcmp(host, "localhost") == 0 || (*own && strcmp(host, own) == 0);
}

static bool find_places(const char *text, struct places *out, struct prb_error *err)
{
    char host[PRB_RAS_ADDRESS_MAX], port[8];
    PRB_AUTO(addrinfo) struct addrinfo *found = NULL;
    *out = (struct places){0};
    if (!split(text, host, port))
        return prb_fail(err, PRB_USAGE, "NCCL_RAS_ADDR of the process is no HOST:PORT");
    const struct addrinfo hints = {.ai_flags =
                                       AI_NUMERICSERV | (may_resolve(host) ? 0 : AI_NUMERICHOST),
                                   .ai_socktype = SOCK_STREAM};
    if (getaddrinfo(host, port, &hints, &found) != 0)
        found = NULL;
    for (const struct addrinfo *one = found; one && out->count < PLACES_MAX; one = one->ai_next) {
        struct prb_address *place = &out->items[out->count];
        if (one->ai_addrlen > sizeof place->room)
            continue;
        memcpy(&place->room, one->ai_addr, one->ai_addrlen);
        place->len = one->ai_addrlen;
        to_loopback(place);
        out->count += is_of_this_machine(&place->any);
    }
    return out->count || prb_fail(err, PRB_USAGE,
                                  "NCCL_RAS_ADDR of the process, %.100s, is no address of this "
                                  "machine",
                                  text);
}

/* ---- what is said ---- */

struct link {
    int fd;
    double until;    /* the whole of it */
    bool said_hello; /* it is a RAS service */
};

static bool wait_for(int fd, short events, double until)
{
    for (;;) {
        struct pollfd one = {.fd = fd, .events = events};
        double left = until - prb_clock_s();
        int ready = left > 0 ? poll(&one, 1, (int)(left * 1000) + 1) : 0;
        if (ready > 0)
            return true;
        if (left <= 0 || (ready < 0 && errno != EINTR))
            return false;
    }
}

static bool connect_to(struct link *link, const struct prb_address *place)
{
    int failed = 0;
    socklen_t size = sizeof failed;
    link->fd = socket(place->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (link->fd < 0)
        return false;
    if (connect(link->fd, &place->any, place->len) == 0)
        return true;
    return errno == EINPROGRESS && wait_for(link->fd, POLLOUT, prb_clock_s() + HELLO_S) &&
           getsockopt(link->fd, SOL_SOCKET, SO_ERROR, &failed, &size) == 0 && failed == 0;
}

static bool say(const struct link *link, const char *text, struct prb_error *err)
{
    size_t len = strlen(text); /* far less than a socket's buffer */
    if (send(link->fd, text, len, MSG_NOSIGNAL) == (ssize_t)len)
        return true;
    return prb_fail(err, PRB_GONE, "NCCL's RAS service has closed the connection");
}

/* One line, without its end.  It says nothing unasked, so nothing is read beyond. */
static bool hear(const struct link *link, char line[LINE_MAX_BYTES], struct prb_error *err)
{
    double until = prb_clock_s() + (link->said_hello ? LINE_S : HELLO_S);
    size_t len = 0;
    until = until < link->until ? until : link->until;
    while (len < LINE_MAX_BYTES - 1) {
        if (!wait_for(link->fd, POLLIN, until))
            return prb_fail(err, PRB_TIMEOUT, "NCCL's RAS service did not answer in time");
        ssize_t got = recv(link->fd, line + len, 1, 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (got <= 0)
            return prb_fail(err, PRB_GONE, "NCCL's RAS service has closed the connection");
        if (line[len] == '\n') {
            line[len] = '\0';
            return true;
        }
        len++;
    }
    return prb_fail(err, PRB_CORRUPT, "a line of more than %d bytes", LINE_MAX_BYTES);
}

static bool ask_line(const struct link *link, const char *text, char line[LINE_MAX_BYTES],
                     struct prb_error *err)
{
    return say(link, text, err) && hear(link, line, err);
}

/* Everything up to the end of the connection. */
static bool hear_all(const struct link *link, struct prb_buf *out, struct prb_error *err)
{
    for (;;) {
        char *room = prb_buf_reserve(out, 65536);
        if (!room)
            return prb_nomem(err);
        if (!wait_for(link->fd, POLLIN, link->until))
            return prb_fail(err, PRB_TIMEOUT,
                            "NCCL's RAS service did not end its answer in time (%zu bytes came)",
                            out->len);
        ssize_t got = recv(link->fd, room, 65536, 0);
        if (got == 0)
            return true;
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (got < 0)
            return prb_fail(err, PRB_GONE, "NCCL's RAS service has broken off its answer");
        out->len += (size_t)got;
        out->data[out->len] = '\0';
        if (out->len > PRB_RAS_TEXT_MAX)
            return prb_fail(err, PRB_CORRUPT,
                            "the answer of NCCL's RAS service has more than %zu MiB",
                            PRB_RAS_TEXT_MAX >> 20);
    }
}

static bool is_ok(const char *line) { return strncasecmp(line, "OK", 2) == 0; }

static bool talk(struct link *link, uid_t user, struct prb_ras_answer *out, struct prb_error *err)
{
    char line[LINE_MAX_BYTES], text[32];
    double left = (link->until - prb_clock_s()) / 2;
    int seconds = left < 1 ? 1 : left > PRB_RAS_SERVER_S ? PRB_RAS_SERVER_S : (int)left;
    if (!ask_line(link, "CLIENT PROTOCOL 2\n", line, err))
        return false;
    link->said_hello = true;
    if (strncasecmp(line, "SERVER PROTOCOL ", 16) != 0)
        return prb_fail(err, PRB_CORRUPT, "it is no RAS service of NCCL");
    if (!prb_peer_check(link->fd, user, err)) /* it has accepted: the kernel knows whose it is */
        return false;
    snprintf(text, sizeof text, "TIMEOUT %d\n", seconds);
    if (!ask_line(link, text, line, err))
        return false;
    if (!is_ok(line))
        return prb_fail(err, PRB_CORRUPT, "NCCL's RAS service refuses a time limit");
    if (!ask_line(link, "SET FORMAT json\n", line, err))
        return false;
    out->json = is_ok(line); /* older ones know text alone */
    return say(link, "VERBOSE STATUS\n", err) && hear_all(link, &out->text, err);
}

static void close_link(struct link *link)
{
    if (link->fd >= 0)
        close(link->fd);
}
PRB_DEFINE_AUTO(link, struct link, close_link)

static bool ask_place(const struct prb_address *place, uid_t user, double until, bool *again_out,
                      struct prb_ras_answer *out, struct prb_error *err)
{
    PRB_AUTO(link) struct link link = {.fd = -1, .until = until};
    struct prb_error why = {0};
    char text[PRB_ADDRESS_TEXT];
    prb_address_print(place, text);
    *again_out = false;
    out->text.len = 0;
    if (!connect_to(&link, place)) {
        prb_fail(err, PRB_NOT_FOUND, "no RAS service of NCCL answers at %s", text);
        return prb_error_remedy(err, "NCCL 2.24 and later have one from the first communicator on, "
                                     "unless NCCL_RAS_ENABLE is 0");
    }
    if (talk(&link, user, out, &why))
        return true;
    *again_out = !link.said_hello && why.code == PRB_TIMEOUT;
    return prb_fail(err, why.code, "%s: %s", text, why.text);
}

bool prb_ras_ask(const char *address, uid_t user, double until, struct prb_ras_answer *out,
                 struct prb_error *err)
{
    struct places places;
    *out = (struct prb_ras_answer){0};
    if (!find_places(address ? address : PRB_RAS_ADDRESS, &places, err))
        return false;
    prb_fail(err, PRB_TIMEOUT, "no time is left to ask NCCL's RAS service");
    for (size_t i = 0; i < places.count; i++) {
        bool again = true;
        for (int tries = 0; again && tries < TRIES && prb_clock_s() < until; tries++)
            if (ask_place(&places.items[i], user, until, &again, out, err))
                return true;
        /* The first that is there at all has told the reason. */
        if (!err || err->code != PRB_NOT_FOUND)
            break;
    }
    prb_buf_deinit(&out->text);
    *out = (struct prb_ras_answer){0};
    return false;
}
