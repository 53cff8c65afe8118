/* The address of a server, and what lets clients in there: on TCP a token, and on loopback that the
 * client is the same user's; a Unix socket is the user's alone. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "dap/server/server.h"
#include "net/peer.h"

static bool parse_tcp(struct prb_dap_server *server, const char *text, struct prb_error *err)
{
    const char *colon = strrchr(text, ':');
    char host[64], port[8], *end;
    size_t len = colon ? (size_t)(colon - text) : 0;
    long number = colon ? strtol(colon + 1, &end, 10) : -1;
    if (colon && len > 1 && text[0] == '[' && text[len - 1] == ']') {
        text++;
        len -= 2;
    }
    if (!colon || !colon[1] || *end || number < 0 || number > 65535 || len >= sizeof host)
        return prb_fail(err, PRB_USAGE, "%.100s is no HOST:PORT, and no path of a Unix socket",
                        text);
    snprintf(host, sizeof host, "%.*s", (int)len, text);
    snprintf(port, sizeof port, "%ld", number);
    const struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV,
                                   .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    const char *name = len == 0 ? "127.0.0.1" : strcmp(host, "localhost") == 0 ? "127.0.0.1" : host;
    int failed = getaddrinfo(name, port, &hints, &found);
    if (failed)
        return prb_fail(err, PRB_NOT_FOUND, "the host %s is not known: %s", host,
                        gai_strerror(failed));
    memcpy(&server->place, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return true;
}

/* What the kernel chose is told: a port of 0 is none. */
static void name_tcp(struct prb_dap_server *server)
{
    char host[INET6_ADDRSTRLEN] = "";
    socklen_t size = sizeof server->place;
    getsockname(server->listening, &server->place.any, &size);
    bool six = server->place.any.sa_family == AF_INET6;
    const void *address =
        six ? (void *)&server->place.v6.sin6_addr : (void *)&server->place.v4.sin_addr;
    inet_ntop(server->place.any.sa_family, address, host, sizeof host);
    snprintf(server->address, sizeof server->address, six ? "[%s]:%u" : "%s:%u", host,
             ntohs(six ? server->place.v6.sin6_port : server->place.v4.sin_port));
}

static bool make_token(struct prb_dap_server *server, struct prb_error *err)
{
    unsigned char bytes[PRB_DAP_TOKEN_BYTES];
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return prb_fail_sys(err, errno, "making a token");
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(server->made + 2 * i, 3, "%02x", bytes[i]);
    explicit_bzero(bytes, sizeof bytes);
    server->host.token = server->made;
    return true;
}

/* By the address that is listened at, and what was given; never by where a client comes from. */
static bool choose_door(struct prb_dap_server *server, struct prb_error *err)
{
    const struct prb_dap_listen_options *options = server->options;
    bool loopback = prb_address_is_loopback(&server->place.any);
    if (options->token && strlen(options->token) < PRB_DAP_TOKEN_MIN)
        return prb_fail(err, PRB_USAGE, "the token has fewer than %d characters",
                        PRB_DAP_TOKEN_MIN);
    if (options->any_user && !options->token && !loopback) {
        prb_fail(err, PRB_USAGE,
                 "%s is not loopback, and a debugger runs any code for whoever connects",
                 options->address);
        return prb_error_remedy(err, "leave --any-user out: clients then show a token");
    }
    server->door = options->token                           ? PRB_DAP_BY_TOKEN
                   : options->any_user                      ? PRB_DAP_BY_MACHINE
                   : server->place.any.sa_family == AF_UNIX ? PRB_DAP_BY_USER
                   : loopback                               ? PRB_DAP_BY_EITHER
                                                            : PRB_DAP_BY_TOKEN;
    bool shown = server->door == PRB_DAP_BY_TOKEN || server->door == PRB_DAP_BY_EITHER;
    return options->token || !shown || make_token(server, err);
}

static bool bind_tcp(struct prb_dap_server *server, struct prb_error *err)
{
    int on = 1;
    if (!parse_tcp(server, server->options->address, err) || !choose_door(server, err))
        return false;
    bool six = server->place.any.sa_family == AF_INET6;
    server->listening =
        socket(server->place.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (server->listening < 0)
        return prb_fail_sys(err, errno, "making a socket");
    setsockopt(server->listening, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(server->listening, &server->place.any,
             six ? sizeof server->place.v6 : sizeof server->place.v4) != 0)
        return prb_fail_sys(err, errno, "listening on %s", server->options->address);
    name_tcp(server);
    return true;
}

static bool bind_local(struct prb_dap_server *server, struct prb_error *err)
{
    const char *path = server->options->address;
    struct sockaddr_un *place = &server->place.local;
    if (strlen(path) >= sizeof place->sun_path) { /* unix(7); clients could not reach it either */
        prb_fail(err, PRB_USAGE, "the path of the socket has %zu bytes, and the kernel takes %zu",
                 strlen(path), sizeof place->sun_path - 1);
        return prb_error_remedy(err, "Give --address a shorter one, as in /tmp/probing-%u.sock",
                                (unsigned)geteuid());
    }
    place->sun_family = AF_UNIX;
    strcpy(place->sun_path, path);
    if (!choose_door(server, err))
        return false;
    server->listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (server->listening < 0)
        return prb_fail_sys(err, errno, "making a socket");
    /* Its rights are those of the descriptor (Linux), so that it is never open to others. */
    fchmod(server->listening, S_IRUSR | S_IWUSR);
    if (bind(server->listening, &server->place.any, sizeof *place) != 0)
        return prb_fail_sys(err, errno, "listening on %s", path);
    server->local = true;
    if (chmod(path, S_IRUSR | S_IWUSR) != 0)
        return prb_fail_sys(err, errno, "keeping others out of %s", path);
    snprintf(server->address, sizeof server->address, "%s", path);
    return true;
}

bool prb_dap_server_bind(struct prb_dap_server *server, struct prb_error *err)
{
    const char *address = server->options->address;
    bool bound = strchr(address, '/') ? bind_local(server, err) : bind_tcp(server, err);
    if (!bound)
        return false;
    return listen(server->listening, PRB_DAP_SESSIONS_MAX) == 0 ||
           prb_fail_sys(err, errno, "listening on %s", address);
}
