/* Addresses, and sockets that listen: see address.h. */
#include "net/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"

static bool parse_path(const char *path, struct prb_address *out, struct prb_error *err)
{
    if (strlen(path) >= sizeof out->local.sun_path) {
        prb_fail(err, PRB_USAGE, "the path of the socket has %zu bytes, and the kernel takes %zu",
                 strlen(path), sizeof out->local.sun_path - 1);
        return prb_error_remedy(err, "use a shorter path, as in /tmp/probing-%u.sock",
                                (unsigned)geteuid());
    }
    out->local.sun_family = AF_UNIX;
    strcpy(out->local.sun_path, path);
    out->len = sizeof out->local;
    return true;
}

/* The host without its brackets, and the port. */
static bool split(const char *text, char host[64], char port[8])
{
    const char *colon = strrchr(text, ':');
    size_t len = colon ? (size_t)(colon - text) : 0;
    char *end;
    if (!colon || !colon[1])
        return false;
    if (len > 1 && text[0] == '[' && text[len - 1] == ']') {
        text++;
        len -= 2;
    }
    long number = strtol(colon + 1, &end, 10);
    if (*end || number < 0 || number > 65535 || len >= 64)
        return false;
    snprintf(host, 64, "%.*s", (int)len, text);
    snprintf(port, 8, "%ld", number);
    return true;
}

static bool parse_tcp(const char *text, struct prb_address *out, struct prb_error *err)
{
    char host[64], port[8];
    const struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV,
                                   .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    if (!split(text, host, port))
        return prb_fail(err, PRB_USAGE, "%.100s is neither HOST:PORT nor the path of a Unix socket",
                        text);
    const char *name = !*host || strcmp(host, "localhost") == 0 ? "127.0.0.1" : host;
    int failed = getaddrinfo(name, port, &hints, &found);
    if (failed)
        return prb_fail(err, PRB_NOT_FOUND, "the host %s is not known: %s", host,
                        gai_strerror(failed));
    memcpy(&out->room, found->ai_addr, found->ai_addrlen);
    out->len = found->ai_addrlen;
    freeaddrinfo(found);
    return true;
}

bool prb_address_parse(const char *text, struct prb_address *out, struct prb_error *err)
{
    *out = (struct prb_address){0};
    return strchr(text, '/') ? parse_path(text, out, err) : parse_tcp(text, out, err);
}

void prb_address_print(const struct prb_address *address, char out[PRB_ADDRESS_TEXT])
{
    char host[INET6_ADDRSTRLEN] = "";
    if (address->any.sa_family == AF_UNIX) {
        snprintf(out, PRB_ADDRESS_TEXT, "%s", address->local.sun_path);
        return;
    }
    bool six = address->any.sa_family == AF_INET6;
    inet_ntop(address->any.sa_family,
              six ? (const void *)&address->v6.sin6_addr : (const void *)&address->v4.sin_addr,
              host, sizeof host);
    snprintf(out, PRB_ADDRESS_TEXT, six ? "[%s]:%u" : "%s:%u", host,
             ntohs(six ? address->v6.sin6_port : address->v4.sin_port));
}

bool prb_address_is_loopback(const struct sockaddr *address)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
    if (address->sa_family == AF_INET)
        return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
    if (address->sa_family != AF_INET6)
        return address->sa_family == AF_UNIX;
    return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr) ||
           (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr) && v6->sin6_addr.s6_addr[12] == 127);
}

static bool bind_tcp(int fd, struct prb_address *address)
{
    int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    return bind(fd, &address->any, address->len) == 0 &&
           getsockname(fd, &address->any, &address->len) == 0;
}

static bool bind_path(int fd, const struct prb_address *address)
{
    /* On Linux the file gets the rights of the descriptor: it is never open to others. */
    fchmod(fd, S_IRUSR | S_IWUSR);
    if (bind(fd, &address->any, address->len) != 0)
        return false;
    if (chmod(address->local.sun_path, S_IRUSR | S_IWUSR) == 0)
        return true;
    int sys = errno;
    unlink(address->local.sun_path);
    errno = sys;
    return false;
}

int prb_address_listen(struct prb_address *address, int backlog, struct prb_error *err)
{
    char text[PRB_ADDRESS_TEXT];
    bool path = address->any.sa_family == AF_UNIX;
    prb_address_print(address, text);
    PRB_AUTO_FD int fd =
        socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        prb_fail_sys(err, errno, "making a socket");
    else if (!(path ? bind_path(fd, address) : bind_tcp(fd, address)) || listen(fd, backlog) != 0)
        prb_fail_sys(err, errno, "listening on %s", text);
    else
        return PRB_STEAL_FD(fd);
    return -1;
}
