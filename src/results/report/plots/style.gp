# Okabe and Ito's palette for colour-blind readers, its yellow (unreadable on white) replaced by grey. Dashes and points
# differ as well, so that the figure survives a black-and-white printer. `reset` leaves these as they are.
set linetype 1 lc rgb '#0072B2' dt 1 pt 7
set linetype 2 lc rgb '#D55E00' dt '-' pt 5
set linetype 3 lc rgb '#009E73' dt '-.' pt 9
set linetype 4 lc rgb '#CC79A7' dt '..-' pt 13
set linetype 5 lc rgb '#E69F00' dt 1 pt 11
set linetype 6 lc rgb '#56B4E9' dt '-' pt 6
set linetype 7 lc rgb '#000000' dt '-.' pt 4
set linetype 8 lc rgb '#7F7F7F' dt '..-' pt 8
set linetype cycle 8
set encoding utf8
set multiplot
