/* Runs the steps of skills: the one whose turn comes first, so that several wait beside each
 * other. */
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/clock.h"
#include "skill/kept.h"
#include "skill/skill.h"
#include "sql/db.h"
#include "sql/token.h"

#define FINDINGS_MAX 200 /* of one diagnosis */
#define TABLES_MAX 64    /* of one diagnosis */
#define ROWS_MAX 200     /* that one table shows */
#define NOTES_MAX 64     /* of one diagnosis */
#define TEXT_MAX 1000u   /* bytes of a finding's texts */
#define CELL_MAX 2000u   /* bytes of a cell that is shown */
#define SEEN_S 10.0 /* a thread that has stood so long shows that somebody has looked that long */
#define SLICE_NS 50000000 /* of waiting, between two questions whether to go on */

static const char *const severities[] = {"info", "low", "medium", "high"};

const char *prb_severity_name(enum prb_severity severity) { return severities[severity]; }

/* The tables that skills read: of one process, or of all ranks of its job. */
struct patient {
    struct prb_db *db;
    struct prb_kept *kept;
    bool seen;                  /* since when threads stand is known */
    struct prb_db *own;         /* db, when it was opened here */
    struct prb_target **others; /* its processes, opened here */
    size_t other_count;
};

/* A skill that runs. */
struct turn {
    const struct prb_skill_file *file;
    struct patient *patient;
    size_t step;
    double ready; /* monotonic s */
    struct {
        unsigned look; /* those that were made */
        double ready;
    } series[PRB_SKILL_STEPS_MAX]; /* of step, and of the steps beside it */
};

struct doctor {
    struct prb_diagnosis result; /* first */
    struct prb_arena arena;      /* of all that the result has */
    const char **notes;
    size_t finding_cap, table_cap, note_cap;
};

struct run {
    struct patient one, ranks;
    const struct prb_diagnose_options *options;
    struct doctor *doctor;
    struct turn *turns;
    size_t count;
    struct turn *turn;          /* the running one */
    struct prb_evidence *table; /* that a query fills */
    bool failed;                /* out of memory */
};

void prb_diagnosis_free(struct prb_diagnosis *diagnosis)
{
    struct doctor *doctor = (struct doctor *)diagnosis;
    for (size_t i = 0; i < doctor->result.table_count; i++)
        free((void *)doctor->result.tables[i].cells);
    free(doctor->result.findings);
    free(doctor->result.tables);
    free(doctor->notes);
    prb_arena_deinit(&doctor->arena);
    free(doctor);
}
PRB_DEFINE_AUTO_PTR(prb_diagnosis, struct prb_diagnosis, prb_diagnosis_free)

/* ---- the result ---- */

static void note(struct run *run, const char *text)
{
    struct doctor *doctor = run->doctor;
    const char *copy =
        prb_arena_printf(&doctor->arena, "%s: %s", run->turn->file->skill.name, text);
    for (size_t i = 0; copy && i < doctor->result.note_count; i++)
        if (strcmp(doctor->notes[i], copy) == 0)
            return;
    if (doctor->result.note_count == NOTES_MAX)
        return;
    if (!copy || !PRB_GROW(doctor->notes, doctor->result.note_count, doctor->note_cap)) {
        run->failed = true;
        return;
    }
    doctor->notes[doctor->result.note_count++] = copy;
    doctor->result.notes = doctor->notes;
}

/* Cut between two characters. */
static const char *text_of(struct run *run, const struct prb_value *value, size_t most)
{
    if (value->type == PRB_NULL_VALUE || value->type == PRB_BLOB)
        return NULL;
    if (value->type == PRB_INTEGER)
        return prb_arena_printf(&run->doctor->arena, "%lld", (long long)value->integer);
    if (value->type == PRB_REAL)
        return prb_arena_printf(&run->doctor->arena, "%.6g", value->real);
    size_t len = value->length < most ? value->length : most;
    while (len < value->length && len && ((unsigned char)value->text[len] & 0xc0) == 0x80)
        len--;
    return prb_arena_strndup(&run->doctor->arena, value->text, len);
}

