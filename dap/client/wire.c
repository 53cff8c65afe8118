/* Framing: see wire.h.  A message has one Content-Length.  Other header lines are ignored, as the
 * protocol demands, but must be header lines: a web page that posts to our port is refused. */
#include "dap/client/wire.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"

#define DIGITS_MAX 9 /* more than PRB_DAP_BODY_MAX has */

void prb_dap_wire_deinit(struct prb_dap_wire *wire) { prb_buf_deinit(&wire->in); }

bool prb_dap_wire_add(struct prb_dap_wire *wire, const void *data, size_t len)
{
    struct prb_buf *in = &wire->in;
    if (wire->used) {
        memmove(in->data, in->data + wire->used, in->len - wire->used);
        in->len -= wire->used;
        wire->used = 0;
    }
    prb_buf_add(in, data, len);
    return prb_buf_ok(in);
}

static bool is_name(char c) { return isalnum((unsigned char)c) || c == '-' || c == '_'; }

/* Decimal digits between blanks, nothing else. */
static bool take_length(const char *text, size_t len, size_t most, size_t *out,
                        struct prb_error *err)
{
    size_t at = 0, digits = 0, value = 0;
    while (at < len && (text[at] == ' ' || text[at] == '\t'))
        at++;
    for (; at < len && isdigit((unsigned char)text[at]) && digits <= DIGITS_MAX; at++, digits++)
        value = value * 10 + (size_t)(text[at] - '0');
    while (at < len && (text[at] == ' ' || text[at] == '\t'))
        at++;
    if (at != len || digits == 0)
        return prb_fail(err, PRB_CORRUPT, "the header Content-Length must be a number of bytes");
    if (digits > DIGITS_MAX || value > most)
        return prb_fail(err, PRB_CORRUPT, "a message is larger than %zu KiB", most >> 10);
    *out = value;
    return true;
}

/* One line "Name: value"; *length is SIZE_MAX until Content-Length was seen. */
static bool take_line(const char *line, size_t len, size_t most, size_t *length,
                      struct prb_error *err)
{
    static const char name[] = "Content-Length";
    const char *colon = memchr(line, ':', len);
    size_t before = colon ? (size_t)(colon - line) : 0;
    for (size_t i = 0; i < before; i++)
        if (!is_name(line[i]))
            colon = NULL;
    if (!colon || !before)
        return prb_fail(err, PRB_CORRUPT, "a line before a message is not a header");
    if (before != sizeof name - 1 || strncasecmp(line, name, before) != 0)
        return true;
    if (*length != SIZE_MAX)
        return prb_fail(err, PRB_CORRUPT, "a message has two Content-Length headers");
    return take_length(colon + 1, len - before - 1, most, length, err);
}

/* The header of head_len bytes, its empty line left out. */
static bool take_header(const char *head, size_t head_len, size_t most, size_t *length_out,
                        struct prb_error *err)
{
    size_t length = SIZE_MAX;
    while (head_len) {
        const char *end = memchr(head, '\n', head_len);
        size_t len = end ? (size_t)(end - head) : head_len;
        size_t shown = len && head[len - 1] == '\r' ? len - 1 : len;
        if (!take_line(head, shown, most, &length, err))
            return false;
        len += end != NULL;
        head += len;
        head_len -= len;
    }
    if (length == SIZE_MAX)
        return prb_fail(err, PRB_CORRUPT, "a message has no Content-Length header");
    *length_out = length;
    return true;
}

/* Bytes of the header lines, and of the empty line after them: "\r\n\r\n", or "\n\n" from a
 * careless client.  False: it has not arrived yet. */
static bool find_end(const char *data, size_t len, size_t *head_out, size_t *gap_out)
{
    for (size_t i = 0; i + 1 < len; i++) {
        if (data[i] != '\n')
            continue;
        size_t gap = data[i + 1] == '\n'                                         ? 1
                     : i + 2 < len && data[i + 1] == '\r' && data[i + 2] == '\n' ? 2
                                                                                 : 0;
        if (!gap)
            continue;
        *head_out = i + 1;
        *gap_out = gap;
        return true;
    }
    return false;
}

