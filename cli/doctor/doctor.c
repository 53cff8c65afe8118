/* probing doctor: what works here, and why the rest does not. */
#include "cli/doctor/doctor.h"

#include <stdarg.h>
#include <string.h>

#include "cli/print/out.h"

enum { FORMAT };

static const struct prb_option options[] = {
    [FORMAT] = {'f', "format", "FORMAT", "text or json, an array of objects", "text json"},
    {0},
};

static prb_doctor_check *const checks[] = {
    prb_doctor_kernel,        prb_doctor_looking,       prb_doctor_proc,
    prb_doctor_shared_memory, prb_doctor_libraries,     prb_doctor_probe,
    prb_doctor_server,        prb_doctor_other_probing, prb_doctor_processes,
};

static const char *const names[] = {"works", "limited", "fails", "unknown"};
static const enum prb_style styles[] = {PRB_STYLE_GOOD, PRB_STYLE_WARNING, PRB_STYLE_WARNING,
                                        PRB_STYLE_WARNING};

struct prb_doctor {
    FILE *out; /* printed at the end, as a check may fork */
    bool json, verbose;
    size_t told, printed, untold;
};

static void print_text(struct prb_doctor *doctor, const char *subject, enum prb_health health,
                       const char *remedy, const char *text)
{
    if (health == PRB_WORKS && !doctor->verbose)
        return;
    prb_out_style(doctor->out, styles[health]);
    fprintf(doctor->out, "%-8s", names[health]);
    prb_out_style(doctor->out, PRB_STYLE_PLAIN);
    fprintf(doctor->out, " %-14s ", subject);
    prb_out_text(doctor->out, text);
    fputc('\n', doctor->out);
    if (*remedy) {
        fprintf(doctor->out, "%24s", "");
        prb_out_text(doctor->out, remedy);
        fputc('\n', doctor->out);
    }
    doctor->printed++;
}

static void print_json(struct prb_doctor *doctor, const char *subject, enum prb_health health,
                       const char *remedy, const char *text)
{
    fprintf(doctor->out,
            "%s{\"check\": \"%s\", \"state\": \"%s\", \"text\": ", doctor->printed++ ? ",\n " : "[",
            subject, names[health]);
    prb_out_json_text(doctor->out, text, strlen(text));
    fputs(", \"remedy\": ", doctor->out);
    prb_out_json_text(doctor->out, *remedy ? remedy : NULL, strlen(remedy));
    fputc('}', doctor->out);
}

static void tell(struct prb_doctor *doctor, const char *subject, enum prb_health health,
                 const char *remedy, const char *text)
{
    doctor->told++;
    doctor->untold += health == PRB_UNTOLD;
    (doctor->json ? print_json : print_text)(doctor, subject, health, remedy, text);
}

void prb_doctor_tell(struct prb_doctor *doctor, const char *subject, enum prb_health health,
                     const char *remedy, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    tell(doctor, subject, health, remedy, text);
}

void prb_doctor_tell_error(struct prb_doctor *doctor, const char *subject, enum prb_health health,
                           const struct prb_error *err)
{
    tell(doctor, subject, health, err->remedy, err->text);
}

bool prb_doctor_for_people(const struct prb_doctor *doctor) { return !doctor->json; }

static bool run_doctor(const struct prb_run *run, struct prb_error *err)
{
    const char *format = run->options[FORMAT].text;
    PRB_AUTO_FREE char *text = NULL;
    size_t size = 0;
    struct prb_doctor doctor = {.out = open_memstream(&text, &size),
                                .json = format && strcmp(format, "json") == 0,
                                .verbose = run->verbose};
    if (!doctor.out)
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        checks[i](&doctor);
    if (doctor.json)
        fputs(doctor.printed ? "]\n" : "[]\n", doctor.out);
    else if (!doctor.printed)
        fprintf(doctor.out, "all %zu checks passed (-v lists them)\n", doctor.told);
    if (fclose(doctor.out) != 0)
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    fwrite(text, 1, size, stdout);
    if (doctor.untold)
        *run->status = prb_code_exit(PRB_IO);
    return true;
}

const struct prb_command prb_command_doctor = {
    .name = "doctor",
    .aliases = "",
    .summary = "what works on this machine, and what to do about the rest",
    .arguments = "",
    .target = PRB_USES_NO_TARGET,
    .description =
        "Tries what Probing needs: whether one process of yours may look into another and stop its "
        "threads (Yama, capabilities, seccomp), /proc, shared memory, the libraries that commands "
        "open when they need them, the probe, the server, and every Python process that you "
        "may see. It loads nothing into any of them. What does not work is shown with the reason "
        "and "
        "what to do; -v also shows what works.\n\n"
        "Another project's package of the name probing in the same environment is found, too: both "
        "have files of the same names.\n\n"
        "The status is 0 when every check could be made, whatever it found, and 11 otherwise.",
    .options = options,
    .examples = "probing doctor\n"
                "probing doctor -f json\n",
    .run = run_doctor,
};
