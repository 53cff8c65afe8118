/* Skills as files of an agent's folder: FOLDER/NAME/SKILL.md. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/new_file.h"
#include "skill/skill.h"

static bool make_folder(char *path, struct prb_error *err)
{
    for (char *at = path + 1;; at++) {
        if (*at && *at != '/')
            continue;
        char kept = *at;
        *at = '\0';
        bool made = mkdir(path, 0777) == 0 || errno == EEXIST;
        int sys = errno;
        *at = kept;
        if (!made)
            return prb_fail_sys(err, sys, "making %s", path);
        if (!kept)
            return true;
    }
}

static bool write_one(const struct prb_skill *skill, const char *folder, struct prb_error *err)
{
    PRB_AUTO_FREE char *path = NULL;
    PRB_AUTO(prb_new_file) struct prb_new_file file = {0};
    if (asprintf(&path, "%s/%s", folder, skill->name) < 0)
        return prb_nomem(err);
    if (!make_folder(path, err))
        return false;
    free(PRB_STEAL(path));
    if (asprintf(&path, "%s/%s/SKILL.md", folder, skill->name) < 0)
        return prb_nomem(err);
    return (prb_new_file_begin(&file, path, 0666) &&
            prb_write_all(file.fd, skill->text, strlen(skill->text)) && prb_new_file_end(&file)) ||
           prb_fail_sys(err, errno, "writing %s", path);
}

bool prb_skills_install(const struct prb_skills *skills, const char *folder, size_t *count_out,
                        struct prb_error *err)
{
    *count_out = 0;
    for (size_t i = 0; i < skills->count; i++) {
        if (skills->items[i]->path)
            continue;
        if (!write_one(skills->items[i], folder, err))
            return false;
        ++*count_out;
    }
    return true;
}
