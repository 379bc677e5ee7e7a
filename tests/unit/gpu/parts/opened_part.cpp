extern "C" int tprimat_opened_part() { return 7; }
