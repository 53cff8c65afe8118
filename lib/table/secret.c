/* Secrets in the environment.  A name is cut into its words, at _ - . and where a capital follows a
 * small letter. */
#include "table/secret.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

/* Words that make a name secret wherever they stand. */
static const char *const words[] = {
    "KEY",         "KEYS",    "APIKEY",     "ACCESSKEY", "SECRETKEY",     "PRIVATEKEY",
    "TOKEN",       "TOKENS",  "SECRET",     "SECRETS",   "PASSWORD",      "PASSWORDS",
    "PASSWD",      "PASS",    "PASSPHRASE", "PWD",       "CREDENTIAL",    "CREDENTIALS",
    "CREDS",       "AUTH",    "OAUTH",      "AUTHTOKEN", "AUTHORIZATION", "COOKIE",
    "COOKIES",     "SESSION", "SESSIONID",  "PRIVATE",   "DSN",           "CONNECTION",
    "CONNSTR",     "JWT",     "BEARER",     "SAS",       "SIGNATURE",     "CERT",
    "CERTIFICATE", "PEM",     "SALT",       "NONCE",     "OTP",           "PIN",
};

/* Whole names that have such a word and are no secret. */
static const char *const harmless[] = {
    "PWD",
    "OLDPWD",
    "SSH_AUTH_SOCK",
    "XDG_SESSION_ID",
    "XDG_SESSION_TYPE",
    "DESKTOP_SESSION",
    "XDG_SESSION_CLASS",
    "XDG_SESSION_DESKTOP",
    "SESSION_MANAGER",
};

static bool is_in(const char *const *list, size_t count, const char *text, size_t len)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(list[i]) == len && strncasecmp(list[i], text, len) == 0)
            return true;
    return false;
}

/* Length of the first word. */
static size_t word_length(const char *text)
{
    size_t n = 0;
    while (isalpha((unsigned char)text[n]) &&
           !(n && islower((unsigned char)text[n - 1]) && isupper((unsigned char)text[n])))
        n++;
    return n;
}

bool prb_secret_name(const char *name)
{
    if (is_in(harmless, sizeof harmless / sizeof *harmless, name, strlen(name)))
        return false;
    while (*name) {
        size_t n = word_length(name);
        if (n && is_in(words, sizeof words / sizeof *words, name, n))
            return true;
        name += n ? n : 1;
    }
    return false;
}

/* The end of a URL's authority, scheme://authority. */
static const char *authority_end(const char *at) { return at + strcspn(at, "/?# \t\n\"'<>"); }

bool prb_secret_mask_urls(const char *value, struct prb_buf *out)
{
    bool masked = false;
    const char *scheme;
    while ((scheme = strstr(value, "://")) != NULL) {
        const char *start = scheme + strlen("://"), *end = authority_end(start), *at = NULL;
        for (const char *c = start; c < end; c++)
            at = *c == '@' ? c : at;
        const char *colon = at ? memchr(start, ':', (size_t)(at - start)) : NULL;
        if (colon) {
            prb_buf_add(out, value, (size_t)(colon + 1 - value));
            prb_buf_adds(out, PRB_MASK);
            masked = true;
            value = at;
        } else {
            prb_buf_add(out, value, (size_t)(start - value));
            value = start;
        }
    }
    prb_buf_adds(out, value);
    return masked;
}
