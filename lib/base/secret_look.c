/*
 * Secrets by their form, anywhere in a text.  A form begins with fixed bytes, its head; what
 * follows decides.  Every form but USER:PASSWORD@HOST has a head, so that a search through memory
 * can skip all other bytes.
 */
#include <ctype.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/secret.h"

#define TOKEN_MIN 16    /* a user's name this long, without password, is taken for a token */
#define BEARER_MIN 8    /* bytes behind "Bearer" */
#define UNNAMED_MIN 8   /* bytes behind a key that names other things too: sig=11 */
#define USER_MAX 64     /* bytes of the user in USER:PASSWORD@HOST */
#define VALUE_MAX 4096  /* bytes of a password, a token */
#define SLASHED_MAX 256 /* bytes of a password behind its first / */
#define PEM_MAX 16384   /* bytes of a private key */

struct text {
    const char *data;
    size_t len;
};

static char at_of(const struct text *text, size_t at)
{
    return at < text->len ? text->data[at] : '\0';
}

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

static bool is_in(const char *set, char c) { return c && strchr(set, c); }

/* How many characters from there are alphanumeric or in the set. */
static size_t run_of(const struct text *text, size_t at, const char *set)
{
    size_t n = 0;
    while (n < PEM_MAX &&
           (isalnum((unsigned char)at_of(text, at + n)) || is_in(set, at_of(text, at + n))))
        n++;
    return n;
}

static size_t within(const struct text *text, size_t at, const char *set, size_t most)
{
    size_t n = 0;
    while (n < most && at_of(text, at + n) && !is_in(set, at_of(text, at + n)))
        n++;
    return n;
}

static size_t until(const struct text *text, size_t at, const char *set)
{
    return within(text, at, set, VALUE_MAX);
}

static bool has_digit(const struct text *text, size_t at, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (isdigit((unsigned char)text->data[at + i]))
            return true;
    return false;
}

static bool all_digits(const struct text *text, size_t at, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!isdigit((unsigned char)text->data[at + i]))
            return false;
    return true;
}

static bool give(struct prb_span *out, size_t at, size_t len)
{
    if (len)
        *out = (struct prb_span){at, len};
    return len > 0;
}

/* What was masked before is not secret. */
static bool is_mask(const struct text *text, size_t at, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (text->data[at + i] != '*')
            return false;
    return true;
}

static size_t last_of(const struct text *text, size_t at, size_t len, char c)
{
    for (size_t i = len; i > 0; i--)
        if (text->data[at + i - 1] == c)
            return i - 1;
    return len;
}

/*
 * ://USER:PASSWORD@: behind the user's colon up to the @.  A password may hold an unquoted / (then
 * the colon is followed by more than a port's digits).
 */
static bool find_url(const struct text *text, size_t at, size_t head, struct prb_span *out)
{
    size_t start = at + head, end = start + until(text, start, "/?# \t\r\n\"'<>");
    size_t sign = start + last_of(text, start, end - start, '@');
    size_t colon = start + until(text, start, ":@/?# \t\r\n\"'<>");
    bool has_colon = colon < end && text->data[colon] == ':';
    if (sign == end && has_colon && !all_digits(text, colon + 1, end - colon - 1)) {
        end += within(text, end, "@ \t\r\n\"'<>", SLASHED_MAX);
        sign = at_of(text, end) == '@' ? end : end + 1;
    }
    if (at_of(text, sign) != '@' || sign > end || (!has_colon && sign - start < TOKEN_MIN))
        return false;
    size_t from = has_colon ? colon + 1 : start;
    return !is_mask(text, from, sign - from) && give(out, from, sign - from);
}

/* Whether a word begins: not one of a URL's query. */
static bool begins(const struct text *text, size_t at)
{
    if (at && text->data[at - 1] == '=')
        for (at--; at && (is_word(text->data[at - 1]) || is_in(".-", text->data[at - 1]));)
            at--;
    return !at || is_in(" \t\r\n\"',;(<[", text->data[at - 1]);
}

