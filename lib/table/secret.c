/* Secrets in the environment.  A name is cut into its words, at _ - . and where a capital follows a
 * small letter. */
#include "table/secret.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

/* Words that make a name secret wherever they stand. */
static const char *const words[] = {
    "KEY",        "KEYS",        "APIKEY",    "ACCESSKEY",     "SECRETKEY",
    "PRIVATEKEY", "AUTHKEY",     "PASSKEY",   "TOKEN",         "TOKENS",
    "AUTHTOKEN",  "ACCESSTOKEN", "JWT",       "BEARER",        "SAS",
    "OTP",        "SECRET",      "SECRETS",   "PRIVATE",       "SALT",
    "PEM",        "PASSWORD",    "PASSWORDS", "PASSWD",        "PASSPHRASE",
    "PASS",       "PWD",         "PW",        "CREDENTIAL",    "CREDENTIALS",
    "CREDS",      "AUTH",        "OAUTH",     "AUTHORIZATION", "COOKIE",
    "COOKIES",    "SESSION",     "SESSIONID", "DSN",           "CONNECTION",
    "CONNSTR",
};

/* Words so plain that one which ends in them is secret too: PGPASSWORD. */
static const char *const endings[] = {
    "PASSWORD", "PASSWD", "PASSPHRASE", "SECRET", "TOKEN", "CREDENTIALS", "APIKEY",
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
    "DBUS_SESSION_BUS_ADDRESS",
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

static bool is_secret_word(const char *text, size_t len)
{
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t n = strlen(endings[i]);
        if (n <= len && strncasecmp(text + len - n, endings[i], n) == 0)
            return true;
    }
    return is_in(words, sizeof words / sizeof *words, text, len);
}

bool prb_secret_name(const char *name)
{
    if (is_in(harmless, sizeof harmless / sizeof *harmless, name, strlen(name)))
        return false;
    while (*name) {
        size_t n = word_length(name);
        if (n && is_secret_word(name, n))
            return true;
        name += n ? n : 1;
    }
    return false;
}

#define TOKEN_MIN 16 /* a user's name this long, without password, is taken for a token */

static bool all_digits(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!isdigit((unsigned char)text[i]))
            return false;
    return true;
}

/*
 * The secret part of a URL whose authority begins at start: behind the user's colon up to the @.  A
 * password may hold an unquoted / (then the colon is followed by more than a port's digits).
 */
static bool find_password(const char *start, const char **from_out, const char **to_out)
{
    const char *end = start + strcspn(start, "/?# \t\n\"'<>"), *at = NULL;
    for (const char *c = start; c < end; c++)
        at = *c == '@' ? c : at;
    const char *colon = memchr(start, ':', (size_t)((at ? at : end) - start));
    if (!at && colon && !all_digits(colon + 1, (size_t)(end - colon - 1))) {
        at = end + strcspn(end, "@ \t\n\"'<>");
        at = *at == '@' ? at : NULL;
    }
    if (!at || (!colon && at - start < TOKEN_MIN))
        return false;
    *from_out = colon ? colon + 1 : start;
    *to_out = at;
    return true;
}

bool prb_secret_mask_urls(const char *value, struct prb_buf *out)
{
    bool masked = false;
    const char *scheme, *from, *to;
    while ((scheme = strstr(value, "://")) != NULL) {
        const char *start = scheme + strlen("://");
        bool found = find_password(start, &from, &to);
        prb_buf_add(out, value, (size_t)((found ? from : start) - value));
        if (found)
            prb_buf_adds(out, PRB_MASK);
        masked = masked || found;
        value = found ? to : start;
    }
    prb_buf_adds(out, value);
    return masked;
}
