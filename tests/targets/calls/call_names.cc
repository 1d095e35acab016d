// Functions in namespaces and classes, and exceptions. The program is built with
// -finstrument-functions. Each function is called as often as the JSON line says.
#include <atomic>
#include <stdexcept>

#include "../target.h"

#define OWN __attribute__((noinline, noclone))

enum { ROUNDS = 100 };

static std::atomic<long> sink;

namespace outer
{
namespace inner
{
OWN void work(int value)
{
    sink += value;
}
} // namespace inner

class Store
{
  public:
    OWN explicit Store(int value) : value_(value)
    {
    }
    OWN ~Store()
    {
        sink += value_;
    }
    OWN int get() const
    {
        return value_;
    }
    template <typename Number> OWN void add(Number number)
    {
        value_ += static_cast<int>(number);
    }

  private:
    int value_;
};

OWN void use(int value)
{
    Store store(value);
    store.add(1.5);
    store.add(2L);
    sink += store.get();
    inner::work(value);
}
} // namespace outer

namespace
{
OWN void hidden(int value)
{
    sink += value;
}
} // namespace

namespace outermost
{
OWN void work(int value)
{
    sink += value;
}
} // namespace outermost

extern "C" OWN void plain_name(int value)
{
    sink += value;
}

OWN static void throws(int depth)
{
    if (depth == 0)
        throw std::runtime_error("thrown");
    throws(depth - 1);
    sink++;
}

OWN static void catches()
{
    try {
        throws(3);
    } catch (const std::exception &) {
        sink++;
    }
    plain_name(1);
}

OWN static void run()
{
    for (int i = 0; i < ROUNDS; i++) {
        outer::use(i);
        outermost::work(i);
        hidden(i);
        plain_name(i);
        catches();
    }
}

int main()
{
    run();
    say("{\"rounds\": 100}");
    hear();
    return 0;
}
