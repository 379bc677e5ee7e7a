# Bars with their intervals. Of each participant: rate, low and high (NaN: not known), the name below the bar and two
# lines over it.
set xrange [0.3:|rate| + 0.7]
set yrange [0:1.25 * top]
set boxwidth 0.62
set xtics () scale 0
do for [i = 1:|rate|] {
  set xtics add (name[i] i)
  if (rate[i] == rate[i]) {
    end = high[i] == high[i] ? high[i] : rate[i]
    set label first_line[i] at i,end center offset 0,(second_line[i] eq '' ? 0.7 : 1.7) font ',12' front
    set label second_line[i] at i,end center offset 0,0.6 font ',10' front
    if (low[i] == low[i] && high[i] == high[i]) {
      set arrow from i,low[i] to i,high[i] heads size screen 0.004,90 lw 1.8 lc rgb '#111111' front
    }
  }
}
plot rate using 1:2:1 with boxes lc variable notitle