static enum prb_severity severity_of(const char *text)
{
    for (size_t i = 0; text && i < sizeof severities / sizeof *severities; i++)
        if (strcasecmp(severities[i], text) == 0)
            return (enum prb_severity)i;
    return PRB_SEVERITY_INFO;
}

static bool take_finding(void *context, size_t columns, const char *const *names,
                         const struct prb_value *row)
{
    (void)names;
    struct run *run = context;
    struct doctor *doctor = run->doctor;
    if (!row && columns < 2) {
        note(run, "a finding needs the columns severity, finding[, where[, next]]");
        return false;
    }
    if (!row)
        return true;
    if (doctor->result.finding_count == FINDINGS_MAX)
        return false;
    if (!PRB_GROW(doctor->result.findings, doctor->result.finding_count, doctor->finding_cap))
        return !(run->failed = true);
    const char *texts[4] = {0};
    for (size_t i = 0; i < 4 && i < columns; i++)
        texts[i] = text_of(run, &row[i], TEXT_MAX);
    if (!texts[1])
        return true;
    doctor->result.findings[doctor->result.finding_count++] = (struct prb_finding){
        run->turn->file->skill.name, severity_of(texts[0]), texts[1], texts[2], texts[3]};
    return true;
}

static bool begin_table(struct run *run, size_t columns, const char *const *names)
{
    struct prb_evidence *table = run->table;
    const char **copies = prb_arena_alloc(&run->doctor->arena, (columns + 1) * sizeof *copies);
    for (size_t i = 0; copies && i < columns; i++)
        copies[i] = prb_arena_strdup(&run->doctor->arena, names[i]);
    table->columns = copies;
    table->column_count = columns;
    table->cells = calloc(ROWS_MAX * columns + 1, sizeof *table->cells);
    return copies && table->cells;
}

static bool take_row(void *context, size_t columns, const char *const *names,
                     const struct prb_value *row)
{
    struct run *run = context;
    struct prb_evidence *table = run->table;
    if (!row)
        return begin_table(run, columns, names) || !(run->failed = true);
    if (table->row_count == ROWS_MAX)
        return !(table->truncated = true);
    struct prb_value *cells = (struct prb_value *)table->cells + table->row_count * columns;
    for (size_t i = 0; i < columns; i++) {
        cells[i] = row[i];
        if (row[i].type == PRB_TEXT) {
            cells[i].text = text_of(run, &row[i], CELL_MAX);
            if (!cells[i].text)
                return !(run->failed = true);
            cells[i].length = strlen(cells[i].text);
        } else if (row[i].type == PRB_BLOB) {
            cells[i].type = PRB_NULL_VALUE;
        }
    }
    table->row_count++;
    return true;
}

/* ---- steps ---- */

static const double *parameter(const struct run *run, const char *name, size_t len)
{
    const struct prb_skill_file *file = run->turn->file;
    if (len == 7 && memcmp(name, "seconds", len) == 0 && run->options->seconds > 0)
        return &run->options->seconds;
    for (size_t i = 0; i < file->parameter_count; i++)
        if (strlen(file->parameters[i].name) == len &&
            memcmp(file->parameters[i].name, name, len) == 0)
            return &file->parameters[i].value;
    return NULL;
}

/* The statement with its :names replaced by their numbers; the caller frees it. */
static char *with_parameters(struct run *run, const char *sql)
{
    PRB_AUTO(prb_buf) struct prb_buf out = {0};
    size_t len = strlen(sql);
    for (size_t at = 0; at < len;) {
        struct prb_token token = prb_token_at(sql, len, at);
        const double *value = token.kind == PRB_TOKEN_VARIABLE
                                  ? parameter(run, sql + token.offset + 1, token.len - 1)
                                  : NULL;
        if (value)
            prb_buf_addf(&out, "%.15g", *value);
        else
            prb_buf_add(&out, sql + token.offset, token.len);
        at = token.offset + (token.len ? token.len : 1);
    }
    char *text = prb_buf_steal(&out);
    run->failed = run->failed || !text;
    return text;
}

