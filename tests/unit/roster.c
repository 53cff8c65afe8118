/* What a host says of itself on the bus: whole again at the asker, whatever the processes of one user are. */
#include "fleet/bus/roster.h"

#include <stdlib.h>
#include <string.h>

#include "unit.h"

#define FLOOD 6000
#define MESSAGE_MAX (1 << 20) /* bytes that the server takes */
#define OWNER 1000
#define OTHER 1001

/* Each of these characters is six in JSON. */
static void add(struct prb_fleet_members *members, int rank, uid_t uid, const char *job)
{
    assert_true(PRB_GROW(members->items, members->count, members->cap));
    struct prb_fleet_member *one = &members->items[members->count++];
    *one = (struct prb_fleet_member){.rank = rank, .local_rank = -1, .pid = 1 + rank, .uid = uid};
    snprintf(one->job, sizeof one->job, "%s", job);
}

static size_t told_of(const struct prb_roster_entry *entry, uid_t uid)
{
    size_t count = 0;
    for (size_t i = 0; i < entry->members.count; i++)
        count += entry->members.items[i].uid == uid;
    return count;
}

static void one_user_leaves_room_for_others(void **state)
{
    (void)state;
    struct prb_error err;
    char odd[128];
    PRB_AUTO(prb_roster_entry) struct prb_roster_entry entry = {0}, told = {0};
    memset(odd, '\x01', sizeof odd - 1);
    odd[sizeof odd - 1] = '\0';
    assert_ok(prb_roster_own(&entry, &err), err);
    for (int rank = 0; rank < FLOOD; rank++)
        add(&entry.members, rank, OTHER, odd);
    for (int rank = 0; rank < 8; rank++)
        add(&entry.members, rank, OWNER, "job");
    PRB_AUTO_FREE char *text = prb_roster_pack(&entry, &err);
    assert_non_null(text);
    assert_true(strlen(text) < MESSAGE_MAX);
    assert_ok(prb_roster_parse(text, strlen(text), &told, &err), err);
    assert_int_equal(told_of(&told, OWNER), 8);
    assert_true(told_of(&told, OTHER) > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_user_leaves_room_for_others)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
