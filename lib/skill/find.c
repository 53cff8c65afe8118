/* Where skills are: in this library, in the user's folder, in a project's. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "skill/skill.h"

#define FOLDER_FILES_MAX 256

struct found {
    struct prb_skills skills; /* first */
    struct prb_skill_file **files;
    size_t count, cap;
    struct prb_buf warning;
};

void prb_skills_free(struct prb_skills *skills)
{
    struct found *found = (struct found *)skills;
    for (size_t i = 0; i < found->count; i++)
        prb_skill_file_free(found->files[i]);
    free(found->files);
    prb_buf_deinit(&found->warning);
    free(found);
}
PRB_DEFINE_AUTO_PTR(prb_skills, struct prb_skills, prb_skills_free)

/* Only what this user or root wrote counts: another's file in a shared folder is nobody's
 * advice. */
static int open_own(int folder, const char *name, int flags)
{
    struct stat st;
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) == 0 && (st.st_uid == geteuid() || st.st_uid == 0) &&
        !(st.st_mode & S_IWOTH) && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
        return fd;
    close(fd);
    errno = EPERM;
    return -1;
}

static void warn(struct found *found, const char *path, const char *why)
{
    if (found->warning.len < 300)
        prb_buf_addf(&found->warning, "%s%s: %s", found->warning.len ? "; " : "", path, why);
}

static bool has_name(const struct found *found, const char *name)
{
    for (size_t i = 0; i < found->count; i++)
        if (strcmp(found->files[i]->skill.name, name) == 0)
            return true;
    return false;
}

/* file is taken. */
static bool add(struct found *found, struct prb_skill_file *file)
{
    PRB_AUTO(prb_skill_file) struct prb_skill_file *owned = file;
    if (!PRB_GROW(found->files, found->count, found->cap))
        return false;
    found->files[found->count++] = PRB_STEAL(owned);
    return true;
}

static bool read_file(struct found *found, int fd, const char *path, struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    struct prb_error why = {0};
    if (!prb_buf_read(&text, fd, PRB_SKILL_FILE_MAX)) {
        warn(found, path, strerror(errno));
        return true;
    }
    struct prb_skill_file *file = prb_skill_parse(text.data, text.len, path, &why);
    if (!file && why.code == PRB_NOMEM)
        return prb_nomem(err);
    if (!file) {
        warn(found, path, why.text);
        return true;
    }
    file->skill.ranks = false; /* only ours look beyond the one target */
    if (has_name(found, file->skill.name)) {
        warn(found, path, "there is a skill of this name already");
        prb_skill_file_free(file);
        return true;
    }
    return add(found, file) || prb_nomem(err);
}

/* NAME.md, or NAME/SKILL.md. */
static bool read_entry(struct found *found, int folder, const char *name, const char *path,
                       struct prb_error *err)
{
    PRB_AUTO_FREE char *whole = NULL;
    size_t len = strlen(name);
    if (*name == '.')
        return true;
    PRB_AUTO_FD int fd = open_own(folder, name, O_NOFOLLOW);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0)
        return true;
    if (asprintf(&whole, "%s/%s%s", path, name, S_ISDIR(st.st_mode) ? "/SKILL.md" : "") < 0)
        return prb_nomem(err);
    if (!S_ISDIR(st.st_mode))
        return len < 4 || strcmp(name + len - 3, ".md") != 0 || read_file(found, fd, whole, err);
    PRB_AUTO_FD int inner = open_own(fd, "SKILL.md", O_NOFOLLOW);
    return inner < 0 || read_file(found, inner, whole, err);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static bool read_folder(struct found *found, const char *path, struct prb_error *err)
{
    PRB_AUTO_FD int folder = open_own(AT_FDCWD, path, O_DIRECTORY);
    char own[40]; /* musl has no scandirat(3) */
    snprintf(own, sizeof own, "/proc/self/fd/%d", folder);
    struct dirent **names = NULL;
    bool ok = true;
    int count = folder < 0 ? 0 : scandir(own, &names, NULL, by_name);
    for (int i = 0; i < count; i++) {
        if (i < FOLDER_FILES_MAX)
            ok = ok && read_entry(found, folder, names[i]->d_name, path, err);
        free(names[i]);
    }
    free(names);
    return ok;
}

static bool read_users(struct found *found, struct prb_error *err)
{
    PRB_AUTO_FREE char *path = NULL;
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    bool whole = config && *config == '/';
    if (!whole && (!home || *home != '/'))
        return true;
    if (asprintf(&path, "%s%s/probing/skills", whole ? config : home, whole ? "" : "/.config") < 0)
        return prb_nomem(err);
    return read_folder(found, path, err);
}

struct prb_skills *prb_skills_find(const char *project, struct prb_error *err)
{
    PRB_AUTO(prb_skills)
    struct prb_skills *skills = (struct prb_skills *)calloc(1, sizeof(struct found));
    struct found *found = (struct found *)skills;
    if (!found)
        return PRB_NULL(prb_nomem(err));
    for (const char *const *text = prb_skill_builtin; *text; text++) {
        struct prb_skill_file *file = prb_skill_parse(*text, strlen(*text), NULL, err);
        if (!file)
            return NULL;
        if (!add(found, file))
            return PRB_NULL(prb_nomem(err));
    }
    if (!read_users(found, err) || (project && !read_folder(found, project, err)))
        return NULL;
    skills->items = (const struct prb_skill *const *)found->files; /* skill is its first member */
    skills->count = found->count;
    skills->warning = found->warning.len ? found->warning.data : NULL;
    return PRB_STEAL(skills);
}

const struct prb_skill *prb_skill_named(const struct prb_skills *skills, const char *name,
                                        struct prb_error *err)
{
    PRB_AUTO_FREE const char **names = calloc(skills->count + 1, sizeof *names);
    for (size_t i = 0; i < skills->count; i++) {
        if (strcmp(skills->items[i]->name, name) == 0)
            return skills->items[i];
        if (names)
            names[i] = skills->items[i]->name;
    }
    const char *near = names ? prb_nearest(name, names, skills->count) : NULL;
    prb_fail(err, PRB_NOT_FOUND, "there is no skill \"%.64s\"", name);
    prb_error_remedy(err, near ? "did you mean `%s`?" : "`probing skill list` lists them", near);
    return NULL;
}
