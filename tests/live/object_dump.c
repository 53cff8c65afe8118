/* Prints the texts of the items of __main__.VALUES of a process: a line of JSON for each.  PID
 * [CHARACTERS [DEPTH [ITEMS]]] */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "proc/elf.h"
#include "py/object/object.h"
#include "repr/repr.h"

struct dump {
    struct prb_objects *objects;
    struct prb_repr_limits limits;
};

static bool print_item(void *context, prb_addr key, prb_addr value)
{
    struct dump *dump = context;
    struct prb_error err = {0};
    PRB_AUTO(prb_buf) struct prb_buf name = {0}, text = {0}, type = {0};
    json_t *line = json_object();
    if (prb_object_str(dump->objects, key, 200, &name, NULL))
        json_object_set_new(line, "name", json_string(name.data));
    if (!prb_object_repr(dump->objects, value, &dump->limits, &text, &err))
        json_object_set_new(line, "error", json_string(err.text));
    else
        json_object_set_new(line, "repr", json_string(text.data));
    if (prb_object_type_name(dump->objects, value, &type, NULL))
        json_object_set_new(line, "type", json_string(type.data));
    json_dumpf(line, stdout, 0);
    putchar('\n');
    json_decref(line);
    return true;
}

static bool dump_values(struct prb_py *py, struct dump *dump, struct prb_error *err)
{
    uint64_t interpreter;
    prb_addr values = 0;
    if (!prb_mem_u64(py->mem, py->interpreters, &interpreter, err))
        return false;
    PRB_AUTO(prb_objects) struct prb_objects *objects = prb_objects_new(py, err);
    if (!objects || !prb_module_get(objects, interpreter, "__main__", "VALUES", &values, err))
        return false;
    struct timespec start, end;
    uint64_t calls = py->mem->calls;
    clock_gettime(CLOCK_MONOTONIC, &start);
    dump->objects = objects;
    if (!prb_dict_each(objects, values, print_item, dump, err))
        return false;
    clock_gettime(CLOCK_MONOTONIC, &end);
    fprintf(stderr, "%.2f ms, %lu calls\n",
            1e3 * (double)(end.tv_sec - start.tv_sec) +
                1e-6 * (double)(end.tv_nsec - start.tv_nsec),
            (unsigned long)(py->mem->calls - calls));
    return true;
}

static bool run(pid_t pid, struct dump *dump, struct prb_error *err)
{
    PRB_AUTO(prb_proc) struct prb_proc *proc = prb_proc_open(pid, err);
    struct prb_mem *mem = proc ? prb_proc_mem(proc, err) : NULL;
    PRB_AUTO(prb_modules) struct prb_modules modules = {0};
    struct prb_py *runtimes;
    size_t count;
    if (!mem || !prb_modules_init(&modules, proc, err) ||
        !prb_py_find(&modules, mem, &runtimes, &count, err))
        return false;
    bool good = dump_values(&runtimes[0], dump, err);
    prb_py_free(runtimes, count);
    return good;
}

int main(int argc, char **argv)
{
    struct prb_error err = {0};
    struct dump dump = {0};
    dump.limits.characters = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    dump.limits.depth = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 0;
    dump.limits.items = argc > 4 ? (unsigned)strtoul(argv[4], NULL, 10) : 0;
    if (argc < 2 || !run((pid_t)atoi(argv[1]), &dump, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    return 0;
}
