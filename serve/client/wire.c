/* Non-blocking sockets and poll(2); SSL_read(3), SSL_write(3) over the same socket. */
#include "serve/client/wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "net/address.h"
#include "serve/doors/certificate.h"

#define CONNECT_SECONDS 10
#define PIECE 65536

struct prb_wire {
    int fd;
    SSL_CTX *context;
    SSL *tls; /* NULL: plain */
};

void prb_wire_close(struct prb_wire *wire)
{
    SSL_free(wire->tls);
    SSL_CTX_free(wire->context);
    if (wire->fd >= 0)
        close(wire->fd);
    free(wire);
}

static bool wait_for(int fd, short events, double until, struct prb_error *err)
{
    struct pollfd polled = {fd, events, 0};
    double left = until - prb_clock_s();
    int n;
    do
        n = poll(&polled, 1, left > 0 ? (int)(left * 1000) + 1 : 0);
    while (n < 0 && errno == EINTR);
    return n > 0 || prb_fail(err, PRB_TIMEOUT, "the server does not answer");
}

static bool reach(struct prb_wire *wire, const char *text, struct prb_error *err)
{
    struct prb_address address;
    int sys = 0;
    socklen_t len = sizeof sys;
    if (!prb_address_parse(text, &address, err))
        return false;
    wire->fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (wire->fd >= 0 && connect(wire->fd, &address.any, address.len) == 0)
        return true;
    if (wire->fd < 0 || errno != EINPROGRESS)
        return prb_fail_sys(err, errno, "connecting to %s", text);
    if (!wait_for(wire->fd, POLLOUT, prb_clock_s() + CONNECT_SECONDS, err))
        return false;
    if (getsockopt(wire->fd, SOL_SOCKET, SO_ERROR, &sys, &len) < 0 || sys)
        return prb_fail_sys(err, sys, "connecting to %s", text);
    return true;
}

/* ---- TLS ---- */

/* After a call of OpenSSL that did not get on: wait for what it needs.  False: it failed, by err or,
 * without err->code, for a reason that the caller tells. */
static bool go_on(const struct prb_wire *wire, int result, double until, struct prb_error *err)
{
    switch (SSL_get_error(wire->tls, result)) {
    case SSL_ERROR_WANT_READ:
        return wait_for(wire->fd, POLLIN, until, err);
    case SSL_ERROR_WANT_WRITE:
        return wait_for(wire->fd, POLLOUT, until, err);
    default:
        ERR_clear_error(); /* or the next call finds it */
        return false;
    }
}

/* Who must be in the certificate: the host of "HOST:PORT". */
static bool name_host(SSL *tls, const char *address)
{
    char host[256];
    unsigned char number[16];
    const char *colon = strrchr(address, ':');
    bool bracket = *address == '[';
    int len = colon ? (int)(colon - address) - 2 * bracket : -1;
    if (len < 0 || (size_t)len >= sizeof host)
        return false;
    snprintf(host, sizeof host, "%.*s", len, address + bracket);
    if (inet_pton(AF_INET, host, number) == 1 || inet_pton(AF_INET6, host, number) == 1)
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls), host) == 1;
    return SSL_set1_host(tls, host) == 1 && SSL_set_tlsext_host_name(tls, host) == 1;
}

static bool has_pin(const struct prb_wire *wire, const char *pin)
{
    char shown[PRB_CERTIFICATE_PIN] = "";
    X509 *own = SSL_get_peer_certificate(wire->tls); /* OpenSSL 1.1 and 3 */
    bool same = own && prb_certificate_pin_of(own, shown) && strcmp(shown, pin) == 0;
    X509_free(own);
    return same;
}

static bool refuse(const struct prb_wire *wire, const char *address, struct prb_error *err)
{
    long why = SSL_get_verify_result(wire->tls);
    if (why == X509_V_OK)
        return prb_fail(err, PRB_CORRUPT, "no server answers there by TLS");
    prb_fail(err, PRB_PERMISSION, "the certificate of %s is not one to trust: %s", address,
             X509_verify_cert_error_string(why));
    return prb_error_remedy(err, "SSL_CERT_FILE=FILE names the certificate of who vouches for it, "
                                 "or the server's own");
}

