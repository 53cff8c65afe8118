/* Ed25519 keys and a certificate, by libcrypto: see keys.h. */
#include "fleet/bus/keys.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "config.h"

/* ---- text ---- */

#define SEED_KIND 0x90 /* 'S' */
#define USER_KIND 0xa0 /* 'U' */
#define SEED_RAW 36    /* two bytes of kinds, the secret, the checksum */
#define PUBLIC_RAW 35  /* one byte of kind, the key, the checksum */
#define RAW_MAX 40

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/* CRC-16/XMODEM */
static uint16_t checksum(const unsigned char *data, size_t len)
{
    uint16_t crc = 0;
    for (size_t i = 0; i < len; i++) {
        crc ^= (uint16_t)(data[i] << 8);
        for (int bit = 0; bit < 8; bit++)
            crc = (uint16_t)(crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1);
    }
    return crc;
}

/* raw has room for the checksum behind len bytes; without padding. */
static void encode(unsigned char *raw, size_t len, char *out)
{
    uint16_t crc = checksum(raw, len);
    unsigned bits = 0, held = 0;
    raw[len++] = (unsigned char)crc;
    raw[len++] = (unsigned char)(crc >> 8);
    for (size_t i = 0; i < len; i++) {
        bits = bits << 8 | raw[i];
        for (held += 8; held >= 5; held -= 5)
            *out++ = digits[bits >> (held - 5) & 31];
    }
    if (held)
        *out++ = digits[bits << (5 - held) & 31];
    *out = '\0';
}

/* Exactly len bytes, of which the last two are the checksum of the others. */
static bool decode(const char *text, unsigned char *out, size_t len)
{
    size_t count = 0;
    unsigned bits = 0, held = 0;
    if (strnlen(text, 2 * RAW_MAX) != (len * 8 + 4) / 5)
        return false;
    for (; *text; text++) {
        const char *digit = strchr(digits, *text);
        if (!digit)
            return false;
        bits = (bits << 5 | (unsigned)(digit - digits)) & 0xffff;
        held += 5;
        if (held >= 8) {
            held -= 8;
            if (count == len)
                return false;
            out[count++] = (unsigned char)(bits >> held);
        }
    }
    if (count != len || (bits & ((1u << held) - 1)))
        return false;
    return checksum(out, len - 2) == (out[len - 2] | out[len - 1] << 8);
}

void prb_nkey_seed(const struct prb_nkey *key, char out[PRB_NKEY_SEED_SIZE])
{
    unsigned char raw[RAW_MAX] = {SEED_KIND | USER_KIND >> 5, (USER_KIND & 31) << 3};
    memcpy(raw + 2, key->secret, PRB_NKEY_BYTES);
    encode(raw, SEED_RAW - 2, out);
    explicit_bzero(raw, sizeof raw);
}

void prb_nkey_text(const unsigned char public[PRB_NKEY_BYTES], char out[PRB_NKEY_TEXT_SIZE])
{
    unsigned char raw[RAW_MAX] = {USER_KIND};
    memcpy(raw + 1, public, PRB_NKEY_BYTES);
    encode(raw, PUBLIC_RAW - 2, out);
}

bool prb_nkey_parse_public(const char *text, unsigned char out[PRB_NKEY_BYTES],
                           struct prb_error *err)
{
    unsigned char raw[RAW_MAX];
    if (!decode(text, raw, PUBLIC_RAW) || raw[0] != USER_KIND)
        return prb_fail(err, PRB_CORRUPT, "that is not the public key of a user (U...)");
    memcpy(out, raw + 1, PRB_NKEY_BYTES);
    return true;
}

#ifdef PRB_SONAME_CRYPTO

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/dlopen_note.h"
#include "base/lazy.h"

