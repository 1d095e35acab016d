/* Says "ready" and waits: a program in which a scan finds nothing. Tests also build the program
 * with -static.
 */
#include "../target.h"

int main(void)
{
    say("ready");
    hear();
    return 0;
}
