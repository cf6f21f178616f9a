/* select.c: the default backend: GPUGLUE_BACKEND, gg_use_backend, or the first that has a device. */
#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "loader/loader.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/small.h"

#define BLANKS " \t\n"

static pthread_mutex_t selection_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t selection_once = PTHREAD_ONCE_INIT;

static const char *selection_text; /* the value of GPUGLUE_BACKEND at first use */
static bool selection_valid;
static char selection_reason[384];
static struct ggi_selection selection_variable;

static _Atomic(bool) selection_overridden; /* by gg_use_backend */
static _Atomic(struct gg_backend *) selection_decided;
static const char *selection_note;

/* ---- the text ---- */

/* Remove blanks around @p text and make it lower case, in place. */
static char *selection_trim(char *text)
{
    text += strspn(text, BLANKS);
    size_t length = strlen(text);
    while (length && strchr(BLANKS, text[length - 1]))
        text[--length] = 0;
    ggi_text_lower(text);
    return text;
}

bool ggi_selection_has(const struct ggi_selection *selection, const char *name)
{
    for (size_t i = 0; i < selection->count; i++)
        if (!strcmp(selection->names[i], name))
            return true;
    return false;
}

static bool selection_add_name(struct ggi_selection *selection, const char *name,
                               struct ggi_text *why)
{
    if (!*name)
        ggi_text_add(why, "has an empty name");
    else if (*name == '^')
        ggi_text_add(why, "has '^' after its beginning: write it once, at the beginning; it "
                          "applies to all names");
    else if (strchr(name, ':'))
        ggi_text_add(why,
                     "has \"%s\", which is a device, where a backend is expected: set "
                     "GPUGLUE_DEVICE=%s instead",
                     name, name);
    else if (!strcmp(name, "auto"))
        ggi_text_add(why, "has \"auto\" in a list: \"auto\" must be the only name");
    else if (selection->count == GGI_SELECTION_MAX)
        ggi_text_add(why, "has more than %d names", GGI_SELECTION_MAX);
    else {
        const struct ggi_plugin *plugin = ggi_plugin_named(name); /* by an alias, too */
        if (plugin)
            name = plugin->backend.name;
        if (!ggi_selection_has(selection, name)) /* a repeated name counts once */
            selection->names[selection->count++] = name;
        return true;
    }
    return false;
}

static bool selection_parse(struct ggi_selection *selection, struct ggi_text *why)
{
    char *rest = selection_trim(selection->text), *name;
    if (!*rest || !strcmp(rest, "auto")) {
        selection->automatic = true;
        return true;
    }
    selection->automatic = *rest == '^';
    rest += selection->automatic;
    while ((name = strsep(&rest, ",")))
        if (!selection_add_name(selection, selection_trim(name), why))
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
    if (selection_parse(selection, why))
        return true;
    ggi_text_add(why, "; expected auto, name[,name...] or ^name[,name...]");
    return false;
}

bool ggi_selection_admits(const struct ggi_selection *selection, struct ggi_plugin *plugin)
{
    bool has = ggi_selection_has(selection, plugin->backend.name);
    if (has && !selection->automatic)
        atomic_store(&plugin->named, true);
    return has != selection->automatic;
}

/* ---- the variable ---- */

static void selection_read_variable(void)
{
    const char *value = ggi_env_get("GPUGLUE_BACKEND");
    ggi_reset_in_child(&selection_lock);
    selection_text = ggi_intern(value);
    struct ggi_text why = ggi_text_begin(selection_reason, sizeof selection_reason);
    ggi_text_add(&why, "GPUGLUE_BACKEND=%.100s ", selection_text);
    selection_valid = ggi_selection_parse(&selection_variable, selection_text, &why);
}

const struct ggi_selection *ggi_selection_of_variable(const char **text, struct ggi_text *why)
{
    pthread_once(&selection_once, selection_read_variable);
    *text = selection_text;
    if (atomic_load(&selection_overridden) || !*selection_text)
        return NULL;
    if (selection_valid)
        return &selection_variable;
    ggi_text_add(why, "%s", selection_reason);
    return NULL;
}

/* ---- the choice ---- */

struct choice {
    struct gg_backend *backend;
    struct ggi_text reasons; /* why other backends were not chosen */
    struct ggi_text brief;   /* their names and statuses */
};

/* Add "name: status: reason" to the reasons, and the first two to the brief. */
static void choice_describe(struct choice *choice, struct ggi_plugin *plugin)
{
    const char *added = choice->reasons.data + choice->reasons.used;
    ggi_plugin_describe(plugin, &choice->reasons);
    const char *status = added + strcspn(added, ":");
    const size_t name = (size_t)(status - added) + (*status == ':');
    ggi_text_add(&choice->brief, "%s%.*s", choice->brief.used ? ", " : "",
                 (int)(name + strcspn(added + name, ":")), added);
}

/* An error other than GG_ERR_UNAVAILABLE, as after a fork, ends the search. */
static gg_status choice_try(struct choice *choice, struct ggi_plugin *plugin)
{
    ggi_suppress_errors(1);
    gg_status status = ggi_backend_open(&plugin->backend);
    ggi_suppress_errors(-1);
    if (!status) {
        choice->backend = &plugin->backend;
        return GG_OK;
    }
    if (status != GG_ERR_UNAVAILABLE)
        return ggi_backend_open(&plugin->backend);
    ggi_text_add(&choice->reasons, choice->reasons.used ? "; " : "");
    choice_describe(choice, plugin);
    return GG_OK;
}