/* USER:PASSWORD@HOST without a scheme; not IMAGE:TAG@sha256:DIGEST. */
static bool find_login(const struct text *text, size_t at, struct prb_span *out)
{
    if ((at && isalnum((unsigned char)text->data[at - 1])) ||
        !isalnum((unsigned char)text->data[at]) || !begins(text, at))
        return false;
    size_t user = run_of(text, at, "._%+-");
    if (!user || user > USER_MAX || at_of(text, at + user) != ':')
        return false;
    size_t from = at + user + 1, len = until(text, from, "@/: \t\r\n\"'<>(){}[],;"), host;
    if (!len || at_of(text, from + len) != '@' || is_mask(text, from, len))
        return false;
    host = from + len + 1;
    size_t name = run_of(text, host, ".-");
    char behind = at_of(text, host + name), port = at_of(text, host + name + 1);
    return name && isalnum((unsigned char)text->data[host]) &&
           (behind != ':' || isdigit((unsigned char)port)) &&
           strncmp(text->data + host, "sha", name < 3 ? name : 3) != 0 && give(out, from, len);
}

static bool find_bearer(const struct text *text, size_t at, size_t head, struct prb_span *out)
{
    size_t len = run_of(text, at + head, "-._~+/=");
    return len >= BEARER_MIN && (len >= TOKEN_MIN || has_digit(text, at + head, len)) &&
           give(out, at + head, len);
}

static int sextet(char c)
{
    static const char set[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *found = c ? strchr(set, c) : NULL;
    return found ? (int)(found - set) : -1;
}

/* "Basic " and base64 of USER:PASSWORD: so it has a colon, and no other bytes than a text's. */
static bool find_basic(const struct text *text, size_t at, size_t head, struct prb_span *out)
{
    size_t len = run_of(text, at + head, "+/="), bits = 0;
    unsigned value = 0;
    bool colon = false;
    for (size_t i = 0; i < len && text->data[at + head + i] != '='; i++) {
        int six = sextet(text->data[at + head + i]);
        value = value << 6 | (unsigned)six;
        bits += 6;
        if (bits < 8)
            continue;
        bits -= 8;
        unsigned char c = (unsigned char)(value >> bits);
        if (six < 0 || c < ' ')
            return false;
        colon = colon || c == ':';
    }
    return len >= 4 && colon && give(out, at + head, len);
}

/* A value without a secret: None, or another program's mask; %s, {password} and $PASSWORD were
 * handled before. */
static bool is_stand_in(const struct text *text, size_t at, size_t len)
{
    static const char *const nothing[] = {"none", "null", "true", "false", "str", "self"};
    if (is_mask(text, at, len))
        return true;
    for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++)
        if (strlen(nothing[i]) == len && strncasecmp(nothing[i], text->data + at, len) == 0)
            return true;
    return false;
}

/*
 * password=X, "password": "X", password='X'.  A colon serves only between quotes, as JSON and
 * Python write it.  least: bytes of X.
 */
static bool find_value(const struct text *text, size_t at, size_t head, size_t least,
                       struct prb_span *out)
{
    size_t i = at + head;
    char quote = '\0';
    i += at_of(text, i) == '\\'; /* JSON within a text */
    bool named = is_in("\"'", at_of(text, i));
    i += named;
    while (at_of(text, i) == ' ')
        i++;
    char sign = at_of(text, i);
    if (sign != '=' && sign != ':')
        return false;
    do
        i++;
    while (at_of(text, i) == ' ' && (sign == ':' || named));
    if (sign == ':' && !named && !is_in("\"'", at_of(text, i)))
        return false;
    bool escaped = at_of(text, i) == '\\';
    i += escaped;
    if (is_in("\"'", at_of(text, i)))
        quote = text->data[i++];
    else if (escaped || (sign == ':' && named))
        return false;
    const char ends[] = {quote, escaped ? '\\' : quote, '\0'};
    if (is_in("%{$<", at_of(text, i)))
        return false;
    size_t len = until(text, i, quote ? ends : " \t\r\n&;,\"'`)}]>#|");
    return len >= least && !is_stand_in(text, i, len) && give(out, i, len);
}

static bool find_password(const struct text *text, size_t at, size_t head, struct prb_span *out)
{
    return find_value(text, at, head, 1, out) &&
           (out->len >= UNNAMED_MIN || text->data[out->at] != '/'); /* pwd=/home */
}

static bool find_named(const struct text *text, size_t at, size_t head, struct prb_span *out)
{
    return find_value(text, at, head, UNNAMED_MIN, out);
}

