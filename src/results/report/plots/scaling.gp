# Two panels over the number of GPUs: throughput and efficiency, one curve per GPU. $plans and $ideal hold one block per
# curve (GPUs, tokens/s, % of the fewest GPUs' tokens/s/GPU; GPUs, tokens/s); `gpu` names the curves and `ticks` are the
# numbers of GPUs.
reset
set origin 0,0.87
set size 1,0.13
set margins 0,0,0,0
unset tics
unset border
unset key
set label 1 title at graph 0.015,0.66 left font ',17'
set label 2 subtitle at graph 0.015,0.16 left font ',11' textcolor rgb '#444444'
plot [0:1][0:1] -1 notitle

reset
set size 0.5,0.87
set border 3 lc rgb '#555555'
set tics nomirror out scale 0.6
set grid xtics ytics lc rgb '#E4E4E4' lt 1
set lmargin 11
set rmargin 3
set tmargin 2.4
set bmargin 5
set key top left Left reverse samplen 3
set xlabel 'GPUs' offset 0,0.4
set logscale x
set xtics ()
do for [i = 1:|ticks|] { set xtics add (sprintf('%d', ticks[i]) ticks[i]) }
if (|ticks| > 10) { set xtics rotate by -35 left }
set xrange [ticks[1] / 1.15:ticks[|ticks|] * 1.15]

set origin 0,0
set title 'throughput' font ',13' offset 0,-0.4
set ylabel 'tokens/s'
set logscale y
set yrange [lowest_rate / 1.5:highest_rate * 4]  # space above the curves for the legend
set format y '%.0s%c'
plot for [i = 1:|gpu|] $plans index i - 1 using 1:2 with linespoints lt i lw 2 ps 1.1 title gpu[i], \
     for [i = 1:|gpu|] $ideal index i - 1 using 1:2 with lines lw 1.2 dt 3 lc rgb '#888888' \
       title (i == 1 ? 'linear scaling' : '')

set origin 0.5,0
set title 'efficiency'
set ylabel 'tokens/s/GPU over that of the fewest GPUs, %'
unset logscale y
set yrange [0:1.08 * highest_efficiency]
set format y
plot for [i = 1:|gpu|] $plans index i - 1 using 1:3 with linespoints lt i lw 2 ps 1.1 notitle