/* False: the whole diagnosis ends. */
static bool query(struct run *run, const struct prb_skill_step *step, prb_row_fn *each,
                  void *context, struct prb_error *err)
{
    PRB_AUTO_FREE char *sql = with_parameters(run, step->sql);
    struct prb_error why = {0};
    char text[sizeof why.text + 32];
    if (!sql)
        return prb_nomem(err);
    bool ok = prb_db_query(run->turn->patient->db, sql, each, context, &why);
    if (run->failed)
        return prb_nomem(err);
    if (run->options->go_on && !run->options->go_on(run->options->context))
        return prb_fail(err, PRB_TIMEOUT, "the diagnosis was ended");
    if (!ok && (why.code == PRB_GONE || why.code == PRB_NOMEM)) {
        if (err)
            *err = why;
        return false;
    }
    if (!ok) {
        snprintf(text, sizeof text, "line %u: %s", step->line, why.text);
        note(run, text);
    }
    return true;
}

/* Between two looks; the caller may have said for how long to look. */
static double interval(const struct run *run, const struct prb_skill_step *step)
{
    double wanted = run->options->seconds;
    return wanted > 0 && step->looks > 1 ? wanted / (step->looks - 1) : step->seconds;
}

/* The step, and how many behind it are looked at beside it. */
static size_t count_beside(const struct prb_skill_file *file, size_t step)
{
    size_t count = 1;
    while (step + count < file->step_count && file->steps[step + count].beside)
        count++;
    return count;
}

static unsigned looks_of(const struct run *run, const struct prb_skill_step *step)
{
    return run->turn->patient->seen && step->seen_looks ? step->seen_looks : step->looks;
}

/* The series whose look comes next, or count: all have theirs. */
static size_t next_series(const struct run *run, const struct prb_skill_step *steps, size_t count)
{
    const struct turn *turn = run->turn;
    size_t next = count;
    for (size_t i = 0; i < count; i++)
        if (turn->series[i].look < looks_of(run, &steps[i]) &&
            (next == count || turn->series[i].ready < turn->series[next].ready))
            next = i;
    return next;
}

static bool look(struct run *run, const struct prb_skill_step *step, size_t series,
                 struct prb_error *err)
{
    struct turn *turn = run->turn;
    struct prb_kept *kept = turn->patient->kept;
    bool fewer = looks_of(run, step) != step->looks, several = step->looks > 1;
    double began = prb_clock_s();
    if (!prb_kept_begin(kept, step->name, several ? (int)turn->series[series].look : -1, err) ||
        !query(run, step, prb_kept_row, kept, err))
        return false;
    turn->series[series].look++;
    /* Not from when it was due: looks that come late would not be apart. */
    turn->series[series].ready = began + (fewer ? step->seen_seconds : interval(run, step));
    return true;
}

static bool keep(struct run *run, const struct prb_skill_step *step, struct prb_error *err)
{
    struct turn *turn = run->turn;
    size_t count = count_beside(turn->file, turn->step), series = next_series(run, step, count);
    if (!look(run, &step[series], series, err))
        return false;
    series = next_series(run, step, count);
    if (series < count) {
        turn->ready = turn->series[series].ready;
        return true;
    }
    memset(turn->series, 0, sizeof turn->series);
    turn->step += count;
    return true;
}

static bool show(struct run *run, const struct prb_skill_step *step, struct prb_error *err)
{
    struct prb_diagnosis *result = &run->doctor->result;
    if (result->table_count == TABLES_MAX)
        return true;
    if (!PRB_GROW(result->tables, result->table_count, run->doctor->table_cap))
        return prb_nomem(err);
    run->table = &result->tables[result->table_count++];
    *run->table = (struct prb_evidence){.skill = run->turn->file->skill.name, .title = step->name};
    if (!query(run, step, take_row, run, err))
        return false;
    if (run->table->row_count == 0) {
        free((void *)run->table->cells);
        result->table_count--;
    }
    return true;
}

