/* sim_fault.c: counts calls by name and makes chosen ones fail, hang or crash. */
#include "sim_engine.h"
#include "sim_control.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SITES = 2048, RULES = 64, NAME = 64, DEFAULT_CODE = 999 };

struct site {
    _Atomic(const char *) name;
    atomic_int calls;
};

struct rule {
    char name[NAME];
    int nth, code, seen;
    bool onwards;
};

static struct site sites[SITES]; /* lock-free: a forked child counts too */
static pthread_mutex_t rule_lock = PTHREAD_MUTEX_INITIALIZER;
static struct rule rules[RULES];
static int rule_count;
static pthread_once_t rules_read = PTHREAD_ONCE_INIT;

static struct site *site_of(const char *name)
{
    unsigned hash = 5381;
    for (const char *c = name; *c; c++)
        hash = hash * 33 + (unsigned char)*c;
    for (unsigned probe = 0; probe < SITES; probe++) {
        struct site *site = &sites[(hash + probe) % SITES];
        const char *seen = NULL;
        if (atomic_compare_exchange_strong(&site->name, &seen, name) || !strcmp(seen, name))
            return site;
    }
    return NULL;
}

void sim_fault_each(void (*visit)(const char *name, int calls, void *data), void *data)
{
    for (int i = 0; i < SITES; i++) {
        const char *name = atomic_load(&sites[i].name);
        if (name && name[0] != '@')
            visit(name, atomic_load(&sites[i].calls), data);
    }
}

void sim_each_call(void (*visit)(const char *name, int calls, void *data), void *data)
{
    sim_fault_each(visit, data);
}

int sim_calls(const char *name)
{
    for (int i = 0; i < SITES; i++) {
        const char *seen = atomic_load(&sites[i].name);
        if (seen && !strcmp(seen, name))
            return atomic_load(&sites[i].calls);
    }
    return 0;
}

/* One rule: name:nth[+][=code]. A rule that cannot be read is reported on stderr. */
static void read_rule(const char *text, size_t length)
{
    struct rule rule = {.code = DEFAULT_CODE};
    char buffer[NAME * 2], plus[2] = "";
    if (!length)
        return;
    snprintf(buffer, sizeof buffer, "%.*s", (int)length, text);
    if (rule_count < RULES &&
        (sscanf(buffer, "%63[^:]:%d%1[+]=%d", rule.name, &rule.nth, plus, &rule.code) >= 3 ||
         sscanf(buffer, "%63[^:]:%d=%d", rule.name, &rule.nth, &rule.code) >= 2)) {
        rule.onwards = plus[0] == '+';
        rules[rule_count++] = rule;
    } else {
        fprintf(stderr, "gpuglue sim: cannot read the fault rule '%s'\n", buffer);
    }
}

static void read_rules(const char *spec)
{
    rule_count = 0;
    while (spec && *spec) {
        size_t length = strcspn(spec, ",");
        read_rule(spec, length);
        spec += length + (spec[length] == ',');
    }
}

static void read_environment(void)
{
    read_rules(getenv("GPUGLUE_SIM_FAIL"));
}

void sim_fail(const char *spec)
{
    pthread_once(&rules_read, read_environment);
    pthread_mutex_lock(&rule_lock);
    read_rules(spec);
    pthread_mutex_unlock(&rule_lock);
}

int sim_inject(const char *name)
{
    return sim_fault(name);
}

/* Only client threads read the environment, because only the client can prevent a concurrent
 * setenv. So commands that workers run ("@copy") cannot be listed. */
static bool listed(const char *variable, const char *name)
{
    const char *list = name[0] == '@' ? NULL : getenv(variable);
    size_t length = strlen(name);
    while (list && *list) {
        size_t item = strcspn(list, ",");
        if (item == length && !strncmp(list, name, length))
            return true;
        list += item + (list[item] == ',');
    }
    return false;
}

static int matching_rule(const char *name)
{
    int code = 0;
    pthread_once(&rules_read, read_environment);
    pthread_mutex_lock(&rule_lock);
    for (int i = 0; i < rule_count; i++) {
        struct rule *rule = &rules[i];
        if (strcmp(rule->name, name))
            continue;
        rule->seen++;
        if (rule->nth && (rule->seen == rule->nth || (rule->onwards && rule->seen > rule->nth)))
            code = rule->code;
    }
    pthread_mutex_unlock(&rule_lock);
    return code;
}

int sim_fault(const char *name)
{
    struct site *site = site_of(name);
    if (site)
        atomic_fetch_add(&site->calls, 1);
    if (sim_forked())
        return 0;
    if (listed("GPUGLUE_SIM_CRASH", name))
        abort();
    while (listed("GPUGLUE_SIM_HANG", name))
        pause();
    return matching_rule(name);
}
