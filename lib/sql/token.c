/* The tokenizer.  One function for each class of first byte; each returns the length of its token.
 */
#include "sql/token.h"

#include <string.h>

static bool is_space(unsigned char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\f' || c == '\r';
}

static bool is_digit(unsigned char c) { return c >= '0' && c <= '9'; }

static bool is_hex(unsigned char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_name_start(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c >= 0x80;
}

static bool is_name(unsigned char c) { return is_name_start(c) || is_digit(c) || c == '$'; }

/* The rest of the text from the token's first byte. */
struct rest {
    const unsigned char *at;
    size_t len;
};

static unsigned char peek(struct rest rest, size_t i) { return i < rest.len ? rest.at[i] : '\0'; }

static size_t names(struct rest rest, size_t i)
{
    while (i < rest.len && is_name(rest.at[i]))
        i++;
    return i;
}

static size_t digits(struct rest rest, size_t i)
{
    while (i < rest.len &&
           (is_digit(rest.at[i]) || (rest.at[i] == '_' && i > 0 && is_digit(rest.at[i - 1]) &&
                                     is_digit(peek(rest, i + 1)))))
        i++;
    return i;
}

/* -- to the end of the line; a block comment that is not closed reaches to the end of the text. */
static size_t comment(struct rest rest)
{
    if (peek(rest, 0) == '-') {
        const void *end = memchr(rest.at, '\n', rest.len);
        return end ? (size_t)((const unsigned char *)end - rest.at) : rest.len;
    }
    for (size_t i = 3; i < rest.len; i++)
        if (rest.at[i] == '/' && rest.at[i - 1] == '*')
            return i + 1;
    return rest.len;
}

/* A quoted text, its quote doubled inside; *closed_out says whether it ends. */
static size_t quoted(struct rest rest, bool *closed_out)
{
    unsigned char quote = rest.at[0];
    *closed_out = true;
    for (size_t i = 1; i < rest.len; i++) {
        if (rest.at[i] != quote)
            continue;
        if (peek(rest, i + 1) != quote)
            return i + 1;
        i++;
    }
    *closed_out = false;
    return rest.len;
}

static size_t number(struct rest rest, bool *good_out)
{
    size_t i;
    if (rest.at[0] == '0' && (peek(rest, 1) | 32) == 'x' && is_hex(peek(rest, 2))) {
        for (i = 3; i < rest.len && is_hex(rest.at[i]); i++)
            ;
    } else {
        i = digits(rest, 0);
        if (peek(rest, i) == '.')
            i = digits(rest, i + 1);
        if ((peek(rest, i) | 32) == 'e') {
            size_t sign = peek(rest, i + 1) == '+' || peek(rest, i + 1) == '-';
            if (is_digit(peek(rest, i + 1 + sign)))
                i = digits(rest, i + 1 + sign);
        }
    }
    size_t end = names(rest, i);
    *good_out = end == i;
    return end;
}

/* x'…' with an even number of hexadecimal digits. */
static size_t blob(struct rest rest, bool *good_out)
{
    size_t i = 2;
    while (i < rest.len && is_hex(rest.at[i]))
        i++;
    *good_out = peek(rest, i) == '\'' && i % 2 == 0;
    while (i < rest.len && rest.at[i] != '\'')
        i++;
    return i < rest.len ? i + 1 : i;
}

/* $name, @name, :name, #name, with :: and a parenthesised tail as SQLite takes them. */
static size_t variable(struct rest rest, bool *good_out)
{
    size_t i = 1, letters = 0;
    for (; i < rest.len; i++) {
        if (is_name(rest.at[i])) {
            letters++;
        } else if (rest.at[i] == ':' && peek(rest, i + 1) == ':') {
            i++;
        } else if (rest.at[i] == '(' && letters > 0) {
            while (i < rest.len && !is_space(rest.at[i]) && rest.at[i] != ')')
                i++;
            i += peek(rest, i) == ')';
            break;
        } else {
            break;
        }
    }
    *good_out = letters > 0;
    return i < rest.len ? i : rest.len;
}

static const char *const operators[] = {
    "->>", "->", "==", "<=", "<>", "<<", ">=", ">>", "!=", "||", "-", "(", ")",
    "+",   "*",  "/",  "%",  "=",  "<",  ">",  "|",  ",",  "&",  "~", "."};

static size_t operator_length(struct rest rest)
{
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        size_t len = strlen(operators[i]);
        if (len <= rest.len && memcmp(rest.at, operators[i], len) == 0)
            return len;
    }
    return 0;
}

