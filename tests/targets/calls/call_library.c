/* A library for call_unloads, built with -finstrument-functions. */
static volatile long sink;

static __attribute__((noinline)) void library_leaf(void)
{
    sink++;
}

void library_work(void);
__attribute__((noinline)) void library_work(void)
{
    library_leaf();
    library_leaf();
}
