/*
 * Messages of the control protocol: what is taken lies within the bytes, is bounded, does not
 * change when more bytes follow, and comes out the same when put together again.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "inject/probe/server/message.h"

enum { KEYS = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void look(const struct prb_message *message, const uint8_t *end)
{
    for (int key = 0; key < KEYS; key++) {
        const char *text = NULL;
        size_t len = 0;
        uint64_t number = 0;
        bool there = prb_message_text(message, key, &text, &len);
        check(!there ||
              ((const uint8_t *)text >= message->body && (const uint8_t *)text + len <= end));
        check(!prb_message_number(message, key, &number) || (there && len == sizeof number));
        PRB_AUTO_FREE char *copy = prb_message_copy(message, key);
        check(copy && strlen(copy) <= len);
    }
}

static void put_together(const struct prb_message *message, const uint8_t *from, size_t used)
{
    PRB_AUTO(prb_buf) struct prb_buf fields = {0}, again = {0};
    prb_buf_add(&fields, message->body, message->len);
    prb_message_add(&again, message->type, message->request, &fields);
    check(prb_buf_ok(&again) && again.len == used && !memcmp(again.data, from, used));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct prb_message message, cut;
    size_t at = 0, used = 0, cut_used = 0;
    while (prb_message_take(data + at, size - at, &message, &used) == PRB_TAKEN) {
        check(used >= sizeof(struct prb_message_head) && used <= size - at);
        check(message.len <= PRB_MESSAGE_MAX && message.body + message.len == data + at + used);
        look(&message, data + at + used);
        put_together(&message, data + at, used);
        check(prb_message_take(data + at, used - 1, &cut, &cut_used) == PRB_TAKEN_MORE);
        at += used;
    }
    return 0;
}