static bool shake_hands(struct prb_wire *wire, const char *address, const char *pin, double until,
                        struct prb_error *err)
{
    struct prb_error why = {0};
    wire->context = SSL_CTX_new(TLS_client_method());
    wire->tls = wire->context ? SSL_new(wire->context) : NULL;
    if (!wire->tls || !SSL_CTX_set_min_proto_version(wire->context, TLS1_2_VERSION) ||
        !SSL_set_fd(wire->tls, wire->fd))
        return prb_nomem(err);
    if (!*pin) {
        SSL_CTX_set_default_verify_paths(wire->context);
        SSL_set_verify(wire->tls, SSL_VERIFY_PEER, NULL);
        X509_VERIFY_PARAM_set_flags(SSL_get0_param(wire->tls), X509_V_FLAG_PARTIAL_CHAIN);
        if (!name_host(wire->tls, address))
            return prb_fail(err, PRB_USAGE, "%s has no host to look for in a certificate", address);
    }
    for (int result; (result = SSL_connect(wire->tls)) != 1;)
        if (!go_on(wire, result, until, &why)) {
            *err = why;
            return why.code ? false : refuse(wire, address, err);
        }
    return !*pin || has_pin(wire, pin) ||
           prb_fail(err, PRB_PERMISSION, "the server at %s is not the one that runs here", address);
}

struct prb_wire *prb_wire_open(const char *address, const char *pin, double until,
                               struct prb_error *err)
{
    PRB_AUTO(prb_wire) struct prb_wire *wire = calloc(1, sizeof *wire);
    if (!wire)
        return PRB_NULL(prb_nomem(err));
    wire->fd = -1;
    if (!reach(wire, address, err) || (pin && !shake_hands(wire, address, pin, until, err)))
        return NULL;
    return PRB_STEAL(wire);
}

/* ---- bytes ---- */

/* Some of them; 0: none yet, but the socket is ready for more. -1: err. */
static ssize_t send_some(struct prb_wire *wire, const char *bytes, size_t count, double until,
                         struct prb_error *err)
{
    if (wire->tls) {
        int n = SSL_write(wire->tls, bytes, (int)(count < PIECE ? count : PIECE));
        if (n > 0)
            return n;
        return go_on(wire, n, until, err) ? 0 : -1;
    }
    ssize_t n = send(wire->fd, bytes, count, MSG_NOSIGNAL);
    if (n > 0)
        return n;
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        prb_fail_sys(err, errno, "asking the server");
        return -1;
    }
    return wait_for(wire->fd, POLLOUT, until, err) ? 0 : -1;
}

bool prb_wire_send(struct prb_wire *wire, const struct prb_buf *bytes, double until,
                   struct prb_error *err)
{
    struct prb_error why = {0};
    for (size_t sent = 0; sent < bytes->len;) {
        ssize_t n = send_some(wire, bytes->data + sent, bytes->len - sent, until, &why);
        if (n < 0 && !why.code)
            return prb_fail(err, PRB_IO, "the server ended the connection");
        if (n < 0) {
            *err = why;
            return false;
        }
        sent += (size_t)n;
    }
    return true;
}

/* *end: nothing follows. */
static ssize_t receive_some(struct prb_wire *wire, char *out, bool *end, double until,
                            struct prb_error *err)
{
    *end = false;
    if (wire->tls) {
        int n = SSL_read(wire->tls, out, PIECE);
        if (n > 0)
            return n;
        *end = !go_on(wire, n, until, err);
        return *end && err->code ? -1 : 0;
    }
    ssize_t n = recv(wire->fd, out, PIECE, 0);
    if (n > 0)
        return n;
    *end = n == 0 || errno == ECONNRESET;
    if (*end)
        return 0;
    if (errno != EAGAIN && errno != EINTR) {
        prb_fail_sys(err, errno, "reading the server's answer");
        return -1;
    }
    return wait_for(wire->fd, POLLIN, until, err) ? 0 : -1;
}

bool prb_wire_receive(struct prb_wire *wire, struct prb_buf *bytes, size_t most, double until,
                      struct prb_error *err)
{
    struct prb_error why = {0};
    for (bool end = false; !end;) {
        char *room = prb_buf_reserve(bytes, PIECE);
        if (!room)
            return prb_nomem(err);
        ssize_t n = receive_some(wire, room, &end, until, &why);
        if (n < 0) {
            *err = why;
            return false;
        }
        bytes->len += (size_t)n;
        if (bytes->len > most)
            return prb_fail(err, PRB_CORRUPT, "the server's answer does not end");
    }
    return true;
}