/* -----BEGIN … PRIVATE KEY-----, what is between that and -----END. */
static bool find_key(const struct text *text, size_t at, size_t head, struct prb_span *out)
{
    size_t name = until(text, at + head, "-\r\n"), from = at + head + name + strlen("-----");
    if (name < strlen("PRIVATE KEY") ||
        !memmem(text->data + at + head, name, "PRIVATE KEY", strlen("PRIVATE KEY")) ||
        from > text->len || memcmp(text->data + at + head + name, "-----", 5) != 0)
        return false;
    size_t len = run_of(text, from, "+/=\n\r\\ :,\t-");
    const char *end = memmem(text->data + from, len, "-----END", 8);
    len = end ? (size_t)(end - text->data) - from : len;
    return len >= TOKEN_MIN && give(out, from, len);
}

/* Behind a prefix that only tokens have: characters and how many there are at the least. */
struct token {
    const char *set;
    size_t least;
};

static bool find_token(const struct text *text, size_t at, size_t head, const struct token *token,
                       struct prb_span *out)
{
    size_t len = run_of(text, at + head, token->set);
    return len >= token->least && has_digit(text, at + head, len) && give(out, at, head + len);
}

/* eyJ….eyJ….…: both parts are JSON in base64. */
static bool find_jwt(const struct text *text, size_t at, size_t head, struct prb_span *out)
{
    size_t first = run_of(text, at + head, "_-"), dot = at + head + first;
    size_t second = at_of(text, dot) == '.' ? run_of(text, dot + 1, "_-") : 0;
    if (first < BEARER_MIN || second < BEARER_MIN)
        return false;
    return give(out, at, head + first + run_of(text, dot, "._-"));
}

/* The address is the secret: what is behind the service's name. */
static bool find_hook(const struct text *text, size_t at, size_t head, struct prb_span *out)
{
    size_t len = run_of(text, at + head, "/_-");
    return len >= TOKEN_MIN && give(out, at + head, len);
}

typedef bool find_fn(const struct text *text, size_t at, size_t head, struct prb_span *out);

static const struct look {
    const char *head;
    find_fn *find; /* NULL: token */
    struct token token;
    bool whole_word; /* nothing of a word before it */
} looks[] = {
    {"://", find_url, {0}, false},
    {"bearer ", find_bearer, {0}, true},
    {"basic ", find_basic, {0}, true},
    {"-----BEGIN ", find_key, {0}, false},
    {"hooks.slack.com/services/", find_hook, {0}, false},
    {"hooks.slack.com/workflows/", find_hook, {0}, false},
    {"discord.com/api/webhooks/", find_hook, {0}, false},
    {"webhook.office.com/", find_hook, {0}, false},
    {"eyJ", find_jwt, {0}, true},
    /* Names of values; what stands before is part of the name: db_password. */
    {"password", find_password, {0}, false},
    {"passwd", find_password, {0}, false},
    {"pwd", find_password, {0}, false},
    {"passphrase", find_password, {0}, false},
    {"secret", find_password, {0}, false},
    {"accountkey", find_password, {0}, false},
    {"accesskey", find_password, {0}, false},
    {"sharedaccesssignature", find_password, {0}, false},
    {"access_key", find_password, {0}, false},
    {"secret_key", find_password, {0}, false},
    {"secretkey", find_password, {0}, false},
    {"secretaccesskey", find_password, {0}, false},
    {"access_token", find_password, {0}, false},
    {"auth_token", find_password, {0}, false},
    {"api_key", find_password, {0}, false},
    {"api-key", find_password, {0}, false},
    {"apikey", find_password, {0}, false},
    {"private_key", find_password, {0}, false},
    {"private_key_id", find_named, {0}, false},
    {"token", find_named, {0}, false},
    {"signature", find_named, {0}, false},
    {"sig", find_named, {0}, true},
    /* Prefixes of tokens. */
    {"github_pat_", NULL, {"_", 20}, true},
    {"ghp_", NULL, {"", 16}, true},
    {"gho_", NULL, {"", 16}, true},
    {"ghu_", NULL, {"", 16}, true},
    {"ghs_", NULL, {"", 16}, true},
    {"ghr_", NULL, {"", 16}, true},
    {"glpat-", NULL, {"_-", 16}, true},
    {"hf_", NULL, {"", 16}, true},
    {"sk-", NULL, {"_-", 16}, true},
    {"sk_live_", NULL, {"", 10}, true},
    {"sk_test_", NULL, {"", 10}, true},
    {"rk_live_", NULL, {"", 10}, true},
    {"whsec_", NULL, {"+/=", 16}, true},
    {"xoxb-", NULL, {"-", 10}, true},
    {"xoxp-", NULL, {"-", 10}, true},
    {"xoxa-", NULL, {"-", 10}, true},
    {"xoxr-", NULL, {"-", 10}, true},
    {"xoxs-", NULL, {"-", 10}, true},
    {"xapp-", NULL, {"-", 10}, true},
    {"AKIA", NULL, {"", 16}, true},
    {"ASIA", NULL, {"", 16}, true},
    {"AIza", NULL, {"_-", 30}, true},
    {"ya29.", NULL, {"_-.", 20}, true},
    {"npm_", NULL, {"", 30}, true},
    {"pypi-", NULL, {"_-", 40}, true},
    {"dckr_pat_", NULL, {"_-", 16}, true},
    {"dop_v1_", NULL, {"", 32}, true},
    {"nvapi-", NULL, {"_-", 20}, true},
    {"gsk_", NULL, {"", 20}, true},
    {"SG.", NULL, {"._-", 40}, true},
    {"AGE-SECRET-KEY-1", NULL, {"", 30}, true},
};

