/* Secrets by their names.  A name is cut into its words, at _ - . and where a capital follows a
 * small letter. */
#include "base/secret.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

/* Words that make a name secret wherever they stand. */
static const char *const words[] = {
    "KEY",         "KEYS",        "APIKEY",    "ACCESSKEY", "SECRETKEY",
    "PRIVATEKEY",  "AUTHKEY",     "PASSKEY",   "TOKEN",     "TOKENS",
    "AUTHTOKEN",   "ACCESSTOKEN", "JWT",       "BEARER",    "SAS",
    "OTP",         "SECRET",      "SECRETS",   "PRIVATE",   "SALT",
    "PEM",         "PASSWORD",    "PASSWORDS", "PASSWD",    "PASSPHRASE",
    "PASSCODE",    "PASS",        "PWD",       "PW",        "CREDENTIAL",
    "CREDENTIALS", "CREDS",       "AUTH",      "OAUTH",     "AUTHORIZATION",
    "COOKIE",      "COOKIES",     "SESSION",   "SESSIONID", "DSN",
    "CONNECTION",  "CONNSTR",     "CONN",      "PAT",       "WEBHOOK",
    "WEBHOOKS",    "SSHPASS",     "BINDPW",    "SK",        "HMAC",
    "SIGNATURE",
};

/* Words so plain that one which ends in them is secret too: PGPASSWORD, MASTERKEY. */
static const char *const endings[] = {
    "PASSWORD", "PASSWD", "PASSPHRASE", "SECRET", "TOKEN", "CREDENTIALS",
    "APIKEY",   "KEY",    "PASS",       "PWD",    "PW",
};

/* … but these. */
static const char *const other_words[] = {
    "MONKEY",  "TURKEY", "DONKEY",  "HOCKEY",   "JOCKEY",    "WHISKEY",  "WHISKY",    "HOTKEY",
    "COMPASS", "BYPASS", "SURPASS", "OVERPASS", "UNDERPASS", "TRESPASS", "MULTIPASS",
};

/* Whole names that have such a word and are not secret. */
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

/* Names of several words that are, with anything before and behind. */
static const char *const together[] = {
    "KUBE_CONFIG",
    "KUBE_CONFIG_DATA",
    "KUBECONFIG_DATA",
    "DOCKER_AUTH_CONFIG",
};

/* A number behind these is secret, too. */
static const char *const clear[] = {"PASSWORD", "PASSWD", "PASSPHRASE", "PASSCODE", "SECRET",
                                    "PASS",     "PWD",    "PW",         "OTP"};

/* An option that ends in these names no secret, but where or what it is. */
static const char *const about[] = {"FILE",  "PATH",    "DIR",    "FOLDER", "NAME",  "TYPE",
                                    "ID",    "SIZE",    "LEN",    "DIM",    "COUNT", "LENGTH",
                                    "DIMS",  "COLUMN",  "FORMAT", "MODE",   "ENV",   "VAR",
                                    "LIMIT", "SECONDS", "TIMEOUT"};

#define COUNT(list) (sizeof(list) / sizeof *(list))

static bool is_in(const char *const *list, size_t count, const char *text, size_t len)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(list[i]) == len && strncasecmp(list[i], text, len) == 0)
            return true;
    return false;
}

static bool ends_in(const char *const *list, size_t count, const char *text, size_t len)
{
    for (size_t i = 0; i < count; i++) {
        size_t n = strlen(list[i]);
        if (n <= len && strncasecmp(text + len - n, list[i], n) == 0)
            return true;
    }
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
    return is_in(words, COUNT(words), text, len) ||
           (ends_in(endings, COUNT(endings), text, len) &&
            !is_in(other_words, COUNT(other_words), text, len));
}

static bool is_clear_word(const char *text, size_t len)
{
    return is_secret_word(text, len) && ends_in(clear, COUNT(clear), text, len);
}

/* Whether a word of the name is one; *last_out: its last word. */
static bool has_word(const char *name, bool (*is_one)(const char *text, size_t len),
                     const char **last_out)
{
    bool found = false;
    *last_out = name;
    while (*name) {
        size_t n = word_length(name);
        found = found || (n && is_one(name, n));
        *last_out = n ? name : *last_out;
        name += n ? n : 1;
    }
    return found;
}

bool prb_secret_name(const char *name)
{
    const char *last;
    for (size_t i = 0; i < COUNT(together); i++)
        if (strcasestr(name, together[i]))
            return true;
    return !is_in(harmless, COUNT(harmless), name, strlen(name)) &&
           has_word(name, is_secret_word, &last);
}

bool prb_secret_variable(const char *name)
{
    /* Also without what is between: apikey, apiKey. */
    static const char *const pairs[] = {
        "api_key",    "access_key",   "secret_key",   "private_key", "account_key",  "signing_key",
        "auth_token", "access_token", "bearer_token", "api_token",   "refresh_token"};
    static const char *const alone[] = {"PASSWORD", "PASSWD",  "PASSPHRASE", "PASSCODE",
                                        "SECRET",   "SECRETS", "CREDENTIALS"};
    const char *last;
    for (size_t i = 0; i < COUNT(pairs); i++) {
        const char *cut = strchr(pairs[i], '_');
        char joined[16];
        snprintf(joined, sizeof joined, "%.*s%s", (int)(cut - pairs[i]), pairs[i], cut + 1);
        if (strcasestr(name, pairs[i]) || strcasestr(name, joined))
            return true;
    }
    has_word(name, is_secret_word, &last);
    return ends_in(alone, COUNT(alone), last, word_length(last));
}

