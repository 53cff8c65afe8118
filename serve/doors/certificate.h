/* The user's own certificate, for TLS on TCP: its files are read once, before anything listens. */
#ifndef PRB_SERVE_CERTIFICATE_H
#define PRB_SERVE_CERTIFICATE_H

#include "base/cleanup.h"
#include "base/error.h"

#define PRB_CERTIFICATE_PIN 65 /* bytes of a certificate's SHA-256 as text, with the NUL */

struct ssl_ctx_st; /* OpenSSL's SSL_CTX */
struct x509_st;    /* OpenSSL's X509 */
struct prb_certificate;

/*
 * PEM: cert has the server's certificate and those that lead to its root, key its private key
 * (NULL: cert has it, too).  NULL, and err names the file: NOT_FOUND, PERMISSION (it cannot be read;
 * others than its owner may read the key), USAGE (no such thing is in it, the key has a passphrase,
 * or is another certificate's).
 */
struct prb_certificate *prb_certificate_load(const char *cert, const char *key,
                                             struct prb_error *err);
void prb_certificate_free(struct prb_certificate *certificate);
PRB_DEFINE_AUTO_PTR(prb_certificate, struct prb_certificate, prb_certificate_free)

/* Give it to a server's context: TLS 1.2 and 1.3 alone. */
bool prb_certificate_use(const struct prb_certificate *certificate, struct ssl_ctx_st *context);
/* By what our own clients know it: the digits of its SHA-256. */
const char *prb_certificate_pin(const struct prb_certificate *certificate);
bool prb_certificate_pin_of(const struct x509_st *certificate, char out[PRB_CERTIFICATE_PIN]);
/* Whether its time has not begun, or is over; a sentence about it, or NULL. */
const char *prb_certificate_untimely(const struct prb_certificate *certificate);

#endif