/* A first line that is not a header is refused before its end has arrived. */
static bool may_begin(const char *data, size_t len)
{
    size_t name = 0;
    while (name < len && is_name(data[name]))
        name++;
    return name == len || (name && data[name] == ':');
}

enum prb_dap_taken prb_dap_wire_take(struct prb_dap_wire *wire, const char **body_out,
                                     size_t *len_out, struct prb_error *err)
{
    const char *data = wire->in.data + wire->used;
    size_t len = wire->in.len - wire->used, head = 0, gap = 0, length = 0;
    if (!len)
        return PRB_DAP_TAKEN_MORE;
    size_t looked = len < PRB_DAP_HEADER_MAX ? len : PRB_DAP_HEADER_MAX;
    if (!find_end(data, looked, &head, &gap)) {
        if (may_begin(data, looked) && len < PRB_DAP_HEADER_MAX)
            return PRB_DAP_TAKEN_MORE;
        prb_fail(err, PRB_CORRUPT, "this is not a message of the Debug Adapter Protocol");
        return PRB_DAP_TAKEN_MALFORMED;
    }
    size_t most = wire->body_max ? wire->body_max : PRB_DAP_BODY_MAX;
    if (!take_header(data, head, most, &length, err))
        return PRB_DAP_TAKEN_MALFORMED;
    if (len - head - gap < length)
        return PRB_DAP_TAKEN_MORE;
    *body_out = data + head + gap;
    *len_out = length;
    wire->used += head + gap + length;
    return PRB_DAP_TAKEN;
}

/* Whether brackets outside strings nest too deeply for the parser, which recurses. */
static bool too_deep(const char *body, size_t len)
{
    size_t depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < len; i++) {
        char c = body[i];
        if (in_string) {
            i += c == '\\';
            in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            if (++depth > PRB_DAP_DEPTH_MAX)
                return true;
        } else if ((c == '}' || c == ']') && depth) {
            depth--;
        }
    }
    return false;
}

size_t prb_dap_wire_cost(const char *body, size_t len)
{
    enum { VALUE = 80 }; /* a number in an array takes 40 bytes, a member of an object 120 */
    size_t values = 1;
    for (size_t i = 0; i < len; i++)
        values += body[i] == ',' || body[i] == '{' || body[i] == '[';
    return len + values * VALUE;
}

json_t *prb_dap_wire_parse(const char *body, size_t len, struct prb_error *err)
{
    json_error_t why;
    if (prb_dap_wire_cost(body, len) > PRB_DAP_COST_MAX)
        return PRB_NULL(prb_fail(err, PRB_CORRUPT, "a message has too many values"));
    if (too_deep(body, len))
        return PRB_NULL(
            prb_fail(err, PRB_CORRUPT, "a message is nested more than %d deep", PRB_DAP_DEPTH_MAX));
    json_t *message = json_loadb(body, len, JSON_ALLOW_NUL, &why);
    if (!message)
        return PRB_NULL(prb_fail(err, PRB_CORRUPT, "a message is not valid JSON: %s", why.text));
    if (!json_is_object(message)) {
        json_decref(message);
        return PRB_NULL(prb_fail(err, PRB_CORRUPT, "a message must be a JSON object"));
    }
    return message;
}

bool prb_dap_wire_write(struct prb_buf *out, const json_t *message)
{
    char *text = json_dumps(message, JSON_COMPACT);
    size_t len = text ? strlen(text) : 0;
    if (!text)
        return false;
    prb_buf_addf(out, "Content-Length: %zu\r\n\r\n", len);
    prb_buf_add(out, text, len);
    free(text);
    return prb_buf_ok(out);
}
