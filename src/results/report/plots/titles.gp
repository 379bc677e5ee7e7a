# The model over its panels, and below it at most two lines.
set margins 0,0,0,0
unset tics
unset border
unset title
set label 1 title at graph 0.012,0.72 left font ',19'
colour = is_comparable ? '#222222' : '#B03A00'
set label 2 first_line at graph 0.012,0.38 left font ',12' textcolor rgb colour
set label 3 second_line at graph 0.012,0.15 left font ',12' textcolor rgb colour
plot [0:1][0:1] -1 notitle
