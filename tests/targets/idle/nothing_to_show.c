/* Says "ready" and waits: for looking at a program that has nothing to show. Built a second time
 * with -static.
 */
#include "../target.h"

int main(void)
{
    say("ready");
    hear();
    return 0;
}
