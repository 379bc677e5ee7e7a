# A panel of the planner against measurements. `shows` is 'rates' ($rows: published and predicted tokens/s per GPU, of
# which the published lie between low and high), 'errors' ($rows: error of the step time, and the share of rows without
# a larger one, both in %), or why there is nothing to draw.
set title title font ',9' offset 0,-0.5
set grid xtics ytics lc rgb '#E4E4E4' lt 1
set lmargin 9
set rmargin 2
if (shows eq 'rates') {
  set xlabel 'published tokens/s per GPU' offset 0,0.5
  set ylabel 'predicted' offset 1.5,0
  set logscale xy
  set format xy '%.0s%c'
  from = low / 1.6
  to = high * 1.6
  plot [from:to][from:to] x with lines lc rgb '#555555' lw 1, 1.25 * x with lines lc rgb '#AAAAAA' dt '-', \
    x / 1.25 with lines lc rgb '#AAAAAA' dt '-', $rows with points pt 7 ps 0.55 lc rgb '#0072B2'
}
if (shows eq 'errors') {
  set xlabel 'error of the step time, %' offset 0,0.5
  set ylabel '% of rows with no larger one' offset 1.5,0
  do for [share in "10 25"] { set arrow from share,0 to share,100 nohead lc rgb '#AAAAAA' dt '-' }
  plot [0:50][0:100] $rows with steps lc rgb '#D55E00' lw 2
}
if (shows ne 'rates' && shows ne 'errors') {
  if (shows ne '') {
    unset tics
    set border 0
    set label 1 shows at graph 0.5,0.5 center
  }
  plot [0:1][0:1] -1 notitle
}
