/* See eval_answers.h. */
#include "fleet/eval_answers.h"

#include <string.h>

#include "format/format.h"

void prb_eval_answers_deinit(struct prb_eval_answers *answers)
{
    for (size_t i = 0; i < answers->count; i++) {
        free(answers->items[i].text);
        prb_rank_set_deinit(&answers->items[i].ranks);
    }
    free(answers->items);
    *answers = (struct prb_eval_answers){0};
}

static int largest_first(const void *a, const void *b)
{
    const struct prb_eval_answer *x = a, *y = b;
    unsigned size = prb_rank_set_size(&x->ranks), other = prb_rank_set_size(&y->ranks);
    if (size != other)
        return size > other ? -1 : 1;
    int rank = prb_rank_set_next(&x->ranks, -1), its_rank = prb_rank_set_next(&y->ranks, -1);
    return (rank > its_rank) - (rank < its_rank);
}

void prb_eval_answers_sort(struct prb_eval_answers *answers)
{
    if (answers->count)
        qsort(answers->items, answers->count, sizeof *answers->items, largest_first);
}

void prb_eval_answers_json(const struct prb_eval_answers *answers, FILE *out)
{
    fputc('[', out);
    for (size_t i = 0; i < answers->count; i++) {
        const struct prb_eval_answer *one = &answers->items[i];
        PRB_AUTO_FREE char *ranks = prb_rank_set_text(&one->ranks);
        fprintf(out,
                "%s{\"ranks\": \"%s\", \"count\": %u, \"raised\": %s, \"text\": ", i ? ",\n " : "",
                ranks ? ranks : "", prb_rank_set_size(&one->ranks), one->raised ? "true" : "false");
        prb_out_json_text(out, one->text, strlen(one->text));
        fputc('}', out);
    }
    fputc(']', out);
}
