/* A host's reply as what its ranks answered, one by one. */
#ifndef PRB_FLEET_KIND_ANSWERS_H
#define PRB_FLEET_KIND_ANSWERS_H

#include "fleet/eval_answers.h"
#include "fleet/message/kind.h"
#include "fleet/objects.h"
#include "fleet/rows/rows.h"

/* The ranks that the host says answered. */
bool prb_ranks_answered(const struct prb_fleet_reply *reply, struct prb_rank_set *out,
                        struct prb_error *err);
/* One for each rank that the host says answered; all or none. */
bool prb_objects_of_host(struct prb_rank_objects *objects, const struct prb_fleet_reply *reply,
                         struct prb_error *err);
bool prb_answers_of_host(struct prb_answers *answers, const struct prb_fleet_reply *reply,
                         struct prb_error *err);

/* A rank's part for prb_texts_of_host. */
bool prb_text_part(struct prb_buf *out, const char *text, bool raised, struct prb_error *err);
/* What each rank said, as at_root of a kind: result is struct prb_eval_answers. */
bool prb_texts_of_host(const json_t *args, const struct prb_fleet_reply *reply, void *result,
                       struct prb_error *err);

#endif
