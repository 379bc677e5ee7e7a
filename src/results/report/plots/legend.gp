# Colours, names and configuration of the runs: name, first_line and second_line of each. Few get larger letters.
unset tics
set border 0
set lmargin 1
set rmargin 1
set bmargin 1
is_wide = |name| <= 4
entry_step = is_wide ? 0.235 : 0.125
line_step = is_wide ? 0.048 : 0.036
name_font = is_wide ? ',13' : ',11'
fact_font = is_wide ? ',11' : ',9'
do for [i = 1:|name|] {
  y = 0.97 - entry_step * (i - 1)
  set arrow from graph 0.01,y to graph 0.075,y nohead lt i lw 2.5
  set label '' at graph 0.0425,y point lt i ps 1.2 front
  set label name[i] at graph 0.095,y left font name_font textcolor rgb '#000000'
  set label first_line[i] at graph 0.095,(y - line_step) left font fact_font textcolor rgb '#555555'
  set label second_line[i] at graph 0.095,(y - 2 * line_step) left font fact_font textcolor rgb '#555555'
}
set label rest at graph 0.095,-0.02 left font ',10'
plot [0:1][0:1] -1 notitle
