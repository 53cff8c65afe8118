/* Messages of the control protocol: both directions, every cut, every lie. */
#include "unit.h"

#include "inject/probe/server/message.h"

static void make(struct prb_buf *out)
{
    PRB_AUTO(prb_buf) struct prb_buf fields = {0};
    prb_fields_text(&fields, PRB_FLD_SOURCE, "a\0b", 3);
    prb_fields_number(&fields, PRB_FLD_TIMEOUT_MS, 1234567890123);
    prb_fields_text(&fields, PRB_FLD_SOURCE, "second", 6);
    prb_fields_text(&fields, (enum prb_message_field)999, "of a later version", 18);
    prb_fields_text(&fields, PRB_FLD_KEY, "", 0);
    prb_message_add(out, PRB_MSG_EVAL, 7, &fields);
    prb_message_add(out, PRB_MSG_STATUS, 8, NULL);
}

static void there_and_back(void **state)
{
    PRB_AUTO(prb_buf) struct prb_buf bytes = {0};
    struct prb_message message;
    const char *text;
    size_t used, len;
    uint64_t number = 5;
    (void)state;
    make(&bytes);
    assert_int_equal(prb_message_take((uint8_t *)bytes.data, bytes.len, &message, &used),
                     PRB_TAKEN);
    assert_int_equal(message.type, PRB_MSG_EVAL);
    assert_int_equal(message.request, 7);
    assert_true(prb_message_text(&message, PRB_FLD_SOURCE, &text, &len));
    assert_int_equal(len, 3);
    assert_memory_equal(text, "a\0b", 3);
    assert_true(prb_message_number(&message, PRB_FLD_TIMEOUT_MS, &number));
    assert_int_equal(number, 1234567890123);
    assert_true(prb_message_text(&message, PRB_FLD_KEY, &text, &len));
    assert_int_equal(len, 0);
    assert_false(prb_message_number(&message, PRB_FLD_CURSOR, &number));
    assert_int_equal(number, 1234567890123);
    PRB_AUTO_FREE char *copy = prb_message_copy(&message, PRB_FLD_VALUE);
    assert_string_equal(copy, "");
    size_t first = used;
    assert_int_equal(
        prb_message_take((uint8_t *)bytes.data + first, bytes.len - first, &message, &used),
        PRB_TAKEN);
    assert_int_equal(message.request, 8);
    assert_int_equal(message.len, 0);
    assert_int_equal(first + used, bytes.len);
}

static void cut_everywhere(void **state)
{
    PRB_AUTO(prb_buf) struct prb_buf bytes = {0};
    struct prb_message message;
    size_t used;
    (void)state;
    make(&bytes);
    assert_int_equal(prb_message_take((uint8_t *)bytes.data, bytes.len, &message, &used),
                     PRB_TAKEN);
    for (size_t len = 0; len < used; len++) {
        uint8_t *exact = malloc(len + 1); /* so that a sanitizer sees a byte too many */
        memcpy(exact, bytes.data, len);
        assert_int_equal(prb_message_take(exact, len, &message, &(size_t){0}), PRB_TAKEN_MORE);
        free(exact);
    }
}

/* A message with one field, whose heads say what they like. */
static enum prb_taken take(struct prb_message_head head, struct prb_field_head field, size_t bytes)
{
    struct prb_message message;
    size_t used;
    uint8_t data[256] = {0};
    memcpy(data, &head, sizeof head);
    memcpy(data + sizeof head, &field, sizeof field);
    return prb_message_take(data, bytes, &message, &used);
}

static void lies_are_refused(void **state)
{
    (void)state;
    const struct prb_field_head text = {PRB_FLD_SOURCE, 0, 4};
    assert_int_equal(take((struct prb_message_head){12, 1, 3, 0}, text, 24), PRB_TAKEN);
    assert_int_equal(take((struct prb_message_head){12, 1, 3, 1}, text, 24), PRB_TAKEN_MALFORMED);
    assert_int_equal(take((struct prb_message_head){11, 1, 3, 0}, text, 24), PRB_TAKEN_MALFORMED);
    assert_int_equal(take((struct prb_message_head){13, 1, 3, 0}, text, 25), PRB_TAKEN_MALFORMED);
    assert_int_equal(take((struct prb_message_head){PRB_MESSAGE_MAX + 1, 1, 3, 0}, text, 24),
                     PRB_TAKEN_MALFORMED);
    assert_int_equal(take((struct prb_message_head){UINT32_MAX, 1, 3, 0}, text, 24),
                     PRB_TAKEN_MALFORMED);
    assert_int_equal(take((struct prb_message_head){PRB_MESSAGE_MAX, 1, 3, 0}, text, 24),
                     PRB_TAKEN_MORE);
    assert_int_equal(take((struct prb_message_head){12, 1, 3, 0},
                          (struct prb_field_head){PRB_FLD_SOURCE, 1, 4}, 24),
                     PRB_TAKEN_MALFORMED);
    assert_int_equal(take((struct prb_message_head){12, 1, 3, 0},
                          (struct prb_field_head){PRB_FLD_SOURCE, 0, UINT32_MAX}, 24),
                     PRB_TAKEN_MALFORMED);
    assert_int_equal(take((struct prb_message_head){12, 1, 3, 0},
                          (struct prb_field_head){PRB_FLD_CURSOR, 0, 4}, 24),
                     PRB_TAKEN_MALFORMED);
    assert_int_equal(take((struct prb_message_head){16, 1, 3, 0},
                          (struct prb_field_head){PRB_FLD_CURSOR, 0, 8}, 28),
                     PRB_TAKEN);
}

static void too_large_is_not_made(void **state)
{
    PRB_AUTO(prb_buf) struct prb_buf fields = {0}, message = {0};
    (void)state;
    PRB_AUTO_FREE char *text = calloc(1, PRB_MESSAGE_MAX);
    prb_fields_text(&fields, PRB_FLD_SOURCE, text, PRB_MESSAGE_MAX);
    prb_message_add(&message, PRB_MSG_EVAL, 1, &fields);
    assert_false(prb_buf_ok(&message));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_and_back),
        cmocka_unit_test(cut_everywhere),
        cmocka_unit_test(lies_are_refused),
        cmocka_unit_test(too_large_is_not_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
