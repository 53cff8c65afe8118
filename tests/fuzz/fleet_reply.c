/*
 * A host's reply to a question, as bytes of the bus: its parts lie within the bytes, its ranks within
 * bounds; a part is merged stacks, rows or evidence of a hang, whatever it says that it is.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/hang/evidence.h"
#include "fleet/merged.h"
#include "fleet/message/message.h"
#include "fleet/rows/pack.h"
#include "sql/db.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROWS_MOST = 100000 };

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* Of what the ranks of the question may say. */
static void look_at_stacks(const struct prb_fleet_part *part)
{
    PRB_AUTO(prb_rank_set) struct prb_rank_set allowed = {0};
    struct prb_merged *merged = prb_merged_new(NULL, NULL);
    check(merged && prb_rank_set_add(&allowed, 0, 3));
    bool good = prb_merged_add_packed(merged, part->data, part->len, &allowed, NULL);
    check(good || !prb_merged_count(merged));
    prb_merged_sort(merged);
    for (size_t i = 0; i < prb_merged_count(merged); i++) {
        const struct prb_merged_group *group = prb_merged_group(merged, i);
        check(group->ranks.count && group->threads);
        for (int rank = -1; (rank = prb_rank_set_next(&group->ranks, rank)) >= 0;)
            check(rank <= 3);
        for (size_t k = 0; k < group->frame_count; k++)
            check(prb_merged_frame(merged, group->frames[k])->name != NULL);
    }
    FILE *nowhere = fopen("/dev/null", "w");
    check(nowhere);
    prb_merged_json(merged, nowhere);
    fclose(nowhere);
    prb_merged_free(merged);
}

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    (void)rows, (void)err;
    return true;
}

static const struct prb_column columns[] = {
    {"a", PRB_INTEGER, "", ""}, {"b", PRB_REAL, "", ""}, {"c", PRB_TEXT, "", ""}, {0}};
static const struct prb_table table = {
    .schema = "x", .name = "x", .doc = "", .columns = columns, .fill = fill};
static const struct prb_table *const tables[] = {&table};

static void look_at_rows(const struct prb_fleet_part *part)
{
    static const int places[] = {0, 1, 2, -1, -1, -1, -1, -1};
    static struct prb_db *db;
    static struct prb_packed packed;
    check(db || (db = prb_db_open_tables(NULL, tables, 1, NULL)));
    if (!prb_packed_open(part->data, part->len, &packed, NULL))
        return;
    for (size_t i = 0; i < packed.table_count; i++) {
        size_t first, count = packed.tables[i].columns;
        struct prb_rows *rows = prb_rows_new(db, &table, 7);
        check(rows);
        prb_packed_count(&packed.tables[i]);
        if (packed.tables[i].rows <= ROWS_MOST && count <= 8 &&
            prb_packed_rows(&packed.tables[i], places, count, rows, &first, NULL))
            for (size_t row = 0; row < rows->count; row++)
                for (size_t column = 0; column < 3; column++) {
                    struct prb_value value = prb_rows_value(rows, row, column);
                    check(value.type != PRB_TEXT || memchr(value.text, 0, value.length + 1));
                }
        prb_rows_free(rows);
    }
}

static void look_at_hang(const struct prb_fleet_part *part)
{
    struct prb_hang hang = {0};
    const struct prb_fleet_kind *kind = prb_fleet_kind_find("hang");
    struct prb_fleet_state states[] = {{.rank = 0, .state = PRB_COVERAGE_ANSWERED},
                                       {.rank = 1, .state = PRB_COVERAGE_ANSWERED}};
    struct prb_fleet_part whole = {-1, part->data, part->len};
    const struct prb_fleet_reply reply = {
        .host = "host", .states = states, .state_count = 2, .parts = &whole, .part_count = 1};
    if (kind->at_root(NULL, &reply, &hang, NULL))
        prb_hang_judge(&hang, NULL, NULL);
    prb_hang_deinit(&hang);
}

static void look_at(const struct prb_fleet_part *part)
{
    look_at_stacks(part);
    look_at_rows(part);
    look_at_hang(part);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    PRB_AUTO(prb_fleet_reply) struct prb_fleet_reply reply = {0};
    /* In memory of its own: a byte behind its end is nobody's. */
    PRB_AUTO_FREE char *copy = malloc(size ? size : 1);
    check(copy);
    if (size)
        memcpy(copy, data, size);
    bool good = prb_fleet_reply_parse(copy, size, NULL, &reply, NULL);
    for (size_t i = 0; good && i < reply.state_count; i++)
        check(reply.states[i].rank >= 0 && reply.states[i].rank < PRB_RANKS_MAX);
    for (size_t i = 0; good && i < reply.part_count; i++) {
        const struct prb_fleet_part *part = &reply.parts[i];
        check(part->data >= copy && part->len <= (size_t)(copy + size - part->data));
        look_at(part);
    }
    look_at(&(struct prb_fleet_part){0, copy, size}); /* a part alone: more of these bytes matter */
    return 0;
}