const char *prb_secret_head(size_t i)
{
    return i < sizeof looks / sizeof *looks ? looks[i].head : NULL;
}

static bool begins_with(const struct text *text, size_t at, const char *head, size_t len)
{
    return at < text->len && len <= text->len - at && strncasecmp(text->data + at, head, len) == 0;
}

/* Which three characters a head may begin with, by the lower five bits of each: most of a text is
 * passed over by them.  Made when it is first asked; threads that meet there make the same. */
typedef _Atomic uint32_t heads_row;

static const heads_row *heads(void)
{
    static heads_row rows[1024];
    static atomic_bool made;
    if (!atomic_load_explicit(&made, memory_order_acquire)) {
        for (size_t i = 0; i < sizeof looks / sizeof *looks; i++) {
            const char *head = looks[i].head;
            atomic_fetch_or(&rows[(head[0] & 31) << 5 | (head[1] & 31)], 1u << (head[2] & 31));
        }
        atomic_store_explicit(&made, true, memory_order_release);
    }
    return rows;
}

static inline bool is_head(const heads_row *rows, char first, char second, char third)
{
    return atomic_load_explicit(&rows[(first & 31) << 5 | (second & 31)], memory_order_relaxed) >>
               (third & 31) &
           1;
}

/* Whether what begins there goes on with a word: also behind a hyphen within one. */
static bool is_joined(const struct text *text, size_t at)
{
    return at && (is_word(text->data[at - 1]) ||
                  (at > 1 && text->data[at - 1] == '-' &&
                   !is_in(" \t\r\n\"'=,;:(<[{", text->data[at - 2]) && text->data[at - 2]));
}

static bool find_look(const struct text *text, size_t at, struct prb_span *out)
{
    bool joined = is_joined(text, at);
    char first = text->data[at] | 32;
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++) {
        const struct look *look = &looks[i];
        if ((look->head[0] | 32) != first || (look->whole_word && joined))
            continue;
        size_t head = strlen(look->head);
        if (!begins_with(text, at, look->head, head))
            continue;
        if (look->find ? look->find(text, at, head, out)
                       : strncmp(text->data + at, look->head, head) == 0 &&
                             find_token(text, at, head, &look->token, out))
            return true;
    }
    return false;
}

bool prb_secret_at(const char *data, size_t len, size_t at, struct prb_span *out)
{
    const struct text text = {data, len};
    return (is_head(heads(), data[at], at_of(&text, at + 1), at_of(&text, at + 2)) &&
            find_look(&text, at, out)) ||
           find_login(&text, at, out);
}

bool prb_secret_find(const char *data, size_t len, size_t from, struct prb_span *out)
{
    const struct text text = {data, len};
    const heads_row *rows = heads();
    bool logins = from < len && memchr(data + from, '@', len - from);
    for (size_t at = from; at + 3 <= len; at++)
        if ((is_head(rows, data[at], data[at + 1], data[at + 2]) && find_look(&text, at, out)) ||
            (logins && find_login(&text, at, out)))
            return true;
    return false;
}
