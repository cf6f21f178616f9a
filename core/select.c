/* select.c: the default backend: GPUGLUE_BACKEND, gg_use_backend, or the first that has a device. */
#include "backends.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define BLANKS " \t\n"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const char *variable; /* the value of GPUGLUE_BACKEND at first use */
static bool variable_good;
static char variable_why[384];
static struct ggi_selection variable_selection;

static _Atomic(bool) overruled; /* by gg_use_backend */
static _Atomic(struct gg_backend *) decided;
static const char *decided_note;

/* ---- the text ---- */

/* "auto" or a name, in place: lower case and without blanks. */
static char *trimmed(char *text)
{
    text += strspn(text, BLANKS);
    size_t length = strlen(text);
    while (length && strchr(BLANKS, text[length - 1]))
        text[--length] = 0;
    for (char *at = text; *at; at++)
        if (*at >= 'A' && *at <= 'Z')
            *at = (char)(*at - 'A' + 'a');
    return text;
}

bool ggi_selection_has(const struct ggi_selection *selection, const char *name)
{
    for (size_t i = 0; i < selection->count; i++)
        if (!strcmp(selection->names[i], name))
            return true;
    return false;
}

static bool add_name(struct ggi_selection *selection, const char *name, struct ggi_text *why)
{
    if (!*name)
        ggi_text_add(why, "has an empty name");
    else if (*name == '^')
        ggi_text_add(why,
                     "mixes '^' with names: '^' stands once, at the beginning, and holds for all "
                     "the names");
    else if (!strcmp(name, "auto"))
        ggi_text_add(why, "has \"auto\" in a list: it stands alone");
    else if (selection->count == GGI_SELECTION_MAX)
        ggi_text_add(why, "has more than %d names", GGI_SELECTION_MAX);
    else {
        if (!ggi_selection_has(selection, name)) /* twice is once */
            selection->names[selection->count++] = name;
        return true;
    }
    return false;
}

static bool parse(struct ggi_selection *selection, struct ggi_text *why)
{
    char *rest = trimmed(selection->text), *name;
    if (!*rest || !strcmp(rest, "auto")) {
        selection->automatic = true;
        return true;
    }
    selection->automatic = *rest == '^';
    rest += selection->automatic;
    while ((name = strsep(&rest, ",")))
        if (!add_name(selection, trimmed(name), why))
            return false;
    return true;
}

bool ggi_selection_parse(struct ggi_selection *selection, const char *text, struct ggi_text *why)
{
    *selection = (struct ggi_selection){0};
    if (strlen(text) >= sizeof selection->text) {
        ggi_text_add(why, "is longer than %zu bytes", sizeof selection->text - 1);
        return false;
    }
    strcpy(selection->text, text);
    if (parse(selection, why))
        return true;
    ggi_text_add(why, "; expected auto, name[,name...] or ^name[,name...]");
    return false;
}

bool ggi_selection_admits(const struct ggi_selection *selection, struct gg_backend *backend)
{
    bool has = ggi_selection_has(selection, backend->name);
    if (has && !selection->automatic)
        atomic_store(&backend->named, true);
    return has != selection->automatic;
}

/* ---- the variable ---- */

static void read_variable(void)
{
    struct ggi_text why;
    const char *value = ggi_host_api()->get_env("GPUGLUE_BACKEND");
    ggi_reset_in_child(&lock);
    variable = ggi_keep(value);
    ggi_text_begin(&why, variable_why, sizeof variable_why);
    ggi_text_add(&why, "GPUGLUE_BACKEND=%.100s ", variable);
    variable_good = ggi_selection_parse(&variable_selection, variable, &why);
}

const struct ggi_selection *ggi_selection_of_variable(const char **text, struct ggi_text *why)
{
    pthread_once(&once, read_variable);
    *text = variable;
    if (atomic_load(&overruled) || !*variable)
        return NULL;
    if (variable_good)
        return &variable_selection;
    ggi_text_add(why, "%s", variable_why);
    return NULL;
}

/* ---- the choice ---- */

struct choice {
    struct gg_backend *backend;
    struct ggi_text reasons; /* of those that were passed over */
};

/* A backend that a fork has spoilt is no reason to go on to the next one. */
static gg_status try_one(struct choice *choice, struct gg_backend *backend)
{
    ggi_quiet(1);
    gg_status status = ggi_backend_open(backend);
    ggi_quiet(-1);
    if (!status) {
        choice->backend = backend;
        return GG_OK;
    }
    if (status != GG_ERR_UNAVAILABLE)
        return ggi_backend_open(backend);
    ggi_text_add(&choice->reasons, choice->reasons.used ? "; " : "");
    ggi_backend_say(backend, &choice->reasons);
    return GG_OK;
}

static gg_status try_missing(struct choice *choice, const char *name)
{
    struct ggi_record *record = ggi_backend_missing(name);
    if (!record)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no memory to look for backend \"%s\"", name);
    ggi_text_add(&choice->reasons, "%s%s: %s: %s", choice->reasons.used ? "; " : "", name,
                 gg_probe_status_name(record->report.status), record->report.reason);
    ggi_record_release(record);
    return GG_OK;
}