static bool take_step(struct run *run, struct prb_error *err)
{
    const struct prb_skill_step *step = &run->turn->file->steps[run->turn->step];
    prb_kept_choose(run->turn->patient->kept, run->turn->file->skill.name);
    if (step->kind == PRB_STEP_KEEP)
        return keep(run, step, err);
    run->turn->step++;
    if (step->kind == PRB_STEP_TABLE)
        return show(run, step, err);
    if (step->kind == PRB_STEP_FINDING)
        return query(run, step, take_finding, run, err);
    run->turn->ready = prb_clock_s() + step->seconds;
    return true;
}

/* The skill whose turn is first, or NULL: all are done. */
static struct turn *first(const struct run *run)
{
    struct turn *best = NULL;
    for (size_t i = 0; i < run->count; i++)
        if (run->turns[i].step < run->turns[i].file->step_count &&
            (!best || run->turns[i].ready < best->ready))
            best = &run->turns[i];
    return best;
}

static bool wait_until(const struct run *run, double time, struct prb_error *err)
{
    for (double now; (now = prb_clock_s()) < time;) {
        double left = (time - now) * 1e9;
        struct timespec slice = {0, left < SLICE_NS ? (long)left : SLICE_NS};
        if (run->options->go_on && !run->options->go_on(run->options->context))
            return prb_fail(err, PRB_TIMEOUT, "the diagnosis was ended");
        nanosleep(&slice, NULL);
    }
    return true;
}

static bool run_all(struct run *run, struct prb_error *err)
{
    while ((run->turn = first(run))) {
        if (!wait_until(run, run->turn->ready, err) || !take_step(run, err))
            return false;
        if (run->failed)
            return prb_nomem(err);
    }
    return true;
}

/* ---- what they read ---- */

/* What the caller knows of each thread of the process. */
static bool take_thread(void *context, size_t columns, const char *const *names,
                        const struct prb_value *row)
{
    (void)columns, (void)names;
    struct run *run = context;
    if (!row)
        return true;
    double since = run->options->since(run->options->context, (pid_t)row->integer);
    if (since < 0)
        return true;
    run->one.seen = run->one.seen || since >= SEEN_S;
    return prb_kept_add_since(run->one.kept, row->integer, since);
}

static bool add_kept(struct patient *patient, struct prb_error *err)
{
    patient->kept = prb_kept_new(err);
    return patient->kept && prb_db_add_source(patient->db, prb_kept_source(patient->kept), err);
}

static void patient_deinit(struct patient *patient)
{
    if (patient->own)
        prb_db_close(patient->own);
    for (size_t i = 0; i < patient->other_count; i++)
        prb_target_close(patient->others[i]);
    free(patient->others);
}

static bool prepare_one(struct run *run, struct prb_target *target, struct prb_db *db,
                        struct prb_error *err)
{
    struct patient *one = &run->one;
    if (!db && !(one->own = prb_db_open(target, err)))
        return false;
    one->db = db ? db : one->own;
    if (!add_kept(one, err))
        return false;
    struct prb_error why = {0};
    if (run->options->since && target &&
        !prb_db_query(one->db, "SELECT os_thread_id FROM python.threads", take_thread, run, &why))
        one->seen = false;
    return true;
}

PRB_DEFINE_AUTO_PTR(prb_process_list, struct prb_process_list, prb_process_list_free)

/* All ranks of the target's job on this machine; where it has no others, itself. */
static bool prepare_ranks(struct run *run, const struct prb_target *target, struct prb_error *err)
{
    struct patient *ranks = &run->ranks;
    pid_t pid = target ? prb_target_info(target)->pid : 0;
    bool live = target && prb_target_info(target)->kind == PRB_TARGET_PROCESS;
    PRB_AUTO(prb_process_list)
    struct prb_process_list *list = live ? prb_process_list(NULL) : NULL;
    size_t count = list ? list->count : 0, found = 0;
    PRB_AUTO_FREE bool *chosen = calloc(count + 1, sizeof *chosen);
    PRB_AUTO_FREE struct prb_db_process *processes = calloc(count + 1, sizeof *processes);
    ranks->others = calloc(count + 1, sizeof(struct prb_target *));
    if (!chosen || !processes || !ranks->others)
        return prb_nomem(err);
    if (list)
        prb_process_choose(list, pid, true, false, chosen);
    for (size_t i = 0; i < count; i++) {
        struct prb_target *other = chosen[i] ? prb_target_open_pid(list->items[i].pid, NULL) : NULL;
        if (!other)
            continue;
        ranks->others[ranks->other_count++] = other;
        processes[found++] =
            (struct prb_db_process){other, list->items[i].pid, list->items[i].rank};
    }
    if (found < 2)
        return true;
    ranks->db = ranks->own = prb_db_open_processes(processes, found, err);
    return ranks->db && add_kept(ranks, err);
}

