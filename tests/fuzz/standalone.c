/*
 * Runs a fuzz target without a fuzzer: over the files and folders named, else over its corpus in
 * the source tree. -n COUNT: also COUNT inputs made from them by changing bytes, always the same
 * ones.
 */
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 1 << 20 };

static uint8_t input[INPUT_MAX];
static unsigned long count, mutations;
static uint64_t seed = 0x9e3779b97f4a7c15;

static uint64_t next_random(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    return seed ^= seed << 17;
}

static void mutate(size_t size)
{
    static uint8_t changed[INPUT_MAX];
    for (unsigned long i = 0; size && i < mutations; i++) {
        size_t n = size;
        memcpy(changed, input, size);
        for (uint64_t k = next_random() % 8 + 1; k; k--)
            changed[next_random() % n] =
                (uint8_t)(next_random() % 3 ? next_random() : -(next_random() % 3));
        if (next_random() % 4 == 0)
            n = next_random() % n + 1;
        LLVMFuzzerTestOneInput(changed, n);
    }
}

static int run(const char *path, const struct stat *status, int type, struct FTW *where)
{
    (void)status, (void)where;
    FILE *file = type == FTW_F ? fopen(path, "rb") : NULL;
    if (!file)
        return 0;
    size_t size = fread(input, 1, sizeof input, file);
    fclose(file);
    LLVMFuzzerTestOneInput(input, size);
    mutate(size);
    count++;
    return 0;
}

int main(int argc, char **argv)
{
    char corpus[4096];
    const char *name = strrchr(argv[0], '/'), *source = getenv("SRCDIR");
    name = name ? name + 1 : argv[0];
    if (!strncmp(name, "lt-", 3))
        name += 3;
    snprintf(corpus, sizeof corpus, "%s/tests/fuzz/corpus/%s", source ? source : ".", name);
    int first = 1;
    if (argc > 2 && !strcmp(argv[1], "-n")) {
        mutations = strtoul(argv[2], NULL, 10);
        first = 3;
    }
    for (int i = first; i < argc; i++)
        nftw(argv[i], run, 16, 0);
    if (first == argc)
        nftw(corpus, run, 16, 0);
    printf("%s: %lu files\n", name, count);
    return count ? 0 : 1;
}
