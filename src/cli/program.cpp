#include "cli/main.h"

int main(int argc, char** argv) { return tprimat::run_program(argc, argv); }
