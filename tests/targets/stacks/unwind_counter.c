/* A library to preload behind locktop's library: counts how often the unwinder walks a stack. */
#include <dlfcn.h>
#include <unwind.h>

unsigned unwinds;

_Unwind_Reason_Code _Unwind_Backtrace(_Unwind_Trace_Fn step, void *argument)
{
    static __typeof__(_Unwind_Backtrace) *real;
    if (!real)
        real = (__typeof__(real))dlsym(RTLD_NEXT, "_Unwind_Backtrace");
    unwinds++;
    return real(step, argument);
}
