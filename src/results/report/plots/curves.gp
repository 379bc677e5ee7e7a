# One curve per run over its steps: $curve1, $curve2 ..., and the points of its warm-up: $warmup1 ... Of each run: drawn
# and warmed (whether the one and the other have points), steps and excluded (steps of the warm-up). An interval of points below 0
# breaks the line around them. A linear axis goes from axis_low to axis_high, with tick_label at tick.
set xlabel 'step' offset 0,0.4
longest = 1
command = ''
do for [i = 1:|steps|] {
  type = (i - 1) % 8 + 1
  longest = steps[i] > longest ? steps[i] : longest
  if (drawn[i]) {
    interval = steps[i] / 8 < 1 ? 1 : steps[i] / 8 > 180 ? 180 : steps[i] / 8
    command = command.sprintf(', $curve%d using 1:2 with linespoints lt %d lw 1.8 ps 0.9 pointinterval %d notitle', \
                              i, type, -interval)
  }
  if (warmed[i]) {
    command = command.sprintf(', $warmup%d using 1:2 with points lt %d lw 1.4 pt 6 ps %g notitle', \
                              i, type, excluded[i] > 20 ? 0.5 : 1.3)
    set arrow from excluded[i] + 0.5,graph 0 to excluded[i] + 0.5,graph 1 nohead lt type lw 1 dt 3
  }
}
if (longest <= 10) { set xtics 1 }
set xrange [longest > 20 ? -0.015 * longest : 0.5:1.015 * longest + 0.5]

# A logarithmic axis only where a linear one would flatten the curve, with labels at 1, 2 and 5 times every power of ten:
# gnuplot alone labels only the powers.
if (may_be_log && low > 1e-9 && high < 1e9 && high > 6.0 * low) {
  set logscale y
  set yrange [low / 1.2:high * 1.4]
  tics = ''
  decade = 10.0 ** (floor(log10(low)) - 1)
  while (decade <= 10 * high) {
    do for [step in "1 2 5"] {
      at = step * decade
      if (at > low / 1.2 && at < high * 1.4) { tics = tics.sprintf(', %.3g', at) }
    }
    decade = decade * 10
  }
  eval 'set ytics ('.tics[3:].')'
} else {
  set yrange [axis_low:axis_high]
  set ytics ()
  do for [i = 1:|tick|] { set ytics add (tick_label[i] tick[i]) }
}
eval 'plot '.command[3:]