#define FUNCTIONS(F)                                                                               \
    F(OPENSSL_init_crypto)                                                                         \
    F(EVP_PKEY_new_raw_private_key)                                                                \
    F(EVP_PKEY_new_raw_public_key)                                                                 \
    F(EVP_PKEY_get_raw_public_key)                                                                 \
    F(EVP_PKEY_CTX_new)                                                                            \
    F(EVP_PKEY_CTX_free)                                                                           \
    F(EVP_PKEY_derive_init)                                                                        \
    F(EVP_PKEY_derive_set_peer)                                                                    \
    F(EVP_PKEY_derive)                                                                             \
    F(HMAC)                                                                                        \
    F(CRYPTO_memcmp)                                                                               \
    F(EVP_PKEY_free)                                                                               \
    F(EVP_MD_CTX_new)                                                                              \
    F(EVP_MD_CTX_free)                                                                             \
    F(EVP_DigestSignInit)                                                                          \
    F(EVP_DigestSign)                                                                              \
    F(EVP_DigestVerifyInit)                                                                        \
    F(EVP_DigestVerify)                                                                            \
    F(EVP_Digest)                                                                                  \
    F(EVP_sha256)                                                                                  \
    F(X509_new)                                                                                    \
    F(X509_free)                                                                                   \
    F(X509_set_version)                                                                            \
    F(X509_get_serialNumber)                                                                       \
    F(X509_getm_notBefore)                                                                         \
    F(X509_getm_notAfter)                                                                          \
    F(X509_gmtime_adj)                                                                             \
    F(X509_time_adj_ex)                                                                            \
    F(X509_set_pubkey)                                                                             \
    F(X509_get_subject_name)                                                                       \
    F(X509_set_subject_name)                                                                       \
    F(X509_set_issuer_name)                                                                        \
    F(X509_NAME_add_entry_by_txt)                                                                  \
    F(X509V3_EXT_conf_nid)                                                                         \
    F(X509V3_set_ctx)                                                                              \
    F(X509_add_ext)                                                                                \
    F(X509_EXTENSION_free)                                                                         \
    F(X509_sign)                                                                                   \
    F(ASN1_INTEGER_set_uint64)                                                                     \
    F(BIO_new)                                                                                     \
    F(BIO_s_mem)                                                                                   \
    F(BIO_ctrl)                                                                                    \
    F(BIO_free)                                                                                    \
    F(PEM_write_bio_X509)                                                                          \
    F(PEM_write_bio_PrivateKey)
static struct {
    FUNCTIONS(PRB_LAZY_POINTER)
} crypto;
static const char *const names[] = {FUNCTIONS(PRB_LAZY_NAME)};
PRB_DLOPEN_NOTE(crypto, PRB_SONAME_CRYPTO, "suggested", "keys of jobs of many machines");
static struct prb_lazy library = {PRB_SONAME_CRYPTO, names, &crypto, sizeof names / sizeof *names,
                                  false};

bool prb_crypto_open(struct prb_error *err)
{
    /* The first to call it decides. */
    return prb_lazy_open(&library, err) &&
           (crypto.OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL) == 1 ||
            prb_fail(err, PRB_NOMEM, "libcrypto does not start"));
}

static void free_pkey(EVP_PKEY *key) { crypto.EVP_PKEY_free(key); }
static void free_pkey_context(EVP_PKEY_CTX *context) { crypto.EVP_PKEY_CTX_free(context); }
static void free_md(EVP_MD_CTX *context) { crypto.EVP_MD_CTX_free(context); }
static void free_x509(X509 *one) { crypto.X509_free(one); }
static void free_bio(BIO *bio) { crypto.BIO_free(bio); }
PRB_DEFINE_AUTO_PTR(pkey, EVP_PKEY, free_pkey)
PRB_DEFINE_AUTO_PTR(pkey_context, EVP_PKEY_CTX, free_pkey_context)
PRB_DEFINE_AUTO_PTR(md, EVP_MD_CTX, free_md)
PRB_DEFINE_AUTO_PTR(x509, X509, free_x509)
PRB_DEFINE_AUTO_PTR(bio, BIO, free_bio)

static bool refuses(struct prb_error *err, const char *what)
{
    return prb_fail(err, PRB_INTERNAL, "libcrypto refuses %s", what);
}

/* ---- keys ---- */

static EVP_PKEY *secret_key(const unsigned char secret[PRB_NKEY_BYTES])
{
    return crypto.EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, secret, PRB_NKEY_BYTES);
}

static bool fill_public(struct prb_nkey *key, struct prb_error *err)
{
    size_t len = PRB_NKEY_BYTES;
    PRB_AUTO(pkey) EVP_PKEY *made = secret_key(key->secret);
    return (made && crypto.EVP_PKEY_get_raw_public_key(made, key->public, &len) == 1 &&
            len == PRB_NKEY_BYTES) ||
           refuses(err, "an Ed25519 key");
}

bool prb_nkey_make(struct prb_nkey *out, struct prb_error *err)
{
    if (!prb_crypto_open(err))
        return false;
    if (getrandom(out->secret, sizeof out->secret, 0) != sizeof out->secret)
        return prb_fail_sys(err, errno, "random bytes");
    return fill_public(out, err);
}