static bool prepare(struct run *run, struct prb_target *target, struct prb_db *db,
                    struct prb_error *err)
{
    bool of_ranks = false;
    for (size_t i = 0; i < run->count; i++)
        of_ranks = of_ranks || run->turns[i].file->skill.ranks;
    if (!prepare_one(run, target, db, err) || (of_ranks && !prepare_ranks(run, target, err)))
        return false;
    for (size_t i = 0; i < run->count; i++) {
        struct turn *turn = &run->turns[i];
        bool ranks = turn->file->skill.ranks, alone = ranks && target && !run->ranks.db;
        turn->patient = ranks && run->ranks.db ? &run->ranks : &run->one;
        if (!alone)
            continue;
        turn->step = turn->file->step_count; /* there is nothing to compare */
        run->turn = turn;
        note(run, "the process has no other ranks on this machine");
    }
    return true;
}

static void watch(const struct run *run, bool on)
{
    const struct prb_diagnose_options *options = run->options;
    struct prb_db *dbs[] = {run->one.db, run->ranks.db};
    for (size_t i = 0; i < 2; i++)
        if (dbs[i])
            prb_db_watch(dbs[i], on ? options->go_on : NULL, on ? options->context : NULL);
}

/* Equal ones stay in the order in which they were found. */
static void worst_first(struct prb_finding *findings, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        const struct prb_finding finding = findings[i];
        size_t at = i;
        for (; at && findings[at - 1].severity < finding.severity; at--)
            findings[at] = findings[at - 1];
        findings[at] = finding;
    }
}

struct prb_diagnosis *prb_diagnose(struct prb_target *target, struct prb_db *db,
                                   const struct prb_skill *const *skills, size_t count,
                                   const struct prb_diagnose_options *options,
                                   struct prb_error *err)
{
    static const struct prb_diagnose_options plain = {0};
    PRB_AUTO(prb_diagnosis)
    struct prb_diagnosis *result = (struct prb_diagnosis *)calloc(1, sizeof(struct doctor));
    PRB_AUTO_FREE struct turn *turns = calloc(count + 1, sizeof *turns);
    if (!result || !turns)
        return PRB_NULL(prb_nomem(err));
    struct run run = {.options = options ? options : &plain,
                      .doctor = (struct doctor *)result,
                      .turns = turns,
                      .count = count};
    double now = prb_clock_s();
    for (size_t i = 0; i < count; i++)
        turns[i] = (struct turn){.file = (const struct prb_skill_file *)skills[i], .ready = now};
    bool ok = prepare(&run, target, db, err);
    if (ok) {
        watch(&run, true);
        ok = run_all(&run, err);
        watch(&run, false);
    }
    patient_deinit(&run.one);
    patient_deinit(&run.ranks);
    if (!ok)
        return NULL;
    /* A copy of names: the skills may go before the result. */
    for (size_t i = 0; i < result->finding_count; i++)
        result->findings[i].skill = prb_arena_strdup(&run.doctor->arena, result->findings[i].skill);
    for (size_t i = 0; i < result->table_count; i++) {
        result->tables[i].skill = prb_arena_strdup(&run.doctor->arena, result->tables[i].skill);
        result->tables[i].title = prb_arena_strdup(&run.doctor->arena, result->tables[i].title);
    }
    worst_first(result->findings, result->finding_count);
    return PRB_STEAL(result);
}
