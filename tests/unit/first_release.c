/*
 * Messages as the first release sends them, byte for byte: whoever speaks version 1 understands them,
 * for ever.  Files of that release: tests/packaging/test_formats.py.
 */
#include "unit.h"

#include "fleet/message/message.h"
#include "inject/probe/server/message.h"

/* ---- the probe's socket ---- */

/* HELLO, request 1, VERSION 1; EVAL, request 2, SOURCE "1 + 1". */
static const uint8_t control[] = {16, 0, 0, 0, 1, 0, 0, 0, 1,   0,   0,   0, /* head */
                                  1,  0, 0, 0, 8, 0, 0, 0, 1,   0,   0,   0,   0,
                                  0,  0, 0,                                          /* VERSION */
                                  13, 0, 0, 0, 2, 0, 0, 0, 3,   0,   0,   0,         /* head */
                                  9,  0, 0, 0, 5, 0, 0, 0, '1', ' ', '+', ' ', '1'}; /* SOURCE */

static void control_messages(void **state)
{
    struct prb_message message;
    size_t first, second;
    uint64_t version = 0;
    (void)state;
    assert_int_equal(prb_message_take(control, sizeof control, &message, &first), PRB_TAKEN);
    assert_int_equal(message.type, PRB_MSG_HELLO);
    assert_int_equal(message.request, 1);
    assert_true(prb_message_number(&message, PRB_FLD_VERSION, &version));
    assert_int_equal(version, PRB_PROTOCOL_VERSION);
    assert_int_equal(prb_message_take(control + first, sizeof control - first, &message, &second),
                     PRB_TAKEN);
    assert_int_equal(message.type, PRB_MSG_EVAL);
    PRB_AUTO_FREE char *source = prb_message_copy(&message, PRB_FLD_SOURCE);
    assert_string_equal(source, "1 + 1");
    assert_int_equal(first + second, sizeof control);
}

static void control_is_still_written_so(void **state)
{
    PRB_AUTO(prb_buf) struct prb_buf hello = {0}, eval = {0}, all = {0};
    (void)state;
    prb_fields_number(&hello, PRB_FLD_VERSION, 1);
    prb_fields_text(&eval, PRB_FLD_SOURCE, "1 + 1", 5);
    prb_message_add(&all, PRB_MSG_HELLO, 1, &hello);
    prb_message_add(&all, PRB_MSG_EVAL, 2, &eval);
    assert_int_equal(all.len, sizeof control);
    assert_memory_equal(all.data, control, sizeof control);
}

/* ---- the bus ---- */

#define ID "00112233445566778899aabbccddeeff"
static const char request[] =
    "{\"v\":1,\"id\":\"" ID "\",\"kind\":\"stacks\",\"job\":\"train.py\",\"ranks\":\"0-2,5\","
    "\"budget_ms\":1500.0,\"max_bytes\":65536,\"args\":{\"native\":true},\"later\":[1]}";

static void bus_request(void **state)
{
    PRB_AUTO(prb_fleet_request) struct prb_fleet_request parsed = {0};
    struct prb_error err;
    (void)state;
    assert_ok(prb_fleet_request_parse(request, sizeof request - 1, &parsed, &err), err);
    assert_string_equal(parsed.id, ID);
    assert_string_equal(parsed.kind->name, "stacks");
    assert_string_equal(parsed.job, "train.py");
    PRB_AUTO_FREE char *ranks = prb_rank_set_text(&parsed.ranks);
    assert_string_equal(ranks, "0-2,5");
    assert_true(parsed.budget == 1.5);
    assert_int_equal(parsed.max_bytes, 65536);
    assert_true(json_is_true(json_object_get(parsed.args, "native")));
}

static void bus_request_of_a_later_version(void **state)
{
    PRB_AUTO(prb_fleet_request) struct prb_fleet_request parsed = {0};
    struct prb_error err;
    char later[] = "{\"v\":2,\"id\":\"" ID "\",\"kind\":\"stacks\",\"job\":\"\",\"ranks\":\"\"}";
    (void)state;
    assert_false(prb_fleet_request_parse(later, sizeof later - 1, &parsed, &err));
    assert_int_equal(err.code, PRB_UNSUPPORTED);
}

#define HEAD                                                                                       \
    "{\"id\":\"" ID "\",\"host\":\"node7\",\"clock\":1700000000.5,\"ranks\":[{\"rank\":3,"         \
    "\"pid\":4711,\"state\":\"answered\",\"ms\":2.5,\"reason\":\"\",\"truncated\":false}],"        \
    "\"parts\":[[3,4]]}"

static void bus_reply(void **state)
{
    PRB_AUTO(prb_fleet_reply) struct prb_fleet_reply reply = {0};
    PRB_AUTO(prb_buf) struct prb_buf bytes = {0};
    struct prb_error err;
    uint32_t len = sizeof HEAD - 1;
    (void)state;
    prb_buf_add(&bytes, &len, sizeof len);
    prb_buf_add(&bytes, HEAD, len);
    prb_buf_add(&bytes, "\1\2\0\3", 4);
    assert_ok(prb_fleet_reply_parse(bytes.data, bytes.len, ID, &reply, &err), err);
    assert_string_equal(reply.host, "node7");
    assert_true(reply.clock == 1700000000.5);
    assert_int_equal(reply.state_count, 1);
    assert_int_equal(reply.states[0].rank, 3);
    assert_int_equal(reply.states[0].pid, 4711);
    assert_int_equal(reply.states[0].state, PRB_COVERAGE_ANSWERED);
    assert_int_equal(reply.part_count, 1);
    assert_int_equal(reply.parts[0].rank, 3);
    assert_int_equal(reply.parts[0].len, 4);
    assert_memory_equal(reply.parts[0].data, "\1\2\0\3", 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(control_messages), cmocka_unit_test(control_is_still_written_so),
        cmocka_unit_test(bus_request),      cmocka_unit_test(bus_request_of_a_later_version),
        cmocka_unit_test(bus_reply),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