bool prb_nkey_parse(const char *seed, struct prb_nkey *out, struct prb_error *err)
{
    unsigned char raw[RAW_MAX];
    bool good = decode(seed, raw, SEED_RAW) && raw[0] == (SEED_KIND | USER_KIND >> 5) &&
                raw[1] == (USER_KIND & 31) << 3;
    if (good)
        memcpy(out->secret, raw + 2, PRB_NKEY_BYTES);
    explicit_bzero(raw, sizeof raw);
    if (!good)
        return prb_fail(err, PRB_CORRUPT, "that is not the secret key of a user (SU...)");
    return prb_crypto_open(err) && fill_public(out, err);
}

bool prb_nkey_sign(const struct prb_nkey *key, const void *data, size_t len,
                   unsigned char out[PRB_NKEY_SIGNATURE], struct prb_error *err)
{
    size_t size = PRB_NKEY_SIGNATURE;
    if (!prb_crypto_open(err))
        return false;
    PRB_AUTO(pkey) EVP_PKEY *made = secret_key(key->secret);
    PRB_AUTO(md) EVP_MD_CTX *context = crypto.EVP_MD_CTX_new();
    return (made && context && crypto.EVP_DigestSignInit(context, NULL, NULL, NULL, made) == 1 &&
            crypto.EVP_DigestSign(context, out, &size, data, len) == 1 &&
            size == PRB_NKEY_SIGNATURE) ||
           refuses(err, "to sign");
}

bool prb_nkey_verify(const unsigned char public[PRB_NKEY_BYTES], const void *data, size_t len,
                     const unsigned char signature[PRB_NKEY_SIGNATURE], struct prb_error *err)
{
    if (!prb_crypto_open(err))
        return false;
    PRB_AUTO(pkey)
    EVP_PKEY *key =
        crypto.EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, public, PRB_NKEY_BYTES);
    PRB_AUTO(md) EVP_MD_CTX *context = crypto.EVP_MD_CTX_new();
    return (key && context && crypto.EVP_DigestVerifyInit(context, NULL, NULL, NULL, key) == 1 &&
            crypto.EVP_DigestVerify(context, signature, PRB_NKEY_SIGNATURE, data, len) == 1) ||
           prb_fail(err, PRB_PERMISSION, "the signature is not that of this key and text");
}

bool prb_exchange_make(struct prb_exchange *out, struct prb_error *err)
{
    size_t len = PRB_SECRET;
    if (!prb_crypto_open(err))
        return false;
    if (getrandom(out->secret, sizeof out->secret, 0) != sizeof out->secret)
        return prb_fail_sys(err, errno, "random bytes");
    PRB_AUTO(pkey)
    EVP_PKEY *key =
        crypto.EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, NULL, out->secret, PRB_SECRET);
    return (key && crypto.EVP_PKEY_get_raw_public_key(key, out->public, &len) == 1 &&
            len == PRB_SECRET) ||
           refuses(err, "an X25519 key");
}

/* False also for a public key by which the secret would not depend on ours. */
static bool derive(const struct prb_exchange *own, const unsigned char other[PRB_SECRET],
                   unsigned char out[PRB_SECRET])
{
    size_t len = PRB_SECRET;
    PRB_AUTO(pkey)
    EVP_PKEY *key =
        crypto.EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, NULL, own->secret, PRB_SECRET);
    PRB_AUTO(pkey)
    EVP_PKEY *peer = crypto.EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, NULL, other, PRB_SECRET);
    PRB_AUTO(pkey_context)
    EVP_PKEY_CTX *context = key && peer ? crypto.EVP_PKEY_CTX_new(key, NULL) : NULL;
    return context && crypto.EVP_PKEY_derive_init(context) == 1 &&
           crypto.EVP_PKEY_derive_set_peer(context, peer) == 1 &&
           crypto.EVP_PKEY_derive(context, out, &len) == 1 && len == PRB_SECRET;
}

bool prb_exchange_secret(const struct prb_exchange *own, const unsigned char other[PRB_SECRET],
                         const unsigned char first[PRB_SECRET], unsigned char out[PRB_SECRET],
                         struct prb_error *err)
{
    unsigned char shared[PRB_SECRET], both[2 * PRB_SECRET];
    bool own_first = memcmp(first, own->public, PRB_SECRET) == 0;
    memcpy(both, first, PRB_SECRET);
    memcpy(both + PRB_SECRET, own_first ? other : own->public, PRB_SECRET);
    if (!prb_crypto_open(err))
        return false;
    bool good = derive(own, other, shared);
    if (good)
        good = prb_secret_sign(shared, both, sizeof both, out, err);
    else
        prb_fail(err, PRB_PERMISSION, "the other side's key is none");
    explicit_bzero(shared, sizeof shared);
    return good;
}

