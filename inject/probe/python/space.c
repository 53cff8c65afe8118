/* Namespaces for code of ours, and what C puts into them: see space.h. */
#include "inject/probe/python/space.h"

#include <stdio.h>
#include <string.h>

#include "inject/probe/python/job.h"

bool prb_py_give(const struct prb_py_api *py, struct prb_py *dict, const char *name,
                 struct prb_py *value)
{
    PRB_AUTO(prb_py) struct prb_py *given = value;
    return given && py->PyDict_SetItemString(dict, name, given) == 0;
}

struct prb_py *prb_py_text(const struct prb_py_api *py, const char *text)
{
    return py->PyUnicode_DecodeUTF8(text, (ptrdiff_t)strlen(text), "replace");
}

static struct prb_py *module_new(const struct prb_py_api *py, const char *name)
{
    struct prb_py *sys = py->PyDict_GetItemString(py->PyImport_GetModuleDict(), "sys");
    PRB_AUTO(prb_py) struct prb_py *type = sys ? py->PyObject_Type(sys) : NULL;
    PRB_AUTO(prb_py) struct prb_py *text = type ? prb_py_text(py, name) : NULL;
    PRB_AUTO(prb_py) struct prb_py *args = text ? py->PyTuple_Pack(1, text) : NULL;
    return args ? py->PyObject_CallObject(type, args) : NULL;
}

static struct prb_py *codes(const struct prb_py_api *py)
{
    PRB_AUTO(prb_py) struct prb_py *dict = py->PyDict_New();
    bool ok = dict;
#define CODE(name, text, exit_code)                                                                \
    ok = ok && prb_py_give(py, dict, #name, py->PyLong_FromUnsignedLongLong(PRB_##name));
    PRB_CODES(CODE)
#undef CODE
    return ok ? PRB_STEAL(dict) : NULL;
}

/* A new reference to the dict that is never freed. */
static struct prb_py *kept(const struct prb_py_api *py)
{
    static struct prb_py *made; /* with the GIL */
    if (!made)
        made = py->PyDict_New();
    if (made)
        py->Py_IncRef(made);
    return made;
}

/* The module of agent.py, a new reference. */
static struct prb_py *agent_module(const struct prb_py_api *py, struct prb_error *err)
{
    PRB_AUTO(prb_py) struct prb_py *space = prb_job_agent(py, err);
    struct prb_py *probe = space ? py->PyDict_GetItemString(space, "probe") : NULL;
    return probe ? py->PyObject_GetAttrString(probe, "agent") : NULL;
}

struct prb_py *prb_py_space(const struct prb_py_api *py, const char *group,
                            struct prb_py **probe_out, struct prb_error *err)
{
    char name[64];
    snprintf(name, sizeof name, "probing_%s", *group ? group : "agent");
    PRB_AUTO(prb_py) struct prb_py *module = module_new(py, name);
    PRB_AUTO(prb_py) struct prb_py *probe = module ? module_new(py, "probe") : NULL;
    if (!probe)
        return NULL;
    PRB_AUTO(prb_py) struct prb_py *space = py->PyObject_GetAttrString(module, "__dict__");
    PRB_AUTO(prb_py) struct prb_py *given = py->PyObject_GetAttrString(probe, "__dict__");
    bool ok =
        space && given &&
        prb_py_give(py, given, "agent", *group ? agent_module(py, err) : PRB_STEAL(module)) &&
        prb_py_give(py, given, "run", py->PyCFunction_NewEx(&prb_py_run_method, NULL, NULL)) &&
        prb_py_give(py, given, "kept", kept(py)) && prb_py_give(py, given, "codes", codes(py)) &&
        prb_py_give(py, given, "text_max", py->PyLong_FromUnsignedLongLong(PRB_PYTHON_TEXT_MAX)) &&
        prb_py_give(py, space, "probe", PRB_STEAL(probe)) &&
        py->PyDict_SetItemString(space, "__builtins__", py->PyEval_GetBuiltins()) == 0;
    *probe_out = ok ? PRB_STEAL(given) : NULL;
    return ok ? PRB_STEAL(space) : NULL;
}
