/*
 * The RAS service's text (NCCL 2.24 to 2.28, and whoever asks for it later): see ras_report.h.
 *
 * A table has a line for each group of communicators that are alike, without their hashes.  Below, "#GROUP-INDEX (HASH)
 * KIND" begins what is said of one, in lines that begin with two spaces.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/ras_report.h"

#define GROUPS_MAX 4096
#define WORD 32
#define NONE SIZE_MAX

struct group {
    int64_t number;
    size_t first, count; /* its communicators */
};

struct reading {
    struct prb_ras_report *report;
    struct group groups[GROUPS_MAX];
    size_t group_count;
    bool in_table, whole, listed;
    size_t comm;     /* that is spoken of; NONE: no one */
    bool job;        /* of the whole job is spoken, and its first line is to come */
    bool incomplete; /* of ranks that are missing */
    int op;          /* whose counts differ; -1: none */
    int64_t count;   /* that the ranks have which are listed below; -1: not known */
    char status[WORD], error[WORD * 2]; /* the same of these; "" */
    struct prb_buf said;                /* of the communicator */
};

static void reading_free(struct reading *reading)
{
    prb_buf_deinit(&reading->said);
    free(reading);
}
PRB_DEFINE_AUTO_PTR(reading, struct reading, reading_free)

static const char *keep(struct prb_ras_report *report, const char *text)
{
    return *text ? prb_arena_strdup(&report->texts, text) : NULL;
}

/* What was said of the last communicator belongs to it now. */
static bool leave_comm(struct reading *reading)
{
    struct prb_buf *said = &reading->said;
    if (reading->comm != NONE && said->len) {
        struct prb_ras_comm *comm = &reading->report->comms[reading->comm];
        if (!prb_buf_ok(said))
            return false;
        comm->text = comm->text
                         ? prb_arena_printf(&reading->report->texts, "%s%s", comm->text, said->data)
                         : keep(reading->report, said->data);
        if (!comm->text)
            return false;
    }
    said->len = 0;
    reading->comm = NONE;
    reading->job = reading->incomplete = false;
    reading->op = -1;
    reading->count = -1;
    reading->status[0] = reading->error[0] = '\0';
    return true;
}

/* "    0         1         2         4         8         8   RUNNING  MISMATCH" */
static bool take_group(struct reading *reading, const char *line)
{
    long long number, comms, nodes, size, ranks;
    char per_node[WORD], status[WORD], errors[WORD];
    if (sscanf(line, "%lld %lld %lld %31s %lld %lld %31s %31s", &number, &comms, &nodes, per_node,
               &size, &ranks, status, errors) != 8) {
        reading->in_table = strncmp(line, "    #", 5) == 0; /* the heading's second line */
        return true;
    }
    if (comms < 1 || reading->group_count == GROUPS_MAX)
        return true;
    struct group *group = &reading->groups[reading->group_count++];
    *group = (struct group){.number = number, .first = reading->report->comm_count};
    const char *kept_status = keep(reading->report, status);
    const char *kept_errors = keep(reading->report, errors);
    for (long long i = 0; i < comms; i++) {
        struct prb_ras_comm *comm = prb_ras_add_comm(reading->report);
        if (!comm)
            return false;
        comm->size = size;
        comm->missing = 0;
        comm->status = kept_status;
        comm->errors = kept_errors;
        group->count++;
    }
    return kept_status && kept_errors;
}

/* "#0-1 (0123456789abcdef) INCOMPLETE" */
static bool take_heading(struct reading *reading, const char *line)
{
    long long number, index;
    unsigned long long hash;
    char kind[WORD];
    if (sscanf(line, "#%lld-%lld (%llx) %31s", &number, &index, &hash, kind) != 4)
        return true;
    for (size_t i = 0; i < reading->group_count; i++) {
        const struct group *group = &reading->groups[i];
        if (group->number != number || index < 0 || (size_t)index >= group->count)
            continue;
        reading->comm = group->first + (size_t)index;
        reading->report->comms[reading->comm].has_hash = true;
        reading->report->comms[reading->comm].hash = hash;
        reading->incomplete = strcmp(kind, "INCOMPLETE") == 0;
        prb_buf_addf(&reading->said, "%s\n", kind);
        break;
    }
    return true;
}

/* What " has …" or, of several ranks, " have …" says. */
static void take_verb(struct reading *reading, const char *words, int64_t *count_out,
                      char status[WORD])
{
    long long count;
    if (sscanf(words, " launched up to operation %lld", &count) == 1)
        *count_out = count;
    else if (strncmp(words, " not launched any operations", 28) == 0)
        *count_out = 0;
    else
        sscanf(words, " status %31s", status);
    if (reading->op >= 0 && *count_out >= 0) {
        struct prb_ras_comm *comm = &reading->report->comms[reading->comm];
        if (*count_out > comm->counts[reading->op])
            comm->counts[reading->op] = *count_out;
    }
}

static void copy_error(char out[2 * WORD], const char *words, const char *end)
{
    snprintf(out, 2 * WORD, "%.*s", (int)(end ? end - words : (ptrdiff_t)strlen(words)), words);
}

/* "  7 ranks have launched up to operation 41", "  2 ranks reported System error" */
static void take_several(struct reading *reading, const char *words)
{
    reading->count = -1;
    reading->status[0] = reading->error[0] = '\0';
    if (strncmp(words, " have", 5) == 0)
        take_verb(reading, words + 5, &reading->count, reading->status);
    else if (strncmp(words, " reported ", 10) == 0)
        copy_error(reading->error, words + 10, NULL);
}