bool prb_secret_sign(const unsigned char secret[PRB_SECRET], const void *data, size_t len,
                     unsigned char out[PRB_SECRET], struct prb_error *err)
{
    return prb_crypto_open(err) &&
           (crypto.HMAC(crypto.EVP_sha256(), secret, PRB_SECRET, data, len, out, NULL) ||
            refuses(err, "an authentication code"));
}

bool prb_secret_verify(const unsigned char secret[PRB_SECRET], const void *data, size_t len,
                       const unsigned char code[PRB_SECRET], struct prb_error *err)
{
    unsigned char right[PRB_SECRET];
    return prb_secret_sign(secret, data, len, right, err) &&
           (crypto.CRYPTO_memcmp(right, code, sizeof right) == 0 ||
            prb_fail(err, PRB_PERMISSION, "the code is not that of this secret and text"));
}

bool prb_digest(const void *data, size_t len, unsigned char out[32], struct prb_error *err)
{
    return prb_crypto_open(err) &&
           (crypto.EVP_Digest(data, len, out, NULL, crypto.EVP_sha256(), NULL) == 1 ||
            refuses(err, "a digest"));
}

/* ---- certificates ---- */

#define DAYS 3650
#define BEFORE (-86400L) /* s: the clocks of hosts differ */

static bool extend(X509 *one, X509 *issuer, int kind, const char *value)
{
    X509V3_CTX context = {0};
    crypto.X509V3_set_ctx(&context, issuer, one, NULL, NULL, 0);
    X509_EXTENSION *made = crypto.X509V3_EXT_conf_nid(NULL, &context, kind, value);
    bool good = made && crypto.X509_add_ext(one, made, -1) == 1;
    if (made)
        crypto.X509_EXTENSION_free(made);
    return good;
}

/* A certificate that still lacks issuer, extensions and signature. */
static X509 *begin(EVP_PKEY *key, const char *name)
{
    uint64_t serial = 0;
    PRB_AUTO(x509) X509 *one = crypto.X509_new();
    if (!one || getrandom(&serial, sizeof serial, 0) != sizeof serial)
        return NULL;
    bool good =
        crypto.X509_set_version(one, 2) == 1 &&
        crypto.ASN1_INTEGER_set_uint64(crypto.X509_get_serialNumber(one), serial >> 1 | 1) == 1 &&
        crypto.X509_gmtime_adj(crypto.X509_getm_notBefore(one), BEFORE) &&
        crypto.X509_time_adj_ex(crypto.X509_getm_notAfter(one), DAYS, 0, NULL) &&
        crypto.X509_set_pubkey(one, key) == 1 &&
        crypto.X509_NAME_add_entry_by_txt(crypto.X509_get_subject_name(one), "CN",
                                          V_ASN1_UTF8STRING, (const unsigned char *)name, -1, -1,
                                          0) == 1;
    return good ? PRB_STEAL(one) : NULL;
}

static X509 *authority(EVP_PKEY *key)
{
    PRB_AUTO(x509) X509 *one = begin(key, PRB_BUS_NAME " authority");
    return one && crypto.X509_set_issuer_name(one, crypto.X509_get_subject_name(one)) == 1 &&
                   extend(one, one, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
                   extend(one, one, NID_key_usage, "critical,keyCertSign") &&
                   extend(one, one, NID_subject_key_identifier, "hash") &&
                   crypto.X509_sign(one, key, NULL) > 0
               ? PRB_STEAL(one)
               : NULL;
}

static X509 *of_server(EVP_PKEY *key, X509 *issuer, EVP_PKEY *issuer_key)
{
    PRB_AUTO(x509) X509 *one = begin(key, PRB_BUS_NAME);
    return one && crypto.X509_set_issuer_name(one, crypto.X509_get_subject_name(issuer)) == 1 &&
                   extend(one, issuer, NID_basic_constraints, "critical,CA:FALSE") &&
                   extend(one, issuer, NID_key_usage, "critical,digitalSignature") &&
                   extend(one, issuer, NID_ext_key_usage, "serverAuth") &&
                   extend(one, issuer, NID_subject_alt_name, "DNS:" PRB_BUS_NAME) &&
                   extend(one, issuer, NID_authority_key_identifier, "keyid") &&
                   crypto.X509_sign(one, issuer_key, NULL) > 0
               ? PRB_STEAL(one)
               : NULL;
}

/* A certificate, or a secret key; NULL when libcrypto refuses. */
static char *as_text(X509 *one, EVP_PKEY *key)
{
    char *data = NULL;
    PRB_AUTO(bio) BIO *bio = crypto.BIO_new(crypto.BIO_s_mem());
    if (!bio || (one ? crypto.PEM_write_bio_X509(bio, one)
                     : crypto.PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL)) != 1)
        return NULL;
    long len = crypto.BIO_ctrl(bio, BIO_CTRL_INFO, 0, &data);
    char *text = len > 0 ? strndup(data, (size_t)len) : NULL;
    if (key && len > 0)
        explicit_bzero(data, (size_t)len);
    return text;
}