static size_t space(struct rest rest)
{
    if (rest.len >= 3 && memcmp(rest.at, "\xef\xbb\xbf", 3) == 0)
        return 3; /* a byte order mark */
    size_t i = 0;
    while (i < rest.len && is_space(rest.at[i]))
        i++;
    return i;
}

static bool starts_comment(struct rest rest)
{
    return (peek(rest, 0) == '-' && peek(rest, 1) == '-') ||
           (peek(rest, 0) == '/' && peek(rest, 1) == '*' && rest.len > 2);
}

static enum prb_token_kind good_or_illegal(bool good, enum prb_token_kind kind)
{
    return good ? kind : PRB_TOKEN_ILLEGAL;
}

/* Kind and length of the token that begins with a quote, or len 0. */
static struct prb_token quoted_token(struct rest rest)
{
    struct prb_token token = {0};
    bool closed = true;
    if (rest.at[0] == '\'' || rest.at[0] == '"' || rest.at[0] == '`') {
        token.len = quoted(rest, &closed);
        token.kind = rest.at[0] == '\'' ? PRB_TOKEN_STRING : PRB_TOKEN_QUOTED;
    } else if (rest.at[0] == '[') {
        const unsigned char *end = memchr(rest.at, ']', rest.len);
        closed = end != NULL;
        token.len = end ? (size_t)(end - rest.at) + 1 : rest.len;
        token.kind = PRB_TOKEN_QUOTED;
    }
    token.kind = good_or_illegal(closed, token.kind);
    return token;
}

struct prb_token prb_token_at(const char *sql, size_t len, size_t offset)
{
    if (offset >= len)
        return (struct prb_token){PRB_TOKEN_END, len, 0};
    struct rest rest = {(const unsigned char *)sql + offset, len - offset};
    unsigned char first = rest.at[0], second = peek(rest, 1);
    struct prb_token token = quoted_token(rest);
    bool good = true;
    if (token.len) {
        token.offset = offset;
        return token;
    }
    if ((token.len = space(rest)) > 0) {
        token.kind = PRB_TOKEN_SPACE;
    } else if (starts_comment(rest)) {
        token.len = comment(rest);
        token.kind = PRB_TOKEN_SPACE;
    } else if (is_digit(first) || (first == '.' && is_digit(second))) {
        token.len = number(rest, &good);
        token.kind = good_or_illegal(good, PRB_TOKEN_NUMBER);
    } else if ((first | 32) == 'x' && second == '\'') {
        token.len = blob(rest, &good);
        token.kind = good_or_illegal(good, PRB_TOKEN_BLOB);
    } else if (is_name_start(first)) {
        token.len = names(rest, 1);
        token.kind = PRB_TOKEN_WORD;
    } else if (first == '?') {
        token.len = digits(rest, 1);
        token.kind = PRB_TOKEN_VARIABLE;
    } else if (first == ';') {
        token.len = 1;
        token.kind = PRB_TOKEN_SEMICOLON;
    } else if ((token.len = operator_length(rest)) > 0) {
        token.kind = PRB_TOKEN_OPERATOR;
    } else if (strchr("$@:#", first) && first) {
        token.len = variable(rest, &good);
        token.kind = good_or_illegal(good, PRB_TOKEN_VARIABLE);
    } else {
        token.len = 1;
        token.kind = PRB_TOKEN_ILLEGAL;
    }
    token.offset = offset;
    return token;
}

static unsigned char lower(unsigned char c)
{
    return c >= 'A' && c <= 'Z' ? (unsigned char)(c | 32) : c;
}

bool prb_token_is(const char *sql, const struct prb_token *token, const char *word)
{
    if (token->kind != PRB_TOKEN_WORD || strlen(word) != token->len)
        return false;
    for (size_t i = 0; i < token->len; i++)
        if (lower((unsigned char)sql[token->offset + i]) != (unsigned char)word[i])
            return false;
    return true;
}

size_t prb_token_unquote(const char *sql, const struct prb_token *token, char *out, size_t cap)
{
    const char *text = sql + token->offset;
    size_t from = 0, to = token->len, n = 0;
    char quote = '\0';
    if (token->kind == PRB_TOKEN_STRING || token->kind == PRB_TOKEN_QUOTED) {
        quote = text[0] == '[' ? '\0' : text[0];
        from = 1;
        to--;
    }
    for (size_t i = from; i < to; i++, n++) {
        if (n + 1 < cap)
            out[n] = text[i];
        if (quote && text[i] == quote)
            i++;
    }
    if (cap)
        out[n < cap ? n : cap - 1] = '\0';
    return n;
}
