/* "loss@train": which variables of which functions are watched, as text.  Pure. */
#ifndef PRB_TRAINING_WATCHED_H
#define PRB_TRAINING_WATCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define PRB_WATCHED_MAX 16
#define PRB_WATCHED_STEPS_MAX 8
#define PRB_WATCHED_TEXT_MAX 128

/* One of "loss@train", "loss@", "out['loss']@mod:train", "self.total[0]@Trainer.fit". */
struct prb_watched {
    char text[PRB_WATCHED_TEXT_MAX];     /* of the variable, as it was written */
    char function[PRB_WATCHED_TEXT_MAX]; /* co_name, or co_qualname where the version has one; "":
                                            whoever calls the optimizer */
    char module[PRB_WATCHED_TEXT_MAX];   /* of its file, without folders and ".py"; "": any */
    char name[PRB_WATCHED_TEXT_MAX];
    struct prb_watched_step {
        bool is_attribute, is_index; /* else the key of a dict, a str */
        char key[PRB_WATCHED_TEXT_MAX];
        int64_t index;
        size_t at; /* where it is written in text */
    } steps[PRB_WATCHED_STEPS_MAX];
    size_t step_count;
    uint64_t frames, found; /* samples with such a frame; and with the variable in it */
};

/* The length of the item at the beginning of a text: up to a comma outside of brackets. */
size_t prb_watched_item(const char *text);
/* One item, of so many bytes, blanks around it ignored.  QUERY, as below. */
bool prb_watched_parse_item(const char *item, size_t len, struct prb_watched *out,
                            struct prb_error *err);
/* Items, separated by commas.  QUERY: err names the one that is wrong, and says how it should be. */
bool prb_watched_parse(const char *text, struct prb_watched out[PRB_WATCHED_MAX], size_t *count_out,
                       struct prb_error *err);

#endif
