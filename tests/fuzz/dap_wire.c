/*
 * The debugger's wire: whatever comes, in whatever pieces, the same messages are taken; one that
 * was taken parses or is refused, and what is written of it is taken again as it was.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "dap/client/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* A message that parses is written so that the wire takes it, and it is the same one. */
static void round_trip(json_t *message)
{
    PRB_AUTO(prb_buf) struct prb_buf out = {0};
    struct prb_dap_wire wire = {0};
    struct prb_error err = {0};
    const char *body = NULL;
    size_t len = 0;
    if (!prb_dap_wire_write(&out, message))
        return;
    check(prb_dap_wire_add(&wire, out.data, out.len));
    check(prb_dap_wire_take(&wire, &body, &len, &err) == PRB_DAP_TAKEN);
    json_t *again = prb_dap_wire_parse(body, len, &err);
    check(again && json_equal(message, again));
    json_decref(again);
    prb_dap_wire_deinit(&wire);
}

/* All that can be taken now: a sum of the bodies. */
static enum prb_dap_taken take_all(struct prb_dap_wire *wire, uint64_t *sum, bool parse)
{
    for (;;) {
        struct prb_error err = {0};
        const char *body = NULL;
        size_t len = 0;
        enum prb_dap_taken taken = prb_dap_wire_take(wire, &body, &len, &err);
        if (taken != PRB_DAP_TAKEN)
            return taken;
        for (size_t i = 0; i < len; i++)
            *sum = *sum * 1099511628211u + (uint8_t)body[i] + 1;
        *sum = *sum * 31 + len;
        json_t *message = parse ? prb_dap_wire_parse(body, len, &err) : NULL;
        check(message || !parse || err.text[0]);
        if (message)
            round_trip(message);
        json_decref(message);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct prb_dap_wire whole = {0}, pieces = {0};
    uint64_t of_whole = 0, of_pieces = 0;
    enum prb_dap_taken last = PRB_DAP_TAKEN_MORE, last_of_pieces = PRB_DAP_TAKEN_MORE;
    check(prb_dap_wire_add(&whole, data, size));
    last = take_all(&whole, &of_whole, true);
    for (size_t at = 0, step; at < size && last_of_pieces == PRB_DAP_TAKEN_MORE; at += step) {
        step = data[at] % 7 + 1;
        step = step < size - at ? step : size - at;
        check(prb_dap_wire_add(&pieces, data + at, step));
        last_of_pieces = take_all(&pieces, &of_pieces, false);
    }
    check(of_whole == of_pieces && last == last_of_pieces);
    prb_dap_wire_deinit(&whole);
    prb_dap_wire_deinit(&pieces);
    return 0;
}
