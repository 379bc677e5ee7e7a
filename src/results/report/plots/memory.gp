# Bars of three figures, a cluster each. $bars: cluster (from 0), participant (from 1), GB.
step = 0.8 / participants
x(cluster, i) = cluster + (i - 1 - (participants - 1) / 2.0) * step
set xrange [-0.6:|name| - 0.4]
set yrange [0:1.18 * top]
set boxwidth 0.88 * step
set xtics () scale 0
do for [i = 1:|name|] { set xtics add (name[i] i - 1) }
plot $bars using (x($1, $2)):3:2 with boxes lc variable notitle, \
     $bars using (x($1, $2)):3:(sprintf(participants <= 4 ? '%.1f' : '%.0f', $3)) with labels center offset 0,0.6 \
       font ',10' notitle
