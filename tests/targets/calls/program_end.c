/* The main function of a real program that is built with main=program_main. At the end of the
 * program this function says the exit status as JSON on the standard error. The process ends at a
 * line of the standard input. So a tool sees all function calls of the program. */
#include <stdio.h>

int program_main(int count, char *texts[]);

__attribute__((no_instrument_function)) int main(int count, char *texts[])
{
    char line[16];
    int status = program_main(count, texts);
    fflush(stdout);
    fprintf(stderr, "{\"status\": %d}\n", status);
    (void)!fgets(line, sizeof line, stdin);
    return status;
}