bool prb_certificate_make(struct prb_certificate *out, struct prb_error *err)
{
    unsigned char secrets[2][PRB_NKEY_BYTES];
    *out = (struct prb_certificate){0};
    if (!prb_crypto_open(err))
        return false;
    if (getrandom(secrets, sizeof secrets, 0) != sizeof secrets)
        return prb_fail_sys(err, errno, "random bytes");
    PRB_AUTO(pkey) EVP_PKEY *own = secret_key(secrets[0]), *key = secret_key(secrets[1]);
    explicit_bzero(secrets, sizeof secrets);
    PRB_AUTO(x509) X509 *issuer = own ? authority(own) : NULL;
    PRB_AUTO(x509) X509 *one = issuer && key ? of_server(key, issuer, own) : NULL;
    if (one) {
        out->authority = as_text(issuer, NULL);
        out->certificate = as_text(one, NULL);
        out->key = as_text(NULL, key);
    }
    if (out->authority && out->certificate && out->key)
        return true;
    prb_certificate_deinit(out);
    return refuses(err, "a certificate");
}

#else

static bool without(struct prb_error *err)
{
    prb_fail(err, PRB_UNSUPPORTED, "this probing was built without libcrypto, which makes keys");
    return prb_error_remedy(err, "install libssl-dev and build again");
}

bool prb_crypto_open(struct prb_error *err) { return without(err); }

bool prb_nkey_make(struct prb_nkey *out, struct prb_error *err)
{
    (void)out;
    return without(err);
}

bool prb_nkey_parse(const char *seed, struct prb_nkey *out, struct prb_error *err)
{
    (void)seed, (void)out;
    return without(err);
}

bool prb_nkey_sign(const struct prb_nkey *key, const void *data, size_t len,
                   unsigned char out[PRB_NKEY_SIGNATURE], struct prb_error *err)
{
    (void)key, (void)data, (void)len, (void)out;
    return without(err);
}

bool prb_nkey_verify(const unsigned char public[PRB_NKEY_BYTES], const void *data, size_t len,
                     const unsigned char signature[PRB_NKEY_SIGNATURE], struct prb_error *err)
{
    (void)public, (void)data, (void)len, (void)signature;
    return without(err);
}

bool prb_exchange_make(struct prb_exchange *out, struct prb_error *err)
{
    (void)out;
    return without(err);
}

bool prb_exchange_secret(const struct prb_exchange *own, const unsigned char other[PRB_SECRET],
                         const unsigned char first[PRB_SECRET], unsigned char out[PRB_SECRET],
                         struct prb_error *err)
{
    (void)own, (void)other, (void)first, (void)out;
    return without(err);
}

bool prb_secret_sign(const unsigned char secret[PRB_SECRET], const void *data, size_t len,
                     unsigned char out[PRB_SECRET], struct prb_error *err)
{
    (void)secret, (void)data, (void)len, (void)out;
    return without(err);
}

bool prb_secret_verify(const unsigned char secret[PRB_SECRET], const void *data, size_t len,
                       const unsigned char code[PRB_SECRET], struct prb_error *err)
{
    (void)secret, (void)data, (void)len, (void)code;
    return without(err);
}

bool prb_digest(const void *data, size_t len, unsigned char out[32], struct prb_error *err)
{
    (void)data, (void)len, (void)out;
    return without(err);
}

bool prb_certificate_make(struct prb_certificate *out, struct prb_error *err)
{
    *out = (struct prb_certificate){0};
    return without(err);
}

#endif

void prb_certificate_deinit(struct prb_certificate *certificate)
{
    if (certificate->key)
        explicit_bzero(certificate->key, strlen(certificate->key));
    free(certificate->authority);
    free(certificate->certificate);
    free(certificate->key);
    *certificate = (struct prb_certificate){0};
}
