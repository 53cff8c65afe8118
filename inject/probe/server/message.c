/*
 * Messages as bytes, both directions (protocol.h).  Everything that is read is checked once, in
 * prb_message_take; looking for a field relies on that.
 */
#include "inject/probe/server/message.h"

#include <stdio.h>
#include <string.h>

static bool is_number(uint16_t key)
{
    enum { BYTES, NUMBER };
    switch (key) {
#define F(name, number, kind)                                                                      \
    case number:                                                                                   \
        return kind == NUMBER;
        PRB_MESSAGE_FIELDS(F)
#undef F
    default:
        return false;
    }
}

/* The field at *offset of a body: false at the end, and where it does not fit. */
static bool next_field(const uint8_t *body, size_t len, size_t *offset, struct prb_field_head *head,
                       const uint8_t **value)
{
    if (len - *offset < sizeof *head)
        return false;
    memcpy(head, body + *offset, sizeof *head);
    *value = body + *offset + sizeof *head;
    if (head->len > len - *offset - sizeof *head)
        return false;
    *offset += sizeof *head + head->len;
    return true;
}

static bool body_holds(const uint8_t *body, size_t len)
{
    struct prb_field_head head;
    const uint8_t *value;
    size_t offset = 0;
    while (next_field(body, len, &offset, &head, &value)) {
        if (head.zero || (is_number(head.key) && head.len != sizeof(uint64_t)))
            return false;
    }
    return offset == len;
}

enum prb_taken prb_message_take(const uint8_t *bytes, size_t len, struct prb_message *out,
                                size_t *used_out)
{
    struct prb_message_head head;
    if (len < sizeof head)
        return PRB_TAKEN_MORE;
    memcpy(&head, bytes, sizeof head);
    if (head.zero || head.length > PRB_MESSAGE_MAX)
        return PRB_TAKEN_MALFORMED;
    if (len - sizeof head < head.length)
        return PRB_TAKEN_MORE;
    const uint8_t *body = bytes + sizeof head;
    if (!body_holds(body, head.length))
        return PRB_TAKEN_MALFORMED;
    *out = (struct prb_message){head.type, head.request, body, head.length};
    *used_out = sizeof head + head.length;
    return PRB_TAKEN;
}

static const uint8_t *find(const struct prb_message *message, enum prb_message_field key,
                           size_t *len)
{
    struct prb_field_head head;
    const uint8_t *value;
    size_t offset = 0;
    while (next_field(message->body, message->len, &offset, &head, &value)) {
        if (head.key == key) {
            *len = head.len;
            return value;
        }
    }
    return NULL;
}

bool prb_message_number(const struct prb_message *message, enum prb_message_field key,
                        uint64_t *out)
{
    size_t len;
    const uint8_t *value = find(message, key, &len);
    if (!value || len != sizeof *out)
        return false;
    memcpy(out, value, sizeof *out);
    return true;
}

bool prb_message_text(const struct prb_message *message, enum prb_message_field key,
                      const char **text, size_t *len)
{
    const uint8_t *value = find(message, key, len);
    if (!value)
        return false;
    *text = (const char *)value;
    return true;
}

void prb_message_text_into(const struct prb_message *message, enum prb_message_field key, char *out,
                           size_t cap)
{
    const char *text = "";
    size_t len = 0;
    prb_message_text(message, key, &text, &len);
    snprintf(out, cap, "%.*s", (int)(len < cap ? len : cap), text);
}

char *prb_message_copy(const struct prb_message *message, enum prb_message_field key)
{
    const char *text = "";
    size_t len = 0;
    prb_message_text(message, key, &text, &len);
    return strndup(text, len);
}

void prb_fields_number(struct prb_buf *body, enum prb_message_field key, uint64_t value)
{
    prb_fields_text(body, key, (const char *)&value, sizeof value);
}

void prb_fields_text(struct prb_buf *body, enum prb_message_field key, const char *text, size_t len)
{
    struct prb_field_head head = {(uint16_t)key, 0, (uint32_t)len};
    prb_buf_add(body, &head, sizeof head);
    prb_buf_add(body, text, len);
}

void prb_message_add(struct prb_buf *out, enum prb_message_type type, uint32_t request,
                     const struct prb_buf *fields)
{
    struct prb_message_head head = {fields ? (uint32_t)fields->len : 0, request, (uint16_t)type, 0};
    if (fields && (!prb_buf_ok(fields) || fields->len > PRB_MESSAGE_MAX)) {
        out->failed = true;
        return;
    }
    prb_buf_add(out, &head, sizeof head);
    if (head.length)
        prb_buf_add(out, fields->data, fields->len);
}