/* " -- GPU 1 (NVML 3) managed by process 17 on node 10.0.0.1" */
static void take_place(struct prb_ras_report *report, const char *words, struct prb_ras_rank *rank)
{
    long long cuda = -1, nvml = -1, pid = -1;
    char host[64] = "";
    const char *process = strstr(words, "process ");
    if (sscanf(words, " -- GPU %lld (NVML %lld", &cuda, &nvml) < 1)
        return;
    if (process)
        sscanf(process, "process %lld on node %63s", &pid, host);
    rank->cuda_device = cuda;
    rank->nvml_device = nvml < 0 ? cuda : nvml;
    rank->pid = pid;
    rank->host = keep(report, host);
}

/* "  Rank 3 -- …", "  Rank 3 has …  -- …", "  Rank 3 reported … -- …" */
static bool take_rank(struct reading *reading, int64_t number, const char *words)
{
    struct prb_ras_rank *rank = prb_ras_add_rank(reading->report, reading->comm);
    const char *place = strstr(words, " -- ");
    int64_t count = reading->count;
    char status[WORD], error[2 * WORD];
    if (!rank)
        return false;
    memcpy(status, reading->status, sizeof status);
    memcpy(error, reading->error, sizeof error);
    if (strncmp(words, " has", 4) == 0)
        take_verb(reading, words + 4, &count, status);
    else if (strncmp(words, " reported ", 10) == 0)
        copy_error(error, words + 10, place);
    rank->rank = number;
    rank->missing = reading->incomplete || strcmp(status, "NOCOMM") == 0;
    rank->status = reading->incomplete ? "UNRESPONSIVE" : keep(reading->report, status);
    rank->error = keep(reading->report, error);
    if (reading->op >= 0)
        rank->counts[reading->op] = count;
    if (place)
        take_place(reading->report, place, rank);
    return true;
}

/* "  Communicator ranks have different AllReduce operation counts" */
static void take_difference(struct reading *reading, const char *words)
{
    char name[WORD];
    reading->op = -1;
    if (sscanf(words, " ranks have different %31s operation counts", name) != 1)
        return;
    for (int i = 0; i < PRB_RAS_OPS; i++)
        if (strcmp(prb_ras_ops[i], name) == 0)
            reading->op = i;
}

/* A line about the communicator that is spoken of. */
static bool take_detail(struct reading *reading, const char *line)
{
    long long number;
    int at = 0;
    prb_buf_addf(&reading->said, "%s\n", line);
    if (sscanf(line, "  Rank %lld%n", &number, &at) == 1 && at)
        return take_rank(reading, number, line + at);
    at = 0;
    if (sscanf(line, "  Missing communicator data from %lld rank", &number) == 1)
        reading->report->comms[reading->comm].missing = number;
    else if (sscanf(line, "  %lld ranks%n", &number, &at) == 1 && at)
        take_several(reading, line + at);
    else if (strncmp(line, "  Communicator", 14) == 0)
        take_difference(reading, line + 14);
    return true;
}

static bool take_line(struct reading *reading, const char *line)
{
    struct prb_ras_report *report = reading->report;
    char word[WORD];
    if (reading->in_table && *line)
        return take_group(reading, line);
    reading->in_table = false;
    if (strncmp(line, "Group ", 6) == 0)
        reading->listed = reading->in_table = true;
    else if (strncmp(line, "No communicator data", 20) == 0)
        reading->listed = true;
    else if (strcmp(line, "Warnings") == 0)
        reading->whole = leave_comm(reading);
    else if (*line == '#')
        return leave_comm(reading) && take_heading(reading, line);
    else if (line[0] == ' ' && line[1] == ' ' && reading->comm != NONE)
        return take_detail(reading, line);
    else if (line[0] == ' ' && line[1] == ' ' && reading->job) {
        prb_buf_addf(&report->notes, "%s\n", line + 2);
        reading->job = false;
    } else if (!report->version && sscanf(line, "NCCL version %31s", word) == 1)
        report->version = keep(report, word);
    else if (*line && line[0] != ' ') {
        if (!leave_comm(reading))
            return false;
        reading->job = strcmp(line, "INCOMPLETE") == 0 || strcmp(line, "DEAD") == 0 ||
                       strcmp(line, "TIMEOUT") == 0;
    }
    return true;
}

bool prb_ras_read_text(struct prb_buf *text, struct prb_ras_report *out, struct prb_error *err)
{
    PRB_AUTO(reading) struct reading *reading = calloc(1, sizeof *reading);
    if (!reading)
        return prb_nomem(err);
    reading->report = out;
    leave_comm(reading);
    reading->comm = NONE;
    for (size_t i = 0; i < text->len; i++)
        if (!text->data[i])
            text->data[i] = '?';
    for (char *line = text->data, *end; line && *line; line = end) {
        end = line + strcspn(line, "\n");
        bool more = *end == '\n';
        *end = '\0';
        bool taken = take_line(reading, line);
        if (more)
            *end++ = '\n';
        if (!taken)
            return prb_nomem(err);
    }
    if (!leave_comm(reading) || !prb_buf_ok(&reading->said))
        return prb_nomem(err);
    if (!reading->listed)
        return prb_fail(err, PRB_CORRUPT,
                        "the answer of NCCL's RAS service cannot be read: no "
                        "communicators");
    if (!reading->whole)
        prb_buf_adds(&out->notes,
                     "the answer of NCCL's RAS service was cut: what is wrong with the "
                     "communicators is not known\n");
    return true;
}
