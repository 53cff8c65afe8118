/*
 * What an agent and an asker hear on the bus beside replies: a question, a go, what a host says of
 * itself.  What is taken comes out the same when it is put together again.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/bus/go.h"
#include "fleet/bus/roster.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void look_at_question(const char *text, size_t len)
{
    PRB_AUTO(prb_fleet_request) struct prb_fleet_request request = {0}, again = {0};
    if (!prb_fleet_request_parse(text, len, &request, NULL))
        return;
    check(request.kind && request.budget > 0 && json_is_object(request.args));
    PRB_AUTO_FREE char *same = prb_fleet_request_text(&request, NULL);
    check(!same || (prb_fleet_request_parse(same, strlen(same), &again, NULL) &&
                    strcmp(again.id, request.id) == 0 && again.kind == request.kind));
}

static void look_at_go(const char *text, size_t len)
{
    static const unsigned char trusted[PRB_NKEY_BYTES];
    struct prb_go go = {.agent = "agent", .trusted = trusted};
    char id[PRB_FLEET_ID], who[PRB_NKEY_TEXT_SIZE], nonce[PRB_GO_NONCE];
    for (int i = 0; i < 2; i++) {
        char *out = NULL;
        enum prb_go_answer answer = prb_go_take(&go, text, len, &out, id, who, NULL);
        check(answer != PRB_GO_RUN && (answer == PRB_GO_READY) == (out != NULL));
        free(out);
    }
    prb_go_ready(text, len, id, nonce);
    prb_go_deinit(&go);
}

static void look_at_host(const char *text, size_t len)
{
    PRB_AUTO(prb_roster_entry) struct prb_roster_entry entry = {0}, again = {0};
    if (!prb_roster_parse(text, len, &entry, NULL))
        return;
    prb_fleet_members_settle(&entry.members);
    PRB_AUTO_FREE char *same = prb_roster_pack(&entry, NULL);
    check(same && prb_roster_parse(same, strlen(same), &again, NULL) &&
          again.members.count == entry.members.count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    PRB_AUTO_FREE char *copy = malloc(size ? size : 1);
    check(copy);
    if (size)
        memcpy(copy, data, size);
    look_at_question(copy, size);
    look_at_go(copy, size);
    look_at_host(copy, size);
    return 0;
}
