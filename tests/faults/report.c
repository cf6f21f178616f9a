/* report.c: reads the report and the output of an ended process. */
#include "sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the file's text, which the caller frees, or NULL. */
static char *read_file(const char *directory, const char *name)
{
    char path[160];
    size_t room = (size_t)1 << 18, length = 0;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "re");
    if (!file)
        return NULL;
    char *text = malloc(room);
    if (text) {
        length = fread(text, 1, room - 1, file);
        text[length] = '\0';
    }
    fclose(file);
    return text;
}

/* Reads the next "name": number from @p text; returns NULL at the end of the object. */
static const char *next_pair(const char *text, char name[NAME_SIZE], int *number)
{
    const char *quote = strchr(text, '"'), *end = strchr(text, '}');
    int used = 0;
    if (!quote || (end && end < quote))
        return NULL;
    if (sscanf(quote, "\"%63[^\"]\": %d%n", name, number, &used) < 2)
        return NULL;
    return quote + used;
}

static void read_leaks(const char *text, struct report *report)
{
    char name[NAME_SIZE];
    int number;
    while (text && (text = next_pair(text, name, &number)))
        report->leaked += number;
}

static void read_calls(const char *text, struct report *report)
{
    int number;
    while (text && report->count < NAMES_MAX &&
           (text = next_pair(text, report->name[report->count].name, &number)))
        report->name[report->count++].calls = number;
}

static const char *object_in(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    return at ? strchr(at, '{') : NULL;
}

void read_report(const char *directory, struct report *report)
{
    char *text = read_file(directory, "report");
    memset(report, 0, sizeof *report);
    if (!text)
        return;
    report->there = true;
    read_leaks(object_in(text, "\"leaked\""), report);
    read_calls(object_in(text, "\"calls\""), report);
    free(text);
}

int calls_of(const struct report *report, const char *name)
{
    for (size_t i = 0; i < report->count; i++)
        if (!strcmp(report->name[i].name, name))
            return report->name[i].calls;
    return 0;
}

bool output_has(const char *directory, const char *text)
{
    char *output = read_file(directory, "output");
    const bool has = output && strstr(output, text);
    free(output);
    return has;
}

void print_output(const char *directory)
{
    char *output = read_file(directory, "output");
    if (output && output[0])
        printf("%s\n", output);
    free(output);
}
