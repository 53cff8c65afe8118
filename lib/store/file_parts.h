/* What the parts of file.h share. */
#ifndef PRB_STORE_FILE_PARTS_H
#define PRB_STORE_FILE_PARTS_H

#include <sys/types.h>

#include "sql/sqlite.h"
#include "store/file.h"

#define PRB_STORE_APPLICATION 0x50524253 /* "PRBS", in the file's application_id */

enum prb_store_statement {
    PRB_STORE_BEGIN,
    PRB_STORE_COMMIT,
    PRB_STORE_ROLLBACK,
    PRB_STORE_FIND_PROCESS,
    PRB_STORE_ADD_PROCESS,
    PRB_STORE_CHANGE_PROCESS,
    PRB_STORE_ADD_SHAPE,
    PRB_STORE_ADD_CHUNK,
    PRB_STORE_GET_MARK,
    PRB_STORE_SET_MARK,
    PRB_STORE_ADD_GAP,
    PRB_STORE_SET_ABOUT,
    PRB_STORE_FIND_CHUNKS,
    PRB_STORE_LIST_GAPS,
    PRB_STORE_LAST_TIME,
    PRB_STORE_OLDEST,
    PRB_STORE_REMOVE,
    PRB_STORE_REMOVE_GAPS,
    PRB_STORE_REMOVE_ONE,
    PRB_STORE_LIST_OLD,
    PRB_STORE_STATEMENTS
};

struct prb_store_file {
    sqlite3 *sqlite;
    sqlite3_stmt *statements[PRB_STORE_STATEMENTS]; /* prepared when first used */
    struct prb_packer *packer;
    char *path;
    bool write;
    struct prb_store_file *next; /* of those that this process has open */
    dev_t device;
    ino_t inode;
    struct prb_arena arena; /* of the lists */
    struct prb_store_process *processes;
    size_t process_count, process_cap;
    struct prb_store_shape *shapes;
    size_t shape_count, shape_cap;
    const char *job;
    double wishes[PRB_STORE_WISHES]; /* below 0: none */
    uint64_t checks;                 /* of SQLite's machine in the running statement */
};

/* ---- opened.c: which of them this process has open ---- */

/* Before SQLite opens it; to write: made where it is not there.  False: err. */
bool prb_store_enter(struct prb_store_file *file, struct prb_error *err);
/* After SQLite closed it. */
void prb_store_leave(struct prb_store_file *file);
/* Whether no other of this process is the same file. */
bool prb_store_alone(const struct prb_store_file *file);

/* ---- file.c: statements ---- */

/* A statement, ready to be bound; NULL: err. */
sqlite3_stmt *prb_store_statement(struct prb_store_file *file, enum prb_store_statement which,
                                  struct prb_error *err);
/* Run one that gives no rows, and reset it. */
bool prb_store_run(struct prb_store_file *file, sqlite3_stmt *statement, struct prb_error *err);
/* Keys of the table about. */
extern const char *const prb_store_wish_keys[PRB_STORE_WISHES];
/* What SQLite said; false. */
bool prb_store_failed(struct prb_store_file *file, struct prb_error *err);
/* Resets a statement at the end of the scope. */
static inline void prb_store_reset(sqlite3_stmt *statement)
{
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
}
PRB_DEFINE_AUTO_PTR(prb_store_row, sqlite3_stmt, prb_store_reset)

#endif