static bool is_number(const char *value)
{
    size_t n = strspn(value, "0123456789.,eE+-_");
    return !value[n] && isdigit((unsigned char)value[*value == '-']);
}

static bool is_switch(const char *value)
{
    static const char *const switches[] = {"true", "false", "none", "null",
                                           "yes",  "no",    "on",   "off"};
    return is_in(switches, COUNT(switches), value, strlen(value));
}

bool prb_secret_argument(const char *name, const char *value)
{
    const char *last;
    if (!*value || !prb_secret_name(name) || is_switch(value))
        return false;
    bool named = has_word(name, is_clear_word, &last);
    return !is_in(about, COUNT(about), last, word_length(last)) && (named || !is_number(value));
}

/* ---- texts ---- */

struct walk {
    const char *text;
    void (*found)(void *context, struct prb_span span);
    void *context;
};

static void walk_text(const struct walk *walk, size_t from, size_t to)
{
    struct prb_span span;
    for (size_t at = 0; prb_secret_find(walk->text + from, to - from, at, &span);
         at = span.at + span.len)
        walk->found(walk->context, (struct prb_span){from + span.at, span.len});
}

static void walk_environment(const struct walk *walk, size_t len)
{
    for (size_t at = 0, end; at < len; at = end + 1) {
        end = at + strnlen(walk->text + at, len - at);
        const char *equals = memchr(walk->text + at, '=', end - at);
        PRB_AUTO_FREE char *name =
            equals ? strndup(walk->text + at, (size_t)(equals - walk->text) - at) : NULL;
        size_t value = equals ? (size_t)(equals + 1 - walk->text) : at;
        if (equals && value < end && (!name || prb_secret_name(name)))
            walk->found(walk->context, (struct prb_span){value, end - value});
        else
            walk_text(walk, value, end);
    }
}

#define NAME_MAX_BYTES 128

/* The name of an option or of NAME=VALUE, without dashes; false: it is too long for one. */
static bool take_name(const char *from, size_t len, char out[NAME_MAX_BYTES])
{
    while (len && *from == '-')
        from++, len--;
    if (!len || len >= NAME_MAX_BYTES)
        return false;
    memcpy(out, from, len);
    out[len] = '\0';
    return strpbrk(out, " \t/'\"") == NULL;
}

static bool is_script(const char *value)
{
    size_t len = strlen(value);
    return len > 3 && strcmp(value + len - 3, ".py") == 0;
}

/* Words that end at separator: those of a command line, or within one argument (a title that the
 * process gave itself, a core's line). */
static void walk_arguments(const struct walk *walk, size_t from, size_t to, char separator)
{
    char name[NAME_MAX_BYTES];
    bool waits = false; /* for the value of an option, which is `name` */
    for (size_t at = from, end; at < to; at = end + 1) {
        const char *word = walk->text + at, *stop = memchr(word, separator, to - at);
        end = stop ? (size_t)(stop - walk->text) : to;
        const char *equals = memchr(word, '=', end - at);
        PRB_AUTO_FREE char *copy = strndup(word, end - at);
        bool option = *word == '-';
        if (!copy)
            continue;
        if (waits && !option && !is_script(copy) && prb_secret_argument(name, copy)) {
            walk->found(walk->context, (struct prb_span){at, end - at});
            waits = false;
            continue;
        }
        waits = false;
        size_t value = equals ? (size_t)(equals + 1 - walk->text) : end;
        if (equals && value < end && take_name(word, (size_t)(equals - word), name) &&
            prb_secret_argument(name, copy + (value - at)))
            walk->found(walk->context, (struct prb_span){value, end - value});
        else if (separator != ' ' && memchr(word, ' ', end - at) && memmem(word, end - at, " -", 2))
            walk_arguments(walk, at, end, ' ');
        else
            walk_text(walk, at, end);
        waits = option && !equals && take_name(word, end - at, name) && prb_secret_name(name);
    }
}

void prb_secret_each(enum prb_secret_kind kind, const char *text, size_t len,
                     void (*found)(void *context, struct prb_span span), void *context)
{
    const struct walk walk = {text, found, context};
    if (kind == PRB_SECRET_ENVIRONMENT)
        walk_environment(&walk, len);
    else if (kind == PRB_SECRET_ARGUMENTS)
        walk_arguments(&walk, 0, len, '\0');
    else
        walk_text(&walk, 0, len);
}

struct masking {
    const char *text;
    size_t done;
    bool any;
    struct prb_buf *out;
};

static void mask(void *context, struct prb_span span)
{
    struct masking *masking = context;
    prb_buf_add(masking->out, masking->text + masking->done, span.at - masking->done);
    prb_buf_adds(masking->out, PRB_MASK);
    masking->done = span.at + span.len;
    masking->any = true;
}

bool prb_secret_mask(enum prb_secret_kind kind, const char *text, size_t len, struct prb_buf *out)
{
    struct masking masking = {.text = text, .out = out};
    prb_buf_adds(out, "");
    prb_secret_each(kind, text, len, mask, &masking);
    prb_buf_add(out, text + masking.done, len - masking.done);
    return masking.any;
}
