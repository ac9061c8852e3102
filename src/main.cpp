// The program only assembles: commands/commands.cpp is the table, commands/program.cpp the dispatch.
#include "commands/commands.h"

int main(int argc, char** argv) {
    return linnet::run_program(argc, argv);
}