static gg_status choose_named(const struct ggi_selection *selection, struct choice *choice)
{
    gg_status status = GG_OK;
    for (size_t i = 0; i < selection->count && !status && !choice->backend; i++) {
        struct gg_backend *backend = ggi_backend_named(selection->names[i]);
        if (backend)
            atomic_store(&backend->named, true);
        status = backend ? try_one(choice, backend) : try_missing(choice, selection->names[i]);
    }
    return status;
}

/* A name that nobody has is excluded already, but may be a slip of the pen. */
static void warn_of_strangers(const struct ggi_selection *selection)
{
    for (size_t i = 0; i < selection->count; i++)
        if (!ggi_backend_named(selection->names[i]))
            ggi_log(GG_LOG_WARN, NULL, "^%s excludes a backend that there is not",
                    selection->names[i]);
}

static gg_status choose_automatic(const struct ggi_selection *selection, struct choice *choice)
{
    size_t count;
    gg_status status = GG_OK;
    struct gg_backend **all = ggi_backends(&count);
    if (!all)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no memory to choose a backend");
    warn_of_strangers(selection);
    for (size_t i = 0; i < count && !status && !choice->backend; i++)
        if (!ggi_selection_has(selection, all[i]->name))
            status = try_one(choice, all[i]);
    free(all);
    return status;
}

/* A backend of last resort, chosen by nobody, deserves a word. */
static const char *note_on(const struct ggi_selection *selection, const struct choice *choice)
{
    char note[1536];
    struct ggi_text text;
    if (!selection->automatic || choice->backend->priority >= 0)
        return NULL;
    ggi_text_begin(&text, note, sizeof note);
    ggi_text_add(&text,
                 "no GPU was found, so work runs on backend \"%s\"; GPUGLUE_BACKEND=%s says that "
                 "this is meant",
                 choice->backend->name, choice->backend->name);
    if (choice->reasons.used)
        ggi_text_add(&text, " (%s)", choice->reasons.data);
    return ggi_keep(note);
}

/* With the lock held. */
static gg_status decide(const struct ggi_selection *selection, const char *source, const char *text)
{
    char reasons[1024], message[sizeof ggi_thread()->error.message];
    struct choice choice = {0};
    struct ggi_text whole;
    ggi_text_begin(&choice.reasons, reasons, sizeof reasons);
    gg_status status = selection->automatic ? choose_automatic(selection, &choice)
                                            : choose_named(selection, &choice);
    if (status)
        return status;
    if (!choice.backend) {
        ggi_text_begin(&whole, message, sizeof message);
        ggi_text_add(&whole, "no backend is available with %s%.100s: %s", source,
                     *text ? text : "auto", reasons[0] ? reasons : "all are excluded");
        return ggi_fail(GG_ERR_UNAVAILABLE, "%s", message);
    }
    if (reasons[0])
        ggi_log(GG_LOG_INFO, choice.backend->name, "is the default; passed over: %s", reasons);
    decided_note = note_on(selection, &choice);
    atomic_store_explicit(&decided, choice.backend, memory_order_release);
    return GG_OK;
}

struct gg_backend *ggi_backend_decided(void)
{
    return atomic_load_explicit(&decided, memory_order_acquire);
}

static gg_status decide_by_variable(void)
{
    if (ggi_backend_decided())
        return GG_OK;
    if (!variable_good)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "%s", variable_why);
    return decide(&variable_selection, "GPUGLUE_BACKEND=", variable);
}

gg_status ggi_backend_default(struct gg_backend **out)
{
    gg_status status = GG_OK;
    if (!ggi_backend_decided()) {
        pthread_once(&once, read_variable);
        pthread_mutex_lock(&lock);
        status = decide_by_variable();
        pthread_mutex_unlock(&lock);
    }
    struct gg_backend *backend = ggi_backend_decided();
    if (!status)
        status = ggi_backend_open(backend);
    if (!status)
        *out = backend;
    return status;
}

gg_status gg_use_backend(const char *text)
{
    struct ggi_selection selection;
    char reason[256];
    struct ggi_text why;
    ggi_text_begin(&why, reason, sizeof reason);
    if (!text || !ggi_selection_parse(&selection, text, &why))
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "use_backend: \"%.100s\" %s", text ? text : "NULL",
                        text ? reason : "is no selection");
    pthread_once(&once, read_variable);
    pthread_mutex_lock(&lock);
    gg_status status = decide(&selection, "use_backend ", text);
    if (!status)
        atomic_store(&overruled, true);
    pthread_mutex_unlock(&lock);
    return status;
}

gg_status gg_default_backend(const char **name, const char **note)
{
    struct gg_backend *backend;
    gg_status status = ggi_backend_default(&backend);
    if (status)
        return status;
    pthread_mutex_lock(&lock);
    backend = ggi_backend_decided(); /* and the note that belongs to it */
    if (note)
        *note = decided_note;
    pthread_mutex_unlock(&lock);
    if (name)
        *name = backend->name;
    return GG_OK;
}
