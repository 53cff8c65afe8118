/* OpenSSL's PEM readers over bytes that we read ourselves: a file is opened once, so that what was
 * checked is what is used, and a pipe will do. */
#include "serve/doors/certificate.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/stat.h>

#include "base/file.h"

#define FILE_MAX (1u << 20)
#define CHAIN_MAX 16

struct prb_certificate {
    X509 *chain[CHAIN_MAX]; /* the server's own first */
    size_t count;
    EVP_PKEY *key;
    char pin[PRB_CERTIFICATE_PIN];
};

void prb_certificate_free(struct prb_certificate *certificate)
{
    for (size_t i = 0; i < certificate->count; i++)
        X509_free(certificate->chain[i]);
    EVP_PKEY_free(certificate->key);
    free(certificate);
}

bool prb_certificate_pin_of(const struct x509_st *certificate, char out[PRB_CERTIFICATE_PIN])
{
    unsigned char digest[PRB_CERTIFICATE_PIN / 2];
    unsigned len = sizeof digest;
    if (!X509_digest(certificate, EVP_sha256(), digest, &len))
        return false;
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(out + 2 * i, 3, "%02x", digest[i]);
    return true;
}

static BIO *read_file(const char *path, const char *what, struct prb_buf *bytes, mode_t *mode,
                      struct prb_error *err)
{
    struct stat info;
    PRB_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) < 0)
        return PRB_NULL(prb_fail_sys(err, errno, "reading the %s in %s", what, path));
    if (S_ISDIR(info.st_mode))
        return PRB_NULL(prb_fail(err, PRB_USAGE, "%s is a folder", path));
    if (!prb_buf_read(bytes, fd, FILE_MAX))
        return PRB_NULL(prb_fail_sys(err, errno, "reading the %s in %s", what, path));
    *mode = info.st_mode;
    BIO *bio = BIO_new_mem_buf(bytes->data, (int)bytes->len);
    return bio ? bio : PRB_NULL(prb_nomem(err));
}

/* The file of a key is no one else's to read; a pipe has no others. */
static bool is_private(mode_t mode, const char *path, struct prb_error *err)
{
    if (!S_ISREG(mode) || !(mode & 027))
        return true;
    prb_fail(err, PRB_PERMISSION, "others than its owner may %s the key in %s",
             mode & 022 ? "change" : "read", path);
    return prb_error_remedy(err, "chmod go-w,o-r %s", path);
}

/* Nobody is asked: a server starts without a person, too. */
static int no_passphrase(char *out, int size, int writes, void *asked)
{
    (void)out;
    (void)size;
    (void)writes;
    *(bool *)asked = true;
    return -1;
}

static bool read_chain(struct prb_certificate *out, const char *path, struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf bytes = {0};
    mode_t mode;
    BIO *bio = read_file(path, "certificate", &bytes, &mode, err);
    if (!bio)
        return false;
    while (out->count < CHAIN_MAX &&
           (out->chain[out->count] = PEM_read_bio_X509(bio, NULL, NULL, NULL)))
        out->count++;
    BIO_free(bio);
    if (!out->count)
        return prb_fail(err, PRB_USAGE, "%s holds no certificate in PEM form", path);
    return prb_certificate_pin_of(out->chain[0], out->pin) || prb_nomem(err);
}

static bool read_key(struct prb_certificate *out, const char *path, struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf bytes = {0};
    bool asked = false;
    mode_t mode = 0;
    BIO *bio = read_file(path, "key", &bytes, &mode, err);
    if (bio)
        out->key = PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, &asked);
    BIO_free(bio);
    if (bytes.data)
        explicit_bzero(bytes.data, bytes.len);
    if (!bio)
        return false;
    if (out->key)
        return is_private(mode, path, err);
    if (!asked)
        return prb_fail(err, PRB_USAGE, "%s holds no private key in PEM form", path);
    prb_fail(err, PRB_USAGE, "the key in %s has a passphrase", path);
    return prb_error_remedy(err, "`openssl pkey -in %s -out FILE` writes one without", path);
}

struct prb_certificate *prb_certificate_load(const char *cert, const char *key,
                                             struct prb_error *err)
{
    PRB_AUTO(prb_certificate) struct prb_certificate *out = calloc(1, sizeof *out);
    if (!out)
        return PRB_NULL(prb_nomem(err));
    key = key ? key : cert;
    bool ok =
        read_chain(out, cert, err) && read_key(out, key, err) &&
        (X509_check_private_key(out->chain[0], out->key) == 1 ||
         prb_fail(err, PRB_USAGE, "the key in %s is not that of the certificate in %s", key, cert));
    ERR_clear_error();
    return ok ? PRB_STEAL(out) : NULL;
}

bool prb_certificate_use(const struct prb_certificate *certificate, struct ssl_ctx_st *context)
{
    bool ok = SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) &&
              SSL_CTX_use_certificate(context, certificate->chain[0]) == 1 &&
              SSL_CTX_use_PrivateKey(context, certificate->key) == 1;
    for (size_t i = 1; ok && i < certificate->count; i++)
        ok = SSL_CTX_add1_chain_cert(context, certificate->chain[i]) == 1;
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
    /* libwebsockets' own chooses by the name that the client says among what it calls hosts. */
    SSL_CTX_set_tlsext_servername_callback(context, NULL);
    ERR_clear_error();
    return ok;
}

const char *prb_certificate_pin(const struct prb_certificate *certificate)
{
    return certificate->pin;
}

const char *prb_certificate_untimely(const struct prb_certificate *certificate)
{
    if (X509_cmp_current_time(X509_get0_notAfter(certificate->chain[0])) < 0)
        return "the certificate has expired: clients will refuse it";
    if (X509_cmp_current_time(X509_get0_notBefore(certificate->chain[0])) > 0)
        return "the certificate is not valid yet: clients will refuse it";
    return NULL;
}
