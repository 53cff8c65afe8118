/*
 * Keys of the bus: nkeys, which are Ed25519 keys written in base32 with a checksum, and the
 * certificate of a server.  By libcrypto, which is opened when it is first needed; without it every
 * function that can fail says UNSUPPORTED.  Sources: nats.io on nkeys, RFC 8032, RFC 4648.
 */
#ifndef PRB_FLEET_KEYS_H
#define PRB_FLEET_KEYS_H

#include "base/cleanup.h"
#include "base/error.h"

#define PRB_NKEY_BYTES 32     /* of a secret, and of a public key */
#define PRB_NKEY_SEED_SIZE 59 /* a secret as text, "SU…", with the NUL */
#define PRB_NKEY_TEXT_SIZE 57 /* a public key as text, "U…", with the NUL */
#define PRB_NKEY_SIGNATURE 64 /* bytes */
/* The one name that our servers' certificates carry, whatever their address is. */
#define PRB_BUS_NAME "probing-bus"

struct prb_nkey {
    unsigned char secret[PRB_NKEY_BYTES], public[PRB_NKEY_BYTES];
};

/* libcrypto is there, and stays as it is when the process ends: a thread of libnats may be in it
 * still.  Before anything else that uses it. */
bool prb_crypto_open(struct prb_error *err);

bool prb_nkey_make(struct prb_nkey *out, struct prb_error *err);
/* CORRUPT: not the text of a user's secret; what is wrong of it is told, not the text. */
bool prb_nkey_parse(const char *seed, struct prb_nkey *out, struct prb_error *err);
void prb_nkey_seed(const struct prb_nkey *key, char out[PRB_NKEY_SEED_SIZE]);
void prb_nkey_text(const unsigned char public[PRB_NKEY_BYTES], char out[PRB_NKEY_TEXT_SIZE]);
/* CORRUPT: not the text of a user's public key. */
bool prb_nkey_parse_public(const char *text, unsigned char out[PRB_NKEY_BYTES],
                           struct prb_error *err);

bool prb_nkey_sign(const struct prb_nkey *key, const void *data, size_t len,
                   unsigned char out[PRB_NKEY_SIGNATURE], struct prb_error *err);
/* PERMISSION: the signature is of another key or of other data. */
bool prb_nkey_verify(const unsigned char public[PRB_NKEY_BYTES], const void *data, size_t len,
                     const unsigned char signature[PRB_NKEY_SIGNATURE], struct prb_error *err);

/* ---- a secret that two sides have (X25519, HMAC-SHA256) ---- */

#define PRB_SECRET 32 /* bytes of it, of a public key and of an authentication code */

struct prb_exchange {
    unsigned char secret[PRB_SECRET], public[PRB_SECRET];
};
bool prb_exchange_make(struct prb_exchange *out, struct prb_error *err);
/* What both sides make of their own and the other's; first: the public key of whoever began.
 * PERMISSION: the other's is none. */
bool prb_exchange_secret(const struct prb_exchange *own, const unsigned char other[PRB_SECRET],
                         const unsigned char first[PRB_SECRET], unsigned char out[PRB_SECRET],
                         struct prb_error *err);
bool prb_secret_sign(const unsigned char secret[PRB_SECRET], const void *data, size_t len,
                     unsigned char out[PRB_SECRET], struct prb_error *err);
/* PERMISSION: the code is of another secret or of other data. */
bool prb_secret_verify(const unsigned char secret[PRB_SECRET], const void *data, size_t len,
                       const unsigned char code[PRB_SECRET], struct prb_error *err);

/* SHA-256. */
bool prb_digest(const void *data, size_t len, unsigned char out[32], struct prb_error *err);

/* Of a server, as PEM; the owner frees the texts, the secret key after explicit_bzero. */
struct prb_certificate {
    char *authority, *certificate, *key;
};
/* An authority that signs this one certificate, of the name PRB_BUS_NAME, and whose own key is
 * forgotten, so that nobody makes another. */
bool prb_certificate_make(struct prb_certificate *out, struct prb_error *err);
void prb_certificate_deinit(struct prb_certificate *certificate);
PRB_DEFINE_AUTO(prb_certificate, struct prb_certificate, prb_certificate_deinit)

#endif
