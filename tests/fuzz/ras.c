/* What NCCL's RAS service answers, as JSON and as text.  Each rank belongs to a communicator, and they are in order. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "comm/ras_report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look(const uint8_t *data, size_t size, bool json)
{
    struct prb_ras_answer answer = {.json = json};
    struct prb_ras_report report;
    struct prb_error err = {0};
    prb_buf_add(&answer.text, data, size);
    if (!prb_ras_report_read(&answer, &report, &err)) {
        if (err.code != PRB_CORRUPT || !err.text[0] || report.comms)
            abort();
        prb_buf_deinit(&answer.text);
        return;
    }
    for (size_t i = 0; i < report.rank_count; i++) {
        const struct prb_ras_rank *rank = &report.ranks[i];
        if (rank->comm >= report.comm_count || (i && rank[-1].comm > rank->comm) ||
            prb_ras_behind(&report, rank) < -1 || (rank->host && strlen(rank->host) > size))
            abort();
    }
    for (size_t i = 0; i < report.comm_count; i++)
        if (report.comms[i].text && !*report.comms[i].text)
            abort();
    prb_ras_report_deinit(&report);
    prb_buf_deinit(&answer.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    look(data, size, true);
    look(data, size, false);
    return 0;
}