static gg_status choice_try_missing(struct choice *choice, const char *name)
{
    struct ggi_probe_report *record = ggi_plugin_missing(name);
    if (!record)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory to search for backend \"%s\"", name);
    ggi_text_add(&choice->reasons, "%s%s: %s: %s", choice->reasons.used ? "; " : "", name,
                 gg_probe_status_name(record->report.status), record->report.reason);
    ggi_probe_report_release(record);
    return GG_OK;
}

static gg_status choice_of_named(const struct ggi_selection *selection, struct choice *choice)
{
    gg_status status = GG_OK;
    for (size_t i = 0; i < selection->count && !status && !choice->backend; i++) {
        struct ggi_plugin *plugin = ggi_plugin_named(selection->names[i]);
        if (plugin)
            atomic_store(&plugin->named, true);
        status =
            plugin ? choice_try(choice, plugin) : choice_try_missing(choice, selection->names[i]);
    }
    return status;
}

/* An unknown name excludes nothing, but may be a typing error. */
static void choice_warn_of_unknown(const struct ggi_selection *selection)
{
    for (size_t i = 0; i < selection->count; i++)
        if (!ggi_plugin_named(selection->names[i]))
            ggi_log(GG_LOG_WARN, NULL, "^%s excludes a backend that does not exist",
                    selection->names[i]);
}

static gg_status choice_automatic(const struct ggi_selection *selection, struct choice *choice)
{
    size_t count;
    gg_status status = GG_OK;
    struct ggi_plugin **all = ggi_plugins(&count);
    if (!all)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory to choose a backend");
    choice_warn_of_unknown(selection);
    for (size_t i = 0; i < count && !status && !choice->backend; i++)
        if (!ggi_selection_has(selection, all[i]->backend.name))
            status = choice_try(choice, all[i]);
    free(all);
    return status;
}

/* A note for the user if a backend of last resort (negative priority) was chosen automatically. */
static const char *choice_note(const struct ggi_selection *selection, const struct choice *choice)
{
    struct ggi_text text = GGI_TEXT(512);
    if (!selection->automatic || ggi_plugin_of(choice->backend)->priority >= 0)
        return NULL;
    ggi_text_add(&text, "no GPU was found, so work runs on backend \"%s\"", choice->backend->name);
    if (choice->brief.used)
        ggi_text_add(&text, " (%s)", choice->brief.data);
    ggi_text_add(&text,
                 "\n`gpuglue doctor` names the cause; GPUGLUE_BACKEND=%s selects %s explicitly and "
                 "silences this warning",
                 choice->backend->name, choice->backend->name);
    return ggi_intern(text.data);
}

/* With selection_lock held. @p text is what was given; in the message it stands between @p before and @p after. */
static gg_status choice_decide(const struct ggi_selection *selection, const char *before,
                               const char *text, const char *after)
{
    struct choice choice = {.reasons = GGI_TEXT(1024), .brief = GGI_TEXT(256)};
    struct ggi_text message = GGI_TEXT(sizeof ggi_error_record()->error.message);
    const char *reasons = choice.reasons.data;
    gg_status status = selection->automatic ? choice_automatic(selection, &choice)
                                            : choice_of_named(selection, &choice);
    if (status)
        return status;
    if (!choice.backend) {
        ggi_text_add(&message, "no backend is available with %s%.100s%s: %s", before,
                     *text ? text : "auto", after, reasons[0] ? reasons : "all are excluded");
        return ggi_fail(GG_ERR_UNAVAILABLE, "%s", message.data);
    }
    if (reasons[0])
        ggi_log(GG_LOG_INFO, choice.backend->name, "is the default backend; not available: %s",
                reasons);
    selection_note = choice_note(selection, &choice);
    atomic_store_explicit(&selection_decided, choice.backend, memory_order_release);
    return GG_OK;
}

struct gg_backend *ggi_backend_decided(void)
{
    return atomic_load_explicit(&selection_decided, memory_order_acquire);
}

static gg_status choice_decide_by_variable(void)
{
    if (ggi_backend_decided())
        return GG_OK;
    if (!selection_valid)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "%s", selection_reason);
    return choice_decide(&selection_variable, "GPUGLUE_BACKEND=", selection_text, "");
}

gg_status ggi_backend_default(struct gg_backend **out)
{
    gg_status status = GG_OK;
    if (!ggi_backend_decided()) {
        pthread_once(&selection_once, selection_read_variable);
        pthread_mutex_lock(&selection_lock);
        status = choice_decide_by_variable();
        pthread_mutex_unlock(&selection_lock);
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
    struct ggi_text why = GGI_TEXT(256);
    if (!text || !ggi_selection_parse(&selection, text, &why))
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "use_backend: \"%.100s\" %s", text ? text : "NULL",
                        text ? why.data : "is not a selection of backends");
    pthread_once(&selection_once, selection_read_variable);
    pthread_mutex_lock(&selection_lock);
    gg_status status = choice_decide(&selection, "use_backend(\"", text, "\")");
    if (!status)
        atomic_store(&selection_overridden, true);
    pthread_mutex_unlock(&selection_lock);
    return status;
}

gg_status gg_default_backend(const char **name, const char **note)
{
    struct gg_backend *backend;
    gg_status status = ggi_backend_default(&backend);
    if (status)
        return status;
    pthread_mutex_lock(&selection_lock);
    backend = ggi_backend_decided(); /* under the lock, so that the note belongs to it */
    if (note)
        *note = selection_note;
    pthread_mutex_unlock(&selection_lock);
    if (name)
        *name = backend->name;
    return GG_OK;
}
