// The plugin of loader_lock_and_registry.cc: its constructor registers a tag.
extern void register_tag(const char *name);

struct Tag {
    Tag()
    {
        register_tag("plugin");
    }
};
static Tag g_tag;
