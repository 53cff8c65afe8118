/*
 * A skill's file, parsed: a head, prose, and fenced blocks that are steps.
 *
 *     ```sql finding            rows: severity, finding[, where[, next]], by their place
 *     ```sql table TITLE        rows that are shown
 *     ```sql keep NAME          rows kept as table kept.NAME for the blocks after it
 *     ```sql keep NAME 20x0.5   20 looks, one each 0.5 s; the column `look` counts them from 0
 *     ```sql keep NAME 20x0.5 seen 3x0.5    fewer when the host has looked for 10 s
 *     ```sql keep NAME 3x5 beside    its looks are taken beside those of the block before
 *     ```wait 10                seconds
 *
 * Other blocks are prose.  A file may be anybody's: all of it is bounded here, and its SQL can only
 * read the target's tables.
 */
#ifndef PRB_SKILL_SKILL_H
#define PRB_SKILL_SKILL_H

#include "base/buf.h"
#include "base/error.h"

#define PRB_SKILL_FILE_MAX (256u << 10) /* bytes */
#define PRB_SKILL_STEPS_MAX 64
#define PRB_SKILL_PARAMETERS_MAX 16
#define PRB_SKILL_NAME_MAX 64
#define PRB_SKILL_LOOKS_MAX 120
#define PRB_SKILL_SECONDS_MAX 60.0 /* of one wait, and of one row of looks */

enum prb_step_kind { PRB_STEP_FINDING, PRB_STEP_TABLE, PRB_STEP_KEEP, PRB_STEP_WAIT };

struct prb_skill_step {
    enum prb_step_kind kind;
    unsigned line;       /* of its first line in the file */
    const char *name;    /* of KEEP and TABLE */
    const char *sql;     /* owned by the file's arena */
    unsigned looks;      /* of KEEP; 1: once */
    double seconds;      /* between looks, or to wait */
    unsigned seen_looks; /* of KEEP, when since is known; 0: as without */
    double seen_seconds;
    bool beside; /* of KEEP: with the KEEP before it */
};

struct prb_skill_parameter {
    const char *name;
    double value;
};

struct prb_skill_file {
    struct prb_skill skill; /* first */
    struct prb_skill_step steps[PRB_SKILL_STEPS_MAX];
    size_t step_count;
    struct prb_skill_parameter parameters[PRB_SKILL_PARAMETERS_MAX];
    size_t parameter_count;
    struct prb_arena arena; /* of all its texts, and of itself */
};

/* path: NULL for one of ours.  CORRUPT says the line. */
struct prb_skill_file *prb_skill_parse(const char *text, size_t len, const char *path,
                                       struct prb_error *err);
void prb_skill_file_free(struct prb_skill_file *file);
PRB_DEFINE_AUTO_PTR(prb_skill_file, struct prb_skill_file, prb_skill_file_free)
/* a-z, 0-9, - and _, beginning with a letter. */
bool prb_skill_name_is_good(const char *name, size_t len);

/* The texts of ours; ends with NULL. */
extern const char *const prb_skill_builtin[];

#endif
