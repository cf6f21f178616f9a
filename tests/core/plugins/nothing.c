/* nothing.c: a library that is not a plugin; also the vendors' libraries of the search tests. */
int fixture_identity(void);

int fixture_identity(void)
{
    return FIXTURE_IDENTITY;
}
